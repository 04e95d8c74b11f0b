//! The garbage collector: it knows who owns whom from what was written, removes what has lost its owners, and finishes
//! foreground and orphaning deletions.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Value, json};

use super::calls::{Call, path_of};
use super::json::{controller, list, name, terminating, text, uid};
use super::state::State;

const USER: &str = "generic-garbage-collector";

/// Where an object is.
#[derive(Clone)]
pub(super) struct Place {
    pub api_version: String,
    pub resource: String,
    pub namespace: String,
    pub name: String,
}

impl Place {
    pub fn path(&self) -> String {
        path_of(&self.api_version, &self.resource, &self.namespace, &self.name)
    }
}

/// Who owns whom, by uid.
#[derive(Default)]
pub(super) struct Graph {
    places: BTreeMap<String, Place>,
    owners: BTreeMap<String, BTreeSet<String>>,
    dependents: BTreeMap<String, BTreeSet<String>>,
    leaving: BTreeSet<String>,
    /// Names of objects that nobody controls, by resource and namespace; only of kinds that others take over.
    orphans: BTreeMap<(String, String), BTreeSet<String>>,
}

/// Kinds of objects that controllers take over where nobody controls them.
const ADOPTED: [&str; 2] = ["pods", "replicasets.apps"];

impl Graph {
    /// Notes an object as it is now; returns its uid and whether it has owners that are new.
    pub fn insert(&mut self, resource: &str, namespace: &str, object: &Value) -> (String, bool) {
        let id = uid(object).to_owned();
        let place = Place {
            api_version: text(object, "/apiVersion").to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name(object).to_owned(),
        };
        self.note_orphan(&place, controller(object).is_none());
        self.places.insert(id.clone(), place);
        let owners: BTreeSet<String> =
            list(object, "/metadata/ownerReferences").iter().map(|owner| text(owner, "/uid").to_owned()).collect();
        let before = self.owners.insert(id.clone(), owners.clone()).unwrap_or_default();
        for gone in before.difference(&owners) {
            if let Some(dependents) = self.dependents.get_mut(gone) {
                dependents.remove(&id);
            }
        }
        let adopted = !owners.is_subset(&before);
        for owner in owners {
            self.dependents.entry(owner).or_default().insert(id.clone());
        }
        (id, adopted)
    }

    /// Forgets an object; returns the uids of those whom it owned.
    pub fn remove(&mut self, object: &Value) -> BTreeSet<String> {
        let id = uid(object);
        if let Some(place) = self.places.remove(id) {
            self.note_orphan(&place, false);
        }
        for owner in self.owners.remove(id).unwrap_or_default() {
            if let Some(dependents) = self.dependents.get_mut(&owner) {
                dependents.remove(id);
            }
        }
        self.dependents.get(id).cloned().unwrap_or_default()
    }

    fn note_orphan(&mut self, place: &Place, orphan: bool) {
        if !ADOPTED.contains(&place.resource.as_str()) {
            return;
        }
        let at = (place.resource.clone(), place.namespace.clone());
        if orphan {
            self.orphans.entry(at).or_default().insert(place.name.clone());
        } else if let Some(names) = self.orphans.get_mut(&at) {
            names.remove(&place.name);
            if names.is_empty() {
                self.orphans.remove(&at);
            }
        }
    }

    /// The names of a kind's objects that nobody controls.
    pub fn orphans(&self, resource: &str, namespace: &str) -> impl Iterator<Item = &str> {
        let names = self.orphans.get(&(resource.to_owned(), namespace.to_owned()));
        names.into_iter().flatten().map(String::as_str)
    }

    /// The uids of a kind's objects that name this owner.
    pub fn dependents_of<'a>(&'a self, resource: &'a str, owner: &str) -> impl Iterator<Item = &'a str> {
        let ids = self.dependents.get(owner).into_iter().flatten().map(String::as_str);
        ids.filter(move |id| self.places.get(*id).is_some_and(|place| place.resource == resource))
    }

    /// A namespace is being emptied.
    pub fn leaves(&mut self, namespace: &str) {
        self.leaving.insert(namespace.to_owned());
    }

    pub fn is_leaving(&self, namespace: &str) -> bool {
        self.leaving.contains(namespace)
    }

    /// A namespace is gone; one of its name may come again.
    pub fn left(&mut self, namespace: &str) {
        self.leaving.remove(namespace);
    }

    /// All objects in a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<(String, Place)> {
        let inside = self.places.iter().filter(|(_, place)| place.namespace == namespace);
        inside.map(|(id, place)| (id.clone(), place.clone())).collect()
    }
}

