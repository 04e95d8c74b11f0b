//! Reads: everything that one decision needs, live, in one go. Nothing is decided here, nothing is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Node, Pod, Secret},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{GetParams, ListParams, Request},
    core::{Selector, request::Error as BadRequest},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use windlass_api::{QuorumCluster, reading};
use windlass_plan::{
    Fact, Hold, Reason,
    bug::{self, Bug},
    rolling::known::pulls::Pulls,
    trouble::Log,
};
use windlass_systems::{
    etcd, http,
    secret::{Password, Secret as Token},
    transport::{Peer, Transport},
};

use crate::{
    Context,
    asked::{self, Answers},
    auth::NoToken,
    author::{Policy, unasked},
    dial::TlsMaterial,
    emptying,
    error::{Class, Error},
    executor::{self, Task},
    lenient::{Whole, typed},
    logs, prepull,
    queue::Key,
    system::{self, Heard, Line, Place, Seen},
};

/// What was read, as it was read.
pub struct Observed {
    /// When the reading began: the age of the evidence counts from here.
    pub since: Instant,
    /// The StatefulSet; none if there is none of that name.
    pub set: Option<StatefulSet>,
    /// Its update strategy as it was read, whatever its fields.
    pub strategy: Option<Value>,
    /// Its pods, by ownership.
    pub pods: Vec<Pod>,
    /// What says that the nodes under the pods are being emptied, if anything does.
    pub nodes: Nodes,
    /// The PodDisruptionBudgets of the namespace.
    pub budgets: Vec<PodDisruptionBudget>,
    /// The QuorumClusters of the namespace.
    pub siblings: Vec<Sibling>,
    /// Why its author's rights were not asked for, where they must be (H41).
    pub unasked: Option<String>,
    /// What the system says of itself.
    pub seen: Seen,
    /// How each pod is reached.
    pub peers: Vec<Peer>,
    /// How the system is asked and told, where the resource describes that; or why it can't be.
    pub http: Result<Option<Arc<http::System>>, http::Invalid>,
    /// The TLS material, where the resource names some.
    pub tls: Option<TlsMaterial>,
    /// The token that was shown, where the system wants one.
    pub token: Option<Token>,
    /// The Job of the last attempt to take a snapshot.
    pub task: Fact<Option<Box<Task>>>,
    /// What executor Jobs run, or what is wrong with it.
    pub executor_image: Result<String, Hold>,
    /// What the gates said that are asked elsewhere.
    pub answers: Answers,
    /// What became of the new image on the nodes.
    pub pulls: Fact<Pulls>,
    /// Where logs tell more, by pod, of those whose members are not up.
    pub logs: BTreeMap<String, Log>,
    /// What took the longest of all this.
    pub slowest: &'static str,
}

/// What is known of the nodes under the pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// What says of each that it is being emptied, if anything does.
    Seen(BTreeMap<String, Fact<Option<String>>>),
    /// Nothing is under way that they matter for.
    NotYet,
    /// The operator was told not to look.
    Ignored,
}

impl Observed {
    /// Nothing is known of the members, and nobody was asked.
    pub fn bare(since: Instant, siblings: Vec<Sibling>, why: &str) -> Self {
        Self {
            since,
            set: None,
            strategy: None,
            pods: vec![],
            nodes: Nodes::NotYet,
            budgets: vec![],
            siblings,
            unasked: None,
            seen: Seen::unknown(why),
            peers: vec![],
            http: Ok(None),
            tls: None,
            token: None,
            task: Fact::Known(None),
            executor_image: Err(Hold::new(Reason::InvalidSpec, why)),
            answers: Answers::new(),
            pulls: Fact::Unknown(why.to_owned()),
            logs: BTreeMap::new(),
            slowest: API,
        }
    }
}

/// A QuorumCluster as others of its namespace see it, whatever else of it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sibling {
    /// Its name.
    pub name: String,
    /// Which of that name.
    pub uid: Option<String>,
    /// Since when it has been there; one that does not tell counts as older than all.
    pub created: Option<jiff::Timestamp>,
    /// The StatefulSet that it names; none where that can't be read.
    pub set: Option<String>,
}

