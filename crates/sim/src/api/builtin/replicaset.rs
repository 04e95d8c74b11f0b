//! ReplicaSets, and what Deployments share with them.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::metadata;
use super::super::object;
use super::super::selector::Labels;
use super::{label_selector, not_negative, pod_spec, pod_template};

pub(super) fn default(set: &mut Map<String, Value>) {
    let spec = object::child(set, "spec");
    object::default(spec, "replicas", json!(1));
    pod_template::default_template(spec);
}

pub(super) fn validate(set: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["replicas", "minReadySeconds"] {
        errors.extend(not_negative(set, &["spec", key], &format!("spec.{key}")));
    }
    errors.extend(validate_selector_and_template(set));
    errors.extend(validate_same_selector(set, before));
    errors
}

/// The selector, the template, and that the one selects what is made from the other.
pub(super) fn validate_selector_and_template(object: &Value) -> Vec<FieldError> {
    let selector = object::at(object, &["spec", "selector"]);
    let mut errors = label_selector::validate(selector, "spec.selector");
    let shown = || selector.cloned().unwrap_or_default();
    let unreadable = !errors.is_empty();
    let parsed = selector.and_then(Labels::from_object).filter(|_| !unreadable);
    match (&parsed, selector) {
        (_, None) => errors.push(FieldError::required("spec.selector", "")),
        // The words are the same for both kinds.
        (Some(parsed), Some(_)) if parsed.is_empty() => {
            errors.push(FieldError::invalid("spec.selector", shown(), "empty selector is invalid for deployment"));
        }
        (Some(_), Some(_)) => {}
        (None, Some(_)) => errors.push(FieldError::invalid("spec.selector", shown(), "invalid label selector")),
    }
    if unreadable {
        return errors;
    }
    let labels = object::at(object, &["spec", "template", "metadata", "labels"]);
    // What selects nothing at all does not select the template's pods either; what is empty was refused already.
    if !parsed.is_some_and(|parsed| parsed.is_empty() || parsed.matches(labels)) {
        let why = "`selector` does not match template `labels`";
        let field = "spec.template.metadata.labels";
        errors.push(FieldError::invalid(field, labels.cloned().unwrap_or(Value::Null), why));
    }
    errors.extend(validate_template(object, labels));
    errors
}

fn validate_template(object: &Value, labels: Option<&Value>) -> Vec<FieldError> {
    let spec = object::at(object, &["spec", "template", "spec"]).unwrap_or(&Value::Null);
    let mut errors = metadata::labels(labels, "spec.template.labels");
    errors.extend(pod_spec::validate(spec, "spec.template.spec"));
    let policy = object::text(spec, &["restartPolicy"]);
    if policy != "Always" {
        errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", json!(policy), &["Always"]));
    }
    if object::at(spec, &["activeDeadlineSeconds"]).is_some() {
        let why = "activeDeadlineSeconds in ReplicaSet is not Supported";
        errors.push(FieldError::forbidden("spec.template.spec.activeDeadlineSeconds", why));
    }
    errors
}

/// The selector stays what it was.
pub(super) fn validate_same_selector(object: &Value, before: Option<&Value>) -> Option<FieldError> {
    let selector = object::at(object, &["spec", "selector"]);
    let changed = before.is_some_and(|before| object::at(before, &["spec", "selector"]) != selector);
    let shown = || selector.cloned().unwrap_or_default();
    changed.then(|| FieldError::invalid("spec.selector", shown(), "field is immutable"))
}

pub(super) fn validate_status(set: &Value) -> Vec<FieldError> {
    validate_counts(set, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], &["observedGeneration"])
}

/// Counts of a status: none is negative, and none of the first ones is greater than all.
pub(super) fn validate_counts(object: &Value, parts: &[&str], others: &[&str]) -> Vec<FieldError> {
    let number = |key: &str| object::integer(object, &["status", key]).unwrap_or(0);
    let field = |key: &str| format!("status.{key}");
    let keys = ["replicas"].iter().chain(parts).chain(others);
    let mut errors: Vec<FieldError> =
        keys.filter_map(|key| not_negative(object, &["status", key], &field(key))).collect();
    for key in parts.iter().filter(|key| number(key) > number("replicas")) {
        errors.push(FieldError::invalid(field(key), number(key), "cannot be greater than status.replicas"));
    }
    if number("availableReplicas") > number("readyReplicas") {
        let why = "cannot be greater than readyReplicas";
        errors.push(FieldError::invalid(field("availableReplicas"), number("availableReplicas"), why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(labels: &Value, selector: &Value) -> Value {
        let container = json!({"name": "web", "image": "web:1", "imagePullPolicy": "IfNotPresent"});
        let mut set = json!({"metadata": {"name": "web"}, "spec": {
            "selector": selector,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        }});
        default(set.as_object_mut().unwrap());
        set
    }

    #[test]
    fn a_selector_selects_the_template_and_stays() {
        let app = json!({"app": "web"});
        let sound = set(&app, &json!({"matchLabels": app}));
        assert!(validate(&sound, None).is_empty(), "{:?}", validate(&sound, None));
        assert_eq!(validate(&set(&json!({"app": "db"}), &json!({"matchLabels": app})), None).len(), 1);
        assert_eq!(validate(&set(&app, &json!({})), None).len(), 1);
        let other = json!({"app": "web", "tier": "db"});
        let moved = set(&other, &json!({"matchLabels": other}));
        assert_eq!(validate(&moved, Some(&sound)).len(), 1);
    }

    #[test]
    fn no_part_is_greater_than_all() {
        let status = |ready: i64, available: i64| json!({"status": {"replicas": 2, "readyReplicas": ready, "availableReplicas": available}});
        assert!(validate_status(&status(2, 1)).is_empty());
        assert_eq!(validate_status(&status(3, 1)).len(), 1);
        assert_eq!(validate_status(&status(1, 2)).len(), 1);
    }
}
