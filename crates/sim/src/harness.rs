//! Runs a scenario: a cluster, the program under test and the timeline. Who the program is, when the run has ended and what was wrong with
//! it is for the caller to say ([`Trial`]).

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::LocalSet;

use crate::{
    api::Api,
    clock::Clock,
    faults::{Odds, Process, Strike},
    journal::{Change, Entry, Event, Journal, Note},
    rng::{self, Rng},
    scenario::{Action, End, Moment, Scenario, Subject, When},
    world::{Settings, World},
};

/// A cluster without an operator.
#[derive(Clone)]
pub struct Cluster {
    /// Its time.
    pub clock: Clock,
    /// What happens in it.
    pub journal: Journal,
    /// Its API server.
    pub api: Api,
    /// Its controllers, nodes and applications.
    pub world: World,
}

impl Cluster {
    /// A new cluster; it moves while [`World::run`] is polled.
    pub fn new(seed: u64) -> Self {
        Self::with(seed, Clock::start(), Settings::default())
    }

    /// The same with a clock and settings of its own.
    pub fn with(seed: u64, clock: Clock, settings: Settings) -> Self {
        let journal = Journal::default();
        let api = Api::new(clock, journal.clone());
        let world = World::new(api.clone(), clock, journal.clone(), seed, settings);
        Self { clock, journal, api, world }
    }

    /// A place in the cluster for a program under test.
    pub fn seat(&self, process: &Process) -> Seat {
        let (caller, world) = (process.clone(), self.world.clone());
        Seat {
            client: process.client(&self.api),
            dial: Arc::new(move |request| caller.dial(&world, request)),
            clock: self.clock,
            identity: process.user().to_owned(),
        }
    }
}

/// Sends one request to a pod's address.
pub type Dial = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, std::io::Result<Response<Bytes>>> + Send + Sync>;

/// All that a program under test gets of the cluster.
pub struct Seat {
    /// The Kubernetes API, with this process's faults in front.
    pub client: kube::Client,
    /// The applications, likewise.
    pub dial: Dial,
    /// The time.
    pub clock: Clock,
    /// Who it is; unique per process.
    pub identity: String,
}

/// The program under test: whatever runs in a seat.
pub type Program = dyn Fn(Seat) -> Pin<Box<dyn Future<Output = ()>>>;

/// A program under test, with what only those who wrote it know of it.
pub struct Trial<'a, V> {
    /// How the names of its processes begin; their place and their life follow. Whoever is called so is one of them.
    pub name: &'a str,
    /// What runs in its seats.
    pub program: &'a Program,
    /// Whether a write of one of its processes says that this one has taken over from the one before.
    pub says_taken_over: fn(&Change) -> bool,
    /// A program beside it that suffers from nothing: somebody else's controller.
    pub beside: Option<&'a Program>,
    /// Judges all that happened.
    pub judge: &'a dyn Fn(&[Entry]) -> V,
}

/// What judges came to.
pub trait Verdict {
    /// What went wrong first, if anything did.
    fn violation(&self) -> Option<&str>;
}

/// What became of a run.
pub struct Outcome<V> {
    /// The judgement.
    pub verdict: V,
    /// It came to rest as it should.
    pub settled: bool,
    /// The subject at the end.
    pub subject: Value,
    /// How much cluster time it took.
    pub elapsed: Duration,
    /// The first process's calls that mattered.
    pub calls: Vec<String>,
    /// Everything that happened.
    pub journal: Vec<Entry>,
}

impl<V: Verdict> Outcome<V> {
    /// A number that two equal runs share.
    pub fn trace(&self) -> u64 {
        let text = |entry: &Entry| format!("{} {:?}", entry.at, entry.event);
        rng::hash(self.journal.iter().flat_map(|entry| text(entry).into_bytes()))
    }

    /// What is wrong with this run, if anything.
    pub fn fault(&self) -> Option<String> {
        if let Some(violation) = self.verdict.violation() {
            return Some(violation.to_owned());
        }
        let conditions = self.subject.pointer("/status/conditions").map(ToString::to_string).unwrap_or_default();
        (!self.settled).then(|| format!("did not settle: {conditions}"))
    }
}

/// Runs a scenario to its end, on a runtime of its own with virtual time.
pub fn run<E: End, V>(
    scenario: &Scenario<E>,
    strikes: &[(u64, Strike)],
    trial: &Trial<'_, V>,
) -> std::io::Result<Outcome<V>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(LocalSet::new().block_on(&runtime, play(scenario, strikes, trial)))
}

/// An operator's place: its present process, replaced when it dies.
type Slot = Rc<RefCell<Process>>;

