//! The scheduler: spreads the pods of one owner over the nodes that take pods, and says so where none does.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::json::{Condition, list, selects, terminating, text, uid, with_conditions};
use super::placement::owner_of;
use super::queue::Key;
use super::state::State;

const USER: &str = "kube-scheduler";

const ANTI_AFFINITY: &str = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";

/// Whether the pod refuses to share a node with anybody.
fn has_terms(pod: &Value) -> bool {
    !list(pod, ANTI_AFFINITY).is_empty()
}

/// Whether the pod refuses to share a node with the other (required anti-affinity by host name).
fn refuses(pod: &Value, other: &Value) -> bool {
    let none = json!({});
    let labels = other.pointer("/metadata/labels").unwrap_or(&none);
    list(pod, ANTI_AFFINITY).iter().any(|term| {
        text(term, "/topologyKey") == "kubernetes.io/hostname"
            && term.get("labelSelector").is_some_and(|selector| selects(selector, labels))
    })
}

impl State {
    pub(super) fn schedule(&mut self, key: &Key) {
        let Some(pod) = self.api.get_value("pods", &key.namespace, &key.name) else { return };
        if !text(&pod, "/spec/nodeName").is_empty() || terminating(&pod) {
            return;
        }
        let owner = owner_of(&pod);
        self.placement.catch_up(&self.journal);
        let others = if has_terms(&pod) { self.api.list_values("pods", &key.namespace) } else { Vec::new() };
        let mut best: Option<(usize, usize, &String)> = None;
        for (name, node) in &self.nodes {
            if node.down || node.cordoned {
                continue;
            }
            let mut here = others
                .iter()
                .filter(|other| text(other, "/spec/nodeName") == name)
                .filter(|other| !matches!(text(other, "/status/phase"), "Succeeded" | "Failed"));
            if here.any(|other| refuses(&pod, other)) {
                continue;
            }
            let (siblings, all) = self.placement.load(name, &owner);
            let load = (siblings, all, name);
            if best.as_ref().is_none_or(|best| load < *best) {
                best = Some(load);
            }
        }
        match best.map(|(_, _, node)| node.clone()) {
            Some(node) => self.bind(key, &node),
            None => self.unschedulable(key, &pod),
        }
    }

    fn bind(&mut self, key: &Key, node: &str) {
        if self.api.bind(USER, &key.namespace, &key.name, node).is_err() {
            self.look(super::queue::Event::Schedule(key.clone()));
        }
    }

    fn unschedulable(&mut self, key: &Key, pod: &Value) {
        let message = format!("0/{} nodes are available: no node takes this pod.", self.nodes.len());
        let condition = Condition { kind: "PodScheduled", status: "False", reason: "Unschedulable", message: &message };
        let conditions = with_conditions(pod, &[condition], self.clock.now());
        if pod.pointer("/status/conditions") != Some(&conditions) {
            let patch = json!({"metadata": {"uid": uid(pod)}, "status": {"conditions": conditions}});
            // A pod that went away meanwhile needs no condition.
            let _ = self.api.merge_status::<Pod>(USER, &key.namespace, &key.name, &patch);
        }
    }
}
