//! A scenario on the real cluster: the acts that the embedded one went through, and at each point the same state, or a
//! difference.
//!
//! When is the real cluster at rest? Its controllers react to events, so after an act there is a chain of writes that ends when
//! a look finds nothing to do. The embedded cluster has told what the end should look like. A point is passed when the real
//! state equals it and nothing was written for a while after; what comes even later is found at the next point, and the last
//! point waits longer. A point is failed only when the state differs although nothing was written for a much longer
//! while. A while is nothing that a clock can tell on a busy machine: it also takes beats of the [`Pulse`], which say that the
//! controllers have looked meanwhile. So a slow machine makes no difference.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::acts;
use super::embedded::Point;
use super::pulse::Pulse;
use super::scenario::{Act, NODE, Propagation, RELEASE, Scenario, Transition};
use super::snapshot::{Kind, Snapshot};
use super::watched::Watched;
use super::{Difference, Patience};

/// How often the watched state is looked at; it costs nothing when nothing has changed.
const LOOK: Duration = Duration::from_millis(15);
/// How long a server is left alone that has too much to do.
const BUSY: Duration = Duration::from_millis(500);
/// Times of creation are whole seconds. Of two ReplicaSets of one second the real controller takes the one with the lower name for the
/// older, and names hold hashes: so the second one is made a second later.
const ONE_SECOND: Duration = Duration::from_millis(1_050);

/// The real cluster.
#[derive(Clone)]
pub struct Real {
    client: Client,
    watched: Watched,
    pulse: Pulse,
    patience: Patience,
    run: String,
}

