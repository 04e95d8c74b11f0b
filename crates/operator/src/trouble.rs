//! From a pod that is not ready to the name of what is wrong with it. Pure.
//!
//! The words are the kubelet's and the scheduler's own (`state.waiting`, `lastState.terminated`, the PodScheduled condition). What is not
//! among the words that are known here is not named: the pod is then simply not ready.

use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStateTerminated, ContainerStatus, Pod};
use windlass_plan::{Trouble, trouble::Exit};

/// The longest part of somebody else's message that is passed on: registries answer with whole pages.
const LONGEST: usize = 400;

/// What keeps the pod from being ready, if Kubernetes says so. Asked only of pods that are not.
pub fn diagnose(pod: &Pod) -> Option<Trouble> {
    unscheduled(pod).or_else(|| culprit(pod).map(|(_, trouble)| trouble))
}

/// A log that a person would read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Whose.
    pub container: String,
    /// Of the run that ended last, and not of the one that goes on or is waited for.
    pub previous: bool,
}

/// The log that tells most of why this pod's member is not up: that of the container that keeps ending, otherwise the managed one's. None
/// where none has ever run.
pub fn telling(pod: &Pod, managed: &str) -> Option<Source> {
    let ran = |state: Option<&ContainerState>| state.is_some_and(|it| it.running.is_some() || it.terminated.is_some());
    let status = match culprit(pod) {
        Some((status, Trouble::CrashLoop { .. })) => status,
        Some(_) => return None,
        None => {
            let mains = pod.status.as_ref()?.container_statuses.as_deref().unwrap_or_default();
            mains.iter().find(|status| status.name == managed)?
        }
    };
    let (state, last) = (status.state.as_ref(), status.last_state.as_ref());
    let ended = state.is_some_and(|state| state.terminated.is_some());
    let previous = !ended && !status.ready && ran(last);
    (previous || ran(state)).then(|| Source { container: status.name.clone(), previous })
}

/// The first container that something is wrong with, and what. Init containers come first: the others wait for them.
fn culprit(pod: &Pod) -> Option<(&ContainerStatus, Trouble)> {
    let spec = pod.spec.as_ref();
    let status = pod.status.as_ref()?;
    let image = |containers: Option<&[Container]>, status: &ContainerStatus| {
        // The status shows the image as the runtime resolved it; people look for the one that they wrote.
        let written = containers.unwrap_or_default().iter().find(|container| container.name == status.name);
        written.and_then(|container| container.image.clone()).unwrap_or_else(|| status.image.clone())
    };
    let inits = status.init_container_statuses.as_deref().unwrap_or_default().iter().map(|status| {
        let containers = spec.and_then(|spec| spec.init_containers.as_deref());
        (format!("init container {}", status.name), image(containers, status), status)
    });
    let mains = status.container_statuses.as_deref().unwrap_or_default().iter().map(|status| {
        let containers = spec.map(|spec| spec.containers.as_slice());
        (format!("container {}", status.name), image(containers, status), status)
    });
    inits.chain(mains).find_map(|(name, image, status)| Some((status, container(name, image, status)?)))
}

/// Why the container's process is known not to run; none where it runs, or where nobody knows.
pub fn stopped(pod: &Pod, container: &str) -> Option<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()) {
        return Some(format!("pod {name} is on no node"));
    }
    let statuses = pod.status.as_ref()?.container_statuses.as_deref().unwrap_or_default();
    let state = statuses.iter().find(|status| status.name == container)?.state.as_ref()?;
    let waits = state.waiting.as_ref().map(|waiting| waiting.reason.clone().unwrap_or_else(|| "waiting".into()));
    let ended = state.terminated.as_ref().map(|end| format!("ended with {}", exit(end)));
    waits.or(ended).map(|why| format!("container {container} of pod {name} does not run: {why}"))
}

fn unscheduled(pod: &Pod) -> Option<Trouble> {
    let conditions = pod.status.as_ref()?.conditions.as_deref().unwrap_or_default();
    let condition =
        conditions.iter().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
    let message =
        condition.message.as_deref().or(condition.reason.as_deref()).unwrap_or("the scheduler does not say why");
    Some(Trouble::Unschedulable { message: clipped(message) })
}

