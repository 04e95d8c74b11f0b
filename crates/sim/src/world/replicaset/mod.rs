//! The ReplicaSet controller as of Kubernetes 1.34, with the DeploymentReplicaSetTerminatingReplicas gate off.
//!
//! One look: take in pods that match and belong to nobody, create or delete pods until there are as many as wanted, and report what
//! there was before.

mod member;

use std::sync::Arc;
use std::time::Duration;

use kube::api::DeleteParams;
use kube::core::Status;
use serde_json::{Value, json};

use super::DeploymentDeviation;
use super::claims::selected;
use super::json::{Condition, controller, name, number, terminating, text, uid, with_conditions};
use super::queue::{Event, Key};
use super::state::State;
use super::template::pod_of;
use member::Member;
pub(super) use member::is_active;

const USER: &str = "replicaset-controller";
pub(super) const RESOURCE: &str = "replicasets.apps";
/// Pods that one look creates or deletes at the most.
const BURST: usize = 500;
const RETRY: Duration = Duration::from_secs(1);

type Outcome<T> = Result<T, Box<Status>>;

impl State {
    pub(super) fn sync_replica_set(&mut self, key: &Key) {
        if self.now() < self.frozen_until {
            self.queue.push(self.frozen_until, Event::ReplicaSet(key.clone()));
            return;
        }
        let Some(set) = self.api.get_value(RESOURCE, &key.namespace, &key.name) else { return };
        // In a namespace that is being emptied nothing can be made; what is left there goes by itself.
        if self.look_at_replica_set(key, &set).is_err() && !self.graph.is_leaving(&key.namespace) {
            self.queue.push(self.now() + RETRY, Event::ReplicaSet(key.clone()));
        }
    }

    fn look_at_replica_set(&mut self, key: &Key, set: &Value) -> Outcome<()> {
        let now = self.clock.now();
        let seconds = number(set, "/spec/minReadySeconds").and_then(|seconds| u64::try_from(seconds).ok());
        let min_ready = Duration::from_secs(seconds.unwrap_or(0));
        let pods = self.claim(USER, "pods", set, is_active)?;
        let members: Vec<Member> = pods.into_iter().map(|pod| Member::of(pod, min_ready, now)).collect();
        let managed = if terminating(set) { Ok(()) } else { self.manage_replicas(set, &members) };
        self.report_replica_set(key, set, &members, managed.as_ref().err().map(AsRef::as_ref))?;
        if let Some(soonest) = members.iter().filter_map(|pod| pod.available_in).filter(|left| !left.is_zero()).min() {
            self.queue.push(self.now() + soonest, Event::ReplicaSet(key.clone()));
        }
        managed
    }

    /// Brings the number of pods to what it should be.
    fn manage_replicas(&mut self, set: &Value, members: &[Member]) -> Outcome<()> {
        let wanted = usize::try_from(number(set, "/spec/replicas").unwrap_or(1)).unwrap_or(0);
        for _ in 0..wanted.saturating_sub(members.len()).min(BURST) {
            self.api.create_value(USER, pod_of(set))?;
        }
        let excess = members.len().saturating_sub(wanted).min(BURST);
        if excess == 0 {
            return Ok(());
        }
        let related = if excess < members.len() { self.pods_of_siblings(set) } else { Vec::new() };
        let mut outcome = Ok(());
        let first = self.deployment_deviation == Some(DeploymentDeviation::ReadyPodsGoFirst);
        for member in member::surplus(members, excess, &related, self.clock.now(), first) {
            let options = DeleteParams::default();
            match self.api.delete_value(USER, "pods", text(set, "/metadata/namespace"), name(&member.pod), &options) {
                Err(status) if status.code == 404 => {}
                other => outcome = outcome.and(other),
            }
        }
        outcome
    }

    /// The pods of all ReplicaSets that have the same controller as this one.
    fn pods_of_siblings(&self, set: &Value) -> Vec<Arc<Value>> {
        let Some(owner) = controller(set) else { return Vec::new() };
        let siblings = self.controlled(RESOURCE, text(owner, "/uid"));
        siblings.iter().flat_map(|sibling| self.controlled("pods", uid(sibling))).collect()
    }

    /// Writes the status where it changed. What this look did shows in the next one's.
    fn report_replica_set(&self, key: &Key, set: &Value, members: &[Member], failure: Option<&Status>) -> Outcome<()> {
        let count = |counted: &dyn Fn(&Member) -> bool| members.iter().filter(|member| counted(member)).count();
        let labels = set.pointer("/spec/template/metadata/labels").cloned().unwrap_or(json!({}));
        let template = json!({"spec": {"selector": {"matchLabels": labels}}});
        // The real status leaves out counts that are zero, but for that of all pods.
        let some = |count: usize| if count == 0 { Value::Null } else { json!(count) };
        let status = json!({
            "observedGeneration": number(set, "/metadata/generation"),
            "replicas": members.len(),
            "fullyLabeledReplicas": some(count(&|member| selected(&template, &member.pod))),
            "readyReplicas": some(count(&|member| member.ready)),
            "availableReplicas": some(count(&Member::available)),
            "conditions": self.failure_conditions(set, members.len(), failure),
        });
        if differs(set, &status) {
            let patch = json!({"metadata": {"uid": uid(set)}, "status": status});
            self.api.merge_status_value(USER, RESOURCE, &key.namespace, &key.name, &patch)?;
        }
        Ok(())
    }

    /// The conditions with what went wrong, or without what goes well again. The first fault is told until it is over.
    fn failure_conditions(&self, set: &Value, present: usize, failure: Option<&Status>) -> Value {
        let known = super::json::condition(set, FAILURE).is_some();
        match failure {
            Some(_) if known => set.pointer("/status/conditions").cloned().unwrap_or_default(),
            Some(status) => {
                let wanted = number(set, "/spec/replicas").and_then(|wanted| usize::try_from(wanted).ok());
                let too_few = wanted.is_some_and(|wanted| present < wanted);
                let reason = if too_few { "FailedCreate" } else { "FailedDelete" };
                let condition = Condition { kind: FAILURE, status: "True", reason, message: &status.message };
                with_conditions(set, &[condition], self.clock.now())
            }
            None => {
                let others = super::json::list(set, "/status/conditions").iter();
                let others: Vec<&Value> = others.filter(|condition| text(condition, "/type") != FAILURE).collect();
                if others.is_empty() { Value::Null } else { json!(others) }
            }
        }
    }
}

/// The condition that tells that pods can't be made or deleted.
pub(super) const FAILURE: &str = "ReplicaFailure";

/// Whether a status says anything that the object does not say yet.
pub(super) fn differs(object: &Value, status: &Value) -> bool {
    let before = object.get("status").unwrap_or(&Value::Null);
    status.as_object().into_iter().flatten().any(|(field, value)| before.get(field).unwrap_or(&Value::Null) != value)
}
