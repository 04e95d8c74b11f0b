//! What a predecessor may still be writing to, or we ourselves without having been answered, is moved on, so that whatever still comes misses
//! (H1).

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{Api, Resource, ResourceExt, api::Patch};
use windlass_api::QuorumCluster;

use crate::{
    actor::{Actor, TOUCHED, as_us, key, mark, touching},
    error::Error,
    lenient::Whole,
    quorum::{budget, intents, observe::Observed},
};

/// Moves the resourceVersion of everything that a predecessor may be writing to, or we ourselves without having been answered, so that
/// whatever still comes misses (H1).
pub async fn touch(actor: Actor<'_>, resource: &QuorumCluster, observed: &Observed) -> Result<(), Error> {
    let Some(set) = &observed.set else { return Ok(()) };
    touch_workload(actor, observed).await?;
    let upgrading = resource.status.as_ref().is_some_and(|status| status.upgrade.is_some());
    if upgrading && budget::own(observed, set).is_none() && budget::taken(observed, set).is_none() {
        // What the predecessor may be about to create must be there already for its request to miss.
        budget::create(actor, resource, set, budget::nothing()).await?;
    }
    Box::pin(intents::settle(actor, resource, observed, set)).await
}

/// The part of it that is known by the StatefulSet alone: itself, its pods and our budget for them.
pub async fn touch_workload(actor: Actor<'_>, observed: &Observed) -> Result<(), Error> {
    let Some(set) = &observed.set else { return Ok(()) };
    let namespace = set.namespace().unwrap_or_default();
    let sets: Api<Whole<StatefulSet>> = Api::namespaced(actor.context.client.clone(), &namespace);
    touch_one(actor, &sets, "statefulsets", set).await?;
    let pods: Api<Whole<Pod>> = Api::namespaced(actor.context.client.clone(), &namespace);
    for pod in &observed.pods {
        touch_pod(actor, &pods, pod).await?;
    }
    if let Some(budget) = budget::own(observed, set) {
        let budgets: Api<Whole<PodDisruptionBudget>> = Api::namespaced(actor.context.client.clone(), &namespace);
        touch_one(actor, &budgets, "poddisruptionbudgets", budget).await?;
    }
    actor.context.unanswered.settled(&key(set));
    Ok(())
}

/// Whether the StatefulSet was touched in this term.
pub fn is_touched(actor: Actor<'_>, set: &StatefulSet) -> bool {
    let mark = set.annotations().get(TOUCHED).and_then(|mark| mark.split(' ').next());
    mark == Some(actor.term.id().as_str())
}

async fn touch_one<K>(actor: Actor<'_>, api: &Api<Whole<K>>, kind: &str, seen: &K) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let name = seen.name_any();
    let what = format!("{kind}/{name}");
    let patch = Patch::Merge(touching(&mark(actor, seen)));
    unless_gone(actor.write("touch", &what, api.patch(&name, &as_us(), &patch)).await)
}

/// A pod is touched through its status, where annotations can be written and its containers can't: who may patch pods can run any image
/// in anybody's (H41).
async fn touch_pod(actor: Actor<'_>, pods: &Api<Whole<Pod>>, seen: &Pod) -> Result<(), Error> {
    let name = seen.name_any();
    let what = format!("pods/{name}");
    let patch = Patch::Merge(touching(&mark(actor, seen)));
    unless_gone(actor.write("touch", &what, pods.patch_status(&name, &as_us(), &patch)).await)
}

/// What is gone needs no touch.
fn unless_gone<K>(touched: Result<K, Error>) -> Result<(), Error> {
    match touched {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}
