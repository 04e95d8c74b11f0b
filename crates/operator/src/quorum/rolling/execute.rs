//! Carries out one step of the rolling strategy.

use k8s_openapi::api::apps::v1::StatefulSet;
use windlass_api::QuorumCluster;
use windlass_plan::{MemberName, Step, rolling::known::workload::Strategy};

use crate::{
    actor::Actor,
    error::Error,
    members::system::{self, Line},
    quorum::{
        budget,
        observe::Observed,
        pass::Recorded,
        removal::{delete_pod, evict_pod},
        stateful_set::{partition_patch, patch_set, strategy_patch, take_back},
        validate::images_patch,
    },
};

/// Carries out a step that is no Job's.
pub async fn execute(
    actor: Actor<'_>,
    recorded: &Recorded,
    observed: &Observed,
    set: &StatefulSet,
    step: &Step,
) -> Result<(), Error> {
    let resource = recorded.resource();
    match step {
        // Whoever calls has it done by a Job.
        Step::Job(_) => Ok(()),
        Step::WriteTemplate { image, strategy } => {
            let mut patch = images_patch(resource, set, image).map_err(|hold| Error::Gone(hold.message))?;
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
