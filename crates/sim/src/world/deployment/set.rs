//! One ReplicaSet of a Deployment as the Deployment's controller sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::json::{name, number, terminating, text};

/// The label by which ReplicaSets and pods of one template are told from those of another.
pub(super) const HASH_LABEL: &str = "pod-template-hash";
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MOST: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a Deployment that its ReplicaSets do not get.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "deprecated.deployment.rollback.to",
];
/// Longer than this the list of former revisions does not get.
const LONGEST_HISTORY: usize = 2000;

pub(super) type Annotations = BTreeMap<String, String>;

#[derive(Clone, Debug)]
pub(super) struct Set {
    pub object: Arc<Value>,
    /// How many pods it is to have.
    pub size: i64,
    /// How many it has.
    pub replicas: i64,
    pub ready: i64,
    pub available: i64,
}

impl Set {
    pub fn of(object: Arc<Value>) -> Self {
        let count = |field: &str| number(&object, field).unwrap_or(0);
        Self {
            size: number(&object, "/spec/replicas").unwrap_or(1),
            replicas: count("/status/replicas"),
            ready: count("/status/readyReplicas"),
            available: count("/status/availableReplicas"),
            object,
        }
    }

    pub fn name(&self) -> &str {
        name(&self.object)
    }

    /// Times are whole seconds, so the name decides between two of one second.
    pub fn age_order(&self) -> (String, String) {
        (text(&self.object, "/metadata/creationTimestamp").to_owned(), self.name().to_owned())
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.object.pointer("/metadata/annotations").and_then(|all| all.get(key)).and_then(Value::as_str)
    }

    pub fn revision(&self) -> i64 {
        self.annotation(REVISION).and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// The size of the whole Deployment when this set was last sized.
    pub fn desired(&self) -> Option<i64> {
        self.annotation(DESIRED).and_then(|number| number.parse().ok())
    }

    /// The most pods that the Deployment could have then.
    pub fn most(&self) -> Option<i64> {
        self.annotation(MOST).and_then(|number| number.parse().ok())
    }

    /// Whether this one may be deleted for the sake of a short history.
    pub fn is_over(&self) -> bool {
        let seen = number(&self.object, "/status/observedGeneration") >= number(&self.object, "/metadata/generation");
        self.size == 0 && self.replicas == 0 && seen && !terminating(&self.object)
    }

    /// The annotations that this set, being the new one, lacks: the Deployment's, and its revision.
    pub fn lacks(&self, deployment: &Value, revision: i64) -> Annotations {
        let mut lacking = inherited(deployment);
        lacking.retain(|key, value| self.annotation(key) != Some(value.as_str()));
        if self.revision() < revision {
            lacking.insert(REVISION.to_owned(), revision.to_string());
            if let Some(former) = self.annotation(REVISION) {
                // It was the new one before: the Deployment goes back to it.
                lacking.insert(HISTORY.to_owned(), prolonged(self.annotation(HISTORY).unwrap_or_default(), former));
            }
        }
        lacking
    }

    /// The annotations about the Deployment's size that this set lacks.
    pub fn lacks_sizes(&self, desired: i64, most: i64) -> Annotations {
        let mut lacking = sizes(desired, most);
        lacking.retain(|key, value| self.annotation(key) != Some(value.as_str()));
        lacking
    }
}

/// A list of former revisions with one more.
fn prolonged(history: &str, former: &str) -> String {
    let mut all: Vec<&str> = history.split(',').filter(|revision| !revision.is_empty()).collect();
    all.push(former);
    while all.len() > 1 && all.join(",").len() > LONGEST_HISTORY {
        all.remove(0);
    }
    all.join(",")
}

/// The annotations of a Deployment that its new ReplicaSet has, too.
pub(super) fn inherited(deployment: &Value) -> Annotations {
    let all = deployment.pointer("/metadata/annotations").and_then(Value::as_object);
    let all = all.into_iter().flatten().filter(|(key, _)| !OWN.contains(&key.as_str()));
    all.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// What a ReplicaSet is told about the size of its Deployment.
pub(super) fn sizes(desired: i64, most: i64) -> Annotations {
    [(DESIRED.to_owned(), desired.to_string()), (MOST.to_owned(), most.to_string())].into()
}

/// Whether two templates are the same but for the label that names them.
pub(super) fn same_template(set: &Value, deployment: &Value) -> bool {
    let bare = |object: &Value| {
        let mut template = object.pointer("/spec/template").cloned().unwrap_or(json!({}));
        if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.remove(HASH_LABEL);
        }
        template
    };
    bare(set) == bare(deployment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_becomes_new_again_remembers_what_it_was() {
        let deployment = json!({"metadata": {"annotations": {"team": "a", REVISION: "3"}}});
        let set = |annotations: Value| Set::of(Arc::new(json!({"metadata": {"annotations": annotations}})));
        let first = set(json!({})).lacks(&deployment, 1);
        assert_eq!(first, [("team".to_owned(), "a".to_owned()), (REVISION.to_owned(), "1".to_owned())].into());
        let again = set(json!({"team": "a", REVISION: "1", HISTORY: "0"})).lacks(&deployment, 3);
        assert_eq!(again, [(REVISION.to_owned(), "3".to_owned()), (HISTORY.to_owned(), "0,1".to_owned())].into());
        // A number that is higher already stays.
        assert!(set(json!({"team": "a", REVISION: "5"})).lacks(&deployment, 3).is_empty());
    }

    #[test]
    fn the_label_that_names_a_template_is_no_part_of_it() {
        let with = |labels: Value| json!({"spec": {"template": {"metadata": {"labels": labels}}}});
        assert!(same_template(&with(json!({"app": "a", HASH_LABEL: "x"})), &with(json!({"app": "a"}))));
        assert!(!same_template(&with(json!({"app": "a", HASH_LABEL: "x"})), &with(json!({"app": "b"}))));
    }
}
