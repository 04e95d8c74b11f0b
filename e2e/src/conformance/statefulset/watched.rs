//! The real cluster's objects as its watches tell them, by namespace, with the moment of each namespace's last change.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use tokio::time::{Instant, sleep};

use super::snapshot::{KINDS, Kind, Objects, Snapshot};

/// One namespace.
struct Seen {
    objects: Objects,
    changes: u64,
    changed: Instant,
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
        loop {
            match events.try_next().await {
                Ok(Some(event)) => self.take(kind, event),
                Ok(None) => return,
                // The watcher goes on by itself, with a new list where it has to.
                Err(error) => {
                    tracing::debug!(?kind, %error, "a watch broke");
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    fn take(&self, kind: Kind, event: Event<DynamicObject>) {
        let mut namespaces = self.lock();
        let (object, gone) = match event {
            Event::Apply(object) | Event::InitApply(object) => (object, false),
            Event::Delete(object) => (object, true),
            Event::Init => {
                for seen in namespaces.values_mut() {
                    seen.objects.clear(kind);
                }
                return;
            }
            Event::InitDone => return,
        };
        let seen = namespaces.entry(object.namespace().unwrap_or_default()).or_default();
        seen.changes += 1;
        seen.changed = Instant::now();
        if gone {
            seen.objects.remove(kind, &object.name_any());
        } else if let Ok(value) = serde_json::to_value(&object) {
            seen.objects.put(kind, value);
        }
    }
}
