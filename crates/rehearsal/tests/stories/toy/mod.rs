//! A strategy that nobody ships: one step, one gate of its own, and the Jobs that everybody has. What it brings is in this folder, and one line of
//! the dispatch finds it. Gates, requests, snapshots, hooks, status, events, the forecast, crash tests and walks it gets for nothing.

mod carry_out;
mod plan;

use std::{marker::PhantomData, time::Duration};

use serde_json::{Value, json};
use windlass_operator::{
    Context,
    quorum::strategies::{AnyStrategy, Of, Strategies},
};
use windlass_plan::{Reason, forecast::End};
use windlass_rehearsal::{
    Running, context, crash, pd, pool,
    setting::{ETCD, PD, Setting, after, back_up, follow},
    trial::{self, Ending, Outcome, Scenario},
    walk,
};
use windlass_sim::{
    harness::Seat,
    journal::{Event, Verb},
    scenario::{Action, Moment, When},
};

use self::plan::Followers;
use crate::support::{
    TO, Tale,
    stage::{self, pass, patch, until_reason, until_stalled},
};

/// The dispatch: its line.
const WITH_THE_TOY: Strategies = Strategies { asked_for: |_| toy(), all: || vec![toy()] };

fn toy() -> &'static dyn AnyStrategy {
    &Of::<Followers>(PhantomData)
}

fn with_the_toy(seat: Seat) -> Context {
    Context { strategies: WITH_THE_TOY, ..context(seat) }
}

/// The operator, with the toy.
fn operator(seat: Seat) -> Running {
    Box::pin(async move {
        windlass_operator::run(&with_the_toy(seat), std::future::pending()).await;
    })
}

/// The same, but its own gate always lets through.
fn careless(seat: Seat) -> Running {
    plan::blind(true);
    operator(seat)
}

/// A quorum that the toy upgrades: somebody else writes the template, and has leadership moved when only the leader is left.
fn upgrade(setting: Setting, seed: u64) -> Scenario {
    let mut scenario = setting.evicted(seed);
    follow(&mut scenario.objects);
    scenario.timeline.push(after(Duration::from_secs(1), setting.edit(setting.reference.1)));
    let leader = u32::try_from(seed.wrapping_sub(1) % 3).unwrap_or_default();
    scenario.timeline.push(Moment { when: When::Replaced(2), action: Action::DropWatches });
    scenario.timeline.push(after(Duration::from_mins(3), Action::Elect(setting.pod((leader + 1) % 3))));
    scenario
}

fn run(scenario: &Scenario) -> Outcome {
    trial::run(scenario, &[], &operator).expect("a runtime for the scenario")
}

fn jobs(outcome: &Outcome) -> Vec<String> {
    let made = outcome.journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == "jobs.batch" && change.verb == Verb::Create => Some(&change.name),
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    made.cloned().collect()
}

