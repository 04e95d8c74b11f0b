//! Carries out one step. Every write names the resourceVersion that the decision saw, and is sent only while the term is ours:
//! a mismatch means "look again", never "try harder" (H1, H5).

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use windlass_plan::{
    bug::{self, Bug},
    strategy::step::{JobStep, Step as _},
};

use crate::{
    actor::Actor,
    error::Error,
    gates::job,
    jobs::{pull, snapshot},
    quorum::{gates, observe::Observed, pass::Recorded, strategy::Strategy},
};

/// Carries out a step on what was observed.
pub async fn execute<S: Strategy>(
    actor: Actor<'_>,
    recorded: &Recorded,
    observed: &Observed,
    step: &S::Step,
) -> Result<(), Error> {
    let Some(set) = &observed.set else { return Err(Error::Gone("the StatefulSet".into())) };
    if step.rests_on_evidence() {
        actor.context.metrics.evidence(fresh(actor, observed)?);
    }
    match step.job() {
        // Boxed: a Job is a large thing to hold.
        Some(job) => Box::pin(start(actor, recorded, observed, set, job)).await,
        None => S::execute(actor, recorded, observed, set, step).await,
    }
}

/// Has a Job do it.
async fn start(
    actor: Actor<'_>,
    recorded: &Recorded,
    observed: &Observed,
    set: &StatefulSet,
    job: &JobStep,
) -> Result<(), Error> {
    let resource = recorded.resource();
    match job {
        JobStep::TakeSnapshot { attempt } => snapshot::start(actor, resource, &observed.means(), attempt).await,
        JobStep::Answer { gate } => {
            let (asker, questions) = (gates::asker(resource), gates::questions(resource, set));
            match job::starting(&questions, gate) {
                Some(starting) => job::start(actor, &asker, &questions, &starting).await,
                None => Err(Error::Gone(gate.clone())),
            }
        }
        JobStep::PullImage { image, nodes } => pull::start(actor, resource, set, image, nodes).await,
    }
}

/// How old the evidence is; an error if it is too old.
pub fn fresh(actor: Actor<'_>, observed: &Observed) -> Result<Duration, Error> {
    let age = observed.since.elapsed();
    if age > actor.context.settings.evidence_age && !bug::active(Bug::OldEvidenceActs) {
        return Err(Error::EvidenceTooOld(age));
    }
    Ok(age)
}
