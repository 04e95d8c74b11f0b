//! The new image does not come up. One member is down then, and nothing else moves; a mended image finishes the job.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{applications::CRASHING, say, scenario::trial::Trial};

/// An image whose program ends at once.
pub async fn crashing(trial: &mut Trial<'_>) -> Result<()> {
    mended(trial, CRASHING, "CrashLooping").await
}

/// An image that is nowhere.
pub async fn missing(trial: &mut Trial<'_>) -> Result<()> {
    let image = format!("windlass.test/{}:not-there", trial.application.name());
    mended(trial, &image, "ImagePullFailed").await
}

async fn mended(trial: &mut Trial<'_>, image: &str, reason: &str) -> Result<()> {
    let new = trial.pair()?.new.clone();
    let mut others = Vec::new();
    for ordinal in 0..trial.replicas - 1 {
        let pod = trial.application.pod(ordinal);
        others.push((pod.clone(), trial.uid(&pod).await?));
    }
    trial.resource.change(json!({"version": new.version, "image": image})).await?;
    trial.resource.waits_for(&[reason], 120).await?;
    let message = trial.resource.seen().await?.message;
    say(&format!("{reason}: {message}"));
    for (pod, uid) in &others {
        ensure!(trial.uid(pod).await? == *uid, "{pod} was replaced although the new image does not run");
    }
    trial.notes.push(format!("{reason}: {message}"));
    trial.more_writes(40).await?;
    trial.resource.change(json!({"image": new.image})).await?;
    trial.finish(240).await
}
