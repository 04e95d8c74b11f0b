//! What is compared of Deployments: they, their ReplicaSets and their pods.
//!
//! ReplicaSets and pods have names that can't be equal on two clusters. A ReplicaSet is known by its template; its pods are alike where
//! they have come equally far, and are listed in the order of what is told of them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::scenario::{Alike, Reached};
use super::snapshot::{Kind, Objects, condition, phase, terminating, text};

const HASH: &str = "/metadata/labels/pod-template-hash";

/// The label that names the template.
pub fn hash_of(object: &Value) -> &str {
    text(object, HASH)
}

/// Whether a pod was made by a Deployment's ReplicaSet; one that lost it keeps the label.
pub fn is_replica(pod: &Value) -> bool {
    !hash_of(pod).is_empty()
}

/// How far a pod of a Deployment has come; none if it has ended and nobody deletes it.
pub fn reached(pod: &Value) -> Option<Reached> {
    match phase(pod) {
        _ if terminating(pod) => Some(Reached::Leaving),
        "Pending" => Some(Reached::Pending),
        "Running" if condition(pod, "Ready") == "True" => Some(Reached::Ready),
        "Running" => Some(Reached::Unready),
        _ => None,
    }
}

impl Objects {
    /// What pods like this one are called.
    pub fn alike(&self, pod: &Value) -> Option<Alike> {
        Some(Alike { template: self.symbol(hash_of(pod)), reached: reached(pod)? })
    }

    /// The first pod of a Deployment that is like this.
    pub fn replica(&self, wanted: &Alike) -> Option<String> {
        let pods = self.of(Kind::Pod).filter(|(_, pod)| is_replica(pod) && self.alike(pod).as_ref() == Some(wanted));
        // Of those that are on their way out, some ran and some did not: names must not decide which one is meant.
        pods.min_by_key(|(name, pod)| (self.replica_pod_facts(pod), *name)).map(|(name, _)| name.to_owned())
    }

    /// The name of the ReplicaSet of this template.
    pub fn replica_set(&self, template: &str) -> Option<&str> {
        self.of(Kind::ReplicaSet).map(|(name, _)| name).find(|name| self.symbol(name) == template)
    }

    /// Everything that is compared of them.
    pub(super) fn replica_facts(&self, facts: &mut BTreeMap<String, String>) {
        for (name, deployment) in self.of(Kind::Deployment) {
            self.deployment_facts(name, deployment, facts);
        }
        for (name, set) in self.of(Kind::ReplicaSet) {
            self.set_of_replicas_facts(&self.symbol(name), set, facts);
        }
        let mut pods: Vec<String> =
            self.of(Kind::Pod).filter(|(_, pod)| is_replica(pod)).map(|(_, pod)| self.replica_pod_facts(pod)).collect();
        pods.sort();
        for (rank, pod) in pods.into_iter().enumerate() {
            facts.insert(format!("pod {rank} of a ReplicaSet"), pod);
        }
    }

    fn deployment_facts(&self, name: &str, deployment: &Value, facts: &mut BTreeMap<String, String>) {
        let mut fact = |what: &str, value: String| facts.insert(format!("deployment {name} {what}"), value);
        fact("terminating", terminating(deployment).to_string());
        fact("finalizers", deployment["metadata"]["finalizers"].to_string());
        fact("generation", deployment["metadata"]["generation"].to_string());
        fact("annotations", deployment["metadata"]["annotations"].to_string());
        fact("strategy", deployment["spec"]["strategy"].to_string());
        fact("paused", deployment["spec"]["paused"].to_string());
        let status = deployment.get("status").unwrap_or(&Value::Null);
        for field in [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "observedGeneration",
            "collisionCount",
            "terminatingReplicas",
        ] {
            fact(field, status.get(field).unwrap_or(&Value::Null).to_string());
        }
        let recreated = text(deployment, "/spec/strategy/type") == "Recreate";
        fact("conditions", self.words(status, recreated));
    }

