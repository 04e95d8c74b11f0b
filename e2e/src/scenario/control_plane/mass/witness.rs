//! What happened to the Dicoms, from a watch of our own: all changes in the order in which they happened, for one watch tells them so.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Result, ensure};
use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use tokio::task::JoinHandle;

use super::super::fleet::holds;
use crate::scenario::wait;

/// One Dicom as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Namespace and name.
    pub key: (String, String),
    /// Which of that name.
    pub uid: String,
    /// The moment.
    pub revision: u64,
    /// Its tier.
    pub tier: String,
    /// Its image.
    pub image: String,
    /// Everything runs what its spec says.
    pub up_to_date: bool,
}

impl Seen {
    fn of(dicom: &dicom::Dicom) -> Self {
        Self {
            key: (dicom.namespace().unwrap_or_default(), dicom.name_any()),
            uid: dicom.uid().unwrap_or_default(),
            revision: dicom.resource_version().and_then(|text| text.parse().ok()).unwrap_or(0),
            tier: dicom.labels().get("upgrade-tier").cloned().unwrap_or_default(),
            image: dicom.spec.image.clone().unwrap_or_default(),
            up_to_date: holds(dicom, "UpToDate"),
        }
    }
}

#[derive(Default)]
struct Log {
    all: Vec<Seen>,
    latest: BTreeMap<(String, String), Seen>,
    lists: usize,
}

/// All Dicoms, watched.
pub struct Fleet {
    log: Arc<Mutex<Log>>,
    task: JoinHandle<()>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fleet {
    /// Begins to watch.
    pub fn watch(client: &Client) -> Self {
        let log = Arc::new(Mutex::new(Log::default()));
        let dicoms: Api<dicom::Dicom> = Api::all(client.clone());
        let task = tokio::spawn({
            let log = Arc::clone(&log);
            async move {
                let mut events = watcher::watcher(dicoms, watcher::Config::default()).default_backoff().boxed();
                while let Some(event) = events.next().await {
                    let mut log = lock(&log);
                    match event {
                        Ok(Event::Init) => log.lists += 1,
                        Ok(Event::Apply(dicom) | Event::InitApply(dicom)) => {
                            let seen = Seen::of(&dicom);
                            log.latest.insert(seen.key.clone(), seen.clone());
                            log.all.push(seen);
                        }
                        Ok(Event::Delete(_) | Event::InitDone) | Err(_) => {}
                    }
                }
            }
        });
        Self { log, task }
    }

    /// Waits until so many have this image and are up to date.
    pub async fn has(&self, count: usize, image: &str, seconds: u64) -> Result<()> {
        wait::until_so(&format!("{count} Dicoms to be up to date with {image}"), seconds, async || {
            let log = lock(&self.log);
            Ok(log.latest.values().filter(|seen| seen.up_to_date && seen.image == image).count() == count)
        })
        .await
    }

    /// All of them as they are now.
    pub fn latest(&self) -> Vec<Seen> {
        lock(&self.log).latest.values().cloned().collect()
    }

    /// This moment.
    pub fn mark(&self) -> usize {
        lock(&self.log).all.len()
    }

    /// What has happened since then, up to where nobody wanted this image any more: how it was, and each change.
    pub fn since(&self, mark: usize, image: &str) -> Result<Story> {
        let log = lock(&self.log);
        ensure!(log.lists == 1, "the watch broke off {} times: what happened meanwhile is not known", log.lists - 1);
        let (before, after) = log.all.split_at(mark);
        let begin = before.iter().map(|seen| (seen.key.clone(), seen.clone())).collect();
        let had = |seen: &&Seen| seen.image == image;
        let end = after.iter().rposition(|seen| had(&seen)).map_or(0, |last| last + 1);
        Ok(Story { begin, changes: after.iter().take(end).cloned().collect() })
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How it was, and what happened then.
pub struct Story {
    /// All of them at the beginning.
    pub begin: BTreeMap<(String, String), Seen>,
    /// Each change, in its order.
    pub changes: Vec<Seen>,
}
