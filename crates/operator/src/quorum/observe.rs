//! Reads: everything that one decision needs, live, in one go. Nothing is decided here, nothing is written.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{Api, ResourceExt, core::Selector};
use serde_json::Value;
use tokio::time::Instant;
use windlass_api::{QuorumCluster, reading, translate};
use windlass_plan::{
    Fact, Hold, Reason,
    bug::{self, Bug},
    strategy::{
        course::Course,
        known::{pulls::Pulls, snapshot::Progress, want::Trigger},
    },
    trouble::Log,
};
use windlass_systems::{http, secret::Secret as Token, transport::Peer};

use crate::{
    Context,
    dial::TlsMaterial,
    error::Error,
    gates::Answers,
    jobs::{
        pull,
        snapshot::{self, Means},
    },
    lenient::Whole,
    live::{Read, get, get_raw, is_owned, list, list_as, readable},
    logs,
    members::{
        look,
        place::Seen,
        reach::{labelled_first, peers, places},
        system::capabilities,
    },
    owner::author::{Policy, unasked},
    queue::Key,
    quorum::{
        gates,
        nodes::{self, Nodes},
        validate,
    },
};

/// What was read, as it was read.
pub struct Observed {
    /// When the reading began: the age of the evidence counts from here.
    pub since: Instant,
    /// Where the upgrade stood by the record that was read before.
    pub course: Course,
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
    /// What became of the last attempt to take a snapshot.
    pub snapshot: Fact<Progress>,
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

impl Observed {
    /// Nothing is known of the members, and nobody was asked.
    pub fn bare(since: Instant, siblings: Vec<Sibling>, why: &str) -> Self {
        Self {
            since,
            course: Course::default(),
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
            snapshot: Fact::Known(Progress::Missing),
            executor_image: Err(Hold::new(Reason::InvalidSpec, why)),
            answers: Answers::new(),
            pulls: Fact::Unknown(why.to_owned()),
            logs: BTreeMap::new(),
            slowest: API,
        }
    }

    /// What a snapshot would be taken with.
    pub fn means(&self) -> Means<'_> {
        let leader = self.seen.quorum.leader.known();
        let mut members: Vec<&Peer> = self.peers.iter().collect();
        // Stable: the others keep their order.
        members.sort_by_key(|peer| leader.is_none_or(|leader| leader.as_str() != peer.pod));
        Means { image: self.executor_image.as_deref().ok(), members }
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
    // Only this is kept of each: they may be many, and large, and every pass reads them.
    list_as(context, &format!("quorumclusters in {namespace}"), &api, "", |one| Sibling::of(&one)).await
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
pub async fn observe(context: &Context, resource: &QuorumCluster, course: Course) -> Result<Observed, Error> {
    read(context, resource, course, false).await
}

/// The same before anything has begun, and for a resource that may not exist: with the nodes, which would be looked at then.
pub async fn observe_ahead(context: &Context, resource: &QuorumCluster, course: Course) -> Result<Observed, Error> {
    read(context, resource, course, true).await
}

async fn read(context: &Context, resource: &QuorumCluster, course: Course, ahead: bool) -> Result<Observed, Error> {
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
        let executor_image = snapshot::image(&context.settings, resource);
        let bare = Observed::bare(since, siblings, "there is no StatefulSet");
        return Ok(Observed { course, unasked, executor_image, ..bare });
    };
    let (budgets, pods) = futures::join!(budgets(context, &namespace), pods(context, &set, &namespace));
    let (budgets, mut pods) = (budgets?, pods?);
    if !resource.spec.upgrade.show_logs {
        pods.iter_mut().for_each(logs::silence);
    }
    let rival = validate::alone(resource, &siblings).err().map(|hold| hold.message);
    if let Some(why) = unasked.as_ref().or(rival.as_ref()) {
        // Its author may not be one whose Secrets are read here, or whose pods and Services are asked (H41), and what another one has is that
        // one's to ask. A permit is minded all the same.
        let executor_image = snapshot::image(&context.settings, resource);
        let bare = Observed::bare(since, siblings, why);
        let unasked = unasked.clone();
        return Ok(Observed { course, set: Some(set), strategy, pods, budgets, unasked, executor_image, ..bare });
    }
    let upgrading = course.under_way.is_some();

