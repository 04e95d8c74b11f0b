//! The pulse of the real cluster: whether its controllers and KWOK keep up, told by themselves.
//!
//! No time that passes says that a controller has looked: on a busy machine it may not have run at all. So a set and a Deployment of
//! our own have their pods made ready and unready for as long as scenarios run. A beat is over when the watches that also tell of the scenarios show
//! what the controllers made of it: KWOK has read its annotation, and the controllers have worked off what was queued before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::acts;
use super::scenario::{Act, RELEASE, Transition, deployment, set};
use super::snapshot::Kind;
use super::watched::Watched;

/// How often a beat is looked for.
const LOOK: Duration = Duration::from_millis(15);
/// Between two beats: they must not be what keeps the cluster busy.
const REST: Duration = Duration::from_millis(100);
/// A cluster that does not come to one beat in this time is no judge of anything.
const STANDSTILL: Duration = Duration::from_mins(5);

/// What was felt so far.
#[derive(Clone, Default)]
pub struct Pulse(Arc<Mutex<Felt>>);

#[derive(Default)]
struct Felt {
    /// When each beat that is over began.
    beats: Vec<Instant>,
    /// Why there will be none any more.
    stopped: Option<String>,
}

impl Pulse {
    /// Makes what beats, and lets it beat for as long as the runtime lives.
    pub async fn start(client: &Client, watched: &Watched, namespaces: [String; 2]) -> Result<Self> {
        let [of_set, of_deployment] = namespaces;
        let one = |mut object: Value| {
            object["spec"]["replicas"] = json!(1);
            object
        };
        for (namespace, object) in [(&of_set, one(set())), (&of_deployment, one(deployment()))] {
            let budget = json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "pulse"},
                "spec": {"maxUnavailable": 0, "selector": object["spec"]["selector"]},
            });
            for object in [object, budget] {
                let code = acts::perform(client, namespace, &Act::Create(object), &watched.objects(namespace)).await?;
                ensure!(code == 200, "what the pulse is felt by can't be made in {namespace}: {code}");
            }
        }
        let pulse = Self::default();
        let (felt, client, watched) = (pulse.clone(), client.clone(), watched.clone());
        tokio::spawn(async move {
            let namespaces = [of_set, of_deployment];
            let mut transition = Transition::Ready;
            loop {
                let begun = Instant::now();
                if let Err(error) = beat(&client, &watched, &namespaces, transition).await {
                    felt.lock().stopped = Some(format!("{error:#}"));
                    return;
                }
                felt.lock().beats.push(begun);
                transition = if transition == Transition::Ready { Transition::Run } else { Transition::Ready };
                sleep(REST).await;
            }
        });
        Ok(pulse)
    }

    /// How many beats have begun since then and are over. An error when there will be no more of them.
    pub fn since(&self, moment: Instant) -> Result<usize> {
        let felt = self.lock();
        if let Some(why) = &felt.stopped {
            bail!("the real cluster stands still: {why}");
        }
        Ok(felt.beats.iter().rev().take_while(|begun| **begun > moment).count())
    }

    fn lock(&self) -> MutexGuard<'_, Felt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets both pods go on, and waits until both owners and both budgets have counted them.
async fn beat(client: &Client, watched: &Watched, namespaces: &[String], transition: Transition) -> Result<()> {
    let until = Instant::now() + STANDSTILL;
    let ready = i64::from(transition == Transition::Ready);
    for namespace in namespaces {
        let pods: Api<DynamicObject> = acts::api(client, namespace, Kind::Pod);
        let patch = Patch::Merge(json!({"metadata": {"annotations": {RELEASE: transition.word()}}}));
        loop {
            let objects = watched.objects(namespace);
            let pod = objects.of(Kind::Pod).next().map(|(name, _)| name.to_owned());
            if let Some(pod) = pod
                && pods.patch(&pod, &PatchParams::default(), &patch).await.is_ok()
            {
                break;
            }
            ensure!(Instant::now() < until, "no pod of {namespace} could be let go on");
            sleep(LOOK).await;
        }
    }
    let counted = |namespace: &String| {
        let objects = watched.objects(namespace);
        let counts = |kind, field: &str| {
            let mut found = objects.of(kind).map(|(_, object)| object["status"][field].as_i64().unwrap_or(0));
            found.next().is_none_or(|count| count == ready)
        };
        counts(Kind::Set, "readyReplicas")
            && counts(Kind::Deployment, "readyReplicas")
            && counts(Kind::Budget, "currentHealthy")
    };
    while !namespaces.iter().all(counted) {
        ensure!(Instant::now() < until, "nobody counted a pod that was made {}", transition.word());
        sleep(LOOK).await;
    }
    Ok(())
}
