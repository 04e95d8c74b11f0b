//! The bare loop: nothing but the patches.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::witness::Seen;

/// Sends what the operator sends for each of them, in the order given; how long that took.
pub async fn send(client: &Client, all: &[Seen], image: &str, concurrency: usize) -> Result<Duration> {
    let begun = Instant::now();
    let sent = stream::iter(all).map(|one| async move {
        let (namespace, name) = &one.key;
        let stamped = json!({"image": image, "at": jiff::Timestamp::now(), "round": 1}).to_string();
        let patch = json!({
            "apiVersion": "examples.windlass.dev/v1", "kind": "Dicom",
            "metadata": {
                "name": name, "uid": one.uid, "resourceVersion": one.revision.to_string(),
                "annotations": {"windlass.dev/stamped": stamped},
            },
            "spec": {"image": image},
        });
        let dicoms: Api<dicom::Dicom> = Api::namespaced(client.clone(), namespace);
        let params = PatchParams::apply("windlass-stamp").force();
        dicoms.patch(name, &params, &Patch::Apply(&patch)).await.with_context(|| name.clone())
    });
    sent.buffer_unordered(concurrency).map_ok(|_| ()).try_collect::<Vec<()>>().await.context("the bare loop")?;
    Ok(begun.elapsed())
}
