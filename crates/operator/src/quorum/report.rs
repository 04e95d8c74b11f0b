//! The status: what is recorded before an act, and what people read. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use windlass_api::{
    QuorumCluster, QuorumClusterStatus, Word,
    conditions::{Verdict, conditions},
    members,
    status::{Adopted, Found, Phase, Pulling, StrategySwitch},
    translate,
};
use windlass_plan::{
    Decision, Fact, Hold, Plan, Reason, Record, Step, View,
    bug::{self, Bug},
    rolling::known::{snapshot::Progress, workload::Strategy},
};

use crate::{
    gates::job,
    jobs::snapshot,
    quorum::{gates, observe::Observed},
};

/// The status after a hold that no plan was made of.
pub fn held(
    before: &QuorumClusterStatus,
    resource: &QuorumCluster,
    hold: &Hold,
    now: jiff::Timestamp,
) -> QuorumClusterStatus {
    let decision = if hold.reason.needs_a_person() {
        Decision::Halt { on: hold.clone() }
    } else {
        Decision::Wait { on: hold.clone(), recheck: std::time::Duration::ZERO }
    };
    let mut status = before.clone();
    // Nobody asked them.
    status.gates.clear();
    // What could be read has its own.
    status.contest = None;
    conclude(&mut status, resource, &decision, None, now);
    status
}

/// The status after a plan: its record, the members as seen, and the verdict.
pub fn planned(
    before: &QuorumClusterStatus,
    resource: &QuorumCluster,
    view: &View,
    observed: &Observed,
    plan: &Plan,
    now: jiff::Timestamp,
) -> QuorumClusterStatus {
    let mut status = before.clone();
    let intent = match &plan.decision {
        Decision::Act(step) => Some(step.to_string()),
        Decision::Wait { .. } | Decision::Halt { .. } | Decision::Done => None,
    };
    if !bug::active(Bug::NoIntent) || plan.decision == Decision::Done {
        status.upgrade = plan.record.as_ref().map(|record| translate::upgrade(record, view.workload.replicas, intent));
    }
    // What could be read has its own.
    status.contest = None;
    status.snapshot = plan.attempt.as_ref().map(|attempt| {
        let job = snapshot::job_name(resource, attempt);
        translate::written_attempt(attempt, job)
    });
    status.starting = match (&plan.decision, &observed.set) {
        (Decision::Act(Step::StartJob { gate }), Some(set)) => job::starting(&gates::questions(resource, set), gate),
        (Decision::Act(_) | Decision::Wait { .. } | Decision::Halt { .. } | Decision::Done, _) => None,
    };
    status.pulling = if let Decision::Act(Step::PullImage { image, nodes }) = &plan.decision {
        Some(Pulling { image: image.clone(), nodes: nodes.clone() })
    } else {
        None
    };
    status.workload = Some(view.workload.name.clone());
    let switches = matches!(plan.decision, Decision::Act(Step::SwitchStrategy { .. }));
    if (plan.record.is_some() || switches) && status.adopted.is_none() {
        status.adopted = Some(adopted(observed, view));
    }
    let written = |partition: u32| i32::try_from(partition).unwrap_or(i32::MAX);
    status.parked_partition = plan.parked.map(|parked| written(parked.partition));
    status.previous_parked_partition = plan.parked.and_then(|parked| parked.before).map(written);
    status.strategy_switch = plan
        .parked
        .and_then(|parked| parked.switched)
        .map(|switched| StrategySwitch { at: MicroTime(switched.at), times: written(switched.times) });
    // Asked for, it is handled once something is recorded that would not be otherwise, or there is nothing that it could be about. A first snapshot
    // is taken without it, and comes before what it is about.
    let failed = matches!(view.snapshot, Fact::Known(Progress::Failed(_)));
    let tried_again = failed && plan.attempt != view.attempt;
    if view.resumed && (plan.record.is_some() || tried_again || switches || plan.decision == Decision::Done) {
        status.requests.resume.clone_from(&resource.spec.requests.resume);
    }
    if let Some(version) = common_version(view) {
        status.current_version = Some(version);
    }
    // One that was not taken in yet waits for a spec that can be read.
    if view.approvals.fresh && !plan.approvals.fresh {
        status.requests.approve.clone_from(&resource.spec.requests.approve);
    }
    if plan.heard {
        let (asked, handled) = (&resource.spec.requests, &mut status.requests);
        handled.retry.clone_from(&asked.retry);
        handled.abort.clone_from(&asked.abort);
        handled.rollback.clone_from(&asked.rollback);
    }
    // A plan takes it in as soon as it sees a member of the new version again; what only stands down does not.
    let noted = |record: &Record| {
        let begun = record.replacing.is_some() || !record.completed.is_empty();
        !begun || record.highest_led.as_ref() >= Some(&record.target.version)
    };
    status.leadership_unobserved &= !(plan.heard && plan.record.as_ref().is_none_or(noted));
    status.given_up = plan.given_up.as_ref().map(translate::written_given_up);
    status.approval = translate::written_approvals(&plan.approvals);
    status.gates = plan.gates.iter().map(translate::gate).collect();
    status.members = members::seen(view, plan.record.as_ref(), resource.spec.upgrade.max_lag_entries);
    conclude(&mut status, resource, &plan.decision, plan.record.as_ref(), now);
    status
}

