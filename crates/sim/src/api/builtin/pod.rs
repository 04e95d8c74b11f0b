//! Pods.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::metadata;
use super::super::object;
use super::pod_spec;

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

pub(super) fn validate(pod: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let spec = object::at(pod, &["spec"]).unwrap_or(&Value::Null);
    let mut errors = pod_spec::validate(spec, "spec");
    if let Some(before) = before {
        errors.extend(validate_change(spec, object::at(before, &["spec"]).unwrap_or(&Value::Null)));
    }
    errors
}

fn list<'a>(spec: &'a Value, key: &str) -> &'a [Value] {
    object::at(spec, &[key]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What of a pod can't change any more.
fn validate_change(spec: &Value, old: &Value) -> Vec<FieldError> {
    for key in ["containers", "initContainers"] {
        if list(spec, key).len() != list(old, key).len() {
            let why = "pod updates may not add or remove containers";
            return vec![FieldError::forbidden(format!("spec.{key}"), why)];
        }
    }
    let mut errors = Vec::new();
    let deadline = "spec.activeDeadlineSeconds";
    if let Some(seconds) = object::integer(spec, &["activeDeadlineSeconds"]).filter(|seconds| *seconds < 0) {
        return vec![FieldError::invalid(deadline, seconds, "must be between 0 and 2147483647, inclusive")];
    }
    match (object::integer(spec, &["activeDeadlineSeconds"]), object::integer(old, &["activeDeadlineSeconds"])) {
        (Some(new), Some(old)) if new > old => {
            return vec![FieldError::invalid(deadline, new, "must be less than or equal to previous value")];
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(deadline, Value::Null, why));
        }
        (_, _) => {}
    }
    let timeless = |toleration: &Value| {
        let mut toleration = toleration.clone();
        object::as_map(&mut toleration).remove("tolerationSeconds");
        toleration
    };
    let now: Vec<Value> = list(spec, "tolerations").iter().map(timeless).collect();
    if list(old, "tolerations").iter().any(|kept| !now.contains(&timeless(kept))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden("spec.tolerations", why));
    }
    if fixed(spec, old) != *old {
        errors.push(FieldError::forbidden("spec", IMMUTABLE_MESSAGE));
    }
    errors
}

/// The spec with everything that has rules of its own, or none, set back to what it was.
fn fixed(spec: &Value, old: &Value) -> Value {
    let mut fixed = spec.clone();
    let map = object::as_map(&mut fixed);
    for key in ["activeDeadlineSeconds", "tolerations"] {
        object::put(map, key, old.get(key));
    }
    if object::integer(old, &["terminationGracePeriodSeconds"]).is_some_and(|grace| grace < 0)
        && object::integer(spec, &["terminationGracePeriodSeconds"]) == Some(1)
    {
        object::put(map, "terminationGracePeriodSeconds", old.get("terminationGracePeriodSeconds"));
    }
    for key in ["containers", "initContainers"] {
        for (container, before) in super::list_mut(map, key).zip(list(old, key)) {
            object::put(container, "image", before.get("image"));
        }
    }
    fixed
}

/// A grace period below nothing is the shortest there is.
pub(super) fn shorten_negative_grace(pod: &mut Value) {
    if object::integer(pod, &["spec", "terminationGracePeriodSeconds"]).is_some_and(|grace| grace < 0) {
        pod["spec"]["terminationGracePeriodSeconds"] = json!(1);
    }
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
