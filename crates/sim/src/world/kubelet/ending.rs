//! How processes and pods end: crashes and back-offs, hangs, graceful stops, and nodes that lose power.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use serde_json::Value;

use super::super::json::{number, terminating, time, uid};
use super::super::queue::{Event, Key, Step};
use super::super::state::State;
use super::{Exit, PodState, Stage, USER, back_off};

/// A process that ran for this long starts its back-off anew.
const FORGIVEN_AFTER: Duration = Duration::from_mins(10);
/// How long a readiness probe with the usual settings takes to give up (three times ten seconds).
const PROBE_GIVES_UP: Duration = Duration::from_secs(30);

impl State {
    /// Ends the processes of a pod, without any trace in the API.
    pub(super) fn kill(&mut self, key: &Key, graceful: bool) {
        let Some(pod) = self.pods.get_mut(key) else { return };
        let mut served = false;
        for container in &mut pod.containers {
            served |= container.serving && container.app.is_some();
            container.serving = false;
            container.epoch += 1;
        }
        pod.hung = false;
        pod.hangs += 1;
        if served {
            self.tell_app(key, |app, context, pod| app.stopped(context, pod, graceful));
        }
    }

    /// A container's process ends by itself.
    pub(super) fn exit(&mut self, key: &Key, index: usize, code: i32, reason: &'static str) {
        let now = self.now();
        let finished = time(self.clock.now());
        let Some(pod) = self.pods.get_mut(key) else { return };
        let restarts = pod.restart.after(code);
        let Some(container) = pod.containers.get_mut(index) else { return };
        let served = std::mem::take(&mut container.serving) && container.app.is_some();
        container.epoch += 1;
        container.ready = false;
        let message = container.message.take();
        container.last = Some(Exit { code, reason, message, started: container.started.clone(), finished });
        if now.saturating_sub(container.started_at) >= FORGIVEN_AFTER {
            container.back_offs = 0;
        }
        if restarts {
            // The first restart comes at once; only then does the kubelet begin to wait.
            let (stage, wait) = match container.back_offs.checked_sub(1) {
                None => (Stage::Exited, Duration::from_secs(1)),
                Some(times) => (Stage::BackOff, back_off(times)),
            };
            container.stage = stage;
            container.back_offs += 1;
            self.later(key, index, wait, Step::Restart);
        } else {
            container.stage = Stage::Ended;
        }
        if served {
            if let Some(pod) = self.pods.get_mut(key) {
                pod.hung = false;
                pod.hangs += 1;
            }
            self.tell_app(key, |app, context, pod| app.stopped(context, pod, false));
        }
    }

    /// The scenario ends a pod's main process.
    pub fn crash(&mut self, key: &Key) {
        let Some(pod) = self.pods.get(key).filter(|pod| !pod.stopping) else { return };
        let main = pod.main();
        let running = pod.containers.get(main).is_some_and(|container| container.stage == Stage::Running);
        if running && self.nodes.get(&pod.node).is_some_and(|node| !node.down) {
            self.exit(key, main, 137, "Error");
            self.report_pod(key);
        }
    }

    /// Members that run this image and never served are restarted, as a liveness probe does: they would not notice that it was mended.
    pub fn restart_hung(&mut self, image: &str) {
        let hangs = |pod: &PodState| {
            let main = pod.containers.get(pod.main());
            main.is_some_and(|main| main.image == image && main.app.is_some() && !main.serving)
        };
        let hung: Vec<Key> = self.pods.iter().filter(|(_, pod)| hangs(pod)).map(|(key, _)| key.clone()).collect();
        for key in hung {
            self.crash(&key);
        }
    }

    /// The kubelet ends a pod because its node runs out of something: the pod has failed, and its controller must replace it.
    pub fn fail_under_pressure(&mut self, key: &Key) {
        let finished = time(self.clock.now());
        let Some(pod) = self.pods.get(key).filter(|pod| !pod.stopping) else { return };
        if self.nodes.get(&pod.node).is_none_or(|node| node.down) {
            return;
        }
        self.kill(key, false);
        if let Some(pod) = self.pods.get_mut(key) {
            for container in &mut pod.containers {
                container.stage = Stage::Ended;
                container.ready = false;
                container.last = Some(Exit {
                    code: 137,
                    reason: "Error",
                    message: None,
                    started: container.started.clone(),
                    finished: finished.clone(),
                });
            }
        }
        self.report_pod(key);
    }

