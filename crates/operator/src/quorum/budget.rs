//! Our own PodDisruptionBudget, which lets nobody go while a member is down because of us (H12).

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PostParams},
};
use serde_json::json;
use windlass_api::QuorumCluster;
use windlass_plan::{Hold, Reason};

use crate::{
    actor::{Actor, as_us},
    error::Error,
    lenient::Whole,
    quorum::observe::Observed,
};

/// Who made it, as a label.
const MADE_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "windlass");

/// Lets no eviction of the set's pods through (H12).
pub async fn hold(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    observed: &Observed,
    set: &StatefulSet,
) -> Result<(), Error> {
    let selector = set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
    if let Some(hold) = taken(observed, set) {
        return Err(Error::Held(hold));
    }
    match own(observed, set) {
        Some(budget) => select(actor, set, budget, &selector).await,
        None => create(actor, resource, set, selector).await,
    }
}

/// Somebody else's budget has the name of ours, so that ours can't be made.
pub fn taken(observed: &Observed, set: &StatefulSet) -> Option<Hold> {
    let name = name(&set.name_any());
    let theirs = observed.budgets.iter().any(|budget| budget.name_any() == name) && own(observed, set).is_none();
    let message = || {
        format!(
            "Windlass needs a PodDisruptionBudget {name} of its own, and the one of that name is somebody else's: rename that one"
        )
    };
    theirs.then(|| Hold::new(Reason::DisruptionBudgetTooLoose, message()))
}

/// Lets evictions through again. The budget is not deleted but made to cover nothing: a predecessor's late request to create it
/// would otherwise succeed after a take-over, and a create can't be fenced.
pub async fn release(actor: Actor<'_>, observed: &Observed, set: &StatefulSet) -> Result<(), Error> {
    match own(observed, set) {
        Some(budget) => select(actor, set, budget, &nothing()).await,
        None => Ok(()),
    }
}

/// A selector that no pod of anybody's matches.
pub fn nothing() -> LabelSelector {
    LabelSelector {
        match_labels: Some([("windlass.dev/covers".to_owned(), "nothing".to_owned())].into()),
        ..LabelSelector::default()
    }
}

/// The budget that is ours, if it is there.
pub fn own<'a>(observed: &'a Observed, set: &StatefulSet) -> Option<&'a PodDisruptionBudget> {
    observed.budgets.iter().find(|budget| is_own(budget, &set.name_any()))
}

/// Whether we made this budget for that set: somebody else's of that name is theirs to change (H41). Where its QuorumCluster was deleted and its
/// dependents were left, ours has no owner any more.
pub fn is_own(budget: &PodDisruptionBudget, set: &str) -> bool {
    let controller = budget.owner_references().iter().find(|owner| owner.controller == Some(true));
    let (label, ours) = MADE_BY;
    budget.name_any() == name(set)
        && match controller {
            Some(owner) => owner.kind == QuorumCluster::kind(&()),
            None => budget.labels().get(label).is_some_and(|by| by == ours),
        }
}

/// Makes our budget cover what this selects.
async fn select(
    actor: Actor<'_>,
    set: &StatefulSet,
    budget: &PodDisruptionBudget,
    selector: &LabelSelector,
) -> Result<(), Error> {
    let (name, namespace) = (budget.name_any(), budget.namespace().unwrap_or_default());
    let api: Api<Whole<PodDisruptionBudget>> = Api::namespaced(actor.context.client.clone(), &namespace);
    let patch = json!([
        {"op": "replace", "path": "/spec/selector", "value": selector},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": budget.resource_version()},
    ]);
    let patch: json_patch::Patch = serde_json::from_value(patch).unwrap_or_default();
    let what = format!("poddisruptionbudgets/{namespace}/{name}");
    let (params, patch) = (as_us(), Patch::Json::<()>(patch));
    actor.disrupt("patch", &what, set, api.patch(&name, &params, &patch)).await.map(|_| ())
}

/// A PodDisruptionBudget that allows no eviction of what it selects. It belongs to the custom resource and goes with it.
pub async fn create(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    set: &StatefulSet,
    selector: LabelSelector,
) -> Result<(), Error> {
    let (name, namespace) = (name(&set.name_any()), set.namespace().unwrap_or_default());
    let budget = PodDisruptionBudget {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some([(MADE_BY.0.to_owned(), MADE_BY.1.to_owned())].into()),
            owner_references: resource.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(0)),
            selector: Some(selector),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    };
    let api: Api<PodDisruptionBudget> = Api::namespaced(actor.context.client.clone(), &namespace);
    let what = format!("poddisruptionbudgets/{namespace}/{name}");
    actor.disrupt("create", &what, set, api.create(&PostParams::default(), &budget)).await.map(|_| ())
}

/// Our own budget's name for a StatefulSet.
pub fn name(set: &str) -> String {
    format!("windlass-{set}")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::policy::v1::PodDisruptionBudget;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::is_own;

    #[rstest]
    #[case::a_quorum_clusters(json!({"ownerReferences": [{"apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster", "name": "pd", "uid": "1", "controller": true}]}), true)]
    #[case::one_whose_owner_is_gone(json!({"labels": {"app.kubernetes.io/managed-by": "windlass"}}), true)]
    #[case::another_controllers(json!({"labels": {"app.kubernetes.io/managed-by": "windlass"}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "pd", "uid": "1", "controller": true}]}), false)]
    #[case::a_persons(json!({}), false)]
    fn whose_a_budget_of_that_name_is(#[case] metadata: Value, #[case] expected: bool) {
        let mut budget: PodDisruptionBudget = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        budget.metadata.name = Some("windlass-pd".into());
        assert_eq!(is_own(&budget, "pd"), expected);
        assert!(!is_own(&budget, "etcd"));
    }
}
