//! Learning of changes: each write in the journal is taken in once and turned into looks for those whom it concerns.

use std::sync::Arc;

use serde_json::Value;

use super::claims::selected;
use super::json::{controller, list, name, terminating, text};
use super::queue::{Event, Key};
use super::state::State;
use super::{deployment, replicaset};
use crate::journal::{Change, Event as Entry, Verb};

/// The object of a change, as those who watch see it.
struct Seen {
    verb: Verb,
    resource: String,
    key: Key,
    object: Arc<Value>,
    /// As it was; none where it is new.
    before: Option<Arc<Value>>,
}

impl Seen {
    fn of(change: &Change) -> Option<Self> {
        let object = change.after.as_ref().or(change.before.as_ref())?;
        Some(Self {
            verb: change.verb,
            resource: change.resource.clone(),
            key: Key::new(&change.namespace, &change.name),
            object: Arc::clone(object),
            before: change.before.clone(),
        })
    }

    /// The controller of this kind that the object had before and has no more.
    fn former_controller(&self, kind: &str) -> Option<Key> {
        let former = self.before.as_ref().and_then(|before| controller(before))?;
        let lost = text(former, "/kind") == kind && controller(&self.object) != Some(former);
        lost.then(|| Key::new(&self.key.namespace, text(former, "/name")))
    }

    /// Whether nobody controls the object, and somebody may want to for the first time: it is new, or has other labels, or lost its
    /// controller.
    fn is_new_orphan(&self) -> bool {
        let labels = self.object.pointer("/metadata/labels");
        let same = |before: &Arc<Value>| controller(before).is_none() && before.pointer("/metadata/labels") == labels;
        controller(&self.object).is_none() && !self.before.as_ref().is_some_and(same)
    }
}

impl State {
    /// Takes in what has been written since the last time.
    pub fn take_in(&mut self) {
        let seen: Vec<Seen> = {
            let entries = self.journal.entries();
            let fresh = entries.get(self.read..).unwrap_or_default();
            let seen = fresh
                .iter()
                .filter_map(|entry| match &entry.event {
                    Entry::Write(change) => Seen::of(change),
                    Entry::Quorum(_) | Entry::Verb { .. } | Entry::Note(_) => None,
                })
                .collect();
            self.read = entries.len();
            seen
        };
        for change in seen {
            self.note_graph(&change);
            match change.resource.as_str() {
                // As on a real cluster, a set is looked at when it or a pod of its changes, not when its history does; and a
                // budget when it or a pod does, not when the set is scaled.
                "pods" => self.pod_changed(&change),
                "statefulsets.apps" => self.set_changed(change.key),
                "jobs.batch" => self.look(Event::Job(change.key)),
                replicaset::RESOURCE => self.replica_set_changed(&change),
                deployment::RESOURCE => self.look(Event::Deployment(change.key)),
                "poddisruptionbudgets.policy" => self.look(Event::Budget(change.key)),
                "services" => self.look_at_service(change.key),
                "endpointslices.discovery.k8s.io" if change.verb == Verb::Delete => {
                    self.look_at_services(&change.key.namespace);
                }
                "nodes" => self.node_changed(&change.key.name, &change.object),
                "namespaces" if terminating(&change.object) => self.look(Event::Namespace(change.key.name)),
                _ => {}
            }
        }
    }

    fn note_graph(&mut self, change: &Seen) {
        let namespace = &change.key.namespace;
        if change.verb == Verb::Delete {
            let orphaned = self.graph.remove(&change.object);
            for uid in orphaned {
                self.look(Event::Dependent(uid));
            }
            // Owners that wait for their dependents may go on.
            for owner in list(&change.object, "/metadata/ownerReferences") {
                self.look(Event::Owner(text(owner, "/uid").to_owned()));
            }
            if self.graph.is_leaving(namespace) {
                self.look(Event::Namespace(namespace.clone()));
            }
            return;
        }
        let (uid, adopted) = self.graph.insert(&change.resource, namespace, &change.object);
        if change.resource == "namespaces" && terminating(&change.object) {
            self.graph.leaves(&change.key.name);
        }
        if adopted {
            self.look(Event::Dependent(uid.clone()));
        }
        if terminating(&change.object) && !list(&change.object, "/metadata/finalizers").is_empty() {
            self.look(Event::Owner(uid));
        }
    }

