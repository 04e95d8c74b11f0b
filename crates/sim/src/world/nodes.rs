//! The nodes: their registration, their loss and return, and what the control plane makes of it.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node as NodeObject, Pod};
use kube::api::{DeleteParams, Preconditions};
use serde_json::{Value, json};

use super::json::{Condition, is_true, name, terminating, text, time, uid, with_conditions};
use super::queue::{Event, Key};
use super::state::State;

const USER: &str = "node-controller";
/// How long heartbeats may be missing before a node counts as lost.
const GRACE: Duration = Duration::from_secs(40);
/// How long pods tolerate a lost node by default.
const TOLERATION: Duration = Duration::from_mins(5);

/// One node as it truly is.
#[derive(Default)]
pub(crate) struct Node {
    pub down: bool,
    pub cordoned: bool,
    /// Changes with each loss and return, which makes older timers void.
    pub epoch: u64,
    /// Images that needn't be pulled again.
    pub images: BTreeSet<String>,
    pub number: usize,
    pub addresses: u32,
}

impl Node {
    /// A pod address that was never given out before.
    pub fn next_address(&mut self) -> String {
        self.addresses += 1;
        // Four octets are few for a long run: the second and third grow when the last is used up.
        let (block, host) = (self.addresses / 250, self.addresses % 250 + 1);
        format!("10.{}.{}.{host}", 244 + block % 11, self.number + (block as usize / 11) * 16)
    }
}

impl State {
    pub(super) fn register_nodes(&mut self, count: usize) {
        for number in 0..count {
            let node = format!("node-{number}");
            let now = time(self.clock.now());
            let object = json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": node, "labels": {
                    "kubernetes.io/hostname": node,
                    "kubernetes.io/os": "linux",
                    "topology.kubernetes.io/zone": format!("zone-{}", number % 3),
                }},
                "spec": {"podCIDR": format!("10.244.{number}.0/24")},
            });
            // Only a name that is taken could be refused, and then that node is there already.
            let _ = self.api.create_value("kubelet", object);
            let status = json!({"status": {
                "addresses": [
                    {"type": "InternalIP", "address": format!("10.0.0.{}", number + 10)},
                    {"type": "Hostname", "address": node},
                ],
                "allocatable": {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"},
                "capacity": {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"},
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                    "lastHeartbeatTime": now, "lastTransitionTime": now,
                }],
                "nodeInfo": {
                    "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "embedded://0", "kernelVersion": "0",
                    "kubeletVersion": "v1.34.4", "kubeProxyVersion": "", "machineID": "", "operatingSystem": "linux",
                    "osImage": "simulated", "systemUUID": "",
                },
            }});
            let _ = self.api.merge_status::<NodeObject>("kubelet", "", &node, &status);
            self.nodes.insert(node, Node { number, ..Node::default() });
        }
    }

    pub(super) fn node_down(&mut self, name: &str) {
        let Some(node) = self.nodes.get_mut(name).filter(|node| !node.down) else { return };
        node.down = true;
        node.epoch += 1;
        let epoch = node.epoch;
        let now = self.now();
        self.queue.push(now + GRACE, Event::NodeLost { node: name.to_owned(), epoch });
        self.queue.push(now + GRACE + TOLERATION, Event::NodeEvicts { node: name.to_owned(), epoch });
        for key in self.pods_on(name) {
            self.power_off(&key);
        }
    }

    pub(super) fn node_up(&mut self, name: &str) {
        self.cordon(name, false);
        let Some(node) = self.nodes.get_mut(name).filter(|node| node.down) else { return };
        node.down = false;
        node.epoch += 1;
        let epoch = node.epoch;
        let boot = self.takes(2_000, 6_000);
        self.queue.push(self.now() + boot, Event::NodeBack { node: name.to_owned(), epoch });
    }

    /// True when nothing happened to the node since.
    fn is_epoch(&self, name: &str, epoch: u64) -> bool {
        self.nodes.get(name).is_some_and(|node| node.epoch == epoch)
    }

    fn pods_on(&self, node: &str) -> Vec<Key> {
        self.pods.iter().filter(|(_, pod)| pod.node == node).map(|(key, _)| key.clone()).collect()
    }

    fn report_node(&mut self, name: &str, status: &str, reason: &str, message: &str) {
        let Some(node) = self.api.get_value("nodes", "", name) else { return };
        let condition = Condition { kind: "Ready", status, reason, message };
        let conditions = with_conditions(&node, &[condition], self.clock.now());
        let user = if status == "True" { "kubelet" } else { USER };
        let _ = self.api.merge_status::<NodeObject>(user, "", name, &json!({"status": {"conditions": conditions}}));
    }

    fn objects_on(&self, node: &str) -> Vec<std::sync::Arc<Value>> {
        let pods = self.api.list_values("pods", "");
        pods.into_iter().filter(|pod| text(pod, "/spec/nodeName") == node).collect()
    }

    /// The control plane gives the node up: its pods count as not ready, whatever they do.
    pub(super) fn node_lost(&mut self, node: &str, epoch: u64) {
        if !self.is_epoch(node, epoch) {
            return;
        }
        self.report_node(node, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
        for pod in self.objects_on(node) {
            if is_true(&pod, "Ready") {
                let condition = Condition { kind: "Ready", status: "False", reason: "NodeNotReady", message: "" };
                let conditions = with_conditions(&pod, &[condition], self.clock.now());
                let patch = json!({"metadata": {"uid": uid(&pod)}, "status": {"conditions": conditions}});
                let namespace = text(&pod, "/metadata/namespace");
                let _ = self.api.merge_status::<Pod>(USER, namespace, name(&pod), &patch);
            }
        }
    }

    /// The pods' patience with the lost node ends: they are deleted, and stay so until the node is back or somebody forces it.
    pub(super) fn node_evicts(&mut self, node: &str, epoch: u64) {
        if !self.is_epoch(node, epoch) {
            return;
        }
        for pod in self.objects_on(node) {
            if !terminating(&pod) {
                let options = DeleteParams {
                    preconditions: Some(Preconditions { uid: Some(uid(&pod).to_owned()), resource_version: None }),
                    ..DeleteParams::default()
                };
                let namespace = text(&pod, "/metadata/namespace");
                let _ = self.api.delete::<Pod>("taint-eviction-controller", namespace, name(&pod), &options);
            }
        }
    }

    pub(super) fn node_back(&mut self, node: &str, epoch: u64) {
        if !self.is_epoch(node, epoch) {
            return;
        }
        self.report_node(node, "True", "KubeletReady", "kubelet is posting ready status");
        for key in self.pods_on(node) {
            self.power_on(&key);
        }
        // Pods that were bound to it while it was away, too.
        for pod in self.objects_on(node) {
            self.look(Event::Kubelet(Key::new(text(&pod, "/metadata/namespace"), name(&pod))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_given_out_twice() {
        let mut seen = BTreeSet::new();
        for number in 0..4 {
            let mut node = Node { number, ..Node::default() };
            for _ in 0..5_000 {
                assert!(seen.insert(node.next_address()));
            }
        }
    }
}
