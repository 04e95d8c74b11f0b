//! Kills the operator before and after every write and every application call of an upgrade, one run each, and freezes it between
//! check and send until another one has taken over. All must end as the undisturbed run ended, with no pod restarted once more (X3).

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use windlass_sim::{
    faults::Strike,
    harness::{self, Outcome},
    journal::Event,
    scenario::Scenario,
};

use crate::{
    fleet, operator,
    setting::{ETCD, PD, Setting},
};

/// At the very moment of the take-over, some time after it, and when all is done.
const FROZEN: [Strike; 3] =
    [Strike::FreezeUntilTakenOver, Strike::Freeze(Duration::from_secs(45)), Strike::Freeze(Duration::from_mins(10))];

/// Reference upgrades whose first leader is on the lowest and the highest ordinal, and for etcd on the middle and the highest one.
pub const REFERENCES: &[(Setting, u64)] = &[(PD, 1), (PD, 3), (ETCD, 1), (ETCD, 2)];

/// One place to strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Which system's reference upgrade.
    pub system: &'static str,
    /// Which one, by seed.
    pub seed: u64,
    /// Which call.
    pub call: u64,
    /// How.
    pub strike: Strike,
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
    system: &'static str,
    scenario: Scenario,
    end: Value,
    restarts: Vec<String>,
    calls: Vec<String>,
}

/// Strikes everywhere in these reference upgrades.
pub fn everywhere(references: &[(Setting, u64)]) -> Result<Report> {
    let references = undisturbed(references)?;
    let points = all_points(&references);
    let judged = fleet::run(points.len(), |number| strike(&references, points.get(number)), |_| false);
    let mut report = Report::default();
    for (kind, failure, late) in judged.into_iter().flatten() {
        match kind {
            Strike::KillBefore | Strike::KillAfter => report.kills += 1,
            Strike::Freeze(_) | Strike::FreezeUntilTakenOver => report.freezes += 1,
        }
        report.late_verbs += late;
        report.failures.extend(failure);
    }
    Ok(report)
}

/// Strikes until something fails, with every strike run through `around`: how many runs it took, and what failed.
pub fn hunt(
    references: &[(Setting, u64)],
    around: impl Fn(&dyn Fn() -> Option<Judged>) -> Option<Judged> + Sync,
) -> (usize, Option<String>) {
    let Ok(references) = undisturbed(references) else { return (0, None) };
    let points = all_points(&references);
    let failed = |judged: &Option<Judged>| judged.as_ref().is_some_and(|(_, failure, _)| failure.is_some());
    let judged = fleet::run(points.len(), |number| around(&|| strike(&references, points.get(number))), failed);
    let failure = judged.iter().flatten().find_map(|(_, failure, _)| failure.clone());
    (judged.len(), failure)
}

fn undisturbed(references: &[(Setting, u64)]) -> Result<Vec<Reference>> {
    references.iter().map(|(setting, seed)| run_undisturbed(setting, *seed)).collect()
}

fn run_undisturbed(setting: &Setting, seed: u64) -> Result<Reference> {
    let (system, scenario) = (setting.system, setting.reference(seed));
    let outcome = harness::run(&scenario, &[], &operator)?;
    ensure!(outcome.fault().is_none(), "the undisturbed upgrade of {system} {seed} failed: {:?}", outcome.fault());
    Ok(Reference {
        system,
        end: end_state(&outcome),
        restarts: sorted(&outcome.verdict.restarts),
        calls: outcome.calls,
        scenario,
    })
}

/// Every point of every reference, with the reference's place.
fn all_points(references: &[Reference]) -> Vec<(usize, Point)> {
    let numbered = references.iter().enumerate();
    numbered.flat_map(|(index, reference)| points(reference).map(move |point| (index, point))).collect()
}

fn points(reference: &Reference) -> impl Iterator<Item = Point> {
    let (system, seed) = (reference.system, reference.scenario.seed);
    reference.calls.iter().enumerate().flat_map(move |(index, what)| {
        let call = index as u64;
        // A frozen read is harmless; what may land late is a write or a verb.
        let asks = ["/v3/maintenance/status", "/v3/cluster/member/list"];
        let lands = !what.starts_with("GET") && !asks.iter().any(|path| what.ends_with(path));
        let freezes = FROZEN.into_iter().filter(move |_| lands);
        [Strike::KillBefore, Strike::KillAfter].into_iter().chain(freezes).map(move |strike| Point {
            system,
            seed,
            call,
            strike,
        })
    })
}

/// How a strike was judged: the strike, what was wrong, and how many late verbs it caused.
pub type Judged = (Strike, Option<String>, usize);

fn strike(references: &[Reference], point: Option<&(usize, Point)>) -> Option<Judged> {
    let (index, point) = point?;
    let reference = references.get(*index)?;
    let what = reference.calls.get(usize::try_from(point.call).ok()?)?;
    let failed = |why: String| {
        let Point { system, seed, call, strike } = point;
        Some(format!("{system} seed {seed} {strike:?} at call {call} ({what}): {why}"))
    };
    let outcome = match harness::run(&reference.scenario, &[(point.call, point.strike)], &operator) {
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
    let thawed =
        outcome.journal.iter().position(|entry| matches!(&entry.event, Event::Note(note) if note.ends_with(" thawed")));
    let Some(thawed) = thawed else { return 0 };
    let late = |event: &Event| matches!(event, Event::Verb { user, changed: true, .. } if user == "windlass-0-0");
    outcome.journal.iter().skip(thawed).filter(|entry| late(&entry.event)).count()
}

/// What must be the same however the operator was treated: the StatefulSet, the members, what the resource says.
pub fn end_state(outcome: &Outcome) -> Value {
    let last = |resource: &str| {
        outcome.journal.iter().rev().find_map(|entry| match &entry.event {
            Event::Write(change) if change.resource == resource => change.after.as_deref().cloned(),
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
    let set = last("statefulsets.apps").unwrap_or_default();
    let status = &outcome.subject["status"];
    json!({
        "set": set["spec"],
        "revisions": set["status"]["currentRevision"] == set["status"]["updateRevision"],
        "members": members,
        "phase": status["phase"],
        "version": status["currentVersion"],
        "upgrade": status["upgrade"],
        "evictions": last("poddisruptionbudgets.policy").map(|budget| budget["spec"]["selector"].clone()),
    })
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names
}
