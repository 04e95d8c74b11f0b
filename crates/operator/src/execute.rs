//! Carries out one step. Every write names the resourceVersion that the decision saw, and is sent only while the term is ours:
//! a mismatch means "look again", never "try harder" (H1, H5).

use std::{borrow::Cow, time::Duration};

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        core::v1::Pod,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;
use tokio::time::Instant;
use windlass_api::{QuorumCluster, status::Pulling};
use windlass_plan::{
    MemberName, Reason, Step,
    bug::{self, Bug},
    rolling::known::{owners::MANAGER, workload::Strategy},
};

use crate::{
    Context, asked,
    error::{Class, Error},
    executor,
    lease::{Lease, Term},
    lenient::Whole,
    observe::{self, Observed},
    prepull,
    system::{self, Line},
    validate::{budget_name, init_containers},
};

/// How every write of ours says whose it is. Whose fields are whose is read back from that (H39).
fn as_us() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// So often a partition is raised again at once after a conflict with the controller's status.
const AT_ONCE: usize = 4;

/// Who touched an object last, and as what.
const TOUCHED: &str = "windlass.dev/touched-by";

/// The right to write: this process, in this term.
#[derive(Clone, Copy)]
pub struct Actor<'a> {
    /// What a pass needs from outside.
    pub context: &'a Context,
    /// The lease.
    pub lease: &'a Lease<'a>,
    /// The term in which the decision was made.
    pub term: &'a Term,
}

impl Actor<'_> {
    /// Sends one write: only while the term is ours, and with a deadline inside it.
    pub async fn write<T>(
        &self,
        verb: &'static str,
        what: &str,
        send: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        let left = self.lease.remaining(self.term)?;
        let deadline = left.min(self.context.settings.write_deadline);
        let answer = self.context.bounded(deadline, verb, what, send).await;
        self.context.metrics.write(verb, answer.as_ref().err().map(Error::class));
        answer
    }

    /// The same for what changes a StatefulSet, its pods or who may evict them. One that is not answered is remembered: nothing else is
    /// decided about that StatefulSet before it can't happen any more.
    pub async fn disrupt<T>(
        &self,
        verb: &'static str,
        what: &str,
        set: &StatefulSet,
        send: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        let answer = self.write(verb, what, send).await;
        if answer.as_ref().is_err_and(Error::may_still_happen) && !bug::active(Bug::UnansweredForgotten) {
            let longest = self.context.settings.longest_write;
            tracing::warn!(
                verb,
                what,
                ?longest,
                "a write was not answered; nothing is decided until it can't land any more"
            );
            self.context.unanswered.note(&key(set), Instant::now() + longest);
        }
        answer
    }
}