impl Sibling {
    /// What the others see of this one.
    pub fn of(resource: &Whole<QuorumCluster>) -> Self {
        let set = resource.raw.pointer("/spec/workload/statefulSet").and_then(Value::as_str);
        Self {
            name: resource.name_any(),
            uid: resource.uid(),
            created: resource.creation_timestamp().map(|time| time.0),
            set: set.map(str::to_owned),
        }
    }
}

/// A custom resource, read by itself.
pub enum Read<K> {
    /// All of it can be read.
    Clear(Box<K>),
    /// Something of it can't be: what, and the rest as it is.
    Odd(Hold, Box<Whole<K>>),
}

impl<K> Read<K> {
    /// Reads it.
    pub fn of(whole: Whole<K>, read: impl FnOnce(&Value) -> Result<K, Hold>) -> Self {
        match read(&whole.raw) {
            Ok(resource) => Self::Clear(Box::new(resource)),
            Err(hold) => Self::Odd(hold, Box::new(whole)),
        }
    }
}

/// The custom resource itself; none if it is gone.
pub async fn resource(context: &Context, key: &Key) -> Result<Option<Read<QuorumCluster>>, Error> {
    let api: Api<Whole<QuorumCluster>> = Api::namespaced(context.client.clone(), &key.namespace);
    let what = format!("quorumclusters/{key}");
    let whole = get(context, &what, &api, &key.name).await?;
    Ok(whole.map(|whole| Read::of(whole, reading::quorum_cluster)))
}

/// The QuorumClusters of a namespace, also those that can't be read.
async fn siblings(context: &Context, namespace: &str) -> Result<Vec<Sibling>, Error> {
    let api: Api<Whole<QuorumCluster>> = Api::namespaced(context.client.clone(), namespace);
    let all = list(context, &format!("quorumclusters in {namespace}"), &api, "").await?;
    Ok(all.iter().map(Sibling::of).collect())
}

/// What can be seen of a resource's workload by the name of its StatefulSet alone. Nobody is asked.
pub async fn workload(context: &Context, namespace: &str, name: Option<&str>, why: &str) -> Result<Observed, Error> {
    let since = Instant::now();
    let mut observed = Observed::bare(since, siblings(context, namespace).await?, why);
    let Some(name) = name else { return Ok(observed) };
    let Some(WholeSet { set, strategy }) = set(context, name, namespace).await? else { return Ok(observed) };
    observed.strategy = strategy;
    observed.budgets = budgets(context, namespace).await?;
    observed.pods = pods(context, &set, namespace).await?;
    observed.set = Some(set);
    Ok(observed)
}

/// Everything else. Nodes are looked at while an upgrade is under way.
pub async fn observe(context: &Context, resource: &QuorumCluster) -> Result<Observed, Error> {
    look(context, resource, false).await
}

/// The same before anything has begun, and for a resource that may not exist: with the nodes, which would be looked at then.
pub async fn observe_ahead(context: &Context, resource: &QuorumCluster) -> Result<Observed, Error> {
    look(context, resource, true).await
}

