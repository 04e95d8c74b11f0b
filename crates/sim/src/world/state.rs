//! All that the acting part of the cluster knows, and the one place where events are given to whom they concern.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::time::Duration;

use super::calls::Call;
use super::garbage::Graph;
use super::job::Failures;
use super::kubelet::PodState;
use super::nodes::Node;
use super::placement::Placement;
use super::queue::{Event, Key, Queue};
use super::{DeploymentDeviation, Deviation, ImageBehaviour, JobDeviation, ServiceAnswer, Settings};
use crate::api::Api;
use crate::apps::{App, BadAnswer, Context, Labels};
use crate::clock::Clock;
use crate::journal::{Event as Entry, Journal, Note, QuorumTruth};
use crate::rng::Rng;

/// One generator per part, so that a draw in one does not shift the others.
pub(super) struct Draws {
    pub controllers: Rng,
    pub kubelets: Rng,
    pub network: Rng,
    pub apps: Rng,
    pub endpoints: Rng,
    pub registration: Rng,
}

pub(crate) struct State {
    pub api: Api,
    pub clock: Clock,
    pub journal: Journal,
    pub queue: Queue,
    pub(super) draws: Draws,
    pub(super) slow: u32,
    pub(super) deviation: Option<Deviation>,
    pub(super) job_deviation: Option<JobDeviation>,
    pub(super) deployment_deviation: Option<DeploymentDeviation>,
    /// Whether looks that change pods get no status written.
    pub(super) status_refused: bool,
    /// Whether EndpointSlices follow the pods.
    pub(super) endpoints: bool,
    /// How much of the journal has been taken in.
    pub(super) read: usize,
    pub(super) graph: Graph,
    pub(super) placement: Placement,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) pods: BTreeMap<Key, PodState>,
    /// Addresses are given out once, so this only grows.
    pub(super) addresses: BTreeMap<String, Key>,
    pub images: BTreeMap<String, ImageBehaviour>,
    /// Nodes that can't pull an image, and the image.
    pub unpullable: BTreeSet<(String, String)>,
    pub bad_answers: BTreeMap<Key, BadAnswer>,
    /// What Services answer that have no pods of ours behind them.
    pub services: BTreeMap<Key, ServiceAnswer>,
    pub apps: BTreeMap<Key, App>,
    truths: BTreeMap<Key, QuorumTruth>,
    /// What each pod's process last wrote on its pod, of which only the uid tells it from the next of its name.
    pub(super) registered: BTreeMap<Key, (String, Labels)>,
    /// Failed looks in a row per set: the controller waits longer each time.
    pub(super) failures: BTreeMap<Key, u32>,
    /// Failures of each Job's pods since one of them last succeeded: the controller waits longer each time.
    pub(super) job_failures: BTreeMap<Key, Failures>,
    pub frozen_until: Duration,
    pub(super) calls: Vec<Call>,
}

impl State {
    pub fn new(api: Api, clock: Clock, journal: Journal, seed: u64, settings: &Settings) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            api,
            clock,
            journal,
            queue: Queue::default(),
            draws: Draws {
                controllers: rng.fork("controllers"),
                kubelets: rng.fork("kubelets"),
                network: rng.fork("network"),
                apps: rng.fork("apps"),
                endpoints: rng.fork("endpoints"),
                registration: rng.fork("registration"),
            },
            slow: settings.slow.max(1),
            deviation: settings.deviation,
            job_deviation: settings.job_deviation,
            deployment_deviation: settings.deployment_deviation,
            status_refused: settings.status_refused,
            endpoints: settings.endpoints,
            read: 0,
            graph: Graph::default(),
            placement: Placement::default(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            addresses: BTreeMap::new(),
            images: BTreeMap::new(),
            unpullable: BTreeSet::new(),
            bad_answers: BTreeMap::new(),
            services: BTreeMap::new(),
            apps: BTreeMap::new(),
            truths: BTreeMap::new(),
            registered: BTreeMap::new(),
            failures: BTreeMap::new(),
            job_failures: BTreeMap::new(),
            frozen_until: Duration::ZERO,
            calls: Vec::new(),
        }
    }

    /// Cluster time.
    pub fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    pub fn note(&self, note: Note) {
        self.journal.push(self.clock.now(), Entry::Note(note));
    }

    /// The requests that the last events want to be made outside of the lock.
    pub fn take_calls(&mut self) -> Vec<Call> {
        take(&mut self.calls)
    }

    /// Queues a look at something, after the seeded moment that a watch and a work queue take.
    pub(super) fn look(&mut self, event: Event) {
        let wait = self.draws.controllers.between(Duration::from_millis(5), Duration::from_millis(200));
        self.queue.push(self.now() + wait, event);
    }

    /// How long a kubelet or a process takes for something.
    pub(super) fn takes(&mut self, low: u64, high: u64) -> Duration {
        self.draws.kubelets.between(Duration::from_millis(low), Duration::from_millis(high)) * self.slow
    }

    /// Handles all events that are due.
    pub fn act(&mut self) {
        let now = self.now();
        while let Some(event) = self.queue.pop(now) {
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Set(key) => self.sync_set(&key),
            Event::Job(key) => self.sync_job(&key),
            Event::ReplicaSet(key) => self.sync_replica_set(&key),
            Event::Deployment(key) => self.sync_deployment(&key),
            Event::Schedule(key) => self.schedule(&key),
            Event::Kubelet(key) => self.sync_pod(&key),
            Event::Budget(key) => self.sync_budget(&key),
            Event::Endpoints(key) => self.sync_endpoints(&key),
            Event::Namespace(name) => self.sync_namespace(&name),
            Event::Registration(key) => self.register(&key),
            Event::Dependent(uid) => self.check_dependent(&uid),
            Event::Owner(uid) => self.check_owner(&uid),
            Event::Container { pod, uid, container, epoch, step } => {
                self.step_container(&pod, &uid, container, epoch, step);
            }
            Event::Stopped { pod, uid } => self.pod_stopped(&pod, &uid),
            Event::Gone { pod, uid } => self.pod_gone(&pod, &uid),
            Event::Resume { pod, uid, epoch } => self.resume(&pod, &uid, epoch),
            Event::NodeLost { node, epoch } => self.node_lost(&node, epoch),
            Event::NodeEvicts { node, epoch } => self.node_evicts(&node, epoch),
            Event::NodeBack { node, epoch } => self.node_back(&node, epoch),
            Event::App(key, event) => {
                self.with_app(&key, |app, context| app.ring(context, &event));
            }
            Event::Evict { while_cordoned, pod, uid, until } => self.evict(while_cordoned, pod, uid, until),
        }
    }

    /// Lets an application do something, sets its timers and records its true state where that changed.
    pub(super) fn with_app<T>(&mut self, key: &Key, act: impl FnOnce(&mut App, &mut Context) -> T) -> Option<T> {
        let mut context = Context { epoch: self.clock.epoch(), now: self.now(), later: Vec::new() };
        let app = self.apps.get_mut(key)?;
        let result = act(app, &mut context);
        let (truth, labels) = (app.truth(), app.labels());
        for (at, event) in context.later {
            self.queue.push(at, Event::App(key.clone(), event));
        }
        if self.truths.get(key) != Some(&truth) {
            self.truths.insert(key.clone(), truth.clone());
            self.journal.push(self.clock.now(), Entry::Quorum(truth));
        }
        self.register_later(key, &labels);
        Some(result)
    }
}
