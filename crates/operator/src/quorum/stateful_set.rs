//! Writes to the StatefulSet: its template, its update strategy, its partition. Each names the resourceVersion that the decision saw.

use std::borrow::Cow;

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{Api, ResourceExt, api::Patch};
use serde_json::json;
use windlass_plan::{
    bug::{self, Bug},
    rolling::known::workload::Strategy,
};

use crate::{
    actor::{Actor, TOUCHED, as_us},
    error::Error,
    lenient::Whole,
    live,
    quorum::observe::{self, Observed},
};

/// So often a partition is raised again at once after a conflict with the controller's status.
const AT_ONCE: usize = 4;

/// Sets the strategy that lets Kubernetes replace nobody.
pub fn strategy_patch(set: &StatefulSet, strategy: Strategy) -> Vec<serde_json::Value> {
    let update = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    match strategy {
        Strategy::RollingUpdate { partition } => partition_patch(set, partition),
        Strategy::OnDelete if update.and_then(|update| update.type_.as_deref()) == Some("OnDelete") => Vec::new(),
        Strategy::OnDelete if bug::active(Bug::RollingUpdateLeftSet) => {
            vec![json!({"op": "replace", "path": "/spec/updateStrategy/type", "value": "OnDelete"})]
        }
        // The whole of it: OnDelete with a `rollingUpdate` block left behind is refused (H22).
        Strategy::OnDelete => vec![json!({"op": "add", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}})],
    }
}

/// Sets the partition, and nothing else of the strategy. The block is always explicit (H8).
pub fn partition_patch(set: &StatefulSet, partition: u32) -> Vec<serde_json::Value> {
    let update = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    if update.is_some_and(|update| update.rolling_update.is_some()) {
        return vec![json!({"op": "add", "path": "/spec/updateStrategy/rollingUpdate/partition", "value": partition})];
    }
    if update.and_then(|update| update.type_.as_deref()) == Some("RollingUpdate") {
        return vec![
            json!({"op": "add", "path": "/spec/updateStrategy/rollingUpdate", "value": {"partition": partition}}),
        ];
    }
    vec![json!({
        "op": "add", "path": "/spec/updateStrategy", "value": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
    })]
}

/// Raises the partition of the StatefulSet as it was seen. Its controller writes its status at the very moment when it lets pods go, and to look at
/// all members again takes seconds in which it goes on: as long as nothing but the status is another, and no pod was let go, the same write is
/// sent again at once. Each is fenced like any other.
pub async fn take_back(actor: Actor<'_>, observed: &Observed, set: &StatefulSet, partition: u32) -> Result<(), Error> {
    let (name, namespace) = (set.name_any(), set.namespace().unwrap_or_default());
    let api: Api<StatefulSet> = Api::namespaced(actor.context.client.clone(), &namespace);
    let what = format!("statefulsets/{namespace}/{name}");
    let mut seen = Cow::Borrowed(set);
    for _ in 0..AT_ONCE {
        match patch_set(actor, &seen, partition_patch(&seen, partition)).await {
            Err(error) if error.is_conflict() && !bug::active(Bug::HoldWaitsForALook) => {
                let Some(now) = live::get(actor.context, &what, &api, &name).await? else { return Err(error) };
                // In this order: whatever becomes of a pod after it was read shows in the status, and the write misses.
                let stay = bug::active(Bug::HeldBlindly)
                    || are_the_same(&observed.pods, &observe::pods(actor.context, &now, &namespace).await?);
                if !is_same_but_status(set, &now) || !stay {
                    return Err(error);
                }
                seen = Cow::Owned(now);
            }
            other => return other,
        }
    }
    patch_set(actor, &seen, partition_patch(&seen, partition)).await
}

/// Whether these are the same pods, and the same of them are to stay: one that was made anew may be replaced already, and would be held on the
/// template before when it is lost (H10).
fn are_the_same(before: &[Pod], now: &[Pod]) -> bool {
    let which = |pod: &Pod| (pod.uid(), pod.metadata.deletion_timestamp.is_some());
    before.iter().map(which).eq(now.iter().map(which))
}

/// Neither its spec nor whoever touched it last is another.
fn is_same_but_status(before: &StatefulSet, now: &StatefulSet) -> bool {
    before.uid() == now.uid()
        && before.metadata.generation == now.metadata.generation
        && before.annotations().get(TOUCHED) == now.annotations().get(TOUCHED)
}

/// Patches the StatefulSet as it was seen: with another resourceVersion the API server answers 409.
pub async fn patch_set(actor: Actor<'_>, set: &StatefulSet, mut patch: Vec<serde_json::Value>) -> Result<(), Error> {
    let (name, namespace) = (set.name_any(), set.namespace().unwrap_or_default());
    if !bug::active(Bug::UnfencedWrites) {
        // Not `test`, which would answer 422 like invalid input: a resourceVersion that differs makes a conflict (H5).
        patch.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": set.resource_version()}));
    }
    let patch: json_patch::Patch = serde_json::from_value(patch.into()).unwrap_or_default();
    let api: Api<Whole<StatefulSet>> = Api::namespaced(actor.context.client.clone(), &namespace);
    let what = format!("statefulsets/{namespace}/{name}");
    let params = as_us();
    let patch = Patch::Json::<()>(patch);
    let written = actor.disrupt("patch", &what, set, api.patch(&name, &params, &patch)).await?;
    actor.context.own_writes.wrote(&what, written.resource_version().as_deref());
    Ok(())
}