async fn look(context: &Context, resource: &QuorumCluster, ahead: bool) -> Result<Observed, Error> {
    let since = Instant::now();
    let namespace = resource.namespace().unwrap_or_default();

    let (siblings, set) =
        futures::join!(siblings(context, &namespace), set(context, &resource.spec.workload.stateful_set, &namespace));
    let siblings = match siblings {
        // Where the kind is not installed yet there is none of it.
        Err(error) if ahead && error.is_not_found() => vec![],
        siblings => siblings?,
    };
    let unasked =
        if context.settings.quorums_by_author { unasked(context, Policy::QuorumClusters).await? } else { None };
    let Some(WholeSet { set, strategy }) = set? else {
        let executor_image = executor::image(&context.settings, resource);
        let bare = Observed::bare(since, siblings, "there is no StatefulSet");
        return Ok(Observed { unasked, executor_image, ..bare });
    };
    let (budgets, pods) = futures::join!(budgets(context, &namespace), pods(context, &set, &namespace));
    let (budgets, mut pods) = (budgets?, pods?);
    if !resource.spec.upgrade.show_logs {
        pods.iter_mut().for_each(logs::silence);
    }
    if let Some(why) = &unasked {
        // Its author may not be one whose Secrets are read here, or whose pods and Services are asked (H41). A permit is minded all the same.
        let executor_image = executor::image(&context.settings, resource);
        let bare = Observed::bare(since, siblings, why);
        let unasked = unasked.clone();
        return Ok(Observed { set: Some(set), strategy, pods, budgets, unasked, executor_image, ..bare });
    }
    let upgrading = resource.status.as_ref().is_some_and(|status| status.upgrade.is_some());

    let places = places(&set, &namespace, &pods);
    let peers = peers(resource, &places);
    let http = context.descriptions.get(&Key::of(resource), &resource.spec.system);
    let members = async {
        // Secrets that can't be read make the members unknown, and nothing else: a permit that stands is minded all the same.
        match tls(context, resource, &namespace).await.unwrap_or_else(|error| Err(error.story())) {
            Ok(tls) => {
                let likely = labelled_first(&peers, &pods);
                let (seen, token) = ask(context, resource, &http, tls.as_ref(), &peers, &likely, &places).await;
                (seen, tls, token)
            }
            Err(why) => (Seen::unknown(&why), None, None),
        }
    };
    let nodes = async {
        match (context.settings.ignore_nodes, ahead || upgrading) {
            (_, false) => Ok(Nodes::NotYet),
            (true, true) => Ok(Nodes::Ignored),
            (false, true) => nodes(context, &pods).await.map(Nodes::Seen),
        }
    };
    let jobs =
        async { futures::join!(executor::read(context, resource), prepull::read(context, resource, &set, &pods)) };
    // Side by side and always in this order: whoever is slow makes nobody else's word older than it is. Boxed: Jobs are large things to hold.
    let (members, nodes, jobs, answers, logs) = futures::join!(
        timed("the members' answers", Box::pin(members)),
        timed("the nodes", Box::pin(nodes)),
        timed("the Jobs", Box::pin(jobs)),
        timed("the gates' answers", Box::pin(asked::quorum::ask(context, resource, &set, ahead))),
        timed("the pods' logs", Box::pin(logs::look(context, resource, &set, &pods))),
    );
    let took = [members.1, nodes.1, jobs.1, answers.1, logs.1];
    // Where none of them took most of the time, what was read before they were asked did.
    let slowest = took.into_iter().chain([(API, since.elapsed() / 2)]).max_by_key(|(_, took)| *took);
    let slowest = slowest.map_or(API, |(what, _)| what);
    let ((seen, tls, token), nodes, (task, pulls)) = (members.0, nodes.0?, jobs.0);
    let (answers, logs) = (answers.0, logs.0);
    let executor_image = executor::image(&context.settings, resource);
    Ok(Observed {
        since,
        set: Some(set),
        strategy,
        pods,
        nodes,
        budgets,
        siblings,
        unasked,
        seen,
        peers,
        http,
        tls,
        token,
        task,
        executor_image,
        answers,
        pulls,
        logs,
        slowest,
    })
}

/// What takes long where nobody who is asked does.
const API: &str = "reading the API";

/// What came of it, and how long it took.
async fn timed<T>(what: &'static str, ask: impl Future<Output = T>) -> (T, (&'static str, Duration)) {
    let begun = Instant::now();
    let came = ask.await;
    (came, (what, begun.elapsed()))
}

/// How the pods of the set are reached, and nothing else; nobody is asked.
pub async fn addresses(context: &Context, resource: &QuorumCluster) -> Result<Vec<Peer>, Error> {
    let namespace = resource.namespace().unwrap_or_default();
    let Some(WholeSet { set, .. }) = set(context, &resource.spec.workload.stateful_set, &namespace).await? else {
        return Ok(vec![]);
    };
    let pods = pods(context, &set, &namespace).await?;
    Ok(peers(resource, &places(&set, &namespace, &pods)))
}

async fn budgets(context: &Context, namespace: &str) -> Result<Vec<PodDisruptionBudget>, Error> {
    let api: Api<PodDisruptionBudget> = Api::namespaced(context.client.clone(), namespace);
    list(context, &format!("poddisruptionbudgets in {namespace}"), &api, "").await
}

/// A StatefulSet, and the part of it that we replace and give back, with fields that we have no names for.
struct WholeSet {
    set: StatefulSet,
    strategy: Option<Value>,
}

