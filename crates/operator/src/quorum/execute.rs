//! Carries out one step. Every write names the resourceVersion that the decision saw, and is sent only while the term is ours:
//! a mismatch means "look again", never "try harder" (H1, H5).

use std::time::Duration;

use windlass_plan::{
    bug::{self, Bug},
    strategy::known::step::Step as _,
};

use crate::{
    actor::Actor,
    error::Error,
    quorum::{intents, observe::Observed, pass::Recorded, strategy::Strategy},
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
        Some(job) => {
            let resource = recorded.resource();
            Box::pin(intents::carry_out(actor, resource, &S::course(resource), observed, set, job)).await
        }
        None => S::execute(actor, recorded, observed, set, step).await,
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