    /// The scenario makes a pod's process stand still.
    pub fn hang(&mut self, key: &Key, for_: Duration) {
        let now = self.now();
        let Some(pod) = self.pods.get_mut(key).filter(|pod| !pod.stopping && pod.address.is_some()) else { return };
        pod.hung = true;
        pod.hangs += 1;
        let (uid, epoch, main) = (pod.uid.clone(), pod.hangs, pod.main());
        self.queue.push(now + for_, Event::Resume { pod: key.clone(), uid, epoch });
        self.later(key, main, PROBE_GIVES_UP, Step::Unready);
        self.tell_app(key, |app, context, pod| app.hung(context, pod, true));
    }

    pub(in crate::world) fn resume(&mut self, key: &Key, uid: &str, epoch: u64) {
        let Some(pod) = self.pods.get_mut(key).filter(|pod| pod.uid == uid && pod.hangs == epoch) else { return };
        pod.hung = false;
        let main = pod.main();
        let serving = pod.containers.get(main).is_some_and(|container| container.serving);
        self.tell_app(key, |app, context, pod| app.hung(context, pod, false));
        if serving {
            let probe = self.takes(100, 2_000);
            self.later(key, main, probe, Step::Ready);
        }
    }

    /// A pod is to end: its processes get the signal, and those that are stuck are killed when the grace period is over.
    pub(super) fn stop(&mut self, key: &Key, object: &Value) {
        let Some(pod) = self.pods.get_mut(key).filter(|pod| !pod.stopping) else { return };
        pod.stopping = true;
        let (uid, hung) = (pod.uid.clone(), pod.hung);
        let seconds = number(object, "/metadata/deletionGracePeriodSeconds").unwrap_or(30);
        let grace = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let takes = if hung { grace } else { self.takes(50, 500).min(grace) };
        self.queue.push(self.now() + takes, Event::Stopped { pod: key.clone(), uid });
    }

    pub(in crate::world) fn pod_stopped(&mut self, key: &Key, uid: &str) {
        let Some(pod) = self.pods.get(key).filter(|pod| pod.uid == uid) else { return };
        let (graceful, node) = (!pod.hung, pod.node.clone());
        if self.nodes.get(&node).is_none_or(|node| node.down) {
            return;
        }
        self.kill(key, graceful);
        let takes = self.takes(300, 2_500);
        self.queue.push(self.now() + takes, Event::Gone { pod: key.clone(), uid: uid.to_owned() });
    }

    pub(in crate::world) fn pod_gone(&mut self, key: &Key, uid: &str) {
        let here = self.pods.get(key).filter(|pod| pod.uid == uid);
        if here.is_some_and(|pod| self.nodes.get(&pod.node).is_some_and(|node| !node.down)) {
            self.pods.remove(key);
            self.api.forget_logs(uid);
            self.remove_object(key, uid);
        }
    }

    pub(super) fn remove_object(&mut self, key: &Key, uid: &str) {
        let options = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        // One that is gone already is what we want.
        let _ = self.api.delete::<Pod>(USER, &key.namespace, &key.name, &options);
    }

    /// The node lost power.
    pub(in crate::world) fn power_off(&mut self, key: &Key) {
        self.kill(key, false);
    }

    /// The node is back: the kubelet starts what should run there, on a new address, and finishes what should end.
    pub(in crate::world) fn power_on(&mut self, key: &Key) {
        let finished = time(self.clock.now());
        let object = self.api.get_value("pods", &key.namespace, &key.name);
        let Some(pod) = self.pods.get_mut(key) else { return };
        if object.as_ref().is_none_or(|object| uid(object) != pod.uid) {
            self.pods.remove(key);
            return;
        }
        if object.is_some_and(|object| terminating(&object)) {
            pod.stopping = true;
            let uid = pod.uid.clone();
            let takes = self.takes(300, 2_500);
            self.queue.push(self.now() + takes, Event::Gone { pod: key.clone(), uid });
            return;
        }
        if pod.containers.iter().all(|container| container.stage == Stage::Ended) {
            return;
        }
        pod.address = None;
        for container in &mut pod.containers {
            container.epoch += 1;
            container.ready = false;
            if matches!(container.stage, Stage::Running | Stage::Exited | Stage::BackOff) {
                container.last = Some(Exit {
                    code: 255,
                    reason: "Unknown",
                    message: None,
                    started: container.started.clone(),
                    finished: finished.clone(),
                });
            }
            container.stage = Stage::Creating;
        }
        for index in 0..pod.containers.len() {
            self.pull(key, index);
        }
        self.report_pod(key);
    }
}
