//! Letting go: the custom resource is being deleted, and the StatefulSet goes on without us (H40).
//!
//! At rest the update strategy becomes what it was. In the middle of an upgrade nothing moves: a permit that stands is taken back,
//! and the partition stays; under OnDelete a template that nobody has served from is put back, for nobody would mind who comes back
//! from it (H21). A StatefulSet that is gone holds nothing up.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_api::{QuorumCluster, quorum_cluster::DeletionPolicy, status::Adopted};
use windlass_plan::{
    Pod, Step, View,
    rolling::{known::workload::Strategy, parking, permit, poison},
    strategy::known::want::Trigger,
};

use crate::{
    actor::Actor,
    error::Error,
    owner::finalizer::{Located, is_guarded},
    quorum::{
        budget,
        observe::Observed,
        rolling::view,
        stateful_set::{partition_patch, patch_set, strategy_patch},
        validate,
    },
};

/// Keeps the custom resource from now on until the StatefulSet is left in order.
pub async fn guard(actor: Actor<'_>, resource: &QuorumCluster) -> Result<(), Error> {
    located(actor, resource).guard(actor).await
}

/// Leaves the StatefulSet in order and lets the resource go.
pub async fn finalize(actor: Actor<'_>, resource: &QuorumCluster, observed: &Observed) -> Result<(), Error> {
    if !is_guarded(resource) {
        return Ok(());
    }
    if let Some(set) = &observed.set {
        let parting = parting(resource, observed);
        if let Some(patch) = parting.patch {
            patch_set(actor, set, patch).await?;
        }
        if !parting.last {
            return Ok(());
        }
        // Where another one has the set, the budget is that one's.
        if validate::alone(resource, &observed.siblings).is_ok() {
            budget::release(actor, observed, set).await?;
        }
    }
    located(actor, resource).release(actor).await
}

fn located<'a>(actor: Actor<'_>, resource: &'a QuorumCluster) -> Located<'a, QuorumCluster> {
    let namespace = resource.namespace().unwrap_or_default();
    let what = format!("quorumclusters/{namespace}/{}", resource.name_any());
    Located { api: Api::namespaced(actor.context.client.clone(), &namespace), what, resource }
}

/// What the StatefulSet needs before it is left alone.
struct Parting {
    /// None if nothing.
    patch: Option<Vec<serde_json::Value>>,
    /// After that it can be left alone.
    last: bool,
}

impl Parting {
    fn last(patch: Option<Vec<serde_json::Value>>) -> Self {
        Self { patch, last: true }
    }
}

fn parting(resource: &QuorumCluster, observed: &Observed) -> Parting {
    let adopted = resource.status.as_ref().and_then(|status| status.adopted.clone());
    let Some((set, adopted)) = observed.set.as_ref().zip(adopted) else { return Parting::last(None) };
    // Not validated: a spec that can't be read must not keep a permit standing.
    let seen = view::as_it_stands(resource, observed);
    match seen.as_ref().and_then(|view| permit::leave(resource.spec.trigger, view)) {
        Some(Step::TakeBack { partition, .. }) => return Parting::last(Some(partition_patch(set, partition))),
        Some(_) => return Parting::last(Some(strategy_patch(set, Strategy::OnDelete))),
        None => {}
    }
    if let Some(image) = seen.as_ref().and_then(poison::parting_image)
        && let Ok(patch) = validate::images_patch(resource, set, image)
    {
        return Parting::last(Some(patch));
    }
    if resource.spec.trigger == Trigger::Template && adopted.type_ == "OnDelete" {
        // Whoever writes the template writes the strategy, too: nothing of it is ours.
        return Parting::last(None);
    }
    let restore = match resource.spec.deletion_policy {
        // Only at rest: a template that the controller has not seen yet would be rolled out to everybody at once.
        DeletionPolicy::Restore if resource.status.as_ref().is_some_and(|status| status.upgrade.is_some()) => {
            let unwritten =
                |view: &View| view.record.as_ref().is_some_and(|record| parking::is_unwritten(view, record));
            seen.as_ref().is_some_and(unwritten)
        }
        DeletionPolicy::Restore => true,
        DeletionPolicy::Retain => false,
    };
    match seen.filter(|_| restore) {
        Some(view) => restoring(&adopted, set, &view),
        None => Parting::last(None),
    }
}

/// The way back to the strategy that it had. From OnDelete to a partition it leads over partition 0, until the controller has
/// concluded: before, a pod that the partition holds would come back from the first template ever (H7).
fn restoring(adopted: &Adopted, set: &StatefulSet, view: &View) -> Parting {
    if adopted.type_ == "OnDelete" {
        // Nobody is replaced by it, whatever the template and the members are like; a partition that is left standing could be.
        let there = view.workload.strategy == Strategy::OnDelete;
        return Parting::last((!there).then(|| restoring_patch(adopted, set)));
    }
    let holds = adopted.partition.is_some_and(|partition| partition > 0);
    let caught_up = view.workload.current_revision == view.workload.update_revision;
    match view.workload.strategy {
        Strategy::OnDelete if view.is_uniform() && holds && !caught_up => {
            Parting { patch: Some(partition_patch(set, 0)), last: false }
        }
        // It concludes when all are ready; a set that is not is not waited for.
        Strategy::RollingUpdate { .. }
            if holds && !caught_up && view.outdated().next().is_none() && view.pods.iter().all(Pod::is_up) =>
        {
            Parting { patch: None, last: false }
        }
        Strategy::OnDelete | Strategy::RollingUpdate { .. } => {
            Parting::last(view.is_uniform().then(|| restoring_patch(adopted, set)))
        }
    }
}

/// What we replaced comes back as it was: the partition alone where nothing else of the strategy was touched, otherwise all of it.
fn restoring_patch(adopted: &Adopted, set: &StatefulSet) -> Vec<serde_json::Value> {
    let now = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref()?.type_.as_deref());
    let partition = adopted.partition.unwrap_or(0);
    if now.unwrap_or("RollingUpdate") == adopted.type_ {
        return partition_patch(set, u32::try_from(partition).unwrap_or(0));
    }
    let plain = match adopted.type_.as_str() {
        "OnDelete" => json!({"type": "OnDelete"}),
        _ => json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}),
    };
    let found = adopted.strategy.clone();
    vec![json!({"op": "add", "path": "/spec/updateStrategy", "value": found.unwrap_or(plain)})]
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::StatefulSet;
    use serde_json::{Value, json};
    use windlass_api::status::Adopted;

    use super::restoring_patch;

    fn set(strategy: &Value) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": {"name": "pd"},
            "spec": {"selector": {}, "template": {}, "serviceName": "pd", "updateStrategy": strategy},
        }))
        .unwrap()
    }

    #[test]
    fn what_was_replaced_comes_back_with_fields_that_nobody_here_knows() {
        let found = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": "30%", "pace": "slow"}});
        let adopted = Adopted { type_: "RollingUpdate".into(), partition: Some(1), strategy: Some(found.clone()) };
        let patch = restoring_patch(&adopted, &set(&json!({"type": "OnDelete"})));
        assert_eq!(patch, [json!({"op": "add", "path": "/spec/updateStrategy", "value": found})]);
        // Where the type stayed, the partition alone was touched: what people changed of the rest meanwhile is theirs.
        let patch =
            restoring_patch(&adopted, &set(&json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}})));
        let partition = "/spec/updateStrategy/rollingUpdate/partition";
        assert_eq!(patch, [json!({"op": "add", "path": partition, "value": 1})]);
    }
}