    let places = places(&set, &namespace, &pods);
    let peers = peers(resource, &places);
    let http = context.descriptions.get(&Key::of(resource), &resource.spec.system);
    let members = async {
        // Secrets that can't be read make the members unknown, and nothing else: a permit that stands is minded all the same.
        match look::tls(context, resource, &namespace).await.unwrap_or_else(|error| Err(error.story())) {
            Ok(tls) => {
                let likely = labelled_first(&peers, &pods);
                let (seen, token) = look::ask(context, resource, &http, tls.as_ref(), &peers, &likely, &places).await;
                (seen, tls, token)
            }
            Err(why) => (Seen::unknown(&why), None, None),
        }
    };
    let begins = !course.at_rest && !bug::active(Bug::NodesNotAwaited);
    let nodes = async {
        match (context.settings.ignore_nodes, ahead || upgrading || begins) {
            (_, false) => Nodes::NotYet,
            (true, true) => Nodes::Ignored,
            (false, true) => Nodes::Seen(nodes::look(context, &pods).await),
        }
    };
    let jobs =
        async { futures::join!(snapshot::read(context, resource), pulls(context, resource, &course, &set, &pods)) };
    // Side by side and always in this order: whoever is slow makes nobody else's word older than it is. Boxed: Jobs are large things to hold.
    let (members, nodes, jobs, answers, logs) = futures::join!(
        timed("the members' answers", Box::pin(members)),
        timed("the nodes", Box::pin(nodes)),
        timed("the Jobs", Box::pin(jobs)),
        timed("the gates' answers", Box::pin(gates::ask(context, resource, &course, &set, ahead))),
        timed("the pods' logs", Box::pin(logs::look(context, resource, &set, &pods))),
    );
    let took = [members.1, nodes.1, jobs.1, answers.1, logs.1];
    // Where none of them took most of the time, what was read before they were asked did.
    let slowest = took.into_iter().chain([(API, since.elapsed() / 2)]).max_by_key(|(_, took)| *took);
    let slowest = slowest.map_or(API, |(what, _)| what);
    let ((seen, tls, token), nodes, (snapshot, pulls)) = (members.0, nodes.0, jobs.0);
    let (answers, logs) = (answers.0, logs.0);
    let executor_image = snapshot::image(&context.settings, resource);
    Ok(Observed {
        since,
        course,
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
        snapshot,
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
pub async fn pods(context: &Context, set: &StatefulSet, namespace: &str) -> Result<Vec<Pod>, Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let mut pods = list(context, &format!("pods of {}", set.name_any()), &api, &selector(set)).await?;
    let uid = set.uid();
    pods.retain(|pod| is_owned(pod, uid.as_deref()));
    pods.sort_by_key(ResourceExt::name_any);
    Ok(pods)
}

/// The selector of the set's pods, as the API takes it.
fn selector(set: &StatefulSet) -> String {
    let selector = set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
    Selector::try_from(selector).map(|selector| selector.to_string()).unwrap_or_default()
}

/// What became of the new image on the nodes, where it shall be there before anybody stops.
async fn pulls(
    context: &Context,
    resource: &QuorumCluster,
    course: &Course,
    set: &StatefulSet,
    pods: &[Pod],
) -> Fact<Pulls> {
    if !resource.spec.upgrade.pre_pull {
        return Fact::Unknown("nobody asked for it".to_owned());
    }
    match next_image(resource, course, set) {
        Ok(image) => pull::read(context, resource, set, image, pods).await,
        Err(hold) => Fact::Unknown(hold.message),
    }
}

/// The image of the upgrade that is under way, or of the one that would begin.
pub fn next_image(resource: &QuorumCluster, course: &Course, set: &StatefulSet) -> Result<String, Hold> {
    if let Some(under_way) = &course.under_way {
        // Where somebody else writes the template, that is what comes next, whatever is on record.
        return match resource.spec.trigger {
            Trigger::Version => Ok(under_way.coming.image.clone()),
            Trigger::Template => Ok(validate::container(resource, set)?.1),
        };
    }
    let (_, today) = validate::container(resource, set)?;
    Ok(translate::want(&resource.spec, &capabilities(&resource.spec.system), &today)?.target.image)
}
