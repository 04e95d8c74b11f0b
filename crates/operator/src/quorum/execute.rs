//! Carries out one step. Every write names the resourceVersion that the decision saw, and is sent only while the term is ours:
//! a mismatch means "look again", never "try harder" (H1, H5).

use std::time::Duration;

use serde_json::json;
use windlass_api::QuorumCluster;
use windlass_plan::{
    MemberName, Step,
    bug::{self, Bug},
    rolling::known::workload::Strategy,
};

use crate::{
    actor::Actor,
    error::Error,
    members::system::{self, Line},
    quorum::{
        budget, intents,
        observe::Observed,
        removal::{delete_pod, evict_pod},
        stateful_set::{partition_patch, patch_set, strategy_patch, take_back},
        validate::init_containers,
    },
};

/// Carries out a step on what was observed.
pub async fn execute(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    observed: &Observed,
    container: usize,
    step: &Step,
) -> Result<(), Error> {
    let Some(set) = &observed.set else { return Err(Error::Gone("the StatefulSet".into())) };
    if step.rests_on_evidence() {
        actor.context.metrics.evidence(fresh(actor, observed)?);
    }
    match step {
        // Boxed: a Job is a large thing to hold.
        Step::TakeSnapshot { .. } | Step::StartJob { .. } | Step::PullImage { .. } => {
            Box::pin(intents::carry_out(actor, resource, observed, set, step)).await
        }
        Step::WriteTemplate { image, strategy } => {
            let followers = init_containers(resource, set).map_err(|hold| Error::Gone(hold.message))?;
            let followers = followers.into_iter().map(|index| ("initContainers", index));
            // One write for all of them: a template with two versions in it would make pods of neither.
            let image = |(list, index): (&str, usize)| {
                let path = format!("/spec/template/spec/{list}/{index}/image");
                json!({"op": "replace", "path": path, "value": image})
            };
            let mut patch: Vec<_> = std::iter::once(("containers", container)).chain(followers).map(image).collect();
            if let Some(strategy) = strategy {
                patch.extend(strategy_patch(set, *strategy));
            }
            patch_set(actor, set, patch).await
        }
        Step::SwitchStrategy { partition } | Step::Permit { partition, .. } | Step::Park { partition } => {
            patch_set(actor, set, partition_patch(set, *partition)).await
        }
        Step::TakeBack { partition, .. } => take_back(actor, observed, set, *partition).await,
        Step::HandOver { from, to } => hand_over(actor, resource, observed, from, to).await,
        Step::PutBackStrategy => patch_set(actor, set, strategy_patch(set, Strategy::OnDelete)).await,
        Step::DeletePod { pod, uid, .. } | Step::Replace { pod, uid, through: None, .. } => {
            delete_pod(actor, observed, set, pod, uid).await
        }
        Step::Replace { pod, uid, through: Some(budget), .. } => {
            evict_pod(actor, observed, set, pod, uid, budget).await
        }
        Step::HoldEvictions => budget::hold(actor, resource, observed, set).await,
        Step::ReleaseEvictions => budget::release(actor, observed, set).await,
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

/// Asks the leader itself, at its pod's address: once that pod is replaced, a late call reaches nobody (H6).
async fn hand_over(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    observed: &Observed,
    from: &MemberName,
    to: &MemberName,
) -> Result<(), Error> {
    let Some(leader) = observed.peers.iter().find(|peer| peer.pod == from.as_str()) else {
        return Err(Error::Gone(format!("the address of {from}")));
    };
    let Ok(transport) = actor.context.dial.transport(observed.tls.as_ref()) else {
        return Err(Error::Gone("the TLS material".into()));
    };
    let Some(id) = observed.seen.ids.get(to) else { return Err(Error::Gone(format!("member {to}"))) };
    let left = actor.lease.remaining(actor.term)?;
    let line = Line {
        system: resource.spec.system.type_,
        http: observed.http.as_ref().ok().and_then(Option::as_deref),
        transport: transport.as_ref(),
        token: observed.token.as_ref(),
    };
    system::hand_over(line, leader, id, left).await
}