/// A snapshot, Jobs before and after, a webhook for each member: nothing of that is the toy's.
#[test]
fn it_gets_a_snapshot_hooks_status_and_events() {
    let mut scenario = ETCD.hooked(upgrade(ETCD, 1));
    back_up(&mut scenario.objects, "10m");
    let outcome = run(&scenario);
    assert_eq!(outcome.fault(), None);
    assert_eq!(crash::end_state(&outcome)["version"], ETCD.reference.1);
    let jobs = jobs(&outcome);
    let kinds = ["windlass-hook-", "windlass-snapshot-", "windlass-hook-"];
    assert_eq!(jobs.len(), kinds.len(), "{jobs:?}");
    for (job, kind) in jobs.iter().zip(kinds) {
        assert!(job.starts_with(kind), "{jobs:?}");
    }
    let tale = Tale::new(outcome.journal, outcome.verdict, outcome.subject);
    let all = 0..tale.journal.len();
    assert_eq!(tale.replaced(all.clone()), ["etcd-2", "etcd-1", "etcd-0"]);
    let events = tale.events(all.clone());
    assert_eq!(events["MemberReplaced"].len(), 3, "{events:?}");
    assert!(events.contains_key("UpgradeCompleted"), "{events:?}");
    let said = tale.said_of(ETCD.name, all);
    let gates = |status: &Value| {
        let gates = status["gates"].as_array().cloned().unwrap_or_default();
        gates.iter().map(|gate| gate["name"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let half_way = said.iter().find(|said| said.status["upgrade"]["progress"] == "1/3").expect("a member is done");
    let expected = ["NotPaused", "MemberSpared", "ConcurrentOperation", "Approval", "MaintenanceWindow"];
    assert_eq!(gates(&half_way.status), [expected.as_slice(), &["NodeDrain", "Hook/ask", "ImagePulled"]].concat());
}

/// What people ask for is heard without a word of the toy's about it.
#[test]
fn it_hears_what_people_ask_for() {
    let mut scenario = upgrade(PD, 1);
    for object in scenario.objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
        object["spec"]["gates"] = json!({"approval": {"mode": "BeforeUpgrade"}});
    }
    let spec = |patch: Value| json!({ "spec": patch });
    let tale = stage::play_with(scenario.objects, &operator, async |cluster| {
        let Action::Patch { target, patch: edit } = PD.edit(TO) else { return };
        patch(cluster, &target, &edit);
        until_reason(cluster, "AwaitingApproval").await;
        pass(Duration::from_mins(5)).await;
        patch(cluster, &pd::subject(), &spec(json!({"paused": true})));
        until_reason(cluster, "Paused").await;
        patch(cluster, &pd::subject(), &spec(json!({"paused": false, "requests": {"abort": "at-nine"}})));
        until_stalled(cluster, "Aborted").await;
        patch(cluster, &pd::subject(), &spec(json!({"requests": {"retry": "at-ten", "approve": "at-ten"}})));
        until_reason(cluster, "AwaitingHandOver").await;
        cluster.world.elect(pd::NAMESPACE, "pd", "pd-2");
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(tale.replaced(0..tale.journal.len()).len(), 3);
    tale.ended_ready_at(TO);
}

/// What `windlass plan` shows is the toy's own planner, played forward.
#[test]
fn it_is_foreseen() {
    let objects = upgrade(PD, 1).objects;
    stage::play_with(objects, &operator, async |cluster| {
        let Action::Patch { target, patch: edit } = PD.edit(TO) else { return };
        until_reason(cluster, "UpToDate").await;
        patch(cluster, &pd::subject(), &json!({"spec": {"paused": true}}));
        patch(cluster, &target, &edit);
        until_reason(cluster, "Paused").await;
        let process = windlass_sim::faults::Process::new("person", cluster.clock, cluster.journal.clone(), 1);
        let context = with_the_toy(cluster.seat(&process));
        let resource = serde_json::from_value(stage::subject(cluster)).expect("a QuorumCluster");
        let observed = toy().observe_ahead(&context, &resource).await.expect("what is there");
        let foresight = toy().foresee(&context, &resource, &observed).expect("what would happen");
        let steps: Vec<_> = foresight.forecast.steps.iter().map(|step| step.step.to_string()).collect();
        assert_eq!(steps, ["evict pd-2", "evict pd-1"]);
        let End::Held(hold) = &foresight.forecast.end else { panic!("{:?}", foresight.forecast.end) };
        assert_eq!(hold.reason, Reason::AwaitingHandOver);
    });
}

/// Killed and frozen at every call: the same end, and nobody is replaced once more.
#[test]
fn it_survives_strikes_at_every_call() {
    let mut scenario = ETCD.hooked(upgrade(ETCD, 2));
    back_up(&mut scenario.objects, "10m");
    let cases = [
        crash::Case { name: "toy with all there is".to_owned(), scenario },
        crash::Case { name: "toy".to_owned(), scenario: upgrade(PD, 3) },
    ];
    let report = crash::everywhere(operator, cases, 16, Some(120)).expect("undisturbed it ends well");
    assert_eq!(report.failures, Vec::<String>::new());
    assert!(report.kills > 20 && report.freezes > 20, "{report:?}");
}

/// Where a walk may leave it, besides the end: it moves no leadership, goes nowhere back, and mends nobody.
const ITS_ENDS: [&str; 5] =
    ["AwaitingHandOver", "AwaitingBudget", "QuorumAtRisk", "DowngradeNotAllowed", "MembersUnknown"];

/// The walks in which somebody else writes the template, within a budget.
fn walks() -> Vec<Scenario> {
    let follows = |scenario: &Scenario| {
        let mut resources = scenario.objects.iter().filter(|object| object["kind"] == "QuorumCluster");
        resources.any(|resource| resource["spec"]["trigger"] == "Template")
    };
    let toys = (0..400).map(walk::scenario).filter(follows).map(|mut scenario| {
        let (namespace, name) = (scenario.subject.namespace.clone(), scenario.subject.name.clone());
        let last = scenario.objects.len().saturating_sub(1);
        scenario.objects.insert(
            last,
            json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "theirs", "namespace": namespace},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
            }),
        );
        let mut reasons = ITS_ENDS.map(str::to_owned).to_vec();
        match &scenario.ending {
            Ending::ReadyOr(more) => reasons.extend(more.iter().cloned()),
            Ending::Ready | Ending::Held(_) => {}
        }
        Scenario { ending: Ending::ReadyOr(reasons), max_leader_moves: None, ..scenario }
    });
    toys.collect()
}

/// What is wrong on these walks, or on those until something is.
fn faults(program: fn(Seat) -> Running, stop: bool) -> Vec<String> {
    let walks = walks();
    assert!(walks.len() > 40, "{} walks are too few", walks.len());
    let fault = |number: usize| {
        let scenario = &walks[number];
        let outcome = trial::run(scenario, &[], &program).expect("a runtime for the scenario");
        plan::blind(false);
        outcome.fault().map(|fault| format!("seed {}: {fault}", scenario.seed))
    };
    pool::run(walks.len(), fault, |fault| stop && fault.is_some()).into_iter().flatten().collect()
}

#[test]
fn nothing_is_violated_on_random_walks() {
    assert_eq!(faults(operator, false), Vec::<String>::new());
}

/// The same walks judge it: without the gate of its own they find what it is for.
#[test]
fn its_gate_is_needed() {
    assert_ne!(faults(careless, true), Vec::<String>::new());
}