async fn play<E: End, V>(scenario: &Scenario<E>, strikes: &[(u64, Strike)], trial: &Trial<'_, V>) -> Outcome<V> {
    let settings = Settings { endpoints: false, ..Settings::default() };
    let cluster = Cluster::with(scenario.seed, Clock::start(), settings);
    let mut rng = Rng::new(scenario.seed).fork("harness");
    let world = tokio::task::spawn_local(cluster.world.clone().run());
    for object in &scenario.objects {
        if let Err(status) = cluster.api.create_value("user", object.clone()) {
            cluster.journal.push(cluster.clock.now(), Event::Note(Note::NotCreated { why: status.to_string() }));
        }
    }
    if scenario.objects.iter().any(|object| object["kind"] == "StatefulSet") {
        up(&cluster).await;
    }

    // Whether processes suffer from random faults: until the timeline has ended, through all their lives.
    let faulty = Rc::new(Cell::new(scenario.faults));
    let mut slots: Vec<Slot> = Vec::new();
    let mut first = None;
    let mut operators = Vec::new();
    for number in 0..scenario.operators {
        let process = trial.process(&cluster, number, 0, scenario.seed);
        if number == 0 {
            for (index, strike) in strikes {
                process.strike_at(*index, *strike);
            }
            first = Some(process.clone());
        }
        if scenario.faults {
            process.set_odds(Odds::draw(&mut rng));
        }
        let slot = Rc::new(RefCell::new(process));
        slots.push(slot.clone());
        operators.push(occupy(slot, cluster.clone(), number, scenario.seed, faulty.clone(), trial));
    }
    let stranger = Process::new("other", cluster.clock, cluster.journal.clone(), scenario.seed);
    let other = async {
        match trial.beside {
            Some(other) => stranger.live(other(cluster.seat(&stranger))).await,
            None => std::future::pending().await,
        }
    };
    let story = async {
        for moment in &scenario.timeline {
            wait(&cluster, trial.name, moment).await;
            act(&cluster, trial.name, &slots, &moment.action);
        }
        faulty.set(false);
        for slot in &slots {
            slot.borrow().set_odds(Odds::default());
        }
        settle(&cluster, scenario).await
    };
    let settled = tokio::select! {
        biased;
        settled = story => settled,
        () = other => false,
        _ = futures::future::join_all(operators) => false,
    };
    world.abort();
    let journal = std::mem::take(&mut *cluster.journal.entries());
    Outcome {
        verdict: (trial.judge)(&journal),
        settled,
        subject: get(&cluster, &scenario.subject).unwrap_or_default(),
        elapsed: cluster.clock.elapsed(),
        calls: first.map(|process| process.made()).unwrap_or_default(),
        journal,
    }
}

impl<V> Trial<'_, V> {
    /// A process of the program: in which place, and the how manieth there.
    fn process(&self, cluster: &Cluster, place: u32, life: u32, seed: u64) -> Process {
        let name = format!("{}-{place}-{life}", self.name);
        let process = Process::new(&name, cluster.clock, cluster.journal.clone(), seed);
        process.thaw_when_taken_over(self.says_taken_over);
        process
    }
}

/// The revision of the last write before this time.
fn revision_at(journal: &Journal, then: Timestamp) -> Option<u64> {
    let entries = journal.entries();
    entries.iter().rev().filter(|entry| entry.at <= then).find_map(|entry| match &entry.event {
        Event::Write(change) => Some(change.revision),
        Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    })
}

/// Runs operator processes in a slot, one after the other, for ever.
fn occupy<'a, V>(
    slot: Slot,
    cluster: Cluster,
    number: u32,
    seed: u64,
    faulty: Rc<Cell<bool>>,
    trial: &'a Trial<'_, V>,
) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(async move {
        let mut rng = Rng::new(seed).fork(&format!("operator {number}"));
        // The first operator wins the lease: what is struck at is then what acts.
        tokio::time::sleep(Duration::from_secs(u64::from(number))).await;
        for life in 1.. {
            let process = slot.borrow().clone();
            process.live((trial.program)(cluster.seat(&process))).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            let process = trial.process(&cluster, number, life, seed);
            if faulty.get() {
                process.set_odds(Odds::draw(&mut rng));
            }
            *slot.borrow_mut() = process;
        }
    })
}

