//! Who belongs to a controller: what it owns and still selects, and what it selects and nobody owns.
//!
//! A cluster may have thousands of owners in one namespace, so nobody here looks through all objects of a kind: the graph knows what
//! an owner owns, and which objects have no controller.

use std::sync::Arc;

use kube::core::Status;
use serde_json::{Value, json};

use super::json::{controller, list, name, selects, terminating, text, uid};
use super::state::State;
use super::template::controlled_by;

/// Whether a selector, which must select something at all, selects this object.
pub(super) fn selected(owner: &Value, object: &Value) -> bool {
    let none = json!({});
    let selector = owner.pointer("/spec/selector").filter(|selector| {
        let has = |key: &str| selector.get(key).is_some_and(|terms| *terms != json!([]) && *terms != json!({}));
        has("matchLabels") || has("matchExpressions")
    });
    selector.is_some_and(|selector| selects(selector, object.pointer("/metadata/labels").unwrap_or(&none)))
}

impl State {
    /// The objects of a kind that have this controller, in the order of their uids.
    pub(super) fn controlled(&self, resource: &str, owner: &str) -> Vec<Arc<Value>> {
        let ours = |object: &Arc<Value>| controller(object).is_some_and(|known| text(known, "/uid") == owner);
        self.graph.dependents_of(resource, owner).filter_map(|id| Some(self.object_at(id)?.1)).filter(ours).collect()
    }

    /// The objects of a kind that belong to the owner: takes in those that it selects and that nobody controls, and lets go of
    /// those that it does not select any more. Only objects that are `considered` count.
    pub(super) fn claim(
        &self,
        user: &str,
        resource: &str,
        owner: &Value,
        considered: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Arc<Value>>, Box<Status>> {
        let namespace = text(owner, "/metadata/namespace");
        let mut claimed = Vec::new();
        for object in self.controlled(resource, uid(owner)).into_iter().filter(|object| considered(object)) {
            if selected(owner, &object) {
                claimed.push(object);
            } else if !terminating(owner) {
                let others = list(&object, "/metadata/ownerReferences").iter();
                let kept: Vec<&Value> = others.filter(|other| text(other, "/uid") != uid(owner)).collect();
                let patch = json!({"metadata": {"uid": uid(&object), "ownerReferences": kept}});
                self.api.merge_value(user, resource, namespace, name(&object), &patch)?;
            }
        }
        if terminating(owner) {
            return Ok(claimed);
        }
        for orphan in self.graph.orphans(resource, namespace) {
            let Some(object) = self.api.get_value(resource, namespace, orphan) else { continue };
            let free = controller(&object).is_none() && !terminating(&object);
            if free && considered(&object) && selected(owner, &object) {
                let mut owners = list(&object, "/metadata/ownerReferences").to_vec();
                owners.push(controlled_by(owner));
                let patch = json!({"metadata": {"uid": uid(&object), "ownerReferences": owners}});
                claimed.push(self.api.merge_value(user, resource, namespace, orphan, &patch)?);
            }
        }
        Ok(claimed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_selector_selects_nothing() {
        let pod = json!({"metadata": {"labels": {"app": "web"}}});
        let owner = |selector: Value| json!({"spec": {"selector": selector}});
        assert!(selected(&owner(json!({"matchLabels": {"app": "web"}})), &pod));
        assert!(!selected(&owner(json!({"matchLabels": {}})), &pod));
        assert!(!selected(&owner(json!({})), &pod));
        assert!(!selected(&json!({}), &pod));
    }
}