/// How unanswered writes about a StatefulSet are found again.
fn key(set: &StatefulSet) -> String {
    format!("{}/{}", set.namespace().unwrap_or_default(), set.name_any())
}

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
        // Boxed here and below: a Job is a large thing to hold.
        Step::TakeSnapshot { attempt } => Box::pin(executor::take_snapshot(actor, resource, observed, attempt)).await,
        Step::StartJob { gate } => {
            let (asker, questions) = (asked::quorum::asker(resource), asked::quorum::questions(resource, set));
            match asked::job::starting(&questions, gate) {
                Some(starting) => Box::pin(asked::job::start(actor, &asker, &questions, &starting)).await,
                None => Err(Error::Gone(gate.clone())),
            }
        }
        Step::PullImage { image, nodes } => Box::pin(prepull::pull(actor, resource, set, image, nodes)).await,
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
        Step::TakeBack { partition, .. } => take_back(actor, set, *partition).await,
        Step::HandOver { from, to } => hand_over(actor, resource, observed, from, to).await,
        Step::PutBackStrategy => patch_set(actor, set, strategy_patch(set, Strategy::OnDelete)).await,
        Step::DeletePod { pod, uid, .. } | Step::Replace { pod, uid, through: None, .. } => {
            delete_pod(actor, observed, set, pod, uid).await
        }
        Step::Replace { pod, uid, through: Some(budget), .. } => {
            evict_pod(actor, observed, set, pod, uid, budget).await
        }
        Step::HoldEvictions => hold_evictions(actor, resource, observed, set).await,
        Step::ReleaseEvictions => release_evictions(actor, observed, set).await,
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
/// all members again takes seconds in which it goes on: as long as nothing but the status is another, the same write is sent again at once. Each
/// is fenced like any other.
pub async fn take_back(actor: Actor<'_>, set: &StatefulSet, partition: u32) -> Result<(), Error> {
    let (name, namespace) = (set.name_any(), set.namespace().unwrap_or_default());
    let api: Api<StatefulSet> = Api::namespaced(actor.context.client.clone(), &namespace);
    let what = format!("statefulsets/{namespace}/{name}");
    let mut seen = Cow::Borrowed(set);
    for _ in 0..AT_ONCE {
        match patch_set(actor, &seen, partition_patch(&seen, partition)).await {
            Err(error) if error.is_conflict() && !bug::active(Bug::HoldWaitsForALook) => {
                match observe::get(actor.context, &what, &api, &name).await? {
                    Some(now) if is_same_but_status(set, &now) => seen = Cow::Owned(now),
                    Some(_) | None => return Err(error),
                }
            }
            other => return other,
        }
    }
    patch_set(actor, &seen, partition_patch(&seen, partition)).await
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

/// Deletes a pod, broken or in its turn: the one that was seen, as it was seen, or none (H44). No eviction: our own budget allows none.
async fn delete_pod(
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
async fn evict_pod(
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

/// Lets no eviction of the set's pods through (H12).
async fn hold_evictions(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    observed: &Observed,
    set: &StatefulSet,
) -> Result<(), Error> {
    let selector = set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
    match own_budget(observed, set) {
        Some(budget) => select(actor, set, budget, &selector).await,
        None => create_budget(actor, resource, set, selector).await,
    }
}

/// Lets evictions through again. The budget is not deleted but made to cover nothing: a predecessor's late request to create it
/// would otherwise succeed after a take-over, and a create can't be fenced.
pub async fn release_evictions(actor: Actor<'_>, observed: &Observed, set: &StatefulSet) -> Result<(), Error> {
    match own_budget(observed, set) {
        Some(budget) => select(actor, set, budget, &nothing()).await,
        None => Ok(()),
    }
}

/// A selector that no pod of anybody's matches.
fn nothing() -> LabelSelector {
    LabelSelector {
        match_labels: Some([("windlass.dev/covers".to_owned(), "nothing".to_owned())].into()),
        ..LabelSelector::default()
    }
}

fn own_budget<'a>(observed: &'a Observed, set: &StatefulSet) -> Option<&'a PodDisruptionBudget> {
    let name = budget_name(&set.name_any());
    observed.budgets.iter().find(|budget| budget.name_any() == name)
}

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
async fn create_budget(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    set: &StatefulSet,
    selector: LabelSelector,
) -> Result<(), Error> {
    let (name, namespace) = (budget_name(&set.name_any()), set.namespace().unwrap_or_default());
    let budget = PodDisruptionBudget {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some([("app.kubernetes.io/managed-by".to_owned(), "windlass".to_owned())].into()),
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

/// Moves the resourceVersion of everything that a predecessor may be writing to, or we ourselves without having been answered, so that
/// whatever still comes misses (H1).
pub async fn touch(actor: Actor<'_>, resource: &QuorumCluster, observed: &Observed) -> Result<(), Error> {
    let Some(set) = &observed.set else { return Ok(()) };
    touch_workload(actor, observed).await?;
    let upgrading = resource.status.as_ref().is_some_and(|status| status.upgrade.is_some());
    if upgrading && own_budget(observed, set).is_none() {
        // What the predecessor may be about to create must be there already for its request to miss.
        create_budget(actor, resource, set, nothing()).await?;
    }
    if let Some(starting) = resource.status.as_ref().and_then(|status| status.starting.as_ref()) {
        let (asker, questions) = (asked::quorum::asker(resource), asked::quorum::questions(resource, set));
        match Box::pin(asked::job::start(actor, &asker, &questions, starting)).await {
            // It is there by now; or nobody may make it, or there is nothing to make it from, for the predecessor neither.
            Err(error) if error.is_conflict() || matches!(error.class(), Class::Refused | Class::Stale) => {}
            other => other?,
        }
    }
    let pulling = resource.status.as_ref().and_then(|status| status.pulling.as_ref());
    if let Some(Pulling { image, nodes }) = pulling {
        match Box::pin(prepull::pull(actor, resource, set, image, nodes)).await {
            // Nobody may make them, the predecessor neither.
            Err(error) if error.class() == Class::Refused => {}
            other => other?,
        }
    }
    let Some(attempt) = executor::pending(resource, observed, actor.context.clock.now()) else { return Ok(()) };
    match Box::pin(executor::take_snapshot(actor, resource, observed, &attempt)).await {
        // It is there by now; or nobody may make it, the predecessor neither.
        Err(error) if error.is_conflict() || error.class() == Class::Refused => Ok(()),
        other => other,
    }
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
    if let Some(budget) = own_budget(observed, set) {
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

/// Waits until no write of our own that was not answered can still be worked on, and touches what it may have reached. None when there is
/// no such write: then anything may be decided.
pub async fn settle(
    actor: Actor<'_>,
    set: (&str, &str),
    touch: impl AsyncFnOnce() -> Result<(), Error>,
) -> Result<Option<Duration>, Error> {
    let key = format!("{}/{}", set.0, set.1);
    let Some(over) = actor.context.unanswered.over(&key) else { return Ok(None) };
    actor.context.metrics.hold(Reason::AwaitingAnswer);
    let left = over.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        return Ok(Some(left));
    }
    touch().await?;
    // Also where the StatefulSet is gone, and nothing is left to be touched.
    actor.context.unanswered.settled(&key);
    Ok(Some(Duration::ZERO))
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

/// Never the same twice: what changes nothing moves nothing.
pub fn mark(actor: Actor<'_>, seen: &impl ResourceExt) -> String {
    format!("{} {}", actor.term.id().as_str(), seen.resource_version().unwrap_or_default())
}

/// The patch that writes such a mark.
pub fn touching(mark: &str) -> serde_json::Value {
    json!({"metadata": {"annotations": {TOUCHED: mark}}})
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