async fn set(context: &Context, name: &str, namespace: &str) -> Result<Option<WholeSet>, Error> {
    let api: Api<StatefulSet> = Api::namespaced(context.client.clone(), namespace);
    let what = format!("statefulsets/{namespace}/{name}");
    let Some(raw) = get_raw(context, &what, &api, name).await? else { return Ok(None) };
    let strategy = raw.pointer("/spec/updateStrategy").cloned();
    Ok(Some(WholeSet { set: readable("get", &what, raw)?, strategy }))
}

/// The set's pods, by ownership.
async fn pods(context: &Context, set: &StatefulSet, namespace: &str) -> Result<Vec<Pod>, Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let mut pods = list(context, &format!("pods of {}", set.name_any()), &api, &selector(set)).await?;
    let uid = set.uid();
    pods.retain(|pod| is_owned(pod, uid.as_deref()));
    pods.sort_by_key(ResourceExt::name_any);
    Ok(pods)
}

/// Whether this object's controller has that uid.
pub fn is_owned(object: &impl Resource, uid: Option<&str>) -> bool {
    let owners = object.meta().owner_references.as_deref().unwrap_or_default();
    uid.is_some() && owners.iter().any(|owner| owner.controller == Some(true) && Some(owner.uid.as_str()) == uid)
}

/// Whether the nodes under these pods are being emptied: one by one, for there may be thousands of others. One that is not there, or may not
/// be read, is not known.
async fn nodes(context: &Context, pods: &[Pod]) -> Result<BTreeMap<String, Fact<Option<String>>>, Error> {
    let api: Api<Node> = Api::all(context.client.clone());
    let names: BTreeSet<&String> =
        pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.as_ref()).filter(|name| !name.is_empty()).collect();
    let looks = names.into_iter().map(async |name| {
        let emptied = match get(context, &format!("nodes/{name}"), &api, name).await {
            Ok(Some(node)) => Fact::Known(emptying::why(&node)),
            Ok(None) => Fact::Unknown("it does not exist".to_owned()),
            // An operator with rights in one namespace reads no nodes, and can be told not to want to.
            Err(error) if error.class() == Class::Refused => {
                let way_out = "let the operator read nodes, or start it with --ignore-nodes";
                Fact::Unknown(format!("{}; {way_out}", error.story()))
            }
            Err(error) => return Err(error),
        };
        Ok((name.clone(), emptied))
    });
    join_all(looks).await.into_iter().collect()
}

/// The selector of the set's pods, as the API takes it.
fn selector(set: &StatefulSet) -> String {
    let selector = set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
    Selector::try_from(selector).map(|selector| selector.to_string()).unwrap_or_default()
}

/// Where the set's members are: every pod that it shall have, and every pod that it has.
fn places(set: &StatefulSet, namespace: &str, pods: &[Pod]) -> Vec<Place> {
    let spec = set.spec.as_ref();
    let service = spec.and_then(|spec| spec.service_name.clone()).unwrap_or_default();
    let first = spec.and_then(|spec| spec.ordinals.as_ref()).and_then(|ordinals| ordinals.start).unwrap_or(0);
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let wanted = (first..first.saturating_add(replicas)).map(|ordinal| format!("{}-{ordinal}", set.name_any()));
    let mut names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
    names.extend(wanted.filter(|name| !pods.iter().any(|pod| pod.name_any() == *name)).collect::<Vec<_>>());
    let place = |name: String| {
        let pod = pods.iter().find(|pod| pod.name_any() == name);
        let address = pod.and_then(|pod| pod.status.as_ref()?.pod_ip.as_ref()?.parse::<IpAddr>().ok());
        Place { dns: format!("{name}.{service}.{namespace}.svc"), pod: name, address }
    };
    names.into_iter().map(place).collect()
}

/// How each pod with an address is reached, ready or not.
fn peers(resource: &QuorumCluster, places: &[Place]) -> Vec<Peer> {
    let port = u16::try_from(resource.spec.system.port).unwrap_or_default();
    let tls = resource.spec.system.tls.as_ref();
    let peer = |Place { pod, dns, address }: &Place| {
        let server_name = tls.map_or_else(|| dns.clone(), |tls| tls.name_of(pod, dns));
        Some(Peer { pod: pod.clone(), address: (*address)?, port, server_name, tls: tls.is_some() })
    };
    places.iter().filter_map(peer).collect()
}

/// What OpenBao and Vault write on the pod that leads (D3). It can be old, or on two pods.
const ACTIVE: [&str; 2] = ["openbao-active", "vault-active"];

