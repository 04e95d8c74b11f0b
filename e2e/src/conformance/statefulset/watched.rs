//! The real cluster's objects as its watches tell them, by namespace, with the moment of each namespace's last change.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::snapshot::{KINDS, Kind, Objects, Snapshot};

/// One namespace.
struct Seen {
    objects: Objects,
    changes: u64,
    changed: Instant,
}

impl Seen {
    fn changed(&mut self) {
        self.changes += 1;
        self.changed = Instant::now();
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self { objects: Objects::default(), changes: 0, changed: Instant::now() }
    }
}

/// What the watches have told so far.
#[derive(Clone, Default)]
pub struct Watched(Arc<Mutex<BTreeMap<String, Seen>>>);

impl Watched {
    /// Watches all kinds in all namespaces, for as long as the runtime lives.
    pub fn start(client: &Client) -> Self {
        let watched = Self::default();
        for kind in KINDS {
            tokio::spawn(watched.clone().follow(client.clone(), kind));
        }
        watched
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a namespace has changed, and when last.
    pub fn changes(&self, namespace: &str) -> (u64, Option<Instant>) {
        self.lock().get(namespace).map_or((0, None), |seen| (seen.changes, Some(seen.changed)))
    }

    /// What is compared of a namespace.
    pub fn snapshot(&self, namespace: &str) -> Snapshot {
        self.lock().get(namespace).map(|seen| seen.objects.snapshot()).unwrap_or_default()
    }

    /// The namespace's objects.
    pub fn objects(&self, namespace: &str) -> Objects {
        self.lock().get(namespace).map(|seen| seen.objects.clone()).unwrap_or_default()
    }

    /// A scenario is over: its namespace is of no interest any more.
    pub fn forget(&self, namespace: &str) {
        self.lock().remove(namespace);
    }

    async fn follow(self, client: Client, kind: Kind) {
        let api: Api<DynamicObject> = Api::all_with(client, &kind.resource());
        let mut events = pin!(watcher(api, watcher::Config::default()));
        let mut arriving = BTreeMap::new();
        loop {
            match events.try_next().await {
                Ok(Some(event)) => self.take(kind, event, &mut arriving),
                Ok(None) => return,
                // The watcher goes on by itself, with a new list where it has to.
                Err(error) => {
                    tracing::debug!(?kind, %error, "a watch broke");
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    fn take(&self, kind: Kind, event: Event<DynamicObject>, arriving: &mut BTreeMap<String, Vec<Value>>) {
        match event {
            Event::Init => arriving.clear(),
            Event::InitApply(object) => {
                if let Ok(value) = serde_json::to_value(&object) {
                    arriving.entry(object.namespace().unwrap_or_default()).or_default().push(value);
                }
            }
            Event::InitDone => self.replace(kind, std::mem::take(arriving)),
            Event::Apply(object) => self.change(&object, |objects| {
                if let Ok(value) = serde_json::to_value(&object) {
                    objects.put(kind, value);
                }
            }),
            Event::Delete(object) => self.change(&object, |objects| objects.remove(kind, &object.name_any())),
        }
    }

    fn change(&self, object: &DynamicObject, change: impl FnOnce(&mut Objects)) {
        let mut namespaces = self.lock();
        let seen = namespaces.entry(object.namespace().unwrap_or_default()).or_default();
        seen.changed();
        change(&mut seen.objects);
    }

    /// A whole list takes the place of what was known, all at once: what went while no watch told of it is a change, too, and a list
    /// that is half there is nobody's state.
    fn replace(&self, kind: Kind, mut listed: BTreeMap<String, Vec<Value>>) {
        let mut namespaces = self.lock();
        for namespace in listed.keys() {
            namespaces.entry(namespace.clone()).or_default();
        }
        for (namespace, seen) in namespaces.iter_mut() {
            let now = listed.remove(namespace).unwrap_or_default();
            let known: Vec<&Value> = seen.objects.of(kind).map(|(_, object)| object).collect();
            if known.len() == now.len() && now.iter().all(|object| known.contains(&object)) {
                continue;
            }
            seen.changed();
            seen.objects.clear(kind);
            for object in now {
                seen.objects.put(kind, object);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::api::DynamicObject;
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};

    use super::{Kind, Watched};

    fn pod(name: &str) -> DynamicObject {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "here", "name": name}});
        serde_json::from_value(object).unwrap()
    }

    fn names(watched: &Watched) -> Vec<String> {
        watched.objects("here").of(Kind::Pod).map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn what_went_while_a_watch_was_broken_is_a_change() {
        let (watched, mut arriving) = (Watched::default(), BTreeMap::<String, Vec<Value>>::new());
        watched.take(Kind::Pod, Event::Apply(pod("web-0")), &mut arriving);
        watched.take(Kind::Pod, Event::Apply(pod("web-1")), &mut arriving);
        let (before, _) = watched.changes("here");

        watched.take(Kind::Pod, Event::Init, &mut arriving);
        watched.take(Kind::Pod, Event::InitApply(pod("web-0")), &mut arriving);
        assert_eq!((watched.changes("here").0, names(&watched).len()), (before, 2), "half a list is nobody's state");
        watched.take(Kind::Pod, Event::InitDone, &mut arriving);
        assert_eq!((watched.changes("here").0, names(&watched)), (before + 1, vec!["web-0".to_owned()]));

        watched.take(Kind::Pod, Event::Init, &mut arriving);
        watched.take(Kind::Pod, Event::InitDone, &mut arriving);
        assert_eq!((watched.changes("here").0, names(&watched).len()), (before + 2, 0), "the last one went");

        watched.take(Kind::Pod, Event::Init, &mut arriving);
        watched.take(Kind::Pod, Event::InitDone, &mut arriving);
        assert_eq!(watched.changes("here").0, before + 2, "the same list is no change");
    }
}
