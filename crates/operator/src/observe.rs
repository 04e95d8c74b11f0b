//! Reads: everything that one decision needs, live, in one go. Nothing is decided here, nothing is written.

use std::net::IpAddr;

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Pod, Secret},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{GetParams, ListParams},
    core::Selector,
};
use tokio::time::Instant;
use windlass_api::{QuorumCluster, quorum_cluster::SystemType};
use windlass_plan::{
    Quorum,
    bug::{self, Bug},
};
use windlass_systems::{pd, transport::Peer};

use crate::{Context, dial::TlsMaterial, error::Error, facts, queue::Key};

/// What was read, as it was read.
pub struct Observed {
    /// When the reading began: the age of the evidence counts from here.
    pub since: Instant,
    /// The StatefulSet; none if there is none of that name.
    pub set: Option<StatefulSet>,
    /// Its pods, by ownership.
    pub pods: Vec<Pod>,
    /// The PodDisruptionBudgets of the namespace.
    pub budgets: Vec<PodDisruptionBudget>,
    /// The other QuorumClusters of the namespace.
    pub siblings: Vec<QuorumCluster>,
    /// What the system says of itself.
    pub quorum: Quorum,
    /// How each pod is reached.
    pub peers: Vec<Peer>,
    /// The TLS material, where the resource names some.
    pub tls: Option<TlsMaterial>,
}

/// The custom resource itself; none if it is gone.
pub async fn resource(context: &Context, key: &Key) -> Result<Option<QuorumCluster>, Error> {
    let api: Api<QuorumCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let what = format!("quorumclusters/{key}");
    get(context, &what, &api, &key.name).await
}

/// Everything else.
pub async fn observe(context: &Context, resource: &QuorumCluster) -> Result<Observed, Error> {
    let since = Instant::now();
    let namespace = resource.namespace().unwrap_or_default();
    let sets: Api<StatefulSet> = Api::namespaced(context.client.clone(), &namespace);
    let name = &resource.spec.workload.stateful_set;

    let siblings: Api<QuorumCluster> = Api::namespaced(context.client.clone(), &namespace);
    let siblings = list(context, &format!("quorumclusters in {namespace}"), &siblings, "").await?;
    let Some(set) = get(context, &format!("statefulsets/{namespace}/{name}"), &sets, name).await? else {
        let quorum = Quorum::unknown("there is no StatefulSet");
        return Ok(Observed {
            since,
            set: None,
            pods: vec![],
            budgets: vec![],
            siblings,
            quorum,
            peers: vec![],
            tls: None,
        });
    };

    let budgets: Api<PodDisruptionBudget> = Api::namespaced(context.client.clone(), &namespace);
    let budgets = list(context, &format!("poddisruptionbudgets in {namespace}"), &budgets, "").await?;

    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let pods = list(context, &format!("pods of {name}"), &pods, &selector(&set)).await?;
    let uid = set.uid();
    let owned = |pod: &Pod| {
        pod.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref() && owner.controller == Some(true))
    };
    let mut pods: Vec<Pod> = pods.into_iter().filter(owned).collect();
    pods.sort_by_key(ResourceExt::name_any);

    let peers = peers(resource, &set, &pods);
    // Secrets that can't be read make the members unknown, and nothing else: a permit that stands is minded all the same.
    let tls = tls(context, resource, &namespace).await.unwrap_or_else(|error| Err(error.story()));
    let (quorum, tls) = match tls {
        Ok(tls) => (ask(context, resource, tls.as_ref(), &peers).await, tls),
        Err(why) => (Quorum::unknown(&why), None),
    };
    Ok(Observed { since, set: Some(set), pods, budgets, siblings, quorum, peers, tls })
}

/// The selector of the set's pods, as the API takes it.
fn selector(set: &StatefulSet) -> String {
    let selector = set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
    Selector::try_from(selector).map(|selector| selector.to_string()).unwrap_or_default()
}

/// How each pod with an address is reached.
fn peers(resource: &QuorumCluster, set: &StatefulSet, pods: &[Pod]) -> Vec<Peer> {
    let service = set.spec.as_ref().and_then(|spec| spec.service_name.clone()).unwrap_or_default();
    let namespace = resource.namespace().unwrap_or_default();
    let port = u16::try_from(resource.spec.system.port).unwrap_or_default();
    let peer = |pod: &Pod| {
        let address: IpAddr = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        let name = pod.name_any();
        let server_name = format!("{name}.{service}.{namespace}.svc");
        Some(Peer { pod: name, address, port, server_name, tls: resource.spec.system.tls.is_some() })
    };
    pods.iter().filter_map(peer).collect()
}

async fn ask(context: &Context, resource: &QuorumCluster, tls: Option<&TlsMaterial>, peers: &[Peer]) -> Quorum {
    let transport = match context.dial.transport(tls) {
        Ok(transport) => transport,
        Err(why) => return Quorum::unknown(&format!("the TLS material can't be used: {why}")),
    };
    match resource.spec.system.type_ {
        SystemType::Pd => facts::pd(&pd::observe(transport.as_ref(), peers, &pd::Timeouts::default()).await),
    }
}

/// The TLS material from the Secrets that the resource names, all in its own namespace (H41); or, for a person, what is missing.
async fn tls(
    context: &Context,
    resource: &QuorumCluster,
    namespace: &str,
) -> Result<Result<Option<TlsMaterial>, String>, Error> {
    let Some(tls) = &resource.spec.system.tls else { return Ok(Ok(None)) };
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let read = async |field: &str, name: &str, key: &str| {
        let secret = get(context, &format!("secrets/{namespace}/{name}"), &secrets, name).await?;
        let found = secret.and_then(|secret| secret.data).and_then(|mut data| data.remove(key));
        let missing = || format!("spec.system.tls.{field}: there is no Secret {name} with {key} in it");
        Ok::<_, Error>(found.map(|bytes| bytes.0).ok_or_else(missing))
    };
    let roots = read("caSecret", &tls.ca_secret, "ca.crt").await?;
    let identity = match &tls.client_secret {
        None => Ok(None),
        Some(name) => {
            let certificate = read("clientSecret", name, "tls.crt").await?;
            let key = read("clientSecret", name, "tls.key").await?;
            certificate.and_then(|certificate| key.map(|key| Some((certificate, key))))
        }
    };
    Ok(roots.and_then(|roots| identity.map(|identity| Some(TlsMaterial { roots, identity }))))
}

async fn get<K>(context: &Context, what: &str, api: &Api<K>, name: &str) -> Result<Option<K>, Error>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    // No resourceVersion: the newest state that a majority of etcd has.
    let params = if bug::active(Bug::StaleReads) { GetParams::any() } else { GetParams::default() };
    match context.bounded(context.settings.read_deadline, "get", what, api.get_with(name, &params)).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn list<K>(context: &Context, what: &str, api: &Api<K>, labels: &str) -> Result<Vec<K>, Error>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let params = ListParams::default().labels(labels);
    let params = if bug::active(Bug::StaleReads) { params.match_any() } else { params };
    Ok(context.bounded(context.settings.read_deadline, "list", what, api.list(&params)).await?.items)
}