/// The same, with those first whose pods say that they lead: whoever leads gives a token without asking another, and one that hangs or is
/// sealed holds nobody up. A hint for whom to ask, and never an answer.
fn labelled_first(peers: &[Peer], pods: &[Pod]) -> Vec<Peer> {
    let says = |pod: &Pod| ACTIVE.iter().any(|label| pod.labels().get(*label).is_some_and(|value| value == "true"));
    let leads = |peer: &Peer| pods.iter().any(|pod| pod.name_any() == peer.pod && says(pod));
    let mut peers = peers.to_vec();
    // Stable: the others keep their order.
    peers.sort_by_key(|peer| !leads(peer));
    peers
}

async fn ask(
    context: &Context,
    resource: &QuorumCluster,
    http: &Result<Option<Arc<http::System>>, http::Invalid>,
    tls: Option<&TlsMaterial>,
    peers: &[Peer],
    likely: &[Peer],
    places: &[Place],
) -> (Seen, Option<Token>) {
    let http = match http {
        Ok(http) => http.as_deref(),
        Err(error) => return (Seen::unknown(&error.to_string()), None),
    };
    let transport = match context.dial.transport(tls) {
        Ok(transport) => transport,
        Err(why) => return (Seen::unknown(&format!("the TLS material can't be used: {why}")), None),
    };
    let once = async || {
        let token = match token(context, resource, transport.as_ref(), likely).await {
            Ok(token) => token,
            Err(NoToken { why, refused: true }) => return (Heard::from(Seen::refused(&why)), None),
            Err(NoToken { why, refused: false }) => return (Heard::from(Seen::unknown(&why)), None),
        };
        let system = resource.spec.system.type_;
        let line = Line { system, http, transport: transport.as_ref(), token: token.as_ref() };
        (system::ask(line, peers, places, context.settings.patience()).await, token)
    };
    let (heard, token) = once().await;
    if !heard.denied {
        return (heard.seen, token);
    }
    if resource.spec.system.auth.is_none() {
        return (heard.seen, token);
    }
    // It may have expired, or been revoked, or a member that was restarted has forgotten it: once more with a new one.
    context.tokens.forget(&Key::of(resource));
    let (heard, token) = once().await;
    (heard.seen, token)
}

