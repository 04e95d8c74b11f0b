//! What the toy decides: followers that do not run the newest template are evicted, one after another. Whoever leads is left alone until somebody
//! else does.

use std::{borrow::Cow, cell::Cell, collections::BTreeMap, fmt, time::Duration};

use jiff::Timestamp;
use windlass_plan::{
    Fact, Hold, MemberName, Pod, Reason, Seen, StepKind, Want, Workload,
    forecast::{Foresee, Foreseen, Note},
    gate::{GateState, Outcome},
    rolling::known::{order::Order, workload::Evictions},
    strategy::{
        Strategy, contract,
        gates::{Asks, Gate, evaluate, first_thing},
        known::{
            ask,
            decision::{self, SOON, wait},
            step::{self, JobStep},
            want::Target,
        },
        snapshot,
    },
};

/// The toy: one step, one gate of its own, and the Jobs that everybody has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followers;

type Decision = decision::Decision<Step>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Job(JobStep),
    /// Within a budget of somebody else's; a pod that is down already is deleted without one.
    Evict {
        pod: MemberName,
        uid: String,
        budget: Option<String>,
    },
}

impl From<JobStep> for Step {
    fn from(job: JobStep) -> Self {
        Self::Job(job)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => job.fmt(f),
            Self::Evict { pod, .. } => write!(f, "evict {pod}"),
        }
    }
}

impl step::Step for Step {
    fn kind(&self) -> StepKind {
        match self {
            Self::Job(job) => job.kind(),
            Self::Evict { .. } => StepKind::MemberReplaced,
        }
    }

    fn member(&self) -> Option<&MemberName> {
        match self {
            Self::Job(_) => None,
            Self::Evict { pod, .. } => Some(pod),
        }
    }

    fn disturbs(&self) -> bool {
        matches!(self, Self::Evict { .. })
    }

