//! The kubelets: from a bound pod to a running, ready process. How it ends is next door.

mod ending;

use std::time::Duration;

use serde_json::Value;

use super::ImageBehaviour;
use super::json::{controller, list, number, terminating, text, time, uid};
use super::queue::{Event, Key, Step};
use super::state::State;
use super::task::is_task;
use crate::apps::{App, Founding, Kind, version_of};
use crate::journal::Note;

const USER: &str = "kubelet";
/// The first back-off of pulls and restarts; it doubles each time.
const BACK_OFF: Duration = Duration::from_secs(10);
/// How often a readiness probe that has failed is tried again.
const PROBE_PERIOD: Duration = Duration::from_secs(5);
const LONGEST_BACK_OFF: Duration = Duration::from_mins(5);

/// How a container ended.
#[derive(Clone)]
pub(super) struct Exit {
    pub code: i32,
    pub reason: &'static str,
    /// What the process left behind.
    pub message: Option<String>,
    pub started: Value,
    pub finished: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Creating,
    PullFailed,
    PullBackOff,
    /// Its image's name can't be read.
    NameRefused,
    /// What it needs is not there.
    ConfigRefused,
    Running,
    /// Between an end and the restart that follows at once.
    Exited,
    BackOff,
    Ended,
}

pub(super) struct Container {
    pub name: String,
    pub image: String,
    pub stage: Stage,
    pub ready: bool,
    pub restarts: u32,
    pub last: Option<Exit>,
    pub started: Value,
    started_at: Duration,
    /// Changes whenever the timers so far have lost their meaning.
    epoch: u64,
    pub back_offs: u32,
    app: Option<Kind>,
    /// It runs `true`, whatever its image is for.
    brief: bool,
    serving: bool,
    /// What the process leaves behind when it ends.
    message: Option<String>,
}

/// When a process that has ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    Always,
    OnFailure,
    Never,
}

impl Restart {
    fn of(pod: &Value) -> Self {
        match text(pod, "/spec/restartPolicy") {
            "Never" => Self::Never,
            "OnFailure" => Self::OnFailure,
            _ => Self::Always,
        }
    }

