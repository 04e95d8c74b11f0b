//! A scenario on the embedded cluster: what happens, and the state at rest after each act.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::sleep;
use windlass_sim::api::Api;
use windlass_sim::clock::Clock;
use windlass_sim::journal::Journal;
use windlass_sim::objects;
use windlass_sim::rng::{Rng, hash};
use windlass_sim::world::{Settings, World};

use super::Broken;
use super::acts;
use super::replicas::is_replica;
use super::scenario::{Act, Image, Scenario, Stage as Reached, Step, Transition};
use super::snapshot::{KINDS, Kind, Objects, Snapshot, is_of_job, phase, stage_of, tag, terminating};

const NAMESPACE: &str = "scenario";
/// Virtual, and longer than anything takes that the controllers do by themselves: a Job waits ten seconds after a pod has failed.
const AT_REST: Duration = Duration::from_secs(15);
/// More writes than any act here leads to: whoever writes so often never comes to rest.
const RESTLESS: usize = 5_000;
/// More transitions than any set here can make on its way to rest.
const MOST: usize = 80;

/// One act, what the API server said to it, and what it led to.
#[derive(Clone, Debug)]
pub struct Point {
    /// What was done.
    pub act: Act,
    /// The status code.
    pub code: u16,
    /// The state at rest.
    pub snapshot: Snapshot,
}

/// Plays a scenario on a runtime of its own, in virtual time.
pub fn play(scenario: &Scenario, broken: Option<Broken>) -> Result<Vec<Point>> {
    play_in(scenario, broken, Mood::default())
}

/// What chance decides on any cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mood {
    /// Who is quicker than whom.
    pub seed: u64,
    /// The StatefulSet controller's cache is behind its own writes.
    pub status_refused: bool,
}

/// The same in a world of this mood.
pub fn play_in(scenario: &Scenario, broken: Option<Broken>, mood: Mood) -> Result<Vec<Point>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let mut stage = Stage::new(scenario, broken, mood)?;
        for step in &scenario.steps {
            stage.step(step).await?;
        }
        Ok(stage.points)
    })
}

struct Stage {
    api: Api,
    client: kube::Client,
    clock: Clock,
    journal: Journal,
    rng: Rng,
    objects: Objects,
    points: Vec<Point>,
}

impl Stage {
    fn new(scenario: &Scenario, broken: Option<Broken>, mood: Mood) -> Result<Self> {
        let (clock, journal) = (Clock::start(), Journal::default());
        let api = Api::new(clock, journal.clone());
        let seed = hash(scenario.name.bytes());
        // Without nodes of its own the world leaves pods on a foreign node alone: their kubelet is played here.
        let mut settings = Settings { nodes: 0, status_refused: mood.status_refused, ..Settings::default() };
        match broken {
            None => {}
            Some(Broken::Set(deviation)) => settings.deviation = Some(deviation),
            Some(Broken::Job(deviation)) => settings.job_deviation = Some(deviation),
            Some(Broken::Deployment(deviation)) => settings.deployment_deviation = Some(deviation),
        }
        let world = World::new(api.clone(), clock, journal.clone(), seed ^ mood.seed, settings);
        tokio::spawn(world.run());
        api.create_value("admin", objects::namespace(NAMESPACE)).ok().context("no namespace")?;
        let client = api.client("admin");
        Ok(Self { api, client, clock, journal, rng: Rng::new(seed), objects: Objects::default(), points: Vec::new() })
    }

