//! Evictions and a drain of the node in the middle of the upgrade (H12).

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{EvictParams, ListParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::time::sleep;

use super::is_up;
use crate::{
    say,
    scenario::{trial::Trial, wait},
};

/// How often the drain tries each pod.
const TRIES: usize = 6;

/// Evicts what must not go, drains the node for a while, and evicts again when the upgrade is over.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.ask_for_new().await?;
    let top = trial.application.pod(trial.replicas - 1);
    let uid = trial.uid(&top).await?;
    wait::until_so("the first member to be replaced", 60, async || {
        let pod = trial.pods.get_opt(&top).await?;
        Ok(pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some() || pod.uid().as_ref() != Some(&uid)))
    })
    .await?;
    let mut refused = evict_all(trial).await?;
    let nodes: Api<Node> = Api::all(trial.site.client.clone());
    let names: Vec<String> =
        nodes.list(&ListParams::default()).await?.items.iter().map(ResourceExt::name_any).collect();
    say("the node is drained");
    cordon(&nodes, &names, true).await?;
    let drained = drain(trial).await;
    cordon(&nodes, &names, false).await?;
    refused += drained?;
    ensure!(refused > 0, "no eviction was tried");
    trial.notes.push(format!("{refused} evictions were refused"));
    trial.finish(240).await?;

    let leader = trial.leader()?;
    let follower = (0..trial.replicas)
        .map(|ordinal| trial.application.pod(ordinal))
        .find(|pod| *pod != leader)
        .context("there is no follower")?;
    let uid = trial.uid(&follower).await?;
    say(&format!("the upgrade is over, {follower} is evicted"));
    wait::until_so("an eviction to be let through", 30, async || evict(trial, &follower).await).await?;
    wait::until_so(&format!("{follower} to be back"), 60, async || {
        let pod = trial.pods.get(&follower).await?;
        Ok(is_up(&pod) && pod.uid().as_ref() != Some(&uid))
    })
    .await
}

async fn drain(trial: &Trial<'_>) -> Result<usize> {
    let mut refused = 0;
    for _ in 0..TRIES {
        refused += evict_all(trial).await?;
        sleep(Duration::from_secs(1)).await;
    }
    Ok(refused)
}

/// Tries to evict every member that is not permitted to go; how many evictions were refused. None may be let through.
async fn evict_all(trial: &Trial<'_>) -> Result<usize> {
    let held = usize::try_from(trial.partition().await?)?;
    let mut refused = 0;
    for ordinal in 0..held.min(trial.replicas) {
        let gone = evict(trial, &trial.application.pod(ordinal)).await?;
        let permitted = usize::try_from(trial.partition().await?)? <= ordinal;
        ensure!(!gone || permitted, "{} was evicted in the middle of the upgrade", trial.application.pod(ordinal));
        refused += usize::from(!gone);
    }
    Ok(refused)
}

/// Whether the API server let the eviction through.
async fn evict(trial: &Trial<'_>, pod: &str) -> Result<bool> {
    match trial.pods.evict(pod, &EvictParams::default()).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(false),
        Err(error) => bail!("{pod} can't be evicted: {error}"),
    }
}

async fn cordon(nodes: &Api<Node>, names: &[String], unschedulable: bool) -> Result<()> {
    let patch = json!({"spec": {"unschedulable": unschedulable}});
    for name in names {
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    Ok(())
}