/// The token that the resource tells how to get; none where it tells nothing.
async fn token(
    context: &Context,
    resource: &QuorumCluster,
    transport: &dyn Transport,
    peers: &[Peer],
) -> Result<Option<Token>, NoToken> {
    let Some(auth) = &resource.spec.system.auth else { return Ok(None) };
    // A resource that is older than the schema's rule is asked here, before anything is sent; it is refused in validate.
    resource.spec.system.check_auth().map_err(|why| format!("spec.system.auth: {why}"))?;
    let key = Key::of(resource);
    let read = async |field: &str, name: &str, entry: &str| {
        let namespace = resource.namespace().unwrap_or_default();
        let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
        let secret = get(context, &format!("secrets/{namespace}/{name}"), &secrets, name).await;
        let found = secret.map_err(|error| error.story())?.and_then(|secret| secret.data?.remove(entry));
        let missing = || format!("spec.system.auth.{field}: there is no Secret {name} with {entry} in it");
        Ok::<_, String>(String::from_utf8_lossy(&found.ok_or_else(missing)?.0).into_owned())
    };
    if let Some(name) = &auth.token_secret {
        let token = Token::new(&read("tokenSecret", name, "token").await?);
        return token.map(Some).map_err(|error| format!("spec.system.auth.tokenSecret: Secret {name}: {error}").into());
    }
    if let Some(secret) = &auth.password_secret {
        let name = read("passwordSecret", secret, "username").await?.trim().to_owned();
        let password = Password::new(&read("passwordSecret", secret, "password").await?)
            .map_err(|_| format!("spec.system.auth.passwordSecret: the password in Secret {secret} is empty"))?;
        return context.tokens.of_user(&key, &etcd::Login { name, password }, transport, peers).await;
    }
    context.tokens.get(context, &key, auth, transport, peers).await.map(Some)
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
    let roots = match (&tls.ca_secret, &tls.ca_config_map) {
        (Some(name), _) => read("caSecret", name, "ca.crt").await?,
        (None, Some(name)) => {
            let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
            let map = get(context, &format!("configmaps/{namespace}/{name}"), &maps, name).await?;
            let found = map.and_then(|map| map.data).and_then(|mut data| data.remove("ca.crt"));
            let missing = || format!("spec.system.tls.caConfigMap: there is no ConfigMap {name} with ca.crt in it");
            found.map(String::into_bytes).ok_or_else(missing)
        }
        (None, None) => Err("spec.system.tls: set caSecret or caConfigMap".to_owned()),
    };
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

/// One object, as a majority of etcd has it; none if there is none.
pub(crate) async fn get<K>(context: &Context, what: &str, api: &Api<K>, name: &str) -> Result<Option<K>, Error>
where
    K: Resource + Clone + DeserializeOwned,
{
    get_raw(context, what, api, name).await?.map(|raw| readable("get", what, raw)).transpose()
}

async fn get_raw<K: Resource + Clone>(
    context: &Context,
    what: &str,
    api: &Api<K>,
    name: &str,
) -> Result<Option<Value>, Error> {
    // No resourceVersion: the newest state that a majority of etcd has.
    let params = if bug::active(Bug::StaleReads) { GetParams::any() } else { GetParams::default() };
    let request = Request::new(api.resource_url()).get(name, &params);
    match context.bounded(context.settings.read_deadline, "get", what, Box::pin(answer(api, request))).await {
        Ok(raw) => Ok(Some(raw)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The answer of the API server in its own words.
async fn answer<K: Resource + Clone>(
    api: &Api<K>,
    request: Result<::http::Request<Vec<u8>>, BadRequest>,
) -> kube::Result<Value> {
    api.clone().into_client().request(request.map_err(kube::Error::BuildRequest)?).await
}

fn readable<K: DeserializeOwned>(verb: &'static str, what: &str, object: Value) -> Result<K, Error> {
    typed(object).map_err(|error| Error::kubernetes(verb, what, kube::Error::SerdeError(error)))
}

/// The objects with these labels.
pub(crate) async fn list<K>(context: &Context, what: &str, api: &Api<K>, labels: &str) -> Result<Vec<K>, Error>
where
    K: Resource + Clone + DeserializeOwned,
{
    let params = ListParams::default().labels(labels);
    let params = if bug::active(Bug::StaleReads) { params.match_any() } else { params };
    let request = Request::new(api.resource_url()).list(&params);
    let mut list =
        context.bounded(context.settings.read_deadline, "list", what, Box::pin(answer(api, request))).await?;
    let items = list.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    items.into_iter().map(|item| readable("list", what, item)).collect()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use k8s_openapi::api::core::v1::Pod;
    use kube::api::ObjectMeta;
    use rstest::rstest;
    use windlass_systems::transport::Peer;

    use super::labelled_first;

    fn pod(index: u8, label: Option<(&str, &str)>) -> Pod {
        let labels = label.map(|(name, value)| [(name.to_owned(), value.to_owned())].into());
        let metadata = ObjectMeta { name: Some(format!("bao-{index}")), labels, ..ObjectMeta::default() };
        Pod { metadata, ..Pod::default() }
    }

    /// D3: whom to ask first, and nothing more. Everybody stays in the list.
    #[rstest]
    #[case::nobody([None, None, None], "012")]
    #[case::the_last([None, None, Some(("openbao-active", "true"))], "201")]
    #[case::vaults([None, Some(("vault-active", "true")), None], "102")]
    #[case::doubled([None, Some(("openbao-active", "true")), Some(("openbao-active", "true"))], "120")]
    #[case::a_standby([None, Some(("openbao-active", "false")), None], "012")]
    fn who_says_that_it_leads_is_asked_first(#[case] labels: [Option<(&str, &str)>; 3], #[case] order: &str) {
        let pods: Vec<Pod> = (0..).zip(labels).map(|(index, label)| pod(index, label)).collect();
        let peer = |index: u8| Peer {
            pod: format!("bao-{index}"),
            address: IpAddr::from([10, 0, 0, index]),
            port: 8200,
            server_name: String::new(),
            tls: false,
        };
        let peers: Vec<Peer> = (0..3).map(peer).collect();
        let asked: String = labelled_first(&peers, &pods).iter().filter_map(|peer| peer.pod.chars().last()).collect();
        assert_eq!(asked, order);
    }
}
