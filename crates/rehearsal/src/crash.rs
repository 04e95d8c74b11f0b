//! Kills the operator before and after every write and every application call of an upgrade, one run each, and freezes it between
//! check and send until another one has taken over. All must end as the undisturbed run ended, with no pod restarted once more (X3).

use std::{fmt, time::Duration};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use windlass_sim::{
    faults::Strike,
    harness::{Program, Seat},
    journal::{Befell, Event, Note, Verb},
};

use crate::{
    Running, operator, pool,
    setting::{ETCD, HTTP, OPENBAO, PD, Setting},
    trial::{self, Outcome, Scenario},
};

/// At the very moment of the take-over, some time after it, and when all is done.
const FROZEN: [Strike; 3] =
    [Strike::FreezeUntilTakenOver, Strike::Freeze(Duration::from_secs(45)), Strike::Freeze(Duration::from_mins(10))];

/// What is struck at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Story {
    setting: Setting,
    plot: Plot,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plot {
    /// An upgrade that nothing disturbs.
    Upgrade,
    /// An upgrade whose first new pod is broken, until the spec is mended.
    Mend,
    /// An upgrade under OnDelete.
    LeaderLast,
    /// An upgrade under OnDelete within a budget of somebody else's.
    Evicted,
    /// An upgrade under OnDelete of a set that was rolled by its partition.
    ToLeaderLast,
    /// The pods of a template that somebody else writes.
    Template,
    /// An upgrade that a person takes back half way.
    Rollback,
    /// An upgrade with a snapshot before it.
    Snapshot,
    /// An upgrade with somebody to ask and Jobs to run, before and after.
    Hooks,
    /// One with a snapshot, and a Job of somebody else's has the name of ours.
    ForeignJob,
    /// An upgrade whose image is pulled on the nodes first.
    PrePull,
}

/// All that is struck at. The first leader is on the lowest, the highest and the middle ordinal; a mend by a revert and one by a
/// new version.
pub const STORIES: &[Story] = &[
    Story { setting: PD, plot: Plot::Upgrade, seed: 1 },
    Story { setting: PD, plot: Plot::Upgrade, seed: 3 },
    Story { setting: ETCD, plot: Plot::Upgrade, seed: 2 },
    Story { setting: PD, plot: Plot::Mend, seed: 3 },
    Story { setting: ETCD, plot: Plot::Mend, seed: 2 },
    Story { setting: OPENBAO, plot: Plot::Upgrade, seed: 3 },
    Story { setting: PD, plot: Plot::LeaderLast, seed: 3 },
    Story { setting: PD, plot: Plot::Evicted, seed: 1 },
    Story { setting: ETCD, plot: Plot::ToLeaderLast, seed: 1 },
    Story { setting: OPENBAO, plot: Plot::Template, seed: 2 },
    Story { setting: PD, plot: Plot::Rollback, seed: 1 },
    Story { setting: HTTP, plot: Plot::Upgrade, seed: 3 },
    Story { setting: ETCD, plot: Plot::Snapshot, seed: 3 },
    Story { setting: OPENBAO, plot: Plot::Snapshot, seed: 1 },
    Story { setting: ETCD, plot: Plot::ForeignJob, seed: 2 },
    Story { setting: PD, plot: Plot::Hooks, seed: 2 },
    Story { setting: PD, plot: Plot::PrePull, seed: 2 },
];

/// Those under OnDelete among them.
pub fn leader_last() -> Vec<Story> {
    let plots = [Plot::LeaderLast, Plot::ToLeaderLast];
    STORIES.iter().filter(|story| plots.contains(&story.plot)).copied().collect()
}

/// The one whose pods are evicted.
pub fn evicted() -> Vec<Story> {
    STORIES.iter().filter(|story| story.plot == Plot::Evicted).copied().collect()
}

/// Those that begin with a snapshot among them.
pub fn snapshots() -> Vec<Story> {
    let plots = [Plot::Snapshot, Plot::ForeignJob];
    STORIES.iter().filter(|story| plots.contains(&story.plot)).copied().collect()
}

/// Those with hooks among them.
pub fn hooks() -> Vec<Story> {
    STORIES.iter().filter(|story| story.plot == Plot::Hooks).copied().collect()
}

/// The mends among them, the one that needs a permit first.
pub fn mends() -> Vec<Story> {
    STORIES.iter().rev().filter(|story| story.plot == Plot::Mend).copied().collect()
}

impl Story {
    /// What is struck at, for whoever strikes.
    pub fn case(self) -> Case {
        Case { name: self.to_string(), scenario: self.scenario() }
    }