    fn job(&self) -> Option<&JobStep> {
        match self {
            Self::Job(job) => Some(job),
            Self::Evict { .. } => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct View {
    pub seen: Seen,
    pub workload: Workload,
    pub pods: Vec<Pod>,
    pub evictions: Evictions,
    pub record: Option<Record>,
}

impl AsRef<Seen> for View {
    fn as_ref(&self) -> &Seen {
        &self.seen
    }
}

impl AsMut<Seen> for View {
    fn as_mut(&mut self) -> &mut Seen {
        &mut self.seen
    }
}

impl View {
    fn is_outdated(&self, pod: &Pod) -> bool {
        self.workload.is_outdated(pod)
    }

    /// Whose turn it is: one that is down, then followers from the top, then the leader.
    fn next(&self) -> Option<&Pod> {
        let outdated = self.pods.iter().filter(|pod| self.is_outdated(pod));
        outdated.max_by_key(|pod| (pod.is_down(), !self.seen.quorum.leader.is(&pod.name), pod.index))
    }

    /// The budget that counts evictions of all its pods, and lets one go at most.
    fn budget(&self) -> Option<&str> {
        let Evictions::Theirs(budgets) = &self.evictions else { return None };
        let tight = |expected: u32, desired: u32| expected.saturating_sub(desired) <= 1;
        let mut counting = budgets.iter().filter(|budget| {
            budget.selects_all && budget.counts.is_some_and(|counts| tight(counts.expected, counts.desired))
        });
        counting.next().map(|budget| budget.name.as_str())
    }

    /// Who is not well yet, apart from this one.
    fn sick(&self, target: &Target, apart: Option<&MemberName>) -> Option<Hold> {
        let of = |index| self.workload.member(index);
        (0..self.workload.replicas).map(of).filter(|name| Some(name) != apart).find_map(|name| {
            let Some(pod) = self.pods.iter().find(|pod| pod.name == name) else {
                return Some(Hold::new(Reason::PodNotReady, format!("pod {name} does not exist")));
            };
            if !pod.is_up() {
                return Some(Hold::new(Reason::PodNotReady, format!("pod {name} is not ready")));
            }
            let member = self.seen.quorum.voter(&name);
            if !member.is_some_and(windlass_plan::Member::is_healthy) {
                return Some(Hold::new(Reason::MembersUnknown, format!("{name} is not known to be healthy")));
            }
            let right = member.is_some_and(|member| member.version.is(&target.version));
            let message = || format!("{name} does not run {target}");
            (!right && !self.is_outdated(pod)).then(|| Hold::new(Reason::VersionMismatch, message()))
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub target: Target,
    pub from: Target,
    pub since: Timestamp,
    pub done: Vec<MemberName>,
    pub well_since: BTreeMap<MemberName, Timestamp>,
    pub next: Option<MemberName>,
}

impl contract::Record for Record {
    fn target(&self) -> &Target {
        &self.target
    }

    fn from(&self) -> &Target {
        &self.from
    }

    fn coming(&self) -> &Target {
        &self.target
    }

    fn since(&self) -> Timestamp {
        self.since
    }

    fn done(&self) -> &[MemberName] {
        &self.done
    }

    fn next(&self) -> Option<&MemberName> {
        self.next.as_ref()
    }

    fn settled(&self) -> Option<Timestamp> {
        self.well_since.values().copied().max()
    }

    fn is_rolling_back(&self) -> bool {
        false
    }

    fn is_waiting(&self) -> bool {
        false
    }

    fn is_overdue(&self, _: &Want, _: Timestamp) -> bool {
        false
    }

    fn forgive(&mut self) {}
}

pub struct Ask<'a> {
    want: &'a Want,
    view: &'a View,
    record: Option<&'a Record>,
    victim: &'a Pod,
    now: Timestamp,
}

impl Asks for Followers {
    type Ask<'a> = Ask<'a>;
}

impl ask::Ask for Ask<'_> {
    fn want(&self) -> &Want {
        self.want
    }

    fn seen(&self) -> &Seen {
        &self.view.seen
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn under_way(&self) -> Option<&Target> {
        self.record.map(contract::Record::target)
    }

    fn member(&self) -> &MemberName {
        &self.victim.name
    }

    fn needs_no_pull(&self) -> bool {
        false
    }

    fn last_settled(&self) -> Option<(&MemberName, Timestamp)> {
        self.record?.well_since.iter().max_by_key(|(_, since)| **since).map(|(member, since)| (member, *since))
    }

    fn expected(&self) -> Option<Duration> {
        None
    }
}

/// The gate of its own, among those of everybody.
const BEFORE_EACH: &[Gate<Followers>] = &[
    Gate::NOT_PAUSED,
    Gate::own("MemberSpared", |ask| spared(ask)),
    Gate::LOCK,
    Gate::APPROVAL,
    Gate::WINDOW,
    Gate::OTHERS,
    Gate::PULL,
];

const BEFORE_ALL: &[Gate<Followers>] =
    &[Gate::NOT_PAUSED, Gate::LOCK, Gate::APPROVAL, Gate::WINDOW, Gate::OTHERS, Gate::FIRST, Gate::PULL];

const AFTER_ALL: &[Gate<Followers>] = &[Gate::LAST];

thread_local! {
    static BLIND: Cell<bool> = const { Cell::new(false) };
}

/// Plants a mistake, on this thread: the gate of its own always lets through.
pub fn blind(blind: bool) {
    BLIND.set(blind);
}

/// Everybody else is well, somebody else leads, and whoever evicts another one counts on the same budget.
fn spared(ask: &Ask<'_>) -> Outcome {
    if BLIND.get() {
        return Outcome::Pass;
    }
    let (view, victim) = (ask.view, &ask.victim.name);
    let target = ask::Ask::target(ask);
    let newest = view.seen.quorum.voters().filter_map(|(_, member)| member.version.known()).max();
    if let Some(newest) = newest.filter(|newest| **newest > target.version) {
        let message = format!("{newest} runs already, and {target} is older");
        return Outcome::Hold(Hold::new(Reason::DowngradeNotAllowed, message));
    }
    if let Some(hold) = view.sick(target, Some(victim)) {
        return Outcome::from(Err(hold));
    }
    match &view.seen.quorum.leader {
        Fact::Unknown(why) => return Outcome::Unknown(Hold::new(Reason::LeaderUnknown, why.clone())),
        Fact::Known(leader) if leader == victim => {
            let message = format!("{victim} leads, and is left alone until another one does");
            return Outcome::Hold(Hold::new(Reason::AwaitingHandOver, message));
        }
        Fact::Known(_) => {}
    }
    if !view.seen.quorum.survives_losing(victim) {
        let message = format!("the others are no healthy majority without {victim}");
        return Outcome::Hold(Hold::new(Reason::QuorumAtRisk, message));
    }
    if view.budget().is_none() && !ask.victim.is_down() {
        let message = "no PodDisruptionBudget lets one of these pods go and no more";
        return Outcome::Hold(Hold::new(Reason::AwaitingBudget, message));
    }
    Outcome::Pass
}

impl Strategy for Followers {
    type Step = Step;
    type View = View;
    type Record = Record;
    type Kept = ();

    fn recorded(view: &View) -> Option<&Record> {
        view.record.as_ref()
    }

    fn take_in<'a>(_: &Want, view: &'a View, now: Timestamp) -> (Cow<'a, View>, Option<Record>) {
        let record = view.record.clone().map(|mut record| {
            let replaced = view.pods.iter().filter(|pod| !view.is_outdated(pod) && pod.is_up()).map(|pod| &pod.name);
            record.done = replaced.cloned().collect();
            record.well_since.retain(|name, _| record.done.contains(name));
            for name in &record.done {
                record.well_since.entry(name.clone()).or_insert(now);
            }
            record
        });
        (Cow::Borrowed(view), record)
    }

    fn decide(want: &Want, view: &View, record: &mut Option<Record>, now: Timestamp) -> Decision {
        if !view.workload.observed {
            return wait(Hold::new(Reason::ControllerBehind, "the controller has not seen the newest template"), SOON);
        }
        // Another template: everything begins anew.
        let from = record.take_if(|record| record.target != want.target).map(|record| record.from);
        let Some(victim) = view.next() else { return finish(want, view, record, now) };
        if victim.terminating {
            return wait(Hold::new(Reason::PodNotReady, format!("pod {} is terminating", victim.name)), SOON);
        }
        let ask = |record| Ask { want, view, record, victim, now };
        if record.is_none() {
            if let Some(first) = first_thing(BEFORE_ALL, &ask(None)) {
                return first;
            }
            if let Err(first) = snapshot::before(want, &view.seen, now) {
                return first;
            }
            *record = Some(Record {
                target: want.target.clone(),
                from: from.unwrap_or_else(|| Self::standing(want, view)),
                since: now,
                done: Vec::new(),
                well_since: BTreeMap::new(),
                next: None,
            });
        }
        if let Some(first) = first_thing(BEFORE_EACH, &ask(record.as_ref())) {
            return first;
        }
        let budget = view.budget().filter(|_| !victim.is_down()).map(str::to_owned);
        Decision::Act(Step::Evict { pod: victim.name.clone(), uid: victim.uid.clone(), budget })
    }

    fn lacks_target(_: &Want, view: &View) -> bool {
        view.next().is_some()
    }

    fn standing(want: &Want, view: &View) -> Target {
        let runs = view.seen.quorum.voters().filter_map(|(_, member)| member.version.known()).max();
        Target { version: runs.unwrap_or(&want.target.version).clone(), image: view.workload.image.clone() }
    }

    fn may_go_back(_: &Want, _: &View, _: &Record) -> Result<(), Hold> {
        Err(Hold::new(Reason::TemplateChanged, "the template is somebody else's to write"))
    }

    fn settle(decision: Decision, _: &View, _: Option<&Record>, _: Timestamp) -> Decision {
        decision
    }

    fn note(_: &Want, view: &View, record: Option<&mut Record>, _: &Decision, _: bool, _: Timestamp) {
        if let Some(record) = record {
            record.next = view.next().map(|pod| pod.name.clone());
        }
    }

    fn outlook<'a>(
        want: &Want,
        view: &View,
        record: Option<&'a Record>,
        now: Timestamp,
    ) -> (Vec<GateState>, Option<&'a Target>) {
        let (victim, gates) = match (view.next(), record) {
            (Some(victim), Some(_)) => (victim, BEFORE_EACH),
            (Some(victim), None) => (victim, BEFORE_ALL),
            (None, Some(_)) => match view.pods.last() {
                Some(last) => (last, AFTER_ALL),
                None => return (Vec::new(), None),
            },
            (None, None) => return (Vec::new(), None),
        };
        let ask = Ask { want, view, record, victim, now };
        (evaluate(gates, &ask).collect(), record.map(contract::Record::target))
    }
}

/// Nobody is left to be evicted.
fn finish(want: &Want, view: &View, record: &mut Option<Record>, now: Timestamp) -> Decision {
    if let Some(hold) = view.sick(&want.target, None) {
        return wait(hold, SOON);
    }
    let last = view.pods.last().filter(|_| record.is_some());
    let ask = last.map(|victim| Ask { want, view, record: record.as_ref(), victim, now });
    if let Some(first) = ask.and_then(|ask| first_thing(AFTER_ALL, &ask)) {
        return first;
    }
    *record = None;
    Decision::Done
}

impl Foresee for Followers {
    type Scene = ();

    fn scene(_: &View) {}

    fn keep(view: &mut View, plan: &contract::Plan<Self>) {
        view.record.clone_from(&plan.record);
    }

    fn carry_out((): &mut (), view: &mut View, step: &Step) {
        if let Step::Evict { pod, .. } = step {
            view.pods.retain(|other| other.name != *pod);
        }
    }

    /// The pod comes back from the newest template, and its member with it.
    fn arrive((): &mut (), want: &Want, view: &mut View, now: Timestamp) -> bool {
        let there = |view: &View, name: &MemberName| view.pods.iter().any(|pod| pod.name == *name);
        let missing = (0..view.workload.replicas).find(|index| !there(view, &view.workload.member(*index)));
        let Some((index, like)) = missing.zip(view.pods.first().cloned()) else { return false };
        let (name, revision) = (view.workload.member(index), view.workload.update_revision.clone());
        if let Fact::Known(members) = &mut view.seen.quorum.members
            && let Some(member) = members.get_mut(&name)
        {
            member.version = Fact::Known(want.target.version.clone());
        }
        view.pods.push(Pod { name, index, revision, ready_since: Some(now), ..like });
        view.pods.sort_by_key(|pod| pod.index);
        true
    }

    fn order(_: &Record) -> Option<Order> {
        None
    }

    fn to_begin() -> Vec<Cow<'static, str>> {
        BEFORE_ALL.iter().filter(|gate| !gate.is_several()).map(|gate| Cow::Borrowed(gate.name)).collect()
    }

    fn notes(_: &View, _: &[Foreseen<Step>]) -> Vec<Note> {
        Vec::new()
    }
}
