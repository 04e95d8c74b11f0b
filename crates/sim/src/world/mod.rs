//! Everything in the embedded cluster that acts by itself: controllers, scheduler, kubelets, nodes and the applications in the
//! pods, driven by one task over one ordered queue of events.
//!
//! The task sleeps until the next event is due or the API has changed. It learns of changes from the journal, as the real
//! controllers learn of them from watches, and looks a seeded moment later, as the real ones do.

mod calls;
mod claims;
mod deployment;
mod deviation;
mod disruption;
mod drain;
mod endpoints;
mod garbage;
mod intake;
mod job;
mod json;
mod kubelet;
mod namespaces;
mod network;
mod nodes;
mod placement;
mod pod_status;
pub(crate) mod queue;
mod registration;
mod replicaset;
mod scheduler;
mod state;
mod statefulset;
mod task;
mod template;

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::Value;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::sleep_until;

use crate::api::Api;
use crate::apps::{App, Context};
pub use crate::apps::{BadAnswer, PdHandle};
use crate::clock::Clock;
use crate::journal::{Journal, Note, QuorumTruth};
pub use deviation::{DeploymentDeviation, Deviation, JobDeviation};
use kubelet::PodState;
use queue::Key;
use state::State;

/// What kind of cluster it is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many nodes.
    pub nodes: usize,
    /// Multiplies every delay of kubelets and processes.
    pub slow: u32,
    /// A rule of the StatefulSet controller that is broken on purpose.
    pub deviation: Option<Deviation>,
    /// A rule of the Job controller that is broken on purpose.
    pub job_deviation: Option<JobDeviation>,
    /// A rule of the Deployment controller or the ReplicaSet controller that is broken on purpose.
    pub deployment_deviation: Option<DeploymentDeviation>,
    /// A look of the StatefulSet controller that has made or deleted a pod does not get its status written, and the next look counts anew. No
    /// rule is broken by that: a real controller whose cache is behind its own last status is refused, too.
    pub status_refused: bool,
    /// Whether EndpointSlices follow the pods; see the controller.
    pub endpoints: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nodes: 3,
            slow: 1,
            deviation: None,
            job_deviation: None,
            deployment_deviation: None,
            status_refused: false,
            endpoints: true,
        }
    }
}

/// What containers of an image do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ImageBehaviour {
    /// They start and serve.
    Works,
    /// The registry doesn't have it.
    CannotPull,
    /// Its name is none that a kubelet can read.
    BadName,
    /// The container needs a Secret that is not there.
    Misconfigured,
    /// The process ends soon after each start.
    Crashes,
    /// The process takes more memory than it may.
    OutOfMemory,
    /// The process runs and never serves.
    NeverReady,
    /// What it does is done, and what it says of it at its end is lost. Others start and serve.
    Mute,
}

/// What a Service answers to everything: somebody's webhook, or Prometheus.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServiceAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// The acting part of one embedded cluster.
#[derive(Clone)]
pub struct World {
    state: Arc<Mutex<State>>,
    /// Wakes the task when something was queued from outside of it.
    woken: Arc<Notify>,
}