/// Waits until every quorum is up.
async fn up(cluster: &Cluster) {
    for _ in 0..600 {
        let truths = cluster.world.truths();
        let up = |truth: &crate::journal::QuorumTruth| {
            truth.members.iter().all(|member| member.healthy) && truth.members.iter().any(|member| member.leader)
        };
        if !truths.is_empty() && truths.iter().all(up) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Waits until it is time for a moment. The names of processes under test begin with `ours`.
async fn wait(cluster: &Cluster, ours: &str, moment: &Moment) {
    let many = |needed: usize, counts: fn(&Entry, &str) -> bool| async move {
        for _ in 0..600 {
            if cluster.journal.entries().iter().filter(|entry| counts(entry, ours)).count() >= needed {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    match &moment.when {
        When::After(delay) => tokio::time::sleep(*delay).await,
        When::Replaced(needed) => many(*needed, is_replacement).await,
        When::Permitted(needed) => many(*needed, is_permit).await,
        When::Gone(subject, delay) => {
            for _ in 0..3_000 {
                if get(cluster, subject).is_none() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            tokio::time::sleep(*delay).await;
        }
    }
}

/// The StatefulSet controller marks a pod for deletion, or a process under test does with a pod that is ready.
fn is_replacement(entry: &Entry, ours: &str) -> bool {
    let Event::Write(change) = &entry.event else { return false };
    let marked = |object: &Option<Arc<Value>>| {
        object.as_deref().is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_some())
    };
    let ready = |object: &Option<Arc<Value>>| {
        let conditions = object.as_deref().and_then(|object| object.pointer("/status/conditions"));
        let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    change.resource == "pods"
        && (change.user == "statefulset-controller" || (change.user.starts_with(ours) && ready(&change.before)))
        && marked(&change.after)
        && !marked(&change.before)
}

/// A process under test lowers a partition.
fn is_permit(entry: &Entry, ours: &str) -> bool {
    let Event::Write(change) = &entry.event else { return false };
    let partition = |object: &Option<Arc<Value>>| {
        object
            .as_deref()
            .and_then(|object| object.pointer("/spec/updateStrategy/rollingUpdate/partition"))
            .and_then(Value::as_u64)
    };
    change.resource == "statefulsets.apps"
        && change.user.starts_with(ours)
        && partition(&change.after) < partition(&change.before)
}

fn act(cluster: &Cluster, ours: &str, slots: &[Slot], action: &Action) {
    let Cluster { api, world, clock, journal } = cluster;
    let tell = |note: Note| journal.push(clock.now(), Event::Note(note));
    let refused = |what: String, why: String| tell(Note::Refused { what, why });
    match action {
        Action::Patch { target, patch } => {
            if let Err(error) = patch_value(api, target, patch) {
                refused(format!("patch of {}", target.name), error);
            }
        }
        Action::Apply { target, manager, part } => {
            if let Err(error) = apply_value(api, target, manager, part) {
                refused(format!("apply of {}", target.name), error);
            }
        }
        Action::PatchStatus { target, patch } => {
            if let Err(error) = patch_at(api, &format!("{}/status", path(api, target)), patch) {
                refused(format!("patch of the status of {}", target.name), error);
            }
        }
        Action::Create(object) => {
            if let Err(error) = api.create_value("user", object.clone()) {
                refused("create".to_owned(), error.to_string());
            }
        }
        Action::Delete(target) => delete_value(api, target),
        Action::FreezeFields { target: Subject { resource, namespace, name }, fields } => {
            api.freeze_fields(resource, namespace, name, fields);
            tell(Note::FieldsFrozen { name: name.clone(), fields: fields.clone() });
        }
        Action::Webhook { target: Subject { resource, namespace, name }, how, about } => {
            api.set_webhook(resource, namespace, name, *how, about);
            tell(Note::WebhookBroken { name: name.clone(), yes: how.is_some() });
        }
        Action::Crash(place) => world.crash_process(&place.namespace, &place.pod),
        Action::Pressure(place) => world.evict_under_pressure(&place.namespace, &place.pod),
        Action::Image(image, behaviour) => world.set_image(image, *behaviour),
        Action::Pullable { node, image, yes } => world.set_pullable(node, image, *yes),
        Action::Hang(place, how_long) => world.hang_process(&place.namespace, &place.pod, *how_long),
        Action::Starve(place, starved) => world.starve(&place.namespace, set_of(&place.pod), &place.pod, *starved),
        Action::Busy(set, per_second) => world.busy(&set.namespace, &set.name, *per_second),
        Action::Cling(set, clings) => world.cling(&set.namespace, &set.name, *clings),
        Action::Service(place, answer) => world.answer_at_service(&place.namespace, &place.pod, answer.clone()),
        Action::Answers(place, how) => world.break_answers(&place.namespace, &place.pod, *how),
        Action::Node { name, up: true } => world.node_up(name),
        Action::Node { name, up: false } => world.node_down(name),
        Action::Drain(node) => world.drain(node),
        Action::Uncordon(node) => world.uncordon(node),
        Action::Empty(node) => world.empty(node),
        Action::FreezeControllers(how_long) => world.freeze_controllers(clock.elapsed() + *how_long),
        Action::Elect(place) => world.elect(&place.namespace, set_of(&place.pod), &place.pod),
        Action::Priority(place, priority) => {
            world.pd(&place.namespace, set_of(&place.pod)).set_leader_priority(&place.pod, i64::from(*priority));
        }
        Action::AutoUnseal(set, works) => world.auto_unseal(&set.namespace, &set.name, *works),
        Action::Unseal(place) => world.unseal(&place.namespace, set_of(&place.pod), &place.pod),
        Action::Tell { whom, path, body } => world.tell(&whom.namespace, set_of(&whom.pod), &whom.pod, path, body),
        Action::DropWatches => api.drop_watches(None),
        Action::StillWatches => {
            api.still_watches(ours);
            tell(Note::WatchesStill);
        }
        Action::Unlistable(resource, yes) => api.set_unlistable(resource, *yes),
        Action::Compact => api.compact(api.revision()),
        Action::Restore(ago) => {
            let then = clock.now().saturating_sub(*ago);
            let past = then.ok().and_then(|then| revision_at(journal, then));
            tell(Note::Restored(past));
            api.restore(past.unwrap_or_default());
        }
        Action::KillOperator(number) => {
            if let Some(slot) = slots.get(*number) {
                slot.borrow().kill();
            }
        }
        Action::FreezeOperator(number, how_long) => {
            if let Some(slot) = slots.get(*number) {
                slot.borrow().freeze(*how_long);
            }
        }
    }
}

/// The StatefulSet that a pod belongs to, by its name.
fn set_of(pod: &str) -> &str {
    pod.rsplit_once('-').map_or(pod, |(set, _)| set)
}

fn path(api: &Api, target: &Subject) -> String {
    let (plural, group) = target.resource.split_once('.').unwrap_or((&target.resource, ""));
    let kind = api.get_value(&target.resource, &target.namespace, &target.name);
    let version = kind.as_deref().and_then(|object| object["apiVersion"].as_str()).unwrap_or("v1").to_owned();
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{version}") };
    match target.namespace.as_str() {
        "" => format!("{root}/{plural}/{}", target.name),
        namespace => format!("{root}/namespaces/{namespace}/{plural}/{}", target.name),
    }
}

/// A person's merge patch of an object.
pub fn patch_value(api: &Api, target: &Subject, patch: &Value) -> Result<(), String> {
    patch_at(api, &path(api, target), patch)
}

/// Applies part of an object, and takes it from whoever has it.
fn apply_value(api: &Api, target: &Subject, manager: &str, part: &Value) -> Result<(), String> {
    let mut part = part.clone();
    part["metadata"] = serde_json::json!({"name": target.name, "namespace": target.namespace});
    let place = format!("{}?fieldManager={manager}&force=true", path(api, target));
    send(api, Request::patch(place).header("content-type", "application/apply-patch+yaml"), &part)
}

fn patch_at(api: &Api, place: &str, patch: &Value) -> Result<(), String> {
    send(api, Request::patch(place).header("content-type", "application/merge-patch+json"), patch)
}

fn send(api: &Api, request: http::request::Builder, body: &Value) -> Result<(), String> {
    let request = request.body(Bytes::from(body.to_string())).map_err(|error| error.to_string())?;
    match api.handle("user", request, None) {
        crate::api::Reply::Done(response) if response.status().is_success() => Ok(()),
        crate::api::Reply::Done(response) => Err(String::from_utf8_lossy(response.body()).into_owned()),
        crate::api::Reply::Watch(_) => Err("a watch in answer to a patch".into()),
    }
}

fn delete_value(api: &Api, target: &Subject) {
    if let Ok(request) = Request::delete(path(api, target)).body(Bytes::new()) {
        api.handle("user", request, None);
    }
}

fn get(cluster: &Cluster, subject: &Subject) -> Option<Value> {
    cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name).map(|object| (*object).clone())
}

/// Waits for the end; false when it does not come in time.
async fn settle<E: End>(cluster: &Cluster, scenario: &Scenario<E>) -> bool {
    let deadline = cluster.clock.elapsed() + scenario.limit;
    let mut calm = 0;
    while cluster.clock.elapsed() < deadline {
        let there = get(cluster, &scenario.subject).is_some_and(|subject| scenario.ending.has_come(&subject));
        calm = if there { calm + 1 } else { 0 };
        // Once is luck: what holds for a while has settled.
        if calm >= 10 {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    false
}
