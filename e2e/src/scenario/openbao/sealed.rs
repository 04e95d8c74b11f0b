//! A pod can't open its seal after it was replaced: its key is wrong.

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use kube::api::DeleteParams;
use serde_json::json;

use super::{change, set};
use crate::{
    say,
    scenario::{trial::Trial, wait},
};

/// Spoils the key of the pod that goes first, waits for Windlass to say so, and mends it.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let leader = trial.leader()?;
    let ordinals = (0..trial.replicas).rev();
    let ordinal = ordinals
        .into_iter()
        .find(|ordinal| trial.application.pod(*ordinal) != leader)
        .context("there is no follower")?;
    let pod = trial.application.pod(ordinal);
    let mut others = Vec::new();
    for other in (0..trial.replicas).filter(|other| *other != ordinal).map(|other| trial.application.pod(other)) {
        others.push((other.clone(), trial.uid(&other).await?));
    }
    let key = |key: String| json!({"data": {set::key_file(ordinal): key}});
    change(trial, set::SEAL_SECRET, key(BASE64_STANDARD.encode([7; 32]))).await?;
    trial.ask_for_new().await?;
    let message = wait::until("Windlass to say that the pod is sealed", 120, async || {
        let seen = trial.resource.seen().await?;
        Ok((!seen.ready && seen.message.contains("sealed")).then(|| format!("{}: {}", seen.reason, seen.message)))
    })
    .await?;
    say(&message);
    trial.notes.push(message);
    trial.more_writes(200).await?;
    for (other, uid) in &others {
        ensure!(trial.uid(other).await? == *uid, "{other} was replaced although {pod} is sealed");
    }
    // The program reads its key when it starts.
    change(trial, set::SEAL_SECRET, key(set::key())).await?;
    trial.pods.delete(&pod, &DeleteParams::default()).await?;
    trial.finish(300).await
}
