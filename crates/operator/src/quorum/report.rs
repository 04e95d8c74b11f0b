//! The status: what is recorded before an act, and what people read. Pure.

use windlass_api::{
    QuorumCluster, QuorumClusterStatus, Word,
    conditions::{Verdict, conditions},
    phase::Phase,
    translate,
};
use windlass_plan::{
    Fact, Hold, Reason, Seen,
    bug::{self, Bug},
    strategy::{
        Record,
        contract::Plan,
        known::{decision::Decision, snapshot::Progress, step::Step},
    },
};

use crate::{
    jobs::snapshot,
    owner::Owner,
    quorum::{intents, observe::Observed, strategy::Strategy},
};

/// The status after a hold that no plan was made of.
pub fn held(
    before: &QuorumClusterStatus,
    resource: &QuorumCluster,
    hold: &Hold,
    now: jiff::Timestamp,
) -> QuorumClusterStatus {
    let decision: Decision<windlass_plan::Step> = if hold.reason.needs_a_person() {
        Decision::Halt { on: hold.clone() }
    } else {
        Decision::Wait { on: hold.clone(), recheck: std::time::Duration::ZERO }
    };
    let mut status = before.clone();
    // Nobody asked them.
    status.gates.clear();
    // What could be read has its own.
    status.contest = None;
    conclude(&mut status, resource, &decision, "", now);
    status
}

/// The status after a plan: its record, the members as seen, and the verdict.
pub fn planned<S: Strategy>(
    before: &QuorumClusterStatus,
    resource: &QuorumCluster,
    view: &S::View,
    observed: &Observed,
    plan: &Plan<S>,
    now: jiff::Timestamp,
) -> QuorumClusterStatus {
    let seen: &Seen = view.as_ref();
    let step = match &plan.decision {
        Decision::Act(step) => Some(step),
        Decision::Wait { .. } | Decision::Halt { .. } | Decision::Done => None,
    };
    let mut status = before.clone();
    if !bug::active(Bug::NoIntent) || plan.decision == Decision::Done {
        S::write_record(&mut status, view, plan.record.as_ref(), step.map(ToString::to_string));
    }
    // What could be read has its own.
    status.contest = None;
    status.snapshot = plan.attempt.as_ref().map(|attempt| {
        let job = snapshot::job_name(resource, attempt);
        translate::written_attempt(attempt, job)
    });
    S::write_rest(&mut status, observed, view, plan);
    // Asked for, it is handled once something is recorded that would not be otherwise, or there is nothing that it could be about. A first snapshot
    // is taken without it, and comes before what it is about.
    let failed = matches!(seen.snapshot, Fact::Known(Progress::Failed(_)));
    let tried_again = failed && plan.attempt != seen.attempt;
    let begins = plan.record.is_some() || step.is_some_and(S::begins_unrecorded);
    if seen.resumed && (begins || tried_again || plan.decision == Decision::Done) {
        status.requests.resume.clone_from(&resource.spec.requests.resume);
    }
    if let Some(version) = common_version(seen) {
        status.current_version = Some(version);
    }
    // One that was not taken in yet waits for a spec that can be read.
    if seen.approvals.fresh && !plan.approvals.fresh {
        status.requests.approve.clone_from(&resource.spec.requests.approve);
    }
    if plan.heard {
        let (asked, handled) = (&resource.spec.requests, &mut status.requests);
        handled.retry.clone_from(&asked.retry);
        handled.abort.clone_from(&asked.abort);
        handled.rollback.clone_from(&asked.rollback);
    }
    status.abandoned = plan.given_up.as_ref().map(translate::written_given_up);
    status.approval = translate::written_approvals(&plan.approvals);
    status.gates = plan.gates.iter().map(translate::gate).collect();
    status.members = S::members(resource, view, plan.record.as_ref());
    let way = plan.record.as_ref().map(|record| format!("{} to {}: ", record.from(), record.target()));
    conclude(&mut status, resource, &plan.decision, &way.unwrap_or_default(), now);
    let job = step.and_then(Step::job);
    let saying = resource.saying(status.clone());
    status.intents = intents::reserved(&saying, &S::course(&saying), observed.set.as_ref(), seen, job, now);
    status
}

/// The version that every member is known to run (H40).
fn common_version(seen: &Seen) -> Option<String> {
    let mut versions = seen.quorum.voters().map(|(_, member)| member.version.known());
    let first = versions.next()??;
    versions.all(|version| version == Some(first)).then(|| first.to_string())
}

/// Says where it stands. `way` is from where to where, where an upgrade is under way.
fn conclude<A: Step>(
    status: &mut QuorumClusterStatus,
    resource: &QuorumCluster,
    decision: &Decision<A>,
    way: &str,
    now: jiff::Timestamp,
) {
    let generation = resource.metadata.generation.unwrap_or(0);
    // What is on record counts, also where no plan could be made of it: it goes on from there.
    let verdict = verdict(decision, way, status.upgrade.is_some());
    status.phase = Some(Phase::of(&verdict, status.is_rolling_back()));
    status.observed_generation = Some(generation);
    status.conditions = conditions(&status.conditions, &verdict, generation, now);
}

fn verdict<A: Step>(decision: &Decision<A>, way: &str, upgrading: bool) -> Verdict {
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
