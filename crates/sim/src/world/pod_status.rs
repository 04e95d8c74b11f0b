//! What a kubelet reports of its pods: phase, conditions and container statuses, written only where they changed.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Map, Value, json};

use super::json::{Condition, uid, with_conditions};
use super::kubelet::{Container, Exit, PodState, Stage};
use super::queue::Key;
use super::state::State;

const USER: &str = "kubelet";

fn terminated(exit: &Exit) -> Value {
    let mut ended = json!({
        "exitCode": exit.code, "reason": exit.reason, "startedAt": exit.started, "finishedAt": exit.finished,
    });
    if let Some(message) = &exit.message {
        ended["message"] = json!(message);
    }
    json!({ "terminated": ended })
}

/// A digest that belongs to the image's name: the same for all who run it.
fn image_id(image: &str) -> String {
    let hash = crate::rng::hash(image.bytes());
    let repository = image.split('@').next().unwrap_or_default();
    let repository = match repository.rsplit_once(':') {
        Some((front, tag)) if !tag.contains('/') => front,
        Some(_) | None => repository,
    };
    format!("{repository}@sha256:{hash:016x}{:016x}{:016x}{:016x}", hash.rotate_left(13), !hash, hash.rotate_left(37))
}

fn container_status(container: &Container, pod: &str) -> Value {
    let waiting = |reason: &str, message: &str| json!({"waiting": {"reason": reason, "message": message}});
    let image = &container.image;
    let (state, started) = match container.stage {
        Stage::Creating => (json!({"waiting": {"reason": "ContainerCreating"}}), false),
        Stage::PullFailed => (waiting("ErrImagePull", &pull_error(image)), false),
        Stage::PullBackOff => {
            let message = format!("Back-off pulling image \"{image}\": ErrImagePull: {}", pull_error(image));
            (waiting("ImagePullBackOff", &message), false)
        }
        Stage::NameRefused => {
            let message = format!("Failed to apply default image tag \"{image}\": couldn't parse image name");
            (waiting("InvalidImageName", &message), false)
        }
        Stage::ConfigRefused => (waiting("CreateContainerConfigError", "secret \"pd\" not found"), false),
        Stage::Running => (json!({"running": {"startedAt": container.started}}), true),
        Stage::BackOff => {
            let wait = super::kubelet::back_off(container.back_offs.saturating_sub(2)).as_secs();
            let message = format!("back-off {wait}s restarting failed container={} pod={pod}", container.name);
            (waiting("CrashLoopBackOff", &message), false)
        }
        Stage::Ended | Stage::Exited => (container.last.as_ref().map_or(Value::Null, terminated), false),
    };
    let ran = container.last.is_some() || container.stage == Stage::Running;
    let last = match container.stage {
        Stage::Ended | Stage::Exited => json!({}),
        Stage::Creating
        | Stage::PullFailed
        | Stage::PullBackOff
        | Stage::NameRefused
        | Stage::ConfigRefused
        | Stage::Running
        | Stage::BackOff => container.last.as_ref().map_or_else(|| json!({}), terminated),
    };
    json!({
        "name": container.name,
        "image": image,
        "imageID": if ran { image_id(image) } else { String::new() },
        "ready": container.ready,
        "started": started,
        "restartCount": container.restarts,
        "state": state,
        "lastState": last,
    })
}

/// What the registry says of an image that it does not have.
fn pull_error(image: &str) -> String {
    format!("failed to pull and unpack image \"{image}\": failed to resolve reference \"{image}\": {image}: not found")
}

fn phase(pod: &PodState) -> &'static str {
    let ended = |container: &Container| container.stage == Stage::Ended;
    let failed = |container: &Container| container.last.as_ref().is_some_and(|exit| exit.code != 0);
    if pod.containers.iter().all(ended) {
        if pod.containers.iter().any(failed) { "Failed" } else { "Succeeded" }
    } else if pod.containers.iter().all(|container| container.last.is_some() || container.stage == Stage::Running) {
        "Running"
    } else {
        "Pending"
    }
}

impl State {
    /// Reports a pod as it is now.
    pub(super) fn report_pod(&mut self, key: &Key) {
        let Some(pod) = self.pods.get(key) else { return };
        let Some(object) = self.api.get_value("pods", &key.namespace, &key.name) else { return };
        let Some(node) = self.nodes.get(&pod.node).filter(|node| !node.down) else { return };
        if uid(&object) != pod.uid {
            return;
        }
        let unready: Vec<&str> = pod
            .containers
            .iter()
            .filter(|container| !container.ready)
            .map(|container| container.name.as_str())
            .collect();
        let message = format!("containers with unready status: [{}]", unready.join(" "));
        let ready = |kind| {
            if unready.is_empty() {
                Condition { kind, status: "True", reason: "", message: "" }
            } else {
                Condition { kind, status: "False", reason: "ContainersNotReady", message: &message }
            }
        };
        let sandbox = if pod.address.is_some() { "True" } else { "False" };
        let conditions = [
            Condition { kind: "PodReadyToStartContainers", status: sandbox, reason: "", message: "" },
            Condition { kind: "Initialized", status: "True", reason: "", message: "" },
            ready("Ready"),
            ready("ContainersReady"),
            Condition { kind: "PodScheduled", status: "True", reason: "", message: "" },
        ];
        let full_name = format!("{}_{}({})", key.name, key.namespace, pod.uid);
        let host = format!("10.0.0.{}", node.number + 10);
        let mut status = json!({
            "phase": phase(pod),
            "startTime": pod.started,
            "hostIP": host,
            "hostIPs": [{"ip": host}],
            "conditions": with_conditions(&object, &conditions, self.clock.now()),
            "containerStatuses": pod.containers.iter().map(|container| container_status(container, &full_name)).collect::<Vec<Value>>(),
        });
        match &pod.address {
            Some(address) => {
                status["podIP"] = json!(address);
                status["podIPs"] = json!([{"ip": address}]);
            }
            None if object.pointer("/status/podIP").is_some() => {
                status["podIP"] = Value::Null;
                status["podIPs"] = Value::Null;
            }
            None => {}
        }
        let empty = Map::new();
        let before = object.pointer("/status").and_then(Value::as_object).unwrap_or(&empty);
        let changes = status.as_object().is_some_and(|status| {
            status.iter().any(|(field, value)| before.get(field).unwrap_or(&Value::Null) != value)
        });
        if changes {
            let patch = json!({"metadata": {"uid": pod.uid}, "status": status});
            // A pod that was just deleted needs no report.
            let _ = self.api.merge_status::<Pod>(USER, &key.namespace, &key.name, &patch);
        }
    }
}
