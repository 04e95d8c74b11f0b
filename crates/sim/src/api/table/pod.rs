//! Pods: the one kind whose row is a judgement rather than a copy.

use serde_json::{Value, json};

use super::super::object;
use super::{AGE, Column, NAME, NONE, Seen, list, or_none, text, wide};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    text("Ready"),
    text("Status"),
    text("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];

/// What the containers add up to.
struct Summary {
    ready: usize,
    restarts: i64,
    /// When a container last ended that was started again; empty where none was.
    last_restart: String,
    reason: String,
}

pub(super) fn cells(seen: Seen<'_>) -> Vec<Value> {
    let pod = seen.object;
    let declared = list(pod, &["spec", "containers"]).len();
    let sidecars = list(pod, &["spec", "initContainers"]).iter().filter(|container| restarts_always(container)).count();
    let summary = summarize(pod);
    let restarts = if summary.restarts != 0 && !summary.last_restart.is_empty() {
        format!("{} ({} ago)", summary.restarts, super::age::since(&summary.last_restart, seen.now))
    } else {
        summary.restarts.to_string()
    };
    let address = list(pod, &["status", "podIPs"]).first().map_or("", |first| object::text(first, &["ip"]));
    vec![
        json!(seen.name()),
        json!(format!("{}/{}", summary.ready, declared + sidecars)),
        json!(summary.reason),
        json!(restarts),
        json!(seen.age()),
        json!(or_none(address)),
        json!(seen.text_or_none(&["spec", "nodeName"])),
        json!(seen.text_or_none(&["status", "nominatedNodeName"])),
        json!(gates(pod)),
    ]
}

/// The row's conditions: that the pod has ended, and how.
pub(super) fn end(pod: &Value) -> Option<Value> {
    let (reason, message) = match object::text(pod, &["status", "phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn summarize(pod: &Value) -> Summary {
    let status = |key: &str| object::text(pod, &["status", key]);
    let mut summary = Summary {
        ready: 0,
        restarts: 0,
        last_restart: String::new(),
        reason: if status("reason").is_empty() { status("phase") } else { status("reason") }.to_owned(),
    };
    let conditions = list(pod, &["status", "conditions"]);
    let is = |kind: &str, key: &str, value: &str| {
        conditions.iter().any(|one| object::text(one, &["type"]) == kind && object::text(one, &[key]) == value)
    };
    if is("PodScheduled", "reason", "SchedulingGated") {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    let initializing = summarize_init(pod, &mut summary);
    if !initializing || is("Initialized", "status", "True") {
        summarize_main(pod, &mut summary, is("Ready", "status", "True"));
    }
    if object::is_deleting(pod) {
        if status("reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(status("phase"), "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

fn restarts_always(container: &Value) -> bool {
    object::text(container, &["restartPolicy"]) == "Always"
}

/// A container that keeps running beside the main ones.
fn is_sidecar(pod: &Value, name: &str) -> bool {
    let declared = list(pod, &["spec", "initContainers"]);
    declared.iter().any(|container| object::text(container, &["name"]) == name && restarts_always(container))
}

/// What a container in this state is called, where it is not simply running.
fn state_of(container: &Value) -> Option<String> {
    let waiting = object::text(container, &["state", "waiting", "reason"]);
    if !waiting.is_empty() {
        return Some(waiting.to_owned());
    }
    let ended = object::at(container, &["state", "terminated"])?;
    let reason = object::text(ended, &["reason"]);
    let signal = object::integer(ended, &["signal"]).unwrap_or(0);
    Some(if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", object::integer(ended, &["exitCode"]).unwrap_or(0))
    })
}

fn count_restarts(container: &Value, summary: &mut Summary) {
    summary.restarts += object::integer(container, &["restartCount"]).unwrap_or(0);
    let ended = object::text(container, &["lastState", "terminated", "finishedAt"]);
    if ended > summary.last_restart.as_str() {
        ended.clone_into(&mut summary.last_restart);
    }
}

/// Goes through the init containers up to the first that is not done; true where there is one.
fn summarize_init(pod: &Value, summary: &mut Summary) -> bool {
    let total = list(pod, &["spec", "initContainers"]).len();
    for (index, container) in list(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
        count_restarts(container, summary);
        let sidecar = is_sidecar(pod, object::text(container, &["name"]));
        if object::integer(container, &["state", "terminated", "exitCode"]) == Some(0) {
            continue;
        }
        if sidecar && container.get("started") == Some(&Value::Bool(true)) {
            summary.ready += usize::from(container.get("ready") == Some(&Value::Bool(true)));
            continue;
        }
        summary.reason = match state_of(container) {
            Some(state) if state != "PodInitializing" => format!("Init:{state}"),
            Some(_) | None => format!("Init:{index}/{total}"),
        };
        return true;
    }
    false
}

fn summarize_main(pod: &Value, summary: &mut Summary, pod_is_ready: bool) {
    // Only what restarts beside the main containers still counts.
    summary.restarts = 0;
    summary.last_restart.clear();
    for container in list(pod, &["status", "initContainerStatuses"]) {
        if is_sidecar(pod, object::text(container, &["name"])) {
            count_restarts(container, summary);
        }
    }
    let mut running = false;
    for container in list(pod, &["status", "containerStatuses"]).iter().rev() {
        count_restarts(container, summary);
        if let Some(state) = state_of(container) {
            summary.reason = state;
        } else if container.get("ready") == Some(&Value::Bool(true))
            && object::at(container, &["state", "running"]).is_some()
        {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" && running {
        (if pod_is_ready { "Running" } else { "NotReady" }).clone_into(&mut summary.reason);
    }
}

fn gates(pod: &Value) -> String {
    let gates = list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let conditions = list(pod, &["status", "conditions"]);
    let open = gates.iter().filter(|gate| {
        let kind = object::text(gate, &["conditionType"]);
        let found = conditions.iter().find(|condition| object::text(condition, &["type"]) == kind);
        found.is_some_and(|condition| object::text(condition, &["status"]) == "True")
    });
    format!("{}/{}", open.count(), gates.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::EPOCH;

    fn shown(pod: &Value) -> Vec<String> {
        let cells = cells(Seen { object: pod, now: EPOCH });
        cells.iter().skip(1).take(3).map(|cell| cell.as_str().unwrap().to_owned()).collect()
    }

    fn pod(containers: &Value, phase: &str) -> Value {
        json!({
            "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "main"}]},
            "status": {"phase": phase, "containerStatuses": containers},
        })
    }

    #[test]
    fn a_pod_is_what_its_containers_are() {
        let ready = json!([{"name": "main", "ready": true, "restartCount": 0, "state": {"running": {}}}]);
        assert_eq!(shown(&pod(&ready, "Running")), ["1/1", "Running", "0"]);
        let creating = json!([{"name": "main", "ready": false, "state": {"waiting": {"reason": "ContainerCreating"}}}]);
        assert_eq!(shown(&pod(&creating, "Pending")), ["0/1", "ContainerCreating", "0"]);
        let crashing = json!([{
            "name": "main", "ready": false, "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2025-12-31T23:59:50Z"}},
        }]);
        assert_eq!(shown(&pod(&crashing, "Running")), ["0/1", "CrashLoopBackOff", "2 (10s ago)"]);
        let ended = json!([{"name": "main", "ready": false, "state": {"terminated": {"exitCode": 3}}}]);
        assert_eq!(shown(&pod(&ended, "Failed")), ["0/1", "ExitCode:3", "0"]);
    }

    #[test]
    fn a_pod_in_deletion_is_terminating_whatever_its_containers_do() {
        let running = json!([{"name": "main", "ready": true, "state": {"running": {}}}]);
        let mut pod = pod(&running, "Running");
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
        assert_eq!(shown(&pod), ["1/1", "Terminating", "0"]);
        pod["status"]["reason"] = json!("NodeLost");
        assert_eq!(shown(&pod), ["1/1", "Unknown", "0"]);
    }

    #[test]
    fn an_init_container_that_is_not_done_speaks_for_the_pod() {
        let mut pod = pod(&json!([]), "Pending");
        pod["spec"]["initContainers"] = json!([{"name": "one"}, {"name": "two"}]);
        pod["status"]["initContainerStatuses"] = json!([
            {"name": "one", "state": {"terminated": {"exitCode": 0}}}, {"name": "two", "state": {"running": {}}},
        ]);
        assert_eq!(shown(&pod), ["0/1", "Init:1/2", "0"]);
        pod["status"]["initContainerStatuses"][1]["state"] = json!({"waiting": {"reason": "ImagePullBackOff"}});
        assert_eq!(shown(&pod), ["0/1", "Init:ImagePullBackOff", "0"]);
    }

    #[test]
    fn a_sidecar_counts_as_a_container() {
        let ready = json!([{"name": "main", "ready": true, "state": {"running": {}}}]);
        let mut pod = pod(&ready, "Running");
        pod["spec"]["initContainers"] = json!([{"name": "side", "restartPolicy": "Always"}]);
        pod["status"]["initContainerStatuses"] =
            json!([{"name": "side", "started": true, "ready": true, "restartCount": 1, "state": {"running": {}}}]);
        assert_eq!(shown(&pod), ["2/2", "Running", "1"]);
    }
}
