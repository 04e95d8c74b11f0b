//! Taking one member's pod down: deleted, or evicted where somebody else's budget counts it.

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use serde_json::json;
use windlass_plan::{
    MemberName,
    bug::{self, Bug},
};

use crate::{actor::Actor, error::Error, lenient::Whole, quorum::observe::Observed};

/// Deletes a pod, broken or in its turn: the one that was seen, as it was seen, or none (H44). No eviction: our own budget allows none.
pub async fn delete_pod(
    actor: Actor<'_>,
    observed: &Observed,
    set: &StatefulSet,
    name: &MemberName,
    uid: &str,
) -> Result<(), Error> {
    let Seen { api, what, fence } = seen(actor, observed, name, uid)?;
    if bug::active(Bug::MendByEviction) {
        let (params, eviction) = (PostParams::default(), eviction(name, None));
        let request = api.create_subresource::<_, kube::core::Status>("eviction", name.as_str(), &params, &eviction);
        return actor.disrupt("evict", &what, set, request).await.map(|_| ());
    }
    let params = DeleteParams { preconditions: fence, ..DeleteParams::default() };
    actor.disrupt("delete", &what, set, api.delete(name.as_str(), &params)).await.map(|_| ())
}

/// Evicts a pod in its turn, the one that was seen, as it was seen, within a budget of somebody else's (H12): whoever evicts another one
/// meanwhile counts on the same budget. One that changed since is not evicted, and still costs the budget one eviction for a while.
pub async fn evict_pod(
    actor: Actor<'_>,
    observed: &Observed,
    set: &StatefulSet,
    name: &MemberName,
    uid: &str,
    budget: &str,
) -> Result<(), Error> {
    let Seen { api, what, fence } = seen(actor, observed, name, uid)?;
    let fence = fence.filter(|_| !bug::active(Bug::EvictUnfenced));
    let (params, eviction) = (PostParams::default(), eviction(name, fence.as_ref()));
    let request = api.create_subresource::<_, kube::core::Status>("eviction", name.as_str(), &params, &eviction);
    match actor.disrupt("evict", &what, set, request).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.refused_by_budget(budget).map_or(error, Error::Held)),
    }
}

/// Not the options of `Api::evict`: it sends them under a name that the API server does not know, and the fence would be lost.
fn eviction(name: &MemberName, fence: Option<&Preconditions>) -> serde_json::Value {
    json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": name.as_str()},
        "deleteOptions": {"preconditions": fence},
    })
}

/// A pod as it was seen, and the fence that a request for it carries.
struct Seen {
    api: Api<Whole<Pod>>,
    what: String,
    fence: Option<Preconditions>,
}

fn seen(actor: Actor<'_>, observed: &Observed, name: &MemberName, uid: &str) -> Result<Seen, Error> {
    let pod = observed.pods.iter().find(|pod| pod.name_any() == name.as_str() && pod.uid().as_deref() == Some(uid));
    let Some(pod) = pod else { return Err(Error::Gone(format!("pod {name} ({uid})"))) };
    let namespace = pod.namespace().unwrap_or_default();
    // The uid keeps its successor safe, the resourceVersion keeps one safe that has become well meanwhile, and a late request out (H1).
    let fence = Preconditions { uid: pod.uid(), resource_version: pod.resource_version() };
    Ok(Seen {
        api: Api::namespaced(actor.context.client.clone(), &namespace),
        what: format!("pods/{namespace}/{name}"),
        fence: (!bug::active(Bug::MendUnfenced)).then_some(fence),
    })
}
