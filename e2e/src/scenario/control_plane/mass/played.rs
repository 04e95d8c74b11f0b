//! Dicoms without Deployments: each is up to date as soon as it is looked at.

use std::collections::BTreeMap;

use futures::{StreamExt, stream::FuturesUnordered};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use serde_json::json;

/// How many are written to at once.
const CONCURRENCY: usize = 16;

/// Plays them until it is dropped.
pub async fn run(dicoms: Api<dicom::Dicom>) {
    let watched: Api<PartialObjectMeta<dicom::Dicom>> =
        Api::namespaced(dicoms.clone().into_client(), dicoms.namespace().unwrap_or_default());
    let mut events = std::pin::pin!(watcher::watcher(watched, watcher::Config::default()).default_backoff());
    let mut said = BTreeMap::<String, i64>::new();
    let mut waiting = BTreeMap::<String, i64>::new();
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < CONCURRENCY
            && let Some((name, generation)) = waiting.pop_first()
        {
            let dicoms = &dicoms;
            under_way.push(async move {
                let done = say(dicoms, &name, generation).await;
                (name, generation, done)
            });
        }
        tokio::select! {
            Some((name, generation, done)) = under_way.next(), if !under_way.is_empty() => {
                if !done {
                    waiting.insert(name, generation);
                }
            }
            Some(event) = events.next() => {
                let Ok(Event::Apply(object) | Event::InitApply(object)) = event else { continue };
                let (name, generation) = (object.name_any(), object.metadata.generation.unwrap_or(0));
                if said.get(&name).is_none_or(|said| *said < generation) {
                    said.insert(name.clone(), generation);
                    waiting.insert(name, generation);
                }
            }
        }
    }
}

async fn say(dicoms: &Api<dicom::Dicom>, name: &str, generation: i64) -> bool {
    let condition = |type_: &str, status: &str| {
        json!({
            "type": type_, "status": status, "reason": "Played", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation,
        })
    };
    let conditions = [condition("UpToDate", "True"), condition("Deployed", "True"), condition("Failed", "False")];
    let status = json!({"status": {"observedGeneration": generation, "conditions": conditions}});
    dicoms.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.is_ok()
}
