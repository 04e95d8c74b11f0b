//! What all resources of ours have in common, whatever they look after: who acts on them, how their status is written, what is told of them,
//! and how long they are kept.

pub mod author;
pub mod claim;
pub mod events;
pub mod finalizer;
pub mod odd;

use std::{fmt, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, Client, Resource, ResourceExt, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use windlass_api::{
    QuorumCluster, QuorumClusterStatus, ServiceImage, ServiceImageStatus, Word,
    conditions::{self, ConditionType},
    status::OperatorClaim,
};
use windlass_plan::{Hold, Reason, reason::Stalls};

use self::events::{Telling, tell};
use crate::{
    actor::Actor,
    error::{Class, Error},
    lenient::Whole,
    live::readable,
};

/// A custom resource of ours.
pub trait Owner: Resource<DynamicType = ()> + Clone + fmt::Debug + Serialize + DeserializeOwned {
    /// Its status.
    type Status: Clone + Default + PartialEq;

    /// Where resources of its kind are.
    fn api(client: &Client, namespace: &str) -> Api<Whole<Self>>;
    /// What it says.
    fn status(&self) -> Option<&Self::Status>;
    /// The same resource saying this.
    #[must_use]
    fn saying(&self, status: Self::Status) -> Self;
    /// Who acts on it, by what it says.
    fn operator(status: &Self::Status) -> Option<&OperatorClaim>;
    /// What it says for machines and people.
    fn conditions(status: &Self::Status) -> &[Condition];
}

impl Owner for QuorumCluster {
    type Status = QuorumClusterStatus;

    fn api(client: &Client, namespace: &str) -> Api<Whole<Self>> {
        Api::namespaced(client.clone(), namespace)
    }

    fn status(&self) -> Option<&QuorumClusterStatus> {
        self.status.as_ref()
    }

    fn saying(&self, status: QuorumClusterStatus) -> Self {
        Self { status: Some(status), ..self.clone() }
    }

    fn operator(status: &QuorumClusterStatus) -> Option<&OperatorClaim> {
        status.operator.as_ref()
    }

    fn conditions(status: &QuorumClusterStatus) -> &[Condition] {
        &status.conditions
    }
}

impl Owner for ServiceImage {
    type Status = ServiceImageStatus;

    fn api(client: &Client, _namespace: &str) -> Api<Whole<Self>> {
        Api::all(client.clone())
    }

    fn status(&self) -> Option<&ServiceImageStatus> {
        self.status.as_ref()
    }

    fn saying(&self, status: ServiceImageStatus) -> Self {
        Self { status: Some(status), ..self.clone() }
    }

    fn operator(status: &ServiceImageStatus) -> Option<&OperatorClaim> {
        status.operator.as_ref()
    }

    fn conditions(status: &ServiceImageStatus) -> &[Condition] {
        &status.conditions
    }
}

/// Its plural, its namespace if it has one, and its name.
pub fn what<K: Resource<DynamicType = ()>>(resource: &K) -> String {
    let (plural, name) = (K::plural(&()), resource.name_any());
    match resource.namespace() {
        Some(namespace) => format!("{plural}/{namespace}/{name}"),
        None => format!("{plural}/{name}"),
    }
}

/// Whether what was read is not older than what we wrote.
pub fn is_current<K: Resource<DynamicType = ()>>(actor: Actor<'_>, resource: &K) -> bool {
    let current = actor.context.own_writes.is_current(&what(resource), resource.meta().resource_version.as_deref());
    if !current {
        actor.context.metrics.hold(Reason::StaleView);
    }
    current
}

/// Whether we are the one who acts, and nothing of anybody else's can still arrive.
pub fn is_ours<K: Owner>(actor: Actor<'_>, resource: &K) -> bool {
    let operator = resource.status().and_then(K::operator);
    operator.is_some_and(|one| one.predecessor_done && one.identity == actor.term.id().as_str())
}

/// Writes the status if it differs, as a compare-and-swap on what was read. The resource as it is afterwards.
pub async fn write<K: Owner>(actor: Actor<'_>, resource: &K, status: K::Status) -> Result<K, Error> {
    if resource.status() == Some(&status) {
        return Ok(resource.clone());
    }
    record(actor, resource, status).await
}

/// Writes the status also if it is the same: before an act, the API server must say that the resource is still what was read. The answer is
/// read as the resource is, without what others may have made unreadable: a write that landed must not look like one that failed.
pub async fn record<K: Owner>(actor: Actor<'_>, resource: &K, status: K::Status) -> Result<K, Error> {
    let (name, what, params) = (resource.name_any(), what(resource), PostParams::default());
    let wanted = resource.saying(status);
    let api = K::api(&actor.context.client, &resource.namespace().unwrap_or_default());
    let written = actor.write("status", &what, api.replace_subresource("status", &name, &params, &wanted)).await?;
    actor.context.own_writes.wrote(&what, written.resource_version().as_deref());
    readable("status", &what, written.raw)
}

/// A claim that is pruned would be written again at every look, and nothing else would ever be done.
pub fn is_kept<K: Owner>(written: &K) -> Result<(), Error> {
    let kept = written.status().and_then(K::operator).is_some();
    if kept { Ok(()) } else { Err(Error::NotKept { what: what(written), field: "status.operator" }) }
}

/// What the resource said before: the word, and whether it was stalled.
fn told<K: Owner>(resource: &K) -> (Option<Word>, bool) {
    let said = resource.status().map(K::conditions).unwrap_or_default();
    (conditions::word(said), conditions::holds(said, ConditionType::Stalled))
}

/// Whether it is not ready for this reason.
pub fn says<K: Owner>(resource: &K, reason: Reason) -> bool {
    told(resource).0 == Some(reason.into())
}

/// An event when what is waited for changes or begins to need a person, not at every look, and not for what is over in a moment.
pub async fn tell_if_new<K: Owner>(actor: Actor<'_>, resource: &K, hold: &Hold, stalls: bool) {
    let (word, stalled) = told(resource);
    let new = word != Some(hold.reason.into()) || (stalls && !stalled);
    // What passes in moments would only be noise; where it does not, a person is called.
    if new && (stalls || !hold.reason.is_momentary()) {
        let warning = stalls || hold.reason.stalls() != Stalls::Never;
        tell(actor, resource, Telling { warning, reason: hold.reason.name(), action: "Wait", note: hold.to_string() })
            .await;
    }
}

/// Counts and tells that a look at something failed. When to look again, and not before.
pub fn failed(actor: Actor<'_>, what: &dyn fmt::Display, error: &Error) -> Duration {
    actor.context.metrics.pass(Some(error.class()));
    match error.class() {
        Class::Stale | Class::Lost => tracing::debug!(%what, error = error.story(), "will look again"),
        Class::Transient | Class::Refused => tracing::warn!(%what, error = error.story(), "a pass failed"),
    }
    error.class().retry()
}