    async fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Do(act) => self.act(act.clone()).await,
            Step::Some(count) => self.let_go(*count).await.map(|_| ()),
            Step::Settle => {
                let rested = self.let_go(MOST).await?;
                anyhow::ensure!(rested, "the set does not come to rest in {MOST} transitions");
                Ok(())
            }
        }
    }

    /// Lets pods make so many transitions; true when there were fewer to make.
    async fn let_go(&mut self, count: usize) -> Result<bool> {
        for _ in 0..count {
            let pods = self.objects.of(Kind::Pod);
            let mut next: Vec<Act> = pods.filter_map(|(name, pod)| by_itself(&self.objects, name, pod)).collect();
            // Names that are drawn must not decide who is next.
            next.sort_by_cached_key(ToString::to_string);
            let Some(act) = self.rng.pick(&next) else { return Ok(true) };
            self.act(act.clone()).await?;
        }
        Ok(false)
    }

    async fn act(&mut self, act: Act) -> Result<()> {
        let code = match &act {
            Act::Release(pod, transition) => self.release(pod, *transition),
            Act::ReleaseJobPod(stage, transition) => match self.objects.job_pod(*stage) {
                Some(pod) => self.release(&pod, *transition),
                None => 404,
            },
            Act::ReleaseReplica(pod, transition) => match self.objects.replica(pod) {
                Some(pod) => self.release(&pod, *transition),
                None => 404,
            },
            Act::Create(_)
            | Act::Patch(_)
            | Act::PatchJob(_)
            | Act::DeletePod(_)
            | Act::DeleteJobPod(_)
            | Act::DeleteRevision(_)
            | Act::DeleteSet(_)
            | Act::DeleteJob(_)
            | Act::PatchDeployment(_)
            | Act::ScaleDeployment(_)
            | Act::DeleteDeployment(_)
            | Act::DeleteReplicaSet(_)
            | Act::PatchReplica(..)
            | Act::DeleteReplica(_) => acts::perform(&self.client, NAMESPACE, &act, &self.objects).await?,
        };
        self.rest().await?;
        self.points.push(Point { act, code, snapshot: self.objects.snapshot() });
        Ok(())
    }

    /// Waits until nothing is written any more, and looks.
    async fn rest(&mut self) -> Result<()> {
        let before = self.journal.entries().len();
        loop {
            let written = self.journal.entries().len();
            anyhow::ensure!(written - before < RESTLESS, "the controllers write and write");
            sleep(AT_REST).await;
            if self.journal.entries().len() == written {
                break;
            }
        }
        for kind in KINDS {
            self.objects.clear(kind);
            let resource = kind.resource();
            let name = if resource.group.is_empty() {
                resource.plural.clone()
            } else {
                format!("{}.{}", resource.plural, resource.group)
            };
            for object in self.api.list_values(&name, NAMESPACE) {
                self.objects.put(kind, (*object).clone());
            }
        }
        Ok(())
    }

    /// Plays the kubelet.
    fn release(&self, pod: &str, transition: Transition) -> u16 {
        let status = match transition {
            Transition::Run | Transition::Crash => self.status("Running", "False"),
            Transition::Ready => self.status("Running", "True"),
            Transition::Fail => self.status("Failed", "False"),
            Transition::Succeed => self.status("Succeeded", "False"),
            Transition::Gone => {
                let options = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
                let done = self.api.delete::<Pod>("kubelet", NAMESPACE, pod, &options);
                return done.map_or_else(|status| status.code, |()| 200);
            }
        };
        let done = self.api.merge_status::<Pod>("kubelet", NAMESPACE, pod, &json!({"status": status}));
        done.map_or_else(|status| status.code, |_| 200)
    }

    fn status(&self, phase: &str, ready: &str) -> Value {
        let now = self.clock.now().as_second();
        let now = jiff::Timestamp::from_second(now).map_or_else(|_| String::new(), |now| now.to_string());
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": now});
        json!({
            "phase": phase,
            "conditions": [
                condition("Initialized", "True"),
                condition("Ready", ready),
                condition("ContainersReady", ready),
            ],
        })
    }
}

/// What a pod does next without anybody's doing.
fn by_itself(objects: &Objects, name: &str, pod: &Value) -> Option<Act> {
    if is_of_job(pod) {
        return task_by_itself(pod);
    }
    let transition = if terminating(pod) {
        Transition::Gone
    } else if phase(pod) == "Pending" {
        match Image::of(tag(pod)) {
            Image::Works => Transition::Ready,
            Image::Broken => Transition::Crash,
            Image::Absent => return None,
        }
    } else {
        return None;
    };
    Some(match objects.alike(pod).filter(|_| is_replica(pod)) {
        Some(alike) => Act::ReleaseReplica(alike, transition),
        None => Act::Release(name.to_owned(), transition),
    })
}

/// The same for a pod of a Job, which ends.
fn task_by_itself(pod: &Value) -> Option<Act> {
    let stage = stage_of(pod)?;
    let transition = match (stage, Image::of(tag(pod))) {
        (Reached::Leaving, _) => Transition::Gone,
        (Reached::Pending, Image::Works) => Transition::Ready,
        (Reached::Running, Image::Works) => Transition::Succeed,
        (Reached::Pending | Reached::Running, Image::Broken) => Transition::Fail,
        (Reached::Pending | Reached::Running, Image::Absent) => return None,
    };
    Some(Act::ReleaseJobPod(stage, transition))
}