impl Real {
    /// Connects, makes sure of the node that the pods go to, and begins to watch.
    pub async fn connect(client: Client, patience: Patience) -> Result<Self> {
        let nodes: Api<DynamicObject> = Api::all_with(client.clone(), &cluster_resource("Node", "nodes"));
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": NODE,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"kubernetes.io/hostname": NODE},
            },
            // Nobody but the pods of the scenarios, which name it, is to come here.
            "spec": {"unschedulable": true},
        });
        create_if_absent(&nodes, node).await.context("no node")?;
        let ready = || async {
            let node = nodes.get_opt(NODE).await.ok().flatten();
            let conditions = node.and_then(|node| node.data["status"]["conditions"].as_array().cloned());
            conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
        };
        let deadline = Instant::now() + Duration::from_mins(1);
        while !ready().await {
            anyhow::ensure!(
                Instant::now() < deadline,
                "node {NODE} is not ready: does KWOK run with e2e/kwok/stages.yaml?"
            );
            sleep(Duration::from_millis(200)).await;
        }
        let watched = Watched::start(&client);
        // Namespaces of an earlier run on this cluster may still be there.
        let run = format!("{:x}", jiff::Timestamp::now().as_millisecond() & 0xff_ffff);
        let beating = ["set", "deployment"].map(|owner| format!("pulse-{run}-{owner}"));
        for namespace in &beating {
            make_namespace(&client, namespace).await?;
        }
        let pulse = Pulse::start(&client, &watched, beating).await?;
        Ok(Self { client, watched, pulse, patience, run })
    }

    /// Plays what the embedded cluster went through; the first difference ends it.
    pub async fn play(
        &self,
        number: usize,
        scenario: &Scenario,
        points: &[Point],
    ) -> Result<(usize, Option<Difference>)> {
        let namespace = format!("sets-{}-{number}", self.run);
        make_namespace(&self.client, &namespace).await?;
        let mut passed = 0;
        let mut difference = None;
        for (index, point) in points.iter().enumerate() {
            let (facts, since) = self.point(&namespace, point, index + 1 == points.len()).await?;
            if !facts.is_empty() {
                difference = Some(Difference {
                    scenario: scenario.name.clone(),
                    step: index,
                    acts: points.iter().take(index + 1).map(|point| point.act.to_string()).collect(),
                    facts,
                    waited: since,
                });
                break;
            }
            passed += 1;
        }
        self.clean(&namespace).await;
        let _ = namespaces(&self.client).delete(&namespace, &DeleteParams::background()).await;
        self.watched.forget(&namespace);
        Ok((passed, difference))
    }

    /// Does the act and waits for the state that should follow; answers with what differs in the end.
    async fn point(&self, namespace: &str, point: &Point, last: bool) -> Result<(Vec<String>, Duration)> {
        if matches!(&point.act, Act::PatchDeployment(patch) if patch["spec"].get("template").is_some()) {
            sleep(ONE_SECOND).await;
        }
        let began = Instant::now();
        let mut code = self.perform(namespace, &point.act).await?;
        // A server that has too much to do is asked again. What it answers then says nothing: it may have done it the first time.
        let mut repeated = false;
        while code != point.code && matches!(code, 429 | 500..) && began.elapsed() < self.patience.longest {
            sleep(BUSY).await;
            code = self.perform(namespace, &point.act).await?;
            repeated = true;
        }
        if code != point.code && !repeated {
            let facts = vec![format!("answer\n    embedded: {}\n    real: {code}", point.code)];
            return Ok((facts, began.elapsed()));
        }
        let quiet = if last { self.patience.last_quiet } else { self.patience.quiet };
        let mut seen: Option<(u64, Snapshot)> = None;
        loop {
            let (count, last_change) = self.watched.changes(namespace);
            if seen.as_ref().is_none_or(|(known, _)| *known != count) {
                seen = Some((count, self.watched.snapshot(namespace)));
            }
            let since = last_change.map_or(began, |at| at.max(began));
            let (calm, beats) = (since.elapsed(), self.pulse.since(since)?);
            let equal = seen.as_ref().is_some_and(|(_, snapshot)| *snapshot == point.snapshot);
            if equal && calm >= quiet && beats >= self.patience.quiet_beats {
                return Ok((Vec::new(), began.elapsed()));
            }
            let over = calm >= self.patience.give_up && beats >= self.patience.give_up_beats;
            if !equal && over {
                let real = seen.map(|(_, snapshot)| snapshot).unwrap_or_default();
                return Ok((point.snapshot.differences("embedded", &real, "real    "), began.elapsed()));
            }
            // Whether it would still have become equal is not known: that is no difference, and no agreement either.
            anyhow::ensure!(
                equal || began.elapsed() < self.patience.longest,
                "this machine is too slow to tell: after {} s the controllers had not come to rest",
                self.patience.longest.as_secs()
            );
            sleep(LOOK).await;
        }
    }

    /// Does the act; the code with which the API server answered.
    async fn perform(&self, namespace: &str, act: &Act) -> Result<u16> {
        Ok(match act {
            Act::Release(pod, transition) => self.release(namespace, pod, *transition).await?,
            Act::ReleaseJobPod(stage, transition) => match self.watched.objects(namespace).job_pod(*stage) {
                Some(pod) => self.release(namespace, &pod, *transition).await?,
                None => 404,
            },
            Act::ReleaseReplica(pod, transition) => match self.watched.objects(namespace).replica(pod) {
                Some(pod) => self.release(namespace, &pod, *transition).await?,
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
            | Act::DeleteReplica(_) => {
                acts::perform(&self.client, namespace, act, &self.watched.objects(namespace)).await?
            }
        })
    }

    /// Tells KWOK to let the pod go on.
    async fn release(&self, namespace: &str, pod: &str, transition: Transition) -> Result<u16> {
        let patch = json!({"metadata": {"annotations": {RELEASE: transition.word()}}});
        let pods = acts::api(&self.client, namespace, Kind::Pod);
        match pods.patch(pod, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(200),
            Err(kube::Error::Api(status)) => Ok(status.code),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the scenario's objects away without waiting for their kubelet; failures cost nothing but room.
    async fn clean(&self, namespace: &str) {
        let how = Propagation::Background;
        for act in [Act::DeleteSet(how), Act::DeleteJob(how), Act::DeleteDeployment(how)] {
            let _ = acts::perform(&self.client, namespace, &act, &self.watched.objects(namespace)).await;
        }
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let pods = acts::api(&self.client, namespace, Kind::Pod);
        let _ = pods.delete_collection(&at_once, &ListParams::default()).await;
    }
}

fn namespaces(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &cluster_resource("Namespace", "namespaces"))
}

async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    create_if_absent(&namespaces(client), object).await.context("no namespace")
}

fn cluster_resource(kind: &str, plural: &str) -> kube::api::ApiResource {
    kube::api::ApiResource::from_gvk_with_plural(&kube::core::GroupVersionKind::gvk("", "v1", kind), plural)
}

async fn create_if_absent(api: &Api<DynamicObject>, object: serde_json::Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object)?;
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
