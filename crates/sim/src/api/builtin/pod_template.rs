//! The defaults of pods, of the templates for them, and of claims.

use serde_json::{Map, Value, json};

use super::super::object::{child, default};
use super::list_mut;

pub(super) fn default_pod(pod: &mut Map<String, Value>) {
    let spec = child(pod, "spec");
    default_pod_spec(spec);
    default(spec, "enableServiceLinks", json!(true));
    for key in ["containers", "initContainers"] {
        list_mut(spec, key).for_each(request_up_to_the_limit);
    }
}

/// What is limited and not requested is requested up to the limit: of pods, not of templates for them.
fn request_up_to_the_limit(container: &mut Map<String, Value>) {
    let Some(Value::Object(resources)) = container.get_mut("resources") else { return };
    let limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
    if !limits.is_empty() {
        let requests = child(resources, "requests");
        limits.into_iter().for_each(|(name, limit)| default(requests, &name, limit));
    }
}

/// Defaults the `template` of a workload's spec.
pub(super) fn default_template(spec: &mut Map<String, Value>) {
    let template = child(spec, "template");
    default_pod_spec(child(template, "spec"));
}

fn default_pod_spec(spec: &mut Map<String, Value>) {
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "schedulerName", json!("default-scheduler"));
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    default(spec, "containers", json!([]));
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        default(spec, "serviceAccount", account);
    }
    for key in ["containers", "initContainers"] {
        for container in list_mut(spec, key) {
            default_container(container);
        }
    }
    for volume in list_mut(spec, "volumes") {
        default_volume(volume);
    }
    if spec.get("hostNetwork") == Some(&json!(true)) {
        for key in ["containers", "initContainers"] {
            for port in list_mut(spec, key).flat_map(|container| list_mut(container, "ports")) {
                let number = port.get("containerPort").cloned().unwrap_or_default();
                default(port, "hostPort", number);
            }
        }
    }
}

fn default_container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or("");
    default(container, "imagePullPolicy", json!(pull_policy(image)));
    default(container, "resources", json!({}));
    default(container, "terminationMessagePath", json!("/dev/termination-log"));
    default(container, "terminationMessagePolicy", json!("File"));
    for port in list_mut(container, "ports") {
        default(port, "protocol", json!("TCP"));
    }
    for variable in list_mut(container, "env") {
        let source = variable.get_mut("valueFrom").and_then(Value::as_object_mut);
        if let Some(field) = source.and_then(|source| source.get_mut("fieldRef")).and_then(Value::as_object_mut) {
            default(field, "apiVersion", json!("v1"));
        }
    }
    for moment in ["postStart", "preStop"] {
        let hook = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(moment));
        if let Some(get) = hook.and_then(|hook| hook.get_mut("httpGet")).and_then(Value::as_object_mut) {
            default_get(get);
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(key).and_then(Value::as_object_mut) else { continue };
        default(probe, "timeoutSeconds", json!(1));
        default(probe, "periodSeconds", json!(10));
        default(probe, "successThreshold", json!(1));
        default(probe, "failureThreshold", json!(3));
        if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
            default_get(get);
        }
    }
}

fn default_get(get: &mut Map<String, Value>) {
    default(get, "path", json!("/"));
    default(get, "scheme", json!("HTTP"));
}

/// An image without a fixed tag may be another one tomorrow.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') {
        return "IfNotPresent";
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

fn default_volume(volume: &mut Map<String, Value>) {
    // 0644, written as the number that JSON has for it.
    let mode = json!(0o644);
    for key in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(key).and_then(Value::as_object_mut) {
            default(source, "defaultMode", mode.clone());
        }
    }
    if let Some(source) = volume.get_mut("downwardAPI").and_then(Value::as_object_mut) {
        for item in list_mut(source, "items") {
            if let Some(field) = item.get_mut("fieldRef").and_then(Value::as_object_mut) {
                default(field, "apiVersion", json!("v1"));
            }
        }
    }
    if let Some(projected) = volume.get_mut("projected").and_then(Value::as_object_mut) {
        for source in list_mut(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
                default(token, "expirationSeconds", json!(3600));
            }
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default(path, "type", json!(""));
    }
}

pub(super) fn default_claim(claim: &mut Map<String, Value>) {
    default(child(claim, "spec"), "volumeMode", json!("Filesystem"));
    default(child(claim, "status"), "phase", json!("Pending"));
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("web", "Always")]
    #[case("web:latest", "Always")]
    #[case("registry:5000/web", "Always")]
    #[case("registry:5000/web:1.2", "IfNotPresent")]
    #[case("web@sha256:00", "IfNotPresent")]
    fn images_that_may_move_are_always_pulled(#[case] image: &str, #[case] policy: &str) {
        assert_eq!(pull_policy(image), policy);
    }
}