    fn scenario(self) -> Scenario {
        match self.plot {
            Plot::Upgrade => self.setting.reference(self.seed),
            Plot::Mend => self.setting.mend(self.seed),
            Plot::LeaderLast => self.setting.leader_last(self.seed),
            Plot::Evicted => self.setting.evicted(self.seed),
            Plot::ToLeaderLast => self.setting.to_leader_last(self.seed),
            Plot::Template => self.setting.template(self.seed),
            Plot::Rollback => self.setting.rollback(self.seed),
            Plot::Snapshot => self.setting.snapshot(self.seed),
            Plot::Hooks => self.setting.hooks(self.seed),
            Plot::ForeignJob => self.setting.foreign_job(self.seed),
            Plot::PrePull => self.setting.pre_pull(self.seed),
        }
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.setting.system, self.plot, self.seed)
    }
}

/// A run that is struck at: undisturbed it ends well.
pub struct Case {
    /// What it is called in a report.
    pub name: String,
    /// The run.
    pub scenario: Scenario,
}

/// One place to strike.
struct Point {
    /// Which call.
    call: u64,
    /// How.
    strike: Strike,
}

/// What the suite found.
#[derive(Debug, Default)]
pub struct Report {
    /// Runs with a kill.
    pub kills: usize,
    /// Runs with a freeze and a take-over.
    pub freezes: usize,
    /// Hand-overs of a frozen operator that took effect after it had thawed: they can't be fenced (H6), do what was recorded and no
    /// more, and must leave the same end and no violation, which is judged as for every other run.
    pub late_verbs: usize,
    /// What went wrong.
    pub failures: Vec<String>,
}

/// How an undisturbed run ended.
struct Reference {
    case: Case,
    end: Value,
    restarts: Vec<String>,
    calls: Vec<String>,
}

/// Strikes this program everywhere in these; of the calls that only read, at every `nth`; and at most at so many points, evenly chosen.
pub fn everywhere(
    program: fn(Seat) -> Running,
    cases: impl IntoIterator<Item = Case>,
    nth: usize,
    most: Option<usize>,
) -> Result<Report> {
    let references = cases.into_iter().map(|case| undisturbed(&program, case)).collect::<Result<Vec<_>>>()?;
    let all = all_points(&references, nth);
    let count = most.map_or(all.len(), |most| most.min(all.len()));
    let points: Vec<_> = (0..count).filter_map(|number| all.get(number * all.len() / count)).collect();
    let judged =
        pool::run(points.len(), |number| strike(&program, &references, points.get(number).copied()), |_| false);
    let mut report = Report::default();
    for (kind, failure, late) in judged.into_iter().flatten() {
        match kind {
            Strike::KillBefore | Strike::KillAfter => report.kills += 1,
            Strike::Freeze(_) | Strike::FreezeUntilTakenOver => report.freezes += 1,
            Strike::Late(_) => {}
        }
        report.late_verbs += late;
        report.failures.extend(failure);
    }
    Ok(report)
}

/// Strikes until something fails, with every strike run through `around`: how many runs it took, and what failed.
pub fn hunt(
    stories: &[Story],
    around: impl Fn(&dyn Fn() -> Option<Judged>) -> Option<Judged> + Sync,
) -> (usize, Option<String>) {
    let references = stories.iter().map(|story| undisturbed(&operator, story.case()));
    let Ok(references) = references.collect::<Result<Vec<_>>>() else { return (0, None) };
    let mut points = all_points(&references, 1);
    // What lands late is what most of them let through.
    points.sort_by_key(|(_, point)| matches!(point.strike, Strike::KillBefore | Strike::KillAfter));
    let failed = |judged: &Option<Judged>| judged.as_ref().is_some_and(|(_, failure, _)| failure.is_some());
    let judged =
        pool::run(points.len(), |number| around(&|| strike(&operator, &references, points.get(number))), failed);
    let failure = judged.iter().flatten().find_map(|(_, failure, _)| failure.clone());
    (judged.len(), failure)
}

fn undisturbed(program: &Program, case: Case) -> Result<Reference> {
    let outcome = trial::run(&case.scenario, &[], program)?;
    ensure!(outcome.fault().is_none(), "the undisturbed {} failed: {:?}", case.name, outcome.fault());
    let (end, restarts) = (end_state(&outcome), sorted(&outcome.verdict.restarts));
    Ok(Reference { case, end, restarts, calls: outcome.calls })
}

/// Every point of every reference, with the reference's place.
fn all_points(references: &[Reference], nth: usize) -> Vec<(usize, Point)> {
    let numbered = references.iter().enumerate();
    numbered.flat_map(|(index, reference)| points(reference, nth).map(move |point| (index, point))).collect()
}

