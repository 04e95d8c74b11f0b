//! The form in which a server shows an object of a built-in kind: what is always there, and what never is.

use serde_json::{Map, Value, json};

use super::super::object::{self, child};
use super::super::resource::Rules;
use super::{list_mut, quantity};

/// Maps that are left out when they are empty. Other objects without fields are shown: that they are there means something.
const MAPS: [&str; 13] = [
    "labels",
    "annotations",
    "data",
    "binaryData",
    "stringData",
    "matchLabels",
    "nodeSelector",
    "limits",
    "requests",
    "capacity",
    "allocatable",
    "disruptedPods",
    "overhead",
];

/// Leaves out lists and maps that are empty.
pub(super) fn tidy(rules: Rules, object: &mut Map<String, Value>) {
    if !matches!(rules, Rules::ControllerRevision | Rules::CustomResourceDefinition | Rules::Custom) {
        tidy_map(object);
    } else if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        // The rest of their content is nobody's business but the author's.
        tidy_map(meta);
        meta.retain(|key, value| rules != Rules::Custom || key != "managedFields" || *value != json!([]));
    }
}

/// Numbers, texts and flags that are left out when they are nothing. Where nothing and unset differ, they are shown.
const SCALARS: [&str; 30] = [
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "currentRevision",
    "updateRevision",
    "observedGeneration",
    "minReadySeconds",
    "paused",
    "nodeName",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "serviceAccountName",
    "serviceAccount",
    "hostname",
    "subdomain",
    "priorityClassName",
    "initialDelaySeconds",
    "workingDir",
    "stdin",
    "stdinOnce",
    "tty",
    "hostPort",
    "hostIP",
    "podIP",
    "nominatedNodeName",
    "generateName",
    "unschedulable",
    "providerID",
    "phase",
];

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn tidy_map(map: &mut Map<String, Value>) {
    map.retain(|key, value| !is_nothing(value) || !SCALARS.contains(&key.as_str()));
    for key in ["limits", "requests", "capacity", "allocatable"] {
        if let Some(resources) = map.get_mut(key).and_then(Value::as_object_mut) {
            quantity::tidy(resources);
        }
    }
    map.retain(|key, value| match value {
        // No managers at all is what somebody may ask for.
        Value::Array(list) => !list.is_empty() || key == "containers" || key == "managedFields",
        Value::Object(inner) => !inner.is_empty() || !MAPS.contains(&key.as_str()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    });
    for (key, value) in map.iter_mut() {
        if key == "managedFields" {
            continue;
        }
        match value {
            Value::Object(inner) => tidy_map(inner),
            Value::Array(list) => list.iter_mut().filter_map(Value::as_object_mut).for_each(tidy_map),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn fill(map: &mut Map<String, Value>, fields: &[(&str, Value)]) {
    for (key, value) in fields {
        if !map.contains_key(*key) {
            map.insert((*key).to_owned(), value.clone());
        }
    }
}

/// Times that are shown even where nobody set them.
fn show_times(status: &mut Map<String, Value>, times: &[&str]) {
    let times: Vec<(&str, Value)> = times.iter().map(|time| (*time, Value::Null)).collect();
    for condition in list_mut(status, "conditions") {
        fill(condition, &times);
    }
}

pub(super) fn pod_status(pod: &mut Map<String, Value>) {
    let status = child(pod, "status");
    show_times(status, &["lastProbeTime", "lastTransitionTime"]);
    for key in ["containerStatuses", "initContainerStatuses"] {
        for container in list_mut(status, key) {
            fill(container, &[("state", json!({})), ("lastState", json!({}))]);
        }
    }
}

pub(super) fn set_status(set: &mut Map<String, Value>) {
    let status = child(set, "status");
    fill(status, &[("replicas", json!(0)), ("availableReplicas", json!(0))]);
    show_times(status, &["lastTransitionTime"]);
}

/// Of a Deployment all counts are left out that are nothing.
pub(super) fn deployment_status(deployment: &mut Map<String, Value>) {
    let status = child(deployment, "status");
    let counts = ["replicas", "availableReplicas", "unavailableReplicas"];
    status.retain(|key, value| !is_nothing(value) || !counts.contains(&key.as_str()));
    show_times(status, &["lastUpdateTime", "lastTransitionTime"]);
}

pub(super) fn replica_set_status(set: &mut Map<String, Value>) {
    let status = child(set, "status");
    status.retain(|key, value| {
        !is_nothing(value) || !["fullyLabeledReplicas", "availableReplicas"].contains(&key.as_str())
    });
    fill(status, &[("replicas", json!(0))]);
    show_times(status, &["lastTransitionTime"]);
}

pub(super) fn budget(budget: &mut Map<String, Value>) {
    child(budget, "spec");
    let zero = json!(0);
    let keys = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    fill(child(budget, "status"), &keys.map(|key| (key, zero.clone())));
}

pub(super) fn node(node: &mut Map<String, Value>) {
    let spec = child(node, "spec");
    if let Some(first) = spec.get("podCIDR").cloned() {
        object::default(spec, "podCIDRs", json!([first]));
    }
    let status = child(node, "status");
    show_times(status, &["lastHeartbeatTime", "lastTransitionTime"]);
    if let Some(capacity) = status.get("capacity").cloned() {
        object::default(status, "allocatable", capacity);
    }
    object::default(child(child(status, "daemonEndpoints"), "kubeletEndpoint"), "Port", json!(0));
    let info = child(status, "nodeInfo");
    for key in [
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ] {
        object::default(info, key, json!(""));
    }
}