fn container(container: String, image: String, status: &ContainerStatus) -> Option<Trouble> {
    let state = status.state.as_ref();
    let waiting = state.and_then(|state| state.waiting.as_ref());
    let reason = waiting.and_then(|waiting| waiting.reason.as_deref()).unwrap_or_default();
    let message = clipped(waiting.and_then(|waiting| waiting.message.as_deref()).unwrap_or("no more is told"));
    match reason {
        "InvalidImageName" | "ErrImageNeverPull" => Some(Trouble::ImageUnusable { container, image, message }),
        "ErrImagePull"
        | "ImagePullBackOff"
        | "ImageInspectError"
        | "RegistryUnavailable"
        | "SignatureValidationFailed" => Some(Trouble::ImagePull { container, image, message }),
        "CreateContainerConfigError"
        | "CreateContainerError"
        | "RunContainerError"
        | "PreCreateHookError"
        | "PreStartHookError"
        | "PostStartHookError" => Some(Trouble::Config { container, reason: reason.to_owned(), message }),
        _ => crash(container, image, status, reason == "CrashLoopBackOff"),
    }
}

/// A process that has ended and is started again, or will be. One that ended well was meant to: init containers do.
fn crash(container: String, image: String, status: &ContainerStatus, backing_off: bool) -> Option<Trouble> {
    let ended = |state: Option<&ContainerState>| state.and_then(|state| state.terminated.as_ref()).map(exit);
    let now = ended(status.state.as_ref()).filter(|exit| exit.code != 0);
    let before = ended(status.last_state.as_ref());
    let restarts = u32::try_from(status.restart_count).unwrap_or(0);
    let done = status.state.as_ref().and_then(|state| state.terminated.as_ref()).is_some_and(|end| end.exit_code == 0);
    let again = !status.ready && !done && restarts > 0 && before.is_some();
    (backing_off || now.is_some() || again).then(|| Trouble::CrashLoop {
        container,
        image,
        restarts,
        exit: now.or(before),
    })
}

fn exit(end: &ContainerStateTerminated) -> Exit {
    Exit {
        code: end.exit_code,
        signal: end.signal.filter(|signal| *signal != 0),
        reason: end.reason.clone().unwrap_or_default(),
        message: clipped(end.message.as_deref().unwrap_or_default()),
    }
}