fn points(reference: &Reference, nth: usize) -> impl Iterator<Item = Point> {
    let calls = reference.calls.iter().enumerate().map(|(index, what)| (index, lands(what)));
    calls.filter(move |(index, lands)| *lands || index.is_multiple_of(nth)).flat_map(move |(index, lands)| {
        let call = index as u64;
        let freezes = FROZEN.into_iter().filter(move |_| lands);
        [Strike::KillBefore, Strike::KillAfter].into_iter().chain(freezes).map(move |strike| Point { call, strike })
    })
}

/// Whether a call is a write or a verb, which may land late. A frozen read is harmless, and so is a login.
fn lands(what: &str) -> bool {
    let asks = ["/v3/maintenance/status", "/v3/cluster/member/list", "/login"];
    !what.starts_with("GET") && !asks.iter().any(|path| what.ends_with(path))
}

/// How a strike was judged: the strike, what was wrong, and how many late verbs it caused.
pub type Judged = (Strike, Option<String>, usize);

fn strike(program: &Program, references: &[Reference], point: Option<&(usize, Point)>) -> Option<Judged> {
    let (index, point) = point?;
    let reference = references.get(*index)?;
    let what = reference.calls.get(usize::try_from(point.call).ok()?)?;
    let failed = |why: String| {
        Some(format!("{} {:?} at call {} ({what}): {why}", reference.case.name, point.strike, point.call))
    };
    let outcome = match trial::run(&reference.case.scenario, &[(point.call, point.strike)], program) {
        Ok(outcome) => outcome,
        Err(error) => return Some((point.strike, failed(error.to_string()), 0)),
    };
    let failure = outcome.fault().or_else(|| {
        let restarts = sorted(&outcome.verdict.restarts);
        if restarts != reference.restarts {
            return Some(format!("restarted {restarts:?} instead of {:?}", reference.restarts));
        }
        let end = end_state(&outcome);
        (end != reference.end).then(|| format!("ended as {end} instead of {}", reference.end))
    });
    Some((point.strike, failure.and_then(failed), late_verbs(&outcome)))
}

/// Verbs that changed something and came from a process after it had thawed.
fn late_verbs(outcome: &Outcome) -> usize {
    let thawed = outcome
        .journal
        .iter()
        .position(|entry| matches!(&entry.event, Event::Note(Note::Process { what: Befell::Thawed, .. })));
    let Some(thawed) = thawed else { return 0 };
    let late = |event: &Event| matches!(event, Event::Verb { user, changed: true, .. } if user == "windlass-0-0");
    outcome.journal.iter().skip(thawed).filter(|entry| late(&entry.event)).count()
}

/// What must be the same however the operator was treated: the StatefulSet, the members, what the resource says.
pub fn end_state(outcome: &Outcome) -> Value {
    let set = outcome.subject.pointer("/spec/workload/statefulSet").and_then(Value::as_str).unwrap_or_default();
    let last = |resource: &str, name: &str| {
        outcome.journal.iter().rev().find_map(|entry| match &entry.event {
            Event::Write(change) if change.resource == resource && change.name == name => {
                change.after.as_deref().cloned()
            }
            Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
        })
    };
    let truth = outcome.journal.iter().rev().find_map(|entry| match &entry.event {
        Event::Quorum(truth) => Some(
            truth.members.iter().map(|member| (member.pod.clone(), member.version.clone(), member.healthy)).collect(),
        ),
        Event::Write(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    let members: Vec<(String, String, bool)> = truth.unwrap_or_default();
    let ours = last("poddisruptionbudgets.policy", &format!("windlass-{set}"));
    let set = last("statefulsets.apps", set).unwrap_or_default();
    let status = &outcome.subject["status"];
    json!({
        "set": set["spec"],
        "revisions": set["status"]["currentRevision"] == set["status"]["updateRevision"],
        "members": members,
        "phase": status["phase"],
        "version": status["currentVersion"],
        "upgrade": status["upgrade"],
        "jobs": jobs(outcome),
        // One that covers nothing is as good as none: a take-over makes it, for a late request of the predecessor's to miss.
        "evictions": ours.map(|budget| budget["spec"]["selector"].clone()).filter(|selector| *selector != covers_nothing()),
    })
}

/// What our budget selects where evictions are let through.
fn covers_nothing() -> Value {
    json!({"matchLabels": {"windlass.dev/covers": "nothing"}})
}

/// The Jobs that were made, oldest first. What a hook's is called depends on when the upgrade began; that there is one for each does not.
fn jobs(outcome: &Outcome) -> Vec<&str> {
    let stem =
        |name: &'_ str| if name.starts_with("windlass-hook-") { name.len().saturating_sub(9) } else { name.len() };
    let made = outcome.journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == "jobs.batch" && change.verb == Verb::Create => {
            change.name.get(..stem(&change.name))
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    made.collect()
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names
}