    fn set_of_replicas_facts(&self, template: &str, set: &Value, facts: &mut BTreeMap<String, String>) {
        let mut fact = |what: &str, value: String| facts.insert(format!("replicaset {template} {what}"), value);
        fact("terminating", terminating(set).to_string());
        fact("size", set["spec"]["replicas"].to_string());
        fact("minReadySeconds", set["spec"]["minReadySeconds"].to_string());
        fact("annotations", set["metadata"]["annotations"].to_string());
        fact("owner", self.owners(set));
        let status = set.get("status").unwrap_or(&Value::Null);
        for field in ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas"] {
            fact(field, status.get(field).unwrap_or(&Value::Null).to_string());
        }
        // How many writes lead to a size is chance; that the last one was seen is not.
        fact("observed", (status.get("observedGeneration") == set["metadata"].get("generation")).to_string());
        fact("conditions", self.words(status, false));
    }

    fn replica_pod_facts(&self, pod: &Value) -> String {
        format!(
            "template {} app {} phase {} ready {} terminating {} owned by {}",
            self.symbol(hash_of(pod)),
            text(pod, "/metadata/labels/app"),
            phase(pod),
            condition(pod, "Ready"),
            terminating(pod),
            self.owners(pod),
        )
    }

    fn owners(&self, object: &Value) -> String {
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let told = owners.into_iter().flatten().map(|owner| {
            let name = match text(owner, "/kind") {
                "ReplicaSet" => self.symbol(text(owner, "/name")),
                _ => text(owner, "/name").to_owned(),
            };
            format!("{} {name} controller {}", text(owner, "/kind"), owner["controller"])
        });
        told.collect::<Vec<String>>().join(", ")
    }

    /// The conditions, with the names of ReplicaSets replaced by what they stand for. Which one was set last is chance.
    fn words(&self, status: &Value, recreated: bool) -> String {
        let conditions = status.get("conditions").and_then(Value::as_array);
        let said = conditions.into_iter().flatten().map(|condition| {
            let field = |name: &str| text(condition, name).to_owned();
            let message = self.symbols().fold(field("/message"), |message, (name, symbol)| {
                message.replace(&format!("{name:?}"), &format!("{symbol:?}"))
            });
            match (field("/reason").as_str(), message.split('"').nth(1)) {
                // A Deployment that is recreated has moved if somebody looked while it had lost some of its pods and not all, and says
                // for ever that it is complete if nobody did. That is chance as well.
                ("NewReplicaSetCreated" | "ReplicaSetUpdated" | "NewReplicaSetAvailable", _) if recreated => {
                    format!("{}={} goes on or is done", field("/type"), field("/status"))
                }
                // Whether somebody looked between a set's creation and its first pod is chance.
                ("NewReplicaSetCreated" | "ReplicaSetUpdated", Some(set)) => {
                    format!("{}={} under way with {set}", field("/type"), field("/status"))
                }
                (reason, _) => format!("{}={} {reason} {message}", field("/type"), field("/status")),
            }
        });
        let mut said: Vec<String> = said.collect();
        said.sort();
        said.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(hash: &str, pod: &str, ready: &str) -> Objects {
        let mut objects = Objects::default();
        let name = format!("web-{hash}");
        let labels = json!({"app": "web", "pod-template-hash": hash});
        let template = json!({"spec": {"containers": [{"image": "web:v1"}]}});
        objects.put(
            Kind::ReplicaSet,
            json!({"metadata": {"name": name, "labels": labels}, "spec": {"replicas": 1, "template": template}}),
        );
        let owner = json!([{"kind": "ReplicaSet", "name": name, "controller": true}]);
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]});
        let metadata = json!({"name": pod, "labels": labels, "ownerReferences": owner});
        objects.put(Kind::Pod, json!({"metadata": metadata, "status": status}));
        let message = format!("ReplicaSet {name:?} is progressing.");
        let conditions = json!([{"type": "Progressing", "status": "True", "reason": "r", "message": message}]);
        objects.put(Kind::Deployment, json!({"metadata": {"name": "web"}, "status": {"conditions": conditions}}));
        objects
    }

    #[test]
    fn names_do_not_count_and_what_pods_have_come_to_does() {
        let here = cluster("abc", "web-abc-x", "True");
        assert_eq!(here.snapshot(), cluster("zzz", "web-zzz-y", "True").snapshot());
        assert_eq!(here.snapshot().differences("a", &cluster("zzz", "web-zzz-y", "False").snapshot(), "b").len(), 1);
        let pod = Alike { template: "v1".to_owned(), reached: Reached::Ready };
        assert_eq!(here.replica(&pod).as_deref(), Some("web-abc-x"));
        assert_eq!(here.replica_set("v1"), Some("web-abc"));
    }
}