    fn pod_changed(&mut self, change: &Seen) {
        let pod = &change.object;
        let scheduled = !text(pod, "/spec/nodeName").is_empty();
        if change.verb != Verb::Delete && !scheduled && !terminating(pod) {
            self.look(Event::Schedule(change.key.clone()));
        } else {
            self.look(Event::Kubelet(change.key.clone()));
        }
        self.owner_changed(change);
        if controller(pod).is_none() && change.verb != Verb::Update {
            // An orphan may be adopted by whoever selects it.
            self.look_at_sets(&change.key.namespace);
        }
        self.replica_set_of_pod_changed(change);
        let budgets = self.api.list_values("poddisruptionbudgets.policy", &change.key.namespace);
        for budget in budgets {
            self.look(Event::Budget(Key::new(&change.key.namespace, text(&budget, "/metadata/name"))));
        }
        self.look_at_services(&change.key.namespace);
    }

    fn set_changed(&mut self, key: Key) {
        self.failures.remove(&key);
        self.look(Event::Set(key));
    }

    fn owner_changed(&mut self, change: &Seen) {
        let owner = controller(&change.object).map(|owner| (text(owner, "/kind"), text(owner, "/name")));
        match owner {
            Some(("StatefulSet", name)) => self.look(Event::Set(Key::new(&change.key.namespace, name))),
            Some(("Job", name)) => self.look(Event::Job(Key::new(&change.key.namespace, name))),
            Some(("ReplicaSet", name)) => self.look(Event::ReplicaSet(Key::new(&change.key.namespace, name))),
            Some(_) => {}
            // One that lost its Job is not counted by anybody any more.
            None => self.release_orphan(&change.key),
        }
    }

    /// As on a real cluster, a Deployment is looked at when it or a ReplicaSet of its changes, not when a pod does; but for the
    /// one that waits for its last pod to be gone.
    fn replica_set_of_pod_changed(&mut self, change: &Seen) {
        if let Some(former) = change.former_controller("ReplicaSet") {
            self.look(Event::ReplicaSet(former));
        }
        if change.verb == Verb::Delete {
            if let Some(deployment) = self.waits_for_last_pod(&change.object) {
                self.look(Event::Deployment(deployment));
            }
        } else if change.is_new_orphan() {
            for set in self.api.list_values(replicaset::RESOURCE, &change.key.namespace) {
                if selected(&set, &change.object) {
                    self.look(Event::ReplicaSet(Key::new(&change.key.namespace, name(&set))));
                }
            }
        }
    }

    fn replica_set_changed(&mut self, change: &Seen) {
        self.look(Event::ReplicaSet(change.key.clone()));
        if let Some(former) = change.former_controller("Deployment") {
            self.look(Event::Deployment(former));
        }
        let owner = controller(&change.object).filter(|owner| text(owner, "/kind") == "Deployment");
        if let Some(owner) = owner {
            self.look(Event::Deployment(Key::new(&change.key.namespace, text(owner, "/name"))));
        } else if change.verb != Verb::Delete && change.is_new_orphan() {
            for deployment in self.api.list_values(deployment::RESOURCE, &change.key.namespace) {
                if selected(&deployment, &change.object) {
                    self.look(Event::Deployment(Key::new(&change.key.namespace, name(&deployment))));
                }
            }
        }
    }

    fn look_at_sets(&mut self, namespace: &str) {
        for set in self.api.list_values("statefulsets.apps", namespace) {
            self.look(Event::Set(Key::new(namespace, text(&set, "/metadata/name"))));
        }
    }

    fn node_changed(&mut self, name: &str, object: &Value) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.cordoned = object.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
        }
        for pod in self.api.list_values("pods", "") {
            if text(&pod, "/spec/nodeName").is_empty() && !terminating(&pod) {
                let key = Key::new(text(&pod, "/metadata/namespace"), text(&pod, "/metadata/name"));
                self.look(Event::Schedule(key));
            }
        }
    }
}
