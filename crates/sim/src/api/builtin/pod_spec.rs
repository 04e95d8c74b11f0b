//! What a pod's spec must look like, in a pod and in a template for pods.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::metadata;
use super::super::object;
use super::quantity::Quantity;

/// Checks the parts of a pod's spec that matter to workloads.
pub(super) fn validate(spec: &Value, path: &str) -> Vec<FieldError> {
    let field = |key: &str| format!("{path}.{key}");
    let (volumes, mut errors) = validate_volumes(spec, &field("volumes"));
    let containers = list(spec, "containers");
    if containers.is_empty() {
        errors.push(FieldError::required(field("containers"), ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for key in ["containers", "initContainers"] {
        for (index, container) in list(spec, key).iter().enumerate() {
            let place = format!("{path}.{key}[{index}]");
            errors.extend(validate_name(container, &mut names, &place));
            errors.extend(validate_container(container, &volumes, &place));
        }
    }
    let policies: [(&str, &[&str]); 2] = [
        ("restartPolicy", &["Always", "OnFailure", "Never"]),
        ("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
    ];
    for (key, supported) in policies {
        let policy = object::text(spec, &[key]);
        if !supported.contains(&policy) {
            errors.push(FieldError::not_supported(field(key), json!(policy), supported));
        }
    }
    if let Some(seconds) = object::integer(spec, &["activeDeadlineSeconds"])
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(field("activeDeadlineSeconds"), seconds, why));
    }
    let node = object::text(spec, &["nodeName"]);
    if !node.is_empty() {
        let problems = metadata::subdomain_problems(node).into_iter();
        errors.extend(problems.map(|why| FieldError::invalid(field("nodeName"), node, why)));
    }
    errors
}

fn list<'a>(spec: &'a Value, key: &str) -> &'a [Value] {
    object::at(spec, &[key]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The names of the volumes, and what is wrong with them.
fn validate_volumes<'a>(spec: &'a Value, place: &str) -> (Vec<&'a str>, Vec<FieldError>) {
    let mut names = Vec::new();
    let mut errors = Vec::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let place = format!("{place}[{index}]");
        let name = object::text(volume, &["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(format!("{place}.name"), ""));
        } else if names.contains(&name) {
            errors.push(FieldError::duplicate(format!("{place}.name"), json!(name)));
        }
        names.push(name);
        // In the order in which the server looks at them.
        let kinds =
            ["emptyDir", "hostPath", "secret", "configMap", "downwardAPI", "projected", "persistentVolumeClaim"];
        let used = kinds.into_iter().filter(|kind| object::at(volume, &[kind]).is_some());
        for kind in used.skip(1) {
            errors.push(FieldError::forbidden(format!("{place}.{kind}"), "may not specify more than 1 volume type"));
        }
    }
    (names, errors)
}

fn validate_name<'a>(container: &'a Value, names: &mut Vec<&'a str>, place: &str) -> Vec<FieldError> {
    let name = object::text(container, &["name"]);
    let field = format!("{place}.name");
    let errors = if name.is_empty() {
        vec![FieldError::required(field, "")]
    } else if names.contains(&name) {
        vec![FieldError::duplicate(field, json!(name))]
    } else {
        let problems = metadata::label_problems(name).into_iter();
        problems.map(|why| FieldError::invalid(field.as_str(), name, why)).collect()
    };
    names.push(name);
    errors
}

fn validate_container(container: &Value, volumes: &[&str], place: &str) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = validate_image(container, place).into_iter().collect();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let field = format!("{place}.ports[{index}].containerPort");
        match object::integer(port, &["containerPort"]).unwrap_or(0) {
            0 => errors.push(FieldError::required(field, "")),
            1..=65535 => {}
            number => errors.push(FieldError::invalid(field, number, "must be between 1 and 65535, inclusive")),
        }
    }
    for (index, variable) in list(container, "env").iter().enumerate() {
        if object::text(variable, &["name"]).is_empty() {
            errors.push(FieldError::required(format!("{place}.env[{index}].name"), ""));
        }
    }
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let name = object::text(mount, &["name"]);
        if !volumes.contains(&name) {
            errors.push(FieldError::not_found(format!("{place}.volumeMounts[{index}].name"), name));
        }
    }
    let policy = object::text(container, &["imagePullPolicy"]);
    if !matches!(policy, "Always" | "IfNotPresent" | "Never") {
        let supported = ["Always", "IfNotPresent", "Never"];
        errors.push(FieldError::not_supported(format!("{place}.imagePullPolicy"), json!(policy), &supported));
    }
    errors.extend(validate_resources(container, place));
    errors
}

pub(super) fn validate_image(container: &Value, place: &str) -> Option<FieldError> {
    let image = object::text(container, &["image"]);
    let field = format!("{place}.image");
    if image.is_empty() {
        Some(FieldError::required(field, ""))
    } else if image.trim() == image {
        None
    } else {
        Some(FieldError::invalid(field, image, "must not have leading or trailing whitespace"))
    }
}

/// Nothing may be requested beyond its limit.
fn validate_resources(container: &Value, place: &str) -> Vec<FieldError> {
    let empty = Map::new();
    let part = |key: &str| object::at(container, &["resources", key]).and_then(Value::as_object).unwrap_or(&empty);
    let mut errors = Vec::new();
    for (name, request) in part("requests") {
        let (Some(request), Some(limit)) = (request.as_str(), part("limits").get(name).and_then(Value::as_str)) else {
            continue;
        };
        if Quantity::parse(request) > Quantity::parse(limit) {
            let why = format!("must be less than or equal to {name} limit of {limit}");
            errors.push(FieldError::invalid(format!("{place}.resources.requests"), request, why));
        }
    }
    errors
}
