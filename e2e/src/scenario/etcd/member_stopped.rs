//! A member stops answering in the middle of the upgrade, and is then killed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use tokio::time::sleep;

use super::pause_after_the_first;
use crate::{audit, say, scenario::trial::Trial};

/// A member that says nothing is neither healthy nor dead: nobody else may go meanwhile.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    pause_after_the_first(trial).await?;
    let leader = trial.leader()?;
    let followers: Vec<String> =
        (0..trial.replicas).map(|ordinal| trial.application.pod(ordinal)).filter(|pod| *pod != leader).collect();
    let pod = trial.rng.pick(&followers).context("there is no follower")?.clone();
    say(&format!("{pod} stops answering"));
    kill_process(trial.member_process(&pod)?, Signal::STOP)?;
    let before = endings(trial)?;
    trial.resource.change(json!({"paused": false})).await?;
    let reason =
        trial.resource.waits_for(&["MembersUnknown", "MemberUnhealthy", "PodNotReady", "QuorumAtRisk"], 60).await?;
    let moment = trial.rng.between(Duration::from_secs(4), Duration::from_secs(8));
    sleep(moment).await;
    ensure!(endings(trial)? == before, "pods were ended while {pod} did not answer");
    kill_process(trial.member_process(&pod)?, Signal::KILL)?;
    trial.notes.push(format!("{pod} was silent for {} ms and more: {reason}", moment.as_millis()));
    trial.finish(240).await
}

fn endings(trial: &Trial<'_>) -> Result<usize> {
    Ok(audit::endings(&trial.audit.requests(&trial.namespace)?).len())
}