/// The strategy as it was before our first write.
fn adopted(observed: &Observed, view: &View) -> Adopted {
    let update = observed.set.as_ref().and_then(|set| set.spec.as_ref()).and_then(|spec| spec.update_strategy.as_ref());
    let partition = update.and_then(|update| update.rolling_update.as_ref()).and_then(|rolling| rolling.partition);
    let strategy = observed.strategy.clone().map(Found);
    match view.workload.strategy {
        Strategy::OnDelete => Adopted { type_: "OnDelete".into(), partition: None, strategy },
        Strategy::RollingUpdate { .. } => Adopted { type_: "RollingUpdate".into(), partition, strategy },
    }
}

/// The version that every member is known to run (H40).
fn common_version(view: &View) -> Option<String> {
    let members = view.quorum.members.known()?;
    let mut versions = members.values().map(|member| member.version.known());
    let first = versions.next()??;
    versions.all(|version| version == Some(first)).then(|| first.to_string())
}

fn conclude(
    status: &mut QuorumClusterStatus,
    resource: &QuorumCluster,
    decision: &Decision,
    record: Option<&Record>,
    now: jiff::Timestamp,
) {
    let generation = resource.metadata.generation.unwrap_or(0);
    // What is on record counts, also where no plan could be made of it: it goes on from there.
    let verdict = verdict(decision, record, status.upgrade.is_some());
    let phase = match (decision, &status.upgrade) {
        (Decision::Done, _) => Phase::Running,
        (Decision::Wait { on, .. }, _) if on.reason == Reason::Paused => Phase::Paused,
        (Decision::Halt { .. }, _) => Phase::Blocked,
        (_, Some(upgrade)) if upgrade.reverting => Phase::Reverting,
        (_, Some(_)) => Phase::Upgrading,
        (Decision::Act(_) | Decision::Wait { .. }, None) => Phase::Pending,
    };
    status.phase = Some(phase.name().to_owned());
    status.observed_generation = Some(generation);
    status.conditions = conditions(&status.conditions, &verdict, generation, now);
}

fn verdict(decision: &Decision, record: Option<&Record>, upgrading: bool) -> Verdict {
    let way = record.map(|record| format!("{} to {}: ", record.from, record.target)).unwrap_or_default();
    let (ready, reconciling, stalled, word, message) = match decision {
        Decision::Done => (true, false, false, Word::UpToDate, "all members run the wanted version".to_owned()),
        Decision::Act(step) => (false, true, false, Word::Step(step.kind()), format!("{way}{step}")),
        Decision::Wait { on, .. } => {
            (false, on.reason != Reason::Paused, false, on.reason.into(), format!("{way}{on}"))
        }
        Decision::Halt { on } => (false, false, true, on.reason.into(), format!("{way}{on}")),
    };
    Verdict { ready: ready.into(), reconciling, stalled, upgrading, word, message }
}