/// On one line, and not too much of it.
pub fn clipped(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.char_indices().nth(LONGEST).map_or(line.len(), |(end, _)| end);
    if end < line.len() { format!("{}…", line.get(..end).unwrap_or_default()) } else { line }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};
    use windlass_plan::Reason;

    use super::diagnose;

    #[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
    fn pod(status: Value) -> k8s_openapi::api::core::v1::Pod {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pd-2"},
            "spec": {
                "initContainers": [{"name": "wait", "image": "busybox:1"}],
                "containers": [{"name": "pd", "image": "pd:v8.5.3"}],
            },
            "status": status,
        }))
        .unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
    fn of(container: Value) -> Value {
        let mut status =
            json!({"name": "pd", "image": "pd@sha256:0", "imageID": "", "ready": false, "restartCount": 0});
        status.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        json!({"phase": "Pending", "containerStatuses": [status]})
    }

    fn waiting(reason: &str, message: &str) -> Value {
        of(json!({"state": {"waiting": {"reason": reason, "message": message}}}))
    }

    #[test]
    fn only_what_kubernetes_says_of_the_process_itself_tells_that_it_does_not_run() {
        let stopped = |state: Value| super::stopped(&pod_on_a_node(of(json!({ "state": state }))), "pd");
        assert_eq!(
            stopped(json!({"waiting": {"reason": "CrashLoopBackOff"}})).as_deref(),
            Some("container pd of pod pd-2 does not run: CrashLoopBackOff")
        );
        assert!(stopped(json!({"terminated": {"exitCode": 3}})).unwrap().contains("exit code 3"));
        assert_eq!(stopped(json!({"running": {}})), None);
        assert_eq!(super::stopped(&pod_on_a_node(json!({"phase": "Pending"})), "pd"), None);
        assert_eq!(super::stopped(&pod(json!({"phase": "Pending"})), "pd").as_deref(), Some("pod pd-2 is on no node"));
    }

    fn pod_on_a_node(status: Value) -> k8s_openapi::api::core::v1::Pod {
        let mut pod = pod(status);
        pod.spec.as_mut().unwrap().node_name = Some("node-0".into());
        pod
    }

    #[rstest]
    #[case::pull(waiting("ErrImagePull", "manifest unknown"), Reason::ImagePullFailed, &["container pd", "pd:v8.5.3", "manifest unknown"])]
    #[case::back_off(waiting("ImagePullBackOff", "Back-off pulling image \"pd:v8.5.3\": ErrImagePull: not found"), Reason::ImagePullFailed, &["not found"])]
    #[case::invalid(waiting("InvalidImageName", "couldn't parse image"), Reason::ImageUnusable, &["pd:v8.5.3", "couldn't parse"])]
    #[case::never(waiting("ErrImageNeverPull", "Container image is not present with pull policy of Never"), Reason::ImageUnusable, &["Never"])]
    #[case::config(waiting("CreateContainerConfigError", "secret \"pd\" not found"), Reason::ContainerConfigError, &["CreateContainerConfigError", "secret \"pd\" not found"])]
    #[case::run(waiting("RunContainerError", "exec: \"/pd\": no such file"), Reason::ContainerConfigError, &["/pd"])]
    #[case::crash_loop(of(json!({
        "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
        "lastState": {"terminated": {"exitCode": 137, "signal": 9, "reason": "OOMKilled"}},
    })), Reason::CrashLooping, &["container pd", "pd:v8.5.3", "3 restarts", "exit code 137", "signal 9", "OOMKilled"])]
    #[case::between_two_ends(of(json!({
        "restartCount": 1, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 2, "reason": "Error", "message": "panic: no data"}},
    })), Reason::CrashLooping, &["exit code 2", "Error", "panic: no data"])]
    #[case::just_ended(of(json!({"state": {"terminated": {"exitCode": 1}}})), Reason::CrashLooping, &["0 restarts", "exit code 1"])]
    #[case::unschedulable(json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."},
    ]}), Reason::Unschedulable, &["Insufficient cpu"])]
    #[case::init(json!({"phase": "Pending", "initContainerStatuses": [
        {"name": "wait", "image": "", "imageID": "", "ready": false, "restartCount": 2,
         "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 7}}},
    ], "containerStatuses": [
        {"name": "pd", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}},
    ]}), Reason::CrashLooping, &["init container wait", "busybox:1", "exit code 7"])]
    fn a_trouble_has_a_name_and_says_what_is_needed(
        #[case] status: Value,
        #[case] reason: Reason,
        #[case] words: &[&str],
    ) {
        let trouble = diagnose(&pod(status)).unwrap();
        assert_eq!(trouble.reason(), reason);
        let text = trouble.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }

    #[rstest]
    #[case::nothing_yet(json!({}))]
    #[case::creating(waiting("ContainerCreating", ""))]
    #[case::started(of(json!({"state": {"running": {}}})))]
    #[case::init_is_done(json!({"initContainerStatuses": [
        {"name": "wait", "image": "", "imageID": "", "ready": true, "restartCount": 1,
         "state": {"terminated": {"exitCode": 0}}, "lastState": {"terminated": {"exitCode": 1}}},
    ]}))]
    fn what_is_only_on_its_way_has_none(#[case] status: Value) {
        assert_eq!(diagnose(&pod(status)), None);
    }

    #[rstest]
    #[case::backing_off(of(json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}})), Some(("pd", true)))]
    #[case::started_again(of(json!({"restartCount": 1, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}})), Some(("pd", true)))]
    #[case::just_ended(of(json!({"state": {"terminated": {"exitCode": 1}}, "lastState": {"terminated": {"exitCode": 1}}})), Some(("pd", false)))]
    #[case::runs(of(json!({"state": {"running": {}}})), Some(("pd", false)))]
    #[case::serves_after_a_crash(of(json!({"ready": true, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}})), Some(("pd", false)))]
    #[case::not_made_yet(waiting("ContainerCreating", ""), None)]
    #[case::not_pulled(waiting("ErrImagePull", "not found"), None)]
    #[case::no_node(json!({"phase": "Pending"}), None)]
    #[case::init(json!({"initContainerStatuses": [
        {"name": "wait", "image": "", "imageID": "", "ready": false, "restartCount": 2,
         "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 7}}},
    ]}), Some(("wait", true)))]
    fn the_log_is_the_one_of_the_run_that_is_spoken_of(#[case] status: Value, #[case] expected: Option<(&str, bool)>) {
        let source = super::telling(&pod(status), "pd");
        assert_eq!(source.as_ref().map(|source| (source.container.as_str(), source.previous)), expected);
    }

    #[test]
    fn a_page_of_a_registry_is_cut_to_one_line() {
        let page = "no\n".repeat(1000);
        let text = diagnose(&pod(waiting("ErrImagePull", &page))).unwrap().to_string();
        assert!(text.len() < 500 && !text.contains('\n'), "{text}");
    }
}
