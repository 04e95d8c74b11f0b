//! The controller: watches say which Dicom to look at; a look reads it and its Deployment, and writes both.

use std::{collections::BTreeSet, future::Future, pin::pin, time::Duration};

use anyhow::Result;
use futures::{Stream, StreamExt, stream};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    core::{NamespaceResourceScope, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};

use crate::{Dicom, status::status};

/// How many are looked at at once.
const CONCURRENCY: usize = 8;
/// After what failed.
const PAUSE: Duration = Duration::from_secs(1);

type Key = (String, String);

/// Looks after all Dicoms, or those of one namespace, for ever. `now` says what time it is.
pub async fn run(client: &Client, namespace: Option<&str>, now: impl Fn() -> Timestamp) {
    let mut wakes = pin!(wakes(client, namespace));
    let mut waiting: BTreeSet<Key> = BTreeSet::new();
    loop {
        if waiting.is_empty() {
            let Some(key) = wakes.next().await else { return };
            waiting.insert(key);
        }
        while let Some(Some(key)) = futures::FutureExt::now_or_never(wakes.next()) {
            waiting.insert(key);
        }
        let batch: Vec<Key> = std::mem::take(&mut waiting).into_iter().collect();
        let looks = stream::iter(batch).map(|key| {
            let now = now();
            async move { (look(client, &key, now).await, key) }
        });
        let failed: Vec<Key> = looks
            .buffer_unordered(CONCURRENCY)
            .filter_map(async |(result, key)| {
                result.inspect_err(|error| tracing::debug!(?key, %error, "will look again")).is_err().then_some(key)
            })
            .collect()
            .await;
        if !failed.is_empty() {
            tokio::time::sleep(PAUSE).await;
            waiting.extend(failed);
        }
    }
}

/// Which Dicom may have changed: itself, or its Deployment, which has the same name.
fn wakes(client: &Client, namespace: Option<&str>) -> impl Stream<Item = Key> + use<> {
    let dicoms: Api<PartialObjectMeta<Dicom>> = scoped(client, namespace);
    let deployments: Api<PartialObjectMeta<Deployment>> = scoped(client, namespace);
    let owned = watcher::Config::default().labels("app.kubernetes.io/managed-by=dicom");
    stream::select(keys(dicoms, watcher::Config::default()).boxed(), keys(deployments, owned).boxed())
}

fn scoped<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    namespace.map_or_else(|| Api::all(client.clone()), |namespace| Api::namespaced(client.clone(), namespace))
}

fn keys<K>(api: Api<PartialObjectMeta<K>>, config: watcher::Config) -> impl Stream<Item = Key>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    watcher::watcher(api, config).default_backoff().filter_map(async |event| match event {
        Ok(Event::Apply(object) | Event::Delete(object) | Event::InitApply(object)) => {
            Some((object.namespace().unwrap_or_default(), object.name_any()))
        }
        Ok(Event::Init | Event::InitDone) | Err(_) => None,
    })
}

/// Makes the Deployment what the Dicom says, and says in the Dicom how far the Deployment is.
async fn look(client: &Client, (namespace, name): &Key, now: Timestamp) -> Result<()> {
    let dicoms: Api<Dicom> = Api::namespaced(client.clone(), namespace);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    // What it owns goes with it.
    let Some(dicom) = dicoms.get_opt(name).await?.filter(|dicom| dicom.metadata.deletion_timestamp.is_none()) else {
        return Ok(());
    };
    let mut deployment = deployments.get_opt(name).await?;
    if let Some(wanted) = deployment_for(&dicom)
        && !is_as_wanted(deployment.as_ref(), &wanted)
    {
        let params = PatchParams::apply("dicom").force();
        deployment = Some(deployments.patch(name, &params, &Patch::Apply(&wanted)).await?);
    }
    let said = status(&dicom, deployment.as_ref(), now);
    if dicom.status.as_ref() != Some(&said) {
        let mut dicom = dicom;
        dicom.status = Some(said);
        // As it was read: a change meanwhile is a conflict, and it is looked at again.
        dicoms.replace_status(name, &PostParams::default(), &dicom).await?;
    }
    Ok(())
}

fn is_as_wanted(there: Option<&Deployment>, wanted: &Deployment) -> bool {
    let essence = |deployment: &Deployment| {
        let spec = deployment.spec.clone().unwrap_or_default();
        let containers = spec.template.spec.map(|spec| spec.containers).unwrap_or_default();
        (spec.replicas, containers.into_iter().map(|container| container.image).collect::<Vec<_>>())
    };
    there.is_some_and(|there| essence(there) == essence(wanted))
}

/// The Deployment of a Dicom; none while it has no image.
fn deployment_for(dicom: &Dicom) -> Option<Deployment> {
    let image = dicom.spec.image.clone()?;
    let labels = dicom.pod_labels();
    let container = Container { name: "dicom".to_owned(), image: Some(image), ..Container::default() };
    Some(Deployment {
        metadata: ObjectMeta {
            name: Some(dicom.name_any()),
            namespace: dicom.namespace(),
            labels: Some(labels.clone()),
            owner_references: dicom.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(dicom.spec.replicas),
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    })
}

/// Runs until `shutdown`.
pub async fn run_until(client: &Client, shutdown: impl Future<Output = ()>) {
    tokio::select! {
        () = run(client, None, Timestamp::now) => {}
        () = shutdown => {}
    }
}