impl State {
    pub(super) fn object_at(&self, id: &str) -> Option<(Place, std::sync::Arc<Value>)> {
        let place = self.graph.places.get(id)?.clone();
        let object = self.api.get_value(&place.resource, &place.namespace, &place.name)?;
        (uid(&object) == id).then_some((place, object))
    }

    pub(super) fn delete_call(user: &'static str, place: &Place, id: &str, policy: &str) -> Call {
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": id},
            "propagationPolicy": policy,
        });
        Call { user, method: Method::DELETE, path: place.path(), body, if_refused: None }
    }

    fn patch(&mut self, place: &Place, body: Value) {
        self.calls.push(Call { user: USER, method: Method::PATCH, path: place.path(), body, if_refused: None });
    }

    /// An owner counts where it exists and is cluster-scoped or in the dependent's own namespace.
    fn is_solid(&self, owner: &str, namespace: &str) -> bool {
        self.graph.places.get(owner).is_some_and(|place| place.namespace.is_empty() || place.namespace == namespace)
    }

    /// Removes an object whose owners are all gone; takes the gone ones off its list where some are left.
    pub(super) fn check_dependent(&mut self, id: &str) {
        let Some((place, object)) = self.object_at(id) else { return };
        let references = list(&object, "/metadata/ownerReferences");
        if references.is_empty() {
            return;
        }
        let solid: Vec<&Value> =
            references.iter().filter(|owner| self.is_solid(text(owner, "/uid"), &place.namespace)).collect();
        if solid.len() == references.len() {
            // All owners are there; one of them may be waiting for this one's deletion.
            for owner in references {
                self.look(super::queue::Event::Owner(text(owner, "/uid").to_owned()));
            }
        } else if !solid.is_empty() {
            let body = json!({"metadata": {"uid": id, "ownerReferences": solid}});
            self.patch(&place, body);
        } else if !terminating(&object) {
            let finalizers = list(&object, "/metadata/finalizers");
            let policy = if finalizers.contains(&json!("orphan")) {
                "Orphan"
            } else if finalizers.contains(&json!("foregroundDeletion")) {
                "Foreground"
            } else {
                "Background"
            };
            self.calls.push(Self::delete_call(USER, &place, id, policy));
        }
    }

    /// Carries on a deletion that waits for the collector.
    pub(super) fn check_owner(&mut self, id: &str) {
        let Some((place, object)) = self.object_at(id) else { return };
        if !terminating(&object) {
            return;
        }
        let finalizers = list(&object, "/metadata/finalizers");
        let dependents: Vec<String> = self.graph.dependents.get(id).into_iter().flatten().cloned().collect();
        let waits_for = if finalizers.contains(&json!("orphan")) {
            self.orphan(id, &dependents);
            // The references must be gone before the owner is, or its dependents would be collected.
            "orphan"
        } else if finalizers.contains(&json!("foregroundDeletion")) {
            if self.delete_dependents(id, &dependents) {
                return;
            }
            "foregroundDeletion"
        } else {
            return;
        };
        let kept: Vec<&Value> = finalizers.iter().filter(|finalizer| **finalizer != json!(waits_for)).collect();
        let body = json!({"metadata": {
            "uid": id,
            "resourceVersion": text(&object, "/metadata/resourceVersion"),
            "finalizers": kept,
        }});
        self.patch(&place, body);
    }

    fn orphan(&mut self, id: &str, dependents: &[String]) {
        for dependent in dependents {
            let Some((place, object)) = self.object_at(dependent) else { continue };
            let kept: Vec<&Value> =
                list(&object, "/metadata/ownerReferences").iter().filter(|owner| text(owner, "/uid") != id).collect();
            let body = json!({"metadata": {"uid": dependent, "ownerReferences": kept}});
            self.patch(&place, body);
        }
    }

    /// Deletes what an owner in foreground deletion owns; true while some of it holds the owner back.
    fn delete_dependents(&mut self, id: &str, dependents: &[String]) -> bool {
        let mut blocked = false;
        for dependent in dependents {
            let Some((place, object)) = self.object_at(dependent) else { continue };
            blocked |= list(&object, "/metadata/ownerReferences")
                .iter()
                .any(|owner| text(owner, "/uid") == id && owner["blockOwnerDeletion"] == json!(true));
            if !terminating(&object) {
                self.calls.push(Self::delete_call(USER, &place, dependent, "Foreground"));
            }
        }
        blocked
    }
}