    fn after(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// Whether the container runs another program than its image is for: one that ends well at once.
fn is_brief(container: &Value) -> bool {
    matches!(list(container, "/command"), [only] if only == "true")
}

/// One pod instance on its node.
pub(crate) struct PodState {
    pub uid: String,
    pub node: String,
    pub address: Option<String>,
    pub(super) containers: Vec<Container>,
    pub(super) started: Value,
    pub(super) restart: Restart,
    workload: Key,
    stopping: bool,
    hung: bool,
    hangs: u64,
}

/// The n-th wait of a doubling back-off.
pub(super) fn back_off(times: u32) -> Duration {
    BACK_OFF.saturating_mul(1 << times.min(5)).min(LONGEST_BACK_OFF)
}

impl PodState {
    pub(in crate::world) fn main(&self) -> usize {
        self.containers.iter().position(|container| container.app.is_some()).unwrap_or(0)
    }

    /// The application and the version in the main container, while its process serves (or would, if it weren't stuck).
    pub fn served_workload(&self) -> Option<&Key> {
        self.containers.iter().any(|container| container.app.is_some() && container.serving).then_some(&self.workload)
    }

    pub fn is_hung(&self) -> bool {
        self.hung
    }

    fn of(pod: &Value, key: &Key) -> Self {
        let workload = controller(pod).map_or(key.name.as_str(), |owner| text(owner, "/name"));
        Self {
            uid: uid(pod).to_owned(),
            node: text(pod, "/spec/nodeName").to_owned(),
            address: None,
            containers: list(pod, "/spec/containers")
                .iter()
                .map(|container| Container {
                    name: text(container, "/name").to_owned(),
                    image: text(container, "/image").to_owned(),
                    stage: Stage::Creating,
                    ready: false,
                    restarts: 0,
                    last: None,
                    started: Value::Null,
                    started_at: Duration::ZERO,
                    epoch: 0,
                    back_offs: 0,
                    app: Kind::of(text(container, "/name"), text(container, "/image")).filter(|_| !is_brief(container)),
                    brief: is_brief(container),
                    serving: false,
                    message: None,
                })
                .collect(),
            started: Value::Null,
            restart: Restart::of(pod),
            workload: Key::new(&key.namespace, workload),
            stopping: false,
            hung: false,
            hangs: 0,
        }
    }
}

impl State {
    /// The kubelet looks at its pod.
    pub(in crate::world) fn sync_pod(&mut self, key: &Key) {
        let object = self.api.get_value("pods", &key.namespace, &key.name);
        let known = self.pods.get(key).map(|state| (state.uid.clone(), state.node.clone()));
        if let Some((known_uid, _)) = &known
            && object.as_ref().is_none_or(|pod| uid(pod) != known_uid)
        {
            // The object was taken away from under the kubelet: what ran for it must end.
            self.kill(key, true);
            self.api.forget_logs(known_uid);
            self.pods.remove(key);
        }
        let Some(pod) = object else { return };
        let node = text(&pod, "/spec/nodeName");
        if node.is_empty() {
            if terminating(&pod) {
                self.remove_object(key, uid(&pod));
            }
            return;
        }
        if self.nodes.get(node).is_none_or(|node| node.down) {
            return;
        }
        if !self.pods.contains_key(key) {
            if matches!(text(&pod, "/status/phase"), "Failed" | "Succeeded") && !terminating(&pod) {
                return;
            }
            let mut state = PodState::of(&pod, key);
            state.started = time(self.clock.now());
            let count = state.containers.len();
            self.pods.insert(key.clone(), state);
            if !terminating(&pod) {
                for container in 0..count {
                    self.pull(key, container);
                }
                self.report_pod(key);
            }
        }
        if terminating(&pod) {
            self.stop(key, &pod);
        }
    }

    fn later(&mut self, key: &Key, container: usize, after: Duration, step: Step) {
        let at = self.now() + after;
        if let Some((uid, epoch)) =
            self.pods.get(key).and_then(|pod| Some((pod.uid.clone(), pod.containers.get(container)?.epoch)))
        {
            self.queue.push(at, Event::Container { pod: key.clone(), uid, container, epoch, step });
        }
    }

    fn pull(&mut self, key: &Key, container: usize) {
        let Some(pod) = self.pods.get(key) else { return };
        let image = pod.containers.get(container).map(|container| container.image.clone()).unwrap_or_default();
        let cached = self.nodes.get(&pod.node).is_some_and(|node| node.images.contains(&image));
        let takes = if cached { self.takes(200, 800) } else { self.takes(800, 4_000) };
        self.later(key, container, takes, Step::Pulled);
    }

    fn behaviour(&self, image: &str) -> ImageBehaviour {
        self.images.get(image).copied().unwrap_or(ImageBehaviour::Works)
    }

    pub(super) fn step_container(&mut self, key: &Key, uid: &str, index: usize, epoch: u64, step: Step) {
        let Some(pod) = self.pods.get(key).filter(|pod| pod.uid == uid && !pod.stopping) else { return };
        let hung = pod.hung;
        let Some(container) = pod.containers.get(index).filter(|container| container.epoch == epoch) else { return };
        let image = container.image.clone();
        match step {
            Step::Pulled => {
                let cached = self.nodes.get(&pod.node).is_some_and(|node| node.images.contains(&image));
                let refused = self.unpullable.contains(&(pod.node.clone(), image.clone()));
                match self.behaviour(&image) {
                    _ if refused && !cached => self.pull_failed(key, index),
                    ImageBehaviour::CannotPull if !cached => self.pull_failed(key, index),
                    ImageBehaviour::BadName => self.refuse(key, index, Stage::NameRefused),
                    ImageBehaviour::Misconfigured => self.refuse(key, index, Stage::ConfigRefused),
                    ImageBehaviour::Works
                    | ImageBehaviour::CannotPull
                    | ImageBehaviour::Crashes
                    | ImageBehaviour::OutOfMemory
                    | ImageBehaviour::NeverReady
                    | ImageBehaviour::Mute => self.start(key, index),
                }
            }
            Step::PullBackOff => self.set_stage(key, index, Stage::PullBackOff),
            Step::PullAgain => {
                // Counted as one attempt whose outcome is known at once: a registry that lacks the image says so quickly.
                self.step_container(key, uid, index, epoch, Step::Pulled);
                return;
            }
            Step::Serve => self.serve(key, index),
            Step::Ready if !hung && !self.is_ready(key) => {
                return self.later(key, index, PROBE_PERIOD, Step::Ready);
            }
            Step::Ready if !hung => self.set_ready(key, index, true),
            Step::Unready if hung => self.set_ready(key, index, false),
            Step::Ready | Step::Unready => return,
            Step::Exit(code) => {
                let reason = match (self.behaviour(&image), code) {
                    (ImageBehaviour::OutOfMemory, _) => "OOMKilled",
                    (_, 0) => "Completed",
                    (_, _) => "Error",
                };
                self.exit(key, index, code, reason);
            }
            Step::Restart => self.start(key, index),
        }
        self.report_pod(key);
    }

    fn container(&mut self, key: &Key, index: usize) -> Option<&mut Container> {
        self.pods.get_mut(key)?.containers.get_mut(index)
    }

    fn set_stage(&mut self, key: &Key, index: usize, stage: Stage) {
        if let Some(container) = self.container(key, index) {
            container.stage = stage;
        }
    }

    fn set_ready(&mut self, key: &Key, index: usize, ready: bool) {
        if let Some(container) = self.container(key, index) {
            container.ready = ready;
        }
    }

    fn pull_failed(&mut self, key: &Key, index: usize) {
        let Some(container) = self.container(key, index) else { return };
        container.stage = Stage::PullFailed;
        let wait = back_off(container.back_offs);
        container.back_offs += 1;
        self.later(key, index, Duration::from_secs(2), Step::PullBackOff);
        self.later(key, index, wait, Step::PullAgain);
    }

    /// The container can't even be made; the kubelet looks again at its next round.
    fn refuse(&mut self, key: &Key, index: usize, stage: Stage) {
        self.set_stage(key, index, stage);
        self.later(key, index, BACK_OFF, Step::PullAgain);
    }

    /// The container's process starts.
    fn start(&mut self, key: &Key, index: usize) {
        let now = self.now();
        let started = time(self.clock.now());
        let Some(pod) = self.pods.get_mut(key) else { return };
        if pod.address.is_none()
            && let Some(node) = self.nodes.get_mut(&pod.node)
        {
            let address = node.next_address();
            self.addresses.insert(address.clone(), key.clone());
            pod.address = Some(address);
        }
        let Some(container) = pod.containers.get_mut(index) else { return };
        if container.last.is_some() {
            container.restarts += 1;
        } else {
            // What was counted so far were failed pulls.
            container.back_offs = 0;
        }
        container.stage = Stage::Running;
        container.started = started;
        container.started_at = now;
        container.epoch += 1;
        container.ready = false;
        let (image, is_app) = (container.image.clone(), container.app.is_some());
        self.api.begin_log(&pod.uid, &container.name);
        self.api.write_log(&pod.uid, &container.name, &format!("starting {image}"));
        if let Some(node) = self.nodes.get_mut(&pod.node) {
            node.images.insert(image.clone());
        }
        match self.behaviour(&image) {
            ImageBehaviour::Works
            | ImageBehaviour::CannotPull
            | ImageBehaviour::BadName
            | ImageBehaviour::Misconfigured
            | ImageBehaviour::Mute => {
                let boot = if is_app { self.takes(500, 2_000) } else { self.takes(100, 500) };
                self.later(key, index, boot, Step::Serve);
            }
            ImageBehaviour::Crashes => {
                self.write_log(key, index, "fatal: this build is broken");
                let dies = self.takes(300, 3_000);
                self.later(key, index, dies, Step::Exit(1));
            }
            ImageBehaviour::OutOfMemory => {
                self.write_log(key, index, "reading all of it into memory");
                let dies = self.takes(300, 3_000);
                self.later(key, index, dies, Step::Exit(137));
            }
            ImageBehaviour::NeverReady => self.write_log(key, index, "waiting for what never comes"),
        }
    }

    /// A container's process writes a line.
    pub(in crate::world) fn write_log(&self, key: &Key, index: usize, line: &str) {
        if let Some((uid, name)) = self.pods.get(key).and_then(|pod| Some((&pod.uid, &pod.containers.get(index)?.name)))
        {
            self.api.write_log(uid, name, line);
        }
    }

    fn serve(&mut self, key: &Key, index: usize) {
        let Some(container) = self.container(key, index) else { return };
        let (kind, image) = (container.app, container.image.clone());
        if is_task(&container.name) {
            let ending = self.end_of_task(key, index);
            let heard = self.behaviour(&image) != ImageBehaviour::Mute;
            if let Some(container) = self.container(key, index).filter(|_| heard) {
                container.message = Some(ending.message);
            }
            return self.later(key, index, Duration::ZERO, Step::Exit(ending.code));
        }
        if container.brief {
            return self.later(key, index, Duration::ZERO, Step::Exit(0));
        }
        let version = version_of(&image);
        if let Some(kind) = kind {
            self.found_app(key, kind);
            if let Some(why) = self.refusal(key, &version) {
                self.note(Note::Disturbed(format!("process in {} ends: {why}", key.name)));
                self.write_log(key, index, &format!("fatal: {why}"));
                return self.later(key, index, Duration::from_millis(100), Step::Exit(1));
            }
        }
        if let Some(container) = self.container(key, index) {
            container.serving = true;
        }
        if kind.is_some() {
            self.tell_app(key, |app, context, pod| app.started(context, pod, &version));
            if self.pods.get(key).is_some_and(|pod| pod.hung) {
                self.tell_app(key, |app, context, pod| app.hung(context, pod, true));
            }
        }
        self.write_log(key, index, if self.is_ready(key) { "serving" } else { "sealed, and waiting for the key" });
        let probe = self.takes(100, 2_000);
        self.later(key, index, probe, Step::Ready);
    }

    /// The first process of a workload founds its application with the members that the workload wants by then.
    fn found_app(&mut self, key: &Key, kind: Kind) {
        let Some(workload) = self.pods.get(key).map(|pod| pod.workload.clone()) else { return };
        if self.apps.contains_key(&workload) {
            return;
        }
        let set = self.api.get_value("statefulsets.apps", &workload.namespace, &workload.name);
        let (members, service) = match set {
            Some(set) => {
                let start = number(&set, "/spec/ordinals/start").unwrap_or(0);
                let replicas = number(&set, "/spec/replicas").unwrap_or(1);
                let members = (start..start + replicas).map(|ordinal| format!("{}-{ordinal}", workload.name)).collect();
                let service = match text(&set, "/spec/serviceName") {
                    "" => workload.name.clone(),
                    service => service.to_owned(),
                };
                (members, service)
            }
            None => (vec![key.name.clone()], workload.name.clone()),
        };
        let founding =
            Founding { namespace: workload.namespace.clone(), workload: workload.name.clone(), service, members };
        let rng = self.draws.apps.fork(&format!("{}/{}", workload.namespace, workload.name));
        self.apps.insert(workload, App::found(kind, founding, rng));
    }

    /// Why the application's process does not stay; none if it does.
    fn refusal(&self, key: &Key, version: &str) -> Option<String> {
        let workload = self.pods.get(key).map(|pod| &pod.workload)?;
        self.apps.get(workload)?.refusal(&key.name, version)
    }

    /// Whether the application lets its process pass a readiness probe.
    fn is_ready(&self, key: &Key) -> bool {
        let workload = self.pods.get(key).and_then(|pod| pod.served_workload());
        workload.and_then(|workload| self.apps.get(workload)).is_none_or(|app| app.is_ready(&key.name))
    }

    fn tell_app(&mut self, key: &Key, tell: impl FnOnce(&mut App, &mut crate::apps::Context, &str)) {
        if let Some(workload) = self.pods.get(key).map(|pod| pod.workload.clone()) {
            self.with_app(&workload, |app, context| tell(app, context, &key.name));
        }
    }
}
