//! Pods.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::metadata;
use super::super::object;

const IMMUTABLE_MESSAGE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Whether the pod's containers say what they need, all of it, or nothing.
pub(super) fn quality_of_service(pod: &Value) -> &'static str {
    let containers = object::at(pod, &["spec", "containers"]).and_then(Value::as_array);
    let empty = Map::new();
    let (mut any, mut all) = (false, true);
    for container in containers.into_iter().flatten() {
        let part = |key: &str| object::at(container, &["resources", key]).and_then(Value::as_object).unwrap_or(&empty);
        let (requests, limits) = (part("requests"), part("limits"));
        any |= !requests.is_empty() || !limits.is_empty();
        for name in ["cpu", "memory"] {
            let limit = limits.get(name);
            // A request that is left out equals the limit.
            all &= limit.is_some() && requests.get(name).is_none_or(|request| Some(request) == limit);
        }
    }
    if any && all {
        "Guaranteed"
    } else if any {
        "Burstable"
    } else {
        "BestEffort"
    }
}

/// Checks the parts of a pod's spec that matter to workloads.
pub(super) fn validate_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let containers = object::at(spec, &["containers"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let place = format!("{path}.containers[{index}]");
        let name = object::text(container, &["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(format!("{place}.name"), ""));
        } else if names.contains(&name) {
            errors.push(FieldError::duplicate(format!("{place}.name"), json!(name)));
        }
        names.push(name);
        if object::text(container, &["image"]).is_empty() {
            errors.push(FieldError::required(format!("{place}.image"), ""));
        }
    }
    let policy = object::text(spec, &["restartPolicy"]);
    if !matches!(policy, "Always" | "OnFailure" | "Never") {
        let supported = ["Always", "OnFailure", "Never"];
        errors.push(FieldError::not_supported(format!("{path}.restartPolicy"), json!(policy), &supported));
    }
    errors
}

pub(super) fn validate(pod: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let spec = object::at(pod, &["spec"]).unwrap_or(&Value::Null);
    match before {
        None => validate_spec(spec, "spec"),
        Some(before) => {
            let old = object::at(before, &["spec"]).unwrap_or(&Value::Null);
            if fixed(spec, old) == *old {
                validate_spec(spec, "spec")
            } else {
                vec![FieldError::forbidden("spec", IMMUTABLE_MESSAGE)]
            }
        }
    }
}

/// The spec with everything that may change set back to what it was.
fn fixed(spec: &Value, old: &Value) -> Value {
    let mut fixed = spec.clone();
    let map = object::as_map(&mut fixed);
    object::put(map, "activeDeadlineSeconds", old.get("activeDeadlineSeconds"));
    let tolerations =
        |spec: &Value| object::at(spec, &["tolerations"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let now = tolerations(spec);
    if tolerations(old).iter().all(|kept| now.contains(kept)) {
        object::put(map, "tolerations", old.get("tolerations"));
    }
    if object::integer(old, &["terminationGracePeriodSeconds"]).is_some_and(|grace| grace < 0) {
        object::put(map, "terminationGracePeriodSeconds", old.get("terminationGracePeriodSeconds"));
    }
    for key in ["containers", "initContainers"] {
        let before = object::at(old, &[key]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (container, before) in super::list_mut(map, key).zip(before) {
            object::put(container, "image", before.get("image"));
        }
    }
    fixed
}

/// What a writer of the status can't take away.
pub(super) fn keep_status(pod: &mut Value, before: &Value) {
    let status = object::child(object::as_map(pod), "status");
    for key in ["qosClass", "observedGeneration"] {
        let unset = status.get(key).is_none_or(|value| value.is_null() || *value == json!(0) || *value == json!(""));
        if unset {
            object::put(status, key, object::at(before, &["status", key]));
        }
    }
}

pub(super) fn validate_status(pod: &Value) -> Vec<FieldError> {
    let conditions = object::at(pod, &["status", "conditions"]).and_then(Value::as_array);
    let mut errors = Vec::new();
    for (index, condition) in conditions.into_iter().flatten().enumerate() {
        if let Some(generation) = object::integer(condition, &["observedGeneration"]).filter(|value| *value < 0) {
            let field = format!("status.conditions[{index}].observedGeneration");
            errors.push(FieldError::invalid(field, generation, "must be a non-negative integer"));
        }
    }
    errors
}

/// A pod's name becomes a host's, and not every name can.
pub(super) fn warnings(pod: &Value) -> Vec<String> {
    let problems = metadata::label_problems(object::name(pod));
    if problems.is_empty() {
        return Vec::new();
    }
    let why = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended";
    vec![format!("metadata.name: {why}: [{}]", problems.join(" "))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let pod = |resources: Value| json!({"spec": {"containers": [{"resources": resources}]}});
        assert_eq!(quality_of_service(&pod(json!({}))), "BestEffort");
        assert_eq!(quality_of_service(&pod(json!({"requests": {"cpu": "1"}}))), "Burstable");
        assert_eq!(quality_of_service(&pod(json!({"limits": {"cpu": "1", "memory": "1Gi"}}))), "Guaranteed");
    }
}
