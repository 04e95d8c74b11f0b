//! Leading: watches wake resources, the queue says which is next, passes do the work. One future, no tasks.
//!
//! Watches only wake; every decision reads live. kube-runtime's `Controller` is not used: it polls in hash-map order and jitters its
//! back-off, so a seed would not replay (see the ADR on the queue).

use std::{collections::BTreeMap, pin::pin, rc::Rc};

use futures::{FutureExt, Stream, StreamExt, future::LocalBoxFuture, stream, stream::FuturesUnordered};
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{
    Api, Resource, ResourceExt,
    core::NamespaceResourceScope,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use tokio::{sync::Notify, time::Instant};
use windlass_api::{QuorumCluster, ServiceImage};

use crate::{
    Context,
    actor::Actor,
    backoff::Steady,
    fleet,
    lease::{Lease, Term},
    lenient::Glimpse,
    queue::{Key, Queue},
    quorum::pass::{Next, pass},
};

/// How many objects are listed at once: each carries annotations of up to 256 KiB, which anybody may write.
const PAGE: u32 = 50;

/// What a watch says: this resource may have changed.
enum Wake {
    /// A custom resource; its deletion too.
    Resource(Key),
    /// A StatefulSet, by namespace and name.
    Workload(String, String),
    /// A ServiceImage, by name; its deletion too.
    Fleet(String),
}

/// Acts until the term is over. Passes that are under way are dropped then: their next write would be refused anyway.
pub async fn lead(context: &Context, lease: &Lease<'_>, term: &Term) {
    let actor = Actor { context, lease, term };
    // Where there are several namespaces, what is slow in one of them leaves room for the others.
    let everywhere = context.settings.namespace.is_none();
    let mut queue = Queue::sharing(context.settings.concurrency.div_ceil(if everywhere { 2 } else { 1 }));
    // Which resources a StatefulSet wakes: those that named it when they were last looked at, and those that were not looked at yet.
    let mut index = BTreeMap::<Key, Option<String>>::new();
    let mut wakes = pin!(wakes(context));
    let mut running = FuturesUnordered::<LocalBoxFuture<'_, (Key, (Next, Option<String>))>>::new();
    // Each ServiceImage is looked after for as long as it is there.
    let mut pokes = Pokes::new();
    let mut fleets = FuturesUnordered::<LocalBoxFuture<'_, String>>::new();
    let mut lost = pin!(lease.lost(term));
    loop {
        let room = running.len() < context.settings.concurrency;
        let due = queue.next_due().filter(|_| room);
        tokio::select! {
            biased;
            () = &mut lost => return,
            Some((key, (next, workload))) = running.next(), if !running.is_empty() => {
                if workload.is_some() {
                    index.insert(key.clone(), workload);
                }
                match next {
                    Next::After(delay) => queue.finish(&key, Some(Instant::now() + delay)),
                    Next::Rest(delay) => queue.rest(&key, Instant::now() + delay),
                    Next::Forget => { index.remove(&key); queue.finish(&key, None); }
                }
            }
            Some(name) = fleets.next(), if !fleets.is_empty() => {
                let poke = pokes.remove(&name);
                // Another one of its name may have come while this one was let go.
                if poke.is_some_and(|poke| poke.notified().now_or_never().is_some()) {
                    fleets.push(look_after(actor, name, &mut pokes));
                }
                // What it had may be another's now.
                for poke in pokes.values() {
                    poke.notify_one();
                }
            }
            Some(wake) = wakes.next() => match wake {
                Wake::Fleet(name) => {
                    if let Some(poke) = pokes.get(&name) {
                        poke.notify_one();
                    } else {
                        fleets.push(look_after(actor, name, &mut pokes));
                    }
                }
                Wake::Resource(key) => {
                    queue.wake(key.clone(), Instant::now());
                    index.entry(key).or_default();
                }
                Wake::Workload(namespace, name) => {
                    let names = |workload: &Option<String>| workload.as_ref().is_none_or(|workload| *workload == name);
                    let woken = index.iter().filter(|(key, workload)| key.namespace == namespace && names(workload));
                    for (key, _) in woken {
                        queue.wake(key.clone(), Instant::now());
                    }
                }
            },
            () = until(due), if due.is_some() => {
                if let Some(key) = queue.take(Instant::now()) {
                    running.push(async move { let looked = pass(actor, &key).await; (key, looked) }.boxed_local());
                }
            }
        }
    }
}

/// What tells who looks after a ServiceImage that it changed, by its name.
type Pokes = BTreeMap<String, Rc<Notify>>;

/// Looks after a ServiceImage for as long as it is there, and says whose time is over.
fn look_after<'a>(actor: Actor<'a>, name: String, pokes: &mut Pokes) -> LocalBoxFuture<'a, String> {
    let poke = Rc::new(Notify::new());
    pokes.insert(name.clone(), Rc::clone(&poke));
    async move {
        fleet::look_after(actor, &name, &poke).await;
        name
    }
    .boxed_local()
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// All watches, merged in a fixed order. They carry names alone, so that no object can be too odd to wake anybody.
fn wakes(context: &Context) -> impl Stream<Item = Wake> {
    let resources = watched(api::<Glimpse<QuorumCluster>>(context));
    let resources = resources.map(|resource| {
        Wake::Resource(Key { namespace: resource.namespace().unwrap_or_default(), name: resource.name_any() })
    });
    let sets = watched(api::<Glimpse<StatefulSet>>(context));
    let sets = sets.map(|set| Wake::Workload(set.namespace().unwrap_or_default(), set.name_any()));
    let pods = watched(api::<Glimpse<Pod>>(context)).filter_map(async |pod: Glimpse<Pod>| {
        let owner = pod
            .owner_references()
            .iter()
            .find(|owner| owner.controller == Some(true) && owner.kind == "StatefulSet")?;
        Some(Wake::Workload(pod.namespace().unwrap_or_default(), owner.name.clone()))
    });
    let watched = stream::select(resources.boxed_local(), stream::select(sets.boxed_local(), pods.boxed_local()));
    // ServiceImages belong to no namespace: an operator of one namespace leaves them alone.
    let fleets = match &context.settings.namespace {
        Some(_) => stream::pending().boxed_local(),
        None => fleets(context).boxed_local(),
    };
    stream::select(watched.boxed_local(), fleets)
}

fn fleets(context: &Context) -> impl Stream<Item = Wake> {
    let all: Api<Glimpse<ServiceImage>> = Api::all(context.client.clone());
    watched(all).map(|resource| Wake::Fleet(resource.name_any()))
}

/// Everything that is there or changes.
fn watched<K>(api: Api<K>) -> impl Stream<Item = K>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let events = watcher::watcher(api, watcher::Config::default().page_size(PAGE)).backoff(Steady::default());
    events.flat_map(|event| stream::iter(touched(event)))
}

fn api<K>(context: &Context) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match &context.settings.namespace {
        Some(namespace) => Api::namespaced(context.client.clone(), namespace),
        None => Api::all(context.client.clone()),
    }
}

/// The objects of an event; an error is left to the back-off.
fn touched<K>(event: Result<Event<K>, watcher::Error>) -> Option<K> {
    match event {
        Ok(Event::Apply(object) | Event::Delete(object) | Event::InitApply(object)) => Some(object),
        Ok(Event::Init | Event::InitDone) => None,
        Err(error) => {
            tracing::debug!(%error, "a watch broke off");
            None
        }
    }
}
