//! What people do, the same on both sides: both are spoken to by a client of the Kubernetes API.

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::scenario::{Act, DEPLOYMENT, JOB, Propagation, SET};
use super::snapshot::{Kind, Objects};

/// A client's view of the objects of a kind in a namespace.
pub fn api(client: &Client, namespace: &str, kind: Kind) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &kind.resource())
}

/// Does it; answers with the status code that the API server gave. What could not be asked is an error.
///
/// Releases are no business of people: each side has its own kubelet for them.
pub async fn perform(client: &Client, namespace: &str, act: &Act, objects: &Objects) -> anyhow::Result<u16> {
    let outcome = match act {
        Act::Create(object) => create(client, namespace, object).await,
        Act::Patch(patch) => {
            let sets = api(client, namespace, Kind::Set);
            sets.patch(SET, &PatchParams::default(), &Patch::Merge(patch)).await.map(|_| ())
        }
        Act::DeletePod(name) => remove(client, namespace, Kind::Pod, name, &DeleteParams::default()).await,
        Act::DeleteRevision(symbol) => {
            let Some(name) = objects.revision(symbol) else { return Ok(404) };
            remove(client, namespace, Kind::Revision, name, &DeleteParams::default()).await
        }
        Act::DeleteSet(how) => remove(client, namespace, Kind::Set, SET, &propagating(*how)).await,
        Act::PatchJob(patch) => {
            let jobs = api(client, namespace, Kind::Job);
            jobs.patch(JOB, &PatchParams::default(), &Patch::Merge(patch)).await.map(|_| ())
        }
        Act::DeleteJob(how) => remove(client, namespace, Kind::Job, JOB, &propagating(*how)).await,
        Act::DeleteJobPod(stage) => {
            let Some(name) = objects.job_pod(*stage) else { return Ok(404) };
            remove(client, namespace, Kind::Pod, &name, &DeleteParams::default()).await
        }
        Act::PatchDeployment(patch) => {
            let deployments = api(client, namespace, Kind::Deployment);
            deployments.patch(DEPLOYMENT, &PatchParams::default(), &Patch::Merge(patch)).await.map(|_| ())
        }
        Act::ScaleDeployment(replicas) => {
            let deployments = api(client, namespace, Kind::Deployment);
            let patch = json!({"spec": {"replicas": replicas}});
            deployments.patch_scale(DEPLOYMENT, &PatchParams::default(), &Patch::Merge(patch)).await.map(|_| ())
        }
        Act::DeleteDeployment(how) => remove(client, namespace, Kind::Deployment, DEPLOYMENT, &propagating(*how)).await,
        Act::DeleteReplicaSet(template) => {
            let Some(name) = objects.replica_set(template) else { return Ok(404) };
            remove(client, namespace, Kind::ReplicaSet, name, &DeleteParams::default()).await
        }
        Act::PatchReplica(pod, patch) => {
            let Some(name) = objects.replica(pod) else { return Ok(404) };
            let pods = api(client, namespace, Kind::Pod);
            pods.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(|_| ())
        }
        Act::DeleteReplica(pod) => {
            let Some(name) = objects.replica(pod) else { return Ok(404) };
            remove(client, namespace, Kind::Pod, &name, &DeleteParams::default()).await
        }
        Act::Release(..) | Act::ReleaseJobPod(..) | Act::ReleaseReplica(..) => Ok(()),
    };
    match outcome {
        Ok(()) => Ok(200),
        Err(Error::Api(status)) => Ok(status.code),
        Err(error) => Err(error.into()),
    }
}

fn propagating(how: Propagation) -> DeleteParams {
    let policy = match how {
        Propagation::Background => PropagationPolicy::Background,
        Propagation::Foreground => PropagationPolicy::Foreground,
        Propagation::Orphan => PropagationPolicy::Orphan,
    };
    DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() }
}

async fn create(client: &Client, namespace: &str, object: &Value) -> Result<(), Error> {
    let kind = match object["kind"].as_str() {
        Some("PodDisruptionBudget") => Kind::Budget,
        Some("Job") => Kind::Job,
        Some("Deployment") => Kind::Deployment,
        Some("ReplicaSet") => Kind::ReplicaSet,
        _ => Kind::Set,
    };
    let object: DynamicObject = serde_json::from_value(object.clone()).map_err(Error::SerdeError)?;
    api(client, namespace, kind).create(&PostParams::default(), &object).await.map(|_| ())
}

/// Deletes an object.
pub async fn remove(
    client: &Client,
    namespace: &str,
    kind: Kind,
    name: &str,
    options: &DeleteParams,
) -> Result<(), Error> {
    api(client, namespace, kind).delete(name, options).await.map(|_| ())
}