impl World {
    /// A cluster with its nodes registered and nothing running yet.
    #[expect(clippy::needless_pass_by_value, reason = "the settings are the world's from here on")]
    pub fn new(api: Api, clock: Clock, journal: Journal, seed: u64, settings: Settings) -> Self {
        let mut state = State::new(api, clock, journal, seed, &settings);
        state.register_nodes(settings.nodes);
        Self { state: Arc::new(Mutex::new(state)), woken: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives the cluster for ever.
    pub async fn run(self) {
        let (api, clock) = {
            let state = self.state();
            (state.api.clone(), state.clock)
        };
        let mut revisions = api.subscribe();
        loop {
            // What changes from here on wakes the wait below.
            revisions.see();
            let (calls, next) = {
                let mut state = self.state();
                state.take_in();
                state.act();
                (state.take_calls(), state.queue.next_at())
            };
            if !calls.is_empty() {
                for call in calls {
                    let outcome = call.send(&api).await;
                    self.state().called(call, outcome);
                }
                continue;
            }
            let due = async {
                match next {
                    Some(at) => sleep_until(clock.instant(at)).await,
                    None => pending().await,
                }
            };
            select! {
                biased;
                changed = revisions.changed() => if changed.is_err() { return },
                () = self.woken.notified() => {}
                () = due => {}
            }
        }
    }

    /// Does something to the cluster from outside, with a note of it in the journal.
    fn disturb<T>(&self, note: Option<String>, act: impl FnOnce(&mut State) -> T) -> T {
        let result = {
            let mut state = self.state();
            if let Some(note) = note {
                state.note(Note::Disturbed(note));
            }
            act(&mut state)
        };
        self.woken.notify_one();
        result
    }

    pub(crate) fn with_app<T>(
        &self,
        key: &Key,
        note: Option<String>,
        act: impl FnOnce(&mut App, &mut Context) -> T,
    ) -> Option<T> {
        self.disturb(note, |state| state.with_app(key, act))
    }

    /// Ends a pod's main process; its kubelet starts it again.
    pub fn crash_process(&self, namespace: &str, pod: &str) {
        let key = Key::new(namespace, pod);
        self.disturb(Some(format!("process in {namespace}/{pod} crashed")), |state| state.crash(&key));
    }

    /// A pod's main process writes a line into its log.
    pub fn write_log(&self, namespace: &str, pod: &str, line: &str) {
        let key = Key::new(namespace, pod);
        let state = self.state();
        if let Some(main) = state.pods.get(&key).map(PodState::main) {
            state.write_log(&key, main, line);
        }
    }

    /// The kubelet evicts a pod because its node runs out of something; no budget is asked.
    pub fn evict_under_pressure(&self, namespace: &str, pod: &str) {
        let key = Key::new(namespace, pod);
        self.disturb(Some(format!("{namespace}/{pod} evicted under pressure")), |state| {
            state.fail_under_pressure(&key);
        });
    }

    /// Makes a pod's process stand still for a while.
    pub fn hang_process(&self, namespace: &str, pod: &str, for_: Duration) {
        let key = Key::new(namespace, pod);
        self.disturb(Some(format!("process in {namespace}/{pod} hangs for {for_:?}")), |state| state.hang(&key, for_));
    }

    /// What a Service answers to everything; without an answer it refuses.
    pub fn answer_at_service(&self, namespace: &str, name: &str, answer: Option<ServiceAnswer>) {
        self.disturb(None, |state| {
            let key = Key::new(namespace, name);
            match answer {
                Some(answer) => state.services.insert(key, answer),
                None => state.services.remove(&key),
            };
        });
    }

    /// Spoils what callers get from a pod's process, or mends it.
    pub fn break_answers(&self, namespace: &str, pod: &str, how: Option<BadAnswer>) {
        let key = Key::new(namespace, pod);
        self.disturb(Some(format!("answers of {namespace}/{pod}: {how:?}")), |state| {
            match how {
                Some(how) => state.bad_answers.insert(key, how),
                None => state.bad_answers.remove(&key),
            };
        });
    }

    /// The controllers of StatefulSets, Jobs, Deployments and ReplicaSets do nothing until the cluster has existed for this long.
    pub fn freeze_controllers(&self, until: Duration) {
        self.disturb(Some(format!("controllers frozen until {until:?}")), |state| {
            state.frozen_until = until;
        });
    }

    /// A node loses power.
    pub fn node_down(&self, node: &str) {
        self.disturb(Some(format!("node {node} down")), |state| state.node_down(node));
    }

    /// A node comes back, schedulable; its kubelet starts its pods again.
    pub fn node_up(&self, node: &str) {
        self.disturb(Some(format!("node {node} up")), |state| state.node_up(node));
    }

    /// What containers of this image do from their next start on.
    pub fn set_image(&self, image: &str, behaviour: ImageBehaviour) {
        self.disturb(Some(format!("image {image}: {behaviour:?}")), |state| {
            let before = state.images.insert(image.to_owned(), behaviour);
            if before == Some(ImageBehaviour::NeverReady) && behaviour != ImageBehaviour::NeverReady {
                state.restart_hung(image);
            }
        });
    }

    /// Whether one node can pull this image from now on; one that has it already goes on with it.
    pub fn set_pullable(&self, node: &str, image: &str, pullable: bool) {
        let key = (node.to_owned(), image.to_owned());
        self.disturb(Some(format!("image {image} on {node}: pullable {pullable}")), |state| {
            if pullable {
                state.unpullable.remove(&key)
            } else {
                state.unpullable.insert(key)
            };
        });
    }

    /// Cordons a node and evicts its pods as `kubectl drain` does.
    pub fn drain(&self, node: &str) {
        self.disturb(Some(format!("node {node} drained")), |state| state.drain(node));
    }

    /// Evicts a node's pods and lets others onto it, as a descheduler does.
    pub fn empty(&self, node: &str) {
        self.disturb(Some(format!("node {node} emptied without a cordon")), |state| state.empty(node, None));
    }

    /// Lets pods onto a node again.
    pub fn uncordon(&self, node: &str) {
        self.disturb(Some(format!("node {node} uncordoned")), |state| state.cordon(node, false));
    }

    /// A grip on the PD cluster of this StatefulSet.
    pub fn pd(&self, namespace: &str, statefulset: &str) -> PdHandle {
        PdHandle::new(self.clone(), Key::new(namespace, statefulset))
    }

    /// Makes a member of this StatefulSet's quorum lead at once, if it serves and the quorum stands.
    pub fn elect(&self, namespace: &str, statefulset: &str, pod: &str) {
        let note = Some(format!("leadership forced to {pod}"));
        self.with_app(&Key::new(namespace, statefulset), note, |app, context| app.elect(context, pod));
    }

    /// Members of this StatefulSet's quorum unseal themselves from now on when they start, or stay sealed until somebody unseals them.
    pub fn auto_unseal(&self, namespace: &str, statefulset: &str, works: bool) {
        let note = Some(format!("members of {namespace}/{statefulset} unseal themselves: {works}"));
        self.with_app(&Key::new(namespace, statefulset), note, |app, context| app.auto_unseal(context, works));
    }

    /// Somebody sends a member of this StatefulSet's quorum something, by POST. That it was refused is noted.
    pub fn tell(&self, namespace: &str, statefulset: &str, pod: &str, path: &str, body: &Value) {
        let refused =
            |why: String| self.disturb(None, |state| state.note(Note::Refused { what: path.to_owned(), why }));
        let Ok(request) = Request::post(path).body(Bytes::from(body.to_string())) else {
            return refused("it is no path".to_owned());
        };
        let what = Some(format!("{pod} is told {path}"));
        let told = self.with_app(&Key::new(namespace, statefulset), what, |app, context| {
            app.answer(context, pod, &request).map(|answer| answer.response)
        });
        match told.flatten() {
            Some(response) if response.status().is_success() => {}
            Some(response) => refused(String::from_utf8_lossy(response.body()).into_owned()),
            None => refused(format!("{pod} does not answer")),
        }
    }

    /// Somebody unseals a member of this StatefulSet's quorum.
    pub fn unseal(&self, namespace: &str, statefulset: &str, pod: &str) {
        let note = Some(format!("{pod} unsealed by hand"));
        self.with_app(&Key::new(namespace, statefulset), note, |app, context| app.unseal(context, pod));
    }

    /// A member of this StatefulSet's quorum hears nothing of the log from now on although it serves, or hears again.
    pub fn starve(&self, namespace: &str, statefulset: &str, pod: &str, starved: bool) {
        let note = Some(format!("{pod} hears nothing of the log: {starved}"));
        self.with_app(&Key::new(namespace, statefulset), note, |app, context| app.starve(context, pod, starved));
    }

    /// So many entries are written each second to the log of this StatefulSet's quorum from now on. Above twenty its followers trail.
    pub fn busy(&self, namespace: &str, statefulset: &str, per_second: u64) {
        let note = Some(format!("{namespace}/{statefulset} writes {per_second} entries a second"));
        self.with_app(&Key::new(namespace, statefulset), note, |app, context| app.busy(context, per_second));
    }

    /// Who leads this StatefulSet's quorum takes requests to hand over and goes on leading, or heeds them again.
    pub fn cling(&self, namespace: &str, statefulset: &str, clings: bool) {
        let note = Some(format!("whoever leads {namespace}/{statefulset} stays in the lead: {clings}"));
        self.with_app(&Key::new(namespace, statefulset), note, |app, _| app.cling(clings));
    }

    /// The present true state of all quorums.
    pub fn truths(&self) -> Vec<QuorumTruth> {
        self.state().apps.values().map(App::truth).collect()
    }
}
