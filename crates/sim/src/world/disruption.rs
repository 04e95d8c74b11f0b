//! The disruption controller: how many pods of a budget are healthy, and how many may be evicted now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Map, Value, json};

use super::json::{
    Condition, Rounding, controller, is_true, name, number, selects, share, since, terminating, text, uid,
    with_conditions,
};
use super::queue::Key;
use super::state::State;

const USER: &str = "disruption-controller";
/// How long an eviction that was allowed counts although its pod is not seen terminating.
const EVICTION_COUNTS: Duration = Duration::from_mins(2);

impl State {
    /// How many pods the owners of these pods want in total, each owner counted once.
    fn wanted_by_owners(&self, namespace: &str, pods: &[&Value]) -> i64 {
        let owners: BTreeMap<&str, &Value> =
            pods.iter().filter_map(|pod| controller(pod)).map(|owner| (text(owner, "/uid"), owner)).collect();
        let scaled = owners.values().filter_map(|owner| self.scaled_by(namespace, owner));
        let scaled: BTreeMap<String, i64> =
            scaled.map(|scaled| (uid(&scaled).to_owned(), number(&scaled, "/spec/replicas").unwrap_or(1))).collect();
        scaled.values().sum()
    }

    /// Who decides how many pods there are: of a ReplicaSet that belongs to a Deployment, the Deployment.
    fn scaled_by(&self, namespace: &str, owner: &Value) -> Option<Arc<Value>> {
        match text(owner, "/kind") {
            "StatefulSet" => self.api.get_value("statefulsets.apps", namespace, text(owner, "/name")),
            "ReplicaSet" => {
                let set = self.api.get_value("replicasets.apps", namespace, text(owner, "/name"))?;
                match controller(&set) {
                    Some(owner) if text(owner, "/kind") == "Deployment" => {
                        self.api.get_value("deployments.apps", namespace, text(owner, "/name"))
                    }
                    Some(_) | None => Some(set),
                }
            }
            _ => None,
        }
    }

    pub(super) fn sync_budget(&mut self, key: &Key) {
        let Some(budget) = self.api.get_value("poddisruptionbudgets.policy", &key.namespace, &key.name) else { return };
        let selector = budget.pointer("/spec/selector").cloned().unwrap_or(Value::Null);
        let all = self.api.list_values("pods", &key.namespace);
        let none = json!({});
        let pods: Vec<&Value> = all
            .iter()
            .map(AsRef::as_ref)
            .filter(|pod| !selector.is_null() && selects(&selector, pod.pointer("/metadata/labels").unwrap_or(&none)))
            .filter(|pod| !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed"))
            .collect();

        let count = i64::try_from(pods.len()).unwrap_or(i64::MAX);
        let (expected, desired) = if let Some(limit) = budget.pointer("/spec/maxUnavailable").filter(|v| !v.is_null()) {
            let expected = self.wanted_by_owners(&key.namespace, &pods);
            (expected, (expected - share(limit, expected, Rounding::Up).unwrap_or(0)).max(0))
        } else {
            match budget.pointer("/spec/minAvailable") {
                Some(percent @ Value::String(_)) => {
                    let expected = self.wanted_by_owners(&key.namespace, &pods);
                    (expected, share(percent, expected, Rounding::Up).unwrap_or(expected))
                }
                Some(least) => (count, least.as_i64().unwrap_or(0)),
                None => (count, 0),
            }
        };

        let now = self.clock.now();
        let disrupted: Map<String, Value> = budget
            .pointer("/status/disruptedPods")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter(|(pod, _)| pods.iter().any(|known| name(known) == pod.as_str() && !terminating(known)))
            .filter(|(_, at)| since(at, "", now).is_some_and(|age| age < EVICTION_COUNTS))
            .map(|(pod, at)| (pod.clone(), at.clone()))
            .collect();
        let healthy = pods
            .iter()
            .filter(|pod| !terminating(pod) && !disrupted.contains_key(name(pod)) && is_true(pod, "Ready"))
            .count();
        let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
        let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
        let condition = Condition {
            kind: "DisruptionAllowed",
            status: if allowed > 0 { "True" } else { "False" },
            reason: if allowed > 0 { "SufficientPods" } else { "InsufficientPods" },
            message: "",
        };
        let mut status = json!({
            "observedGeneration": number(&budget, "/metadata/generation"),
            "expectedPods": expected,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "conditions": with_conditions(&budget, &[condition], now),
        });
        let stale: Vec<String> = budget
            .pointer("/status/disruptedPods")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(pod, _)| pod.clone())
            .filter(|pod| !disrupted.contains_key(pod))
            .collect();
        if !stale.is_empty() {
            let removed: Map<String, Value> = stale.into_iter().map(|pod| (pod, Value::Null)).collect();
            status["disruptedPods"] = Value::Object(removed);
        }
        if !disrupted.is_empty() {
            // The entry must run out even if nothing else happens.
            self.queue.push(self.now() + EVICTION_COUNTS, super::queue::Event::Budget(key.clone()));
        }
        if differs(&budget, &status) {
            // Evictions change the same status: a write from an old view must not undo their count.
            let version = text(&budget, "/metadata/resourceVersion");
            let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
            let written = self.api.merge_status::<PodDisruptionBudget>(USER, &key.namespace, &key.name, &patch);
            if written.is_err() {
                self.look(super::queue::Event::Budget(key.clone()));
            }
        }
    }
}

/// Whether a status patch would change anything.
fn differs(object: &Value, patch: &Value) -> bool {
    patch.as_object().into_iter().flatten().any(|(field, value)| {
        field == "disruptedPods" || object.pointer("/status").and_then(|status| status.get(field)) != Some(value)
    })
}
