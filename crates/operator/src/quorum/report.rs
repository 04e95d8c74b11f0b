//! The status: what is recorded before an act, and what people read. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use windlass_api::{
    QuorumCluster, QuorumClusterStatus,
    conditions::{Tri, Verdict, conditions},
    status::{Adopted, Found, MemberStatus, StrategySwitch},
    translate,
};
use windlass_plan::{
    Decision, Fact, Hold, Plan, Reason, Record, Step, View,
    bug::{self, Bug},
    rolling::known::{snapshot::Progress, workload::Strategy},
};

use crate::{
    jobs::snapshot,
    owner::Owner,
    quorum::{intents, observe::Observed},
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
    status.members = members(view, plan.record.as_ref(), resource.spec.upgrade.max_lag_entries);
    conclude(&mut status, resource, &plan.decision, plan.record.as_ref(), now);
    status.intents = intents::reserved(&resource.saying(status.clone()), observed.set.as_ref(), view, plan, now);
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

/// The members as seen, in the order of their ordinals.
pub fn members(view: &View, upgrade: Option<&Record>, max_lag: i64) -> Vec<MemberStatus> {
    let max_lag = u64::try_from(max_lag).unwrap_or(0);
    let describe = |pod: &windlass_plan::Pod| {
        let member = view.quorum.member(&pod.name);
        let role = match &view.quorum.leader {
            Fact::Known(leader) if *leader == pod.name => "Leader",
            Fact::Known(_) => "Follower",
            Fact::Unknown(_) => "Unknown",
        };
        let healthy = match member.map(|member| &member.healthy) {
            Some(Fact::Known(true)) => Tri::True,
            Some(Fact::Known(false)) => Tri::False,
            Some(Fact::Unknown(_)) | None => Tri::Unknown,
        };
        // A number would change with every look, and every look would be a write.
        let lag = match view.quorum.lag(&pod.name) {
            Fact::Known(Some(lag)) => upgrade.map(|upgrade| {
                let in_sync = lag <= max_lag || upgrade.keeps_up(&pod.name);
                if in_sync { "InSync" } else { "Behind" }.to_owned()
            }),
            Fact::Known(None) | Fact::Unknown(_) => None,
        };
        MemberStatus {
            pod: pod.name.to_string(),
            role: role.to_owned(),
            version: member.and_then(|member| member.version.known()).map(ToString::to_string),
            healthy: healthy.text().to_owned(),
            lag,
        }
    };
    view.pods.iter().map(describe).collect()
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
        (Decision::Done, _) => "Running",
        (Decision::Wait { on, .. }, _) if on.reason == Reason::Paused => "Paused",
        (Decision::Halt { .. }, _) => "Blocked",
        (_, Some(upgrade)) if upgrade.reverting => "Reverting",
        (_, Some(_)) => "Upgrading",
        (Decision::Act(_) | Decision::Wait { .. }, None) => "Pending",
    };
    status.phase = Some(phase.to_owned());
    status.observed_generation = Some(generation);
    status.conditions = conditions(&status.conditions, &verdict, generation, now);
}

fn verdict(decision: &Decision, record: Option<&Record>, upgrading: bool) -> Verdict {
    let way = record.map(|record| format!("{} to {}: ", record.from, record.target)).unwrap_or_default();
    let (ready, reconciling, stalled, reason, message) = match decision {
        Decision::Done => (true, false, false, "UpToDate".to_owned(), "all members run the wanted version".to_owned()),
        Decision::Act(step) => (false, true, false, step.name().to_owned(), format!("{way}{step}")),
        Decision::Wait { on, .. } => {
            (false, on.reason != Reason::Paused, false, on.reason.name().to_owned(), format!("{way}{on}"))
        }
        Decision::Halt { on } => (false, false, true, on.reason.name().to_owned(), format!("{way}{on}")),
    };
    Verdict { ready: ready.into(), reconciling, stalled, upgrading, reason, message }
}
