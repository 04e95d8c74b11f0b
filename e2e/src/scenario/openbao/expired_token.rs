//! Windlass's token ends in the middle of the upgrade. Whoever renews it writes a new one into its Secret.

use anyhow::{Result, ensure};

use super::renew;
use crate::{
    audit, say,
    scenario::{trial::Trial, wait},
};

/// Shorter than an upgrade takes, and longer than it takes to begin one.
const SHORT: &str = "20s";

/// Lets the token expire, sees that nothing moves and that a person is told, and gives it another.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    renew(trial, SHORT).await?;
    trial.ask_for_new().await?;
    let message = wait::until("a hold that names the token", 120, async || {
        let seen = trial.resource.seen().await?;
        ensure!(!seen.ready || seen.completed == 0, "the upgrade was over before the token was");
        Ok((seen.reason == "TokenRefused" && seen.message.contains("403")).then_some(seen.message))
    })
    .await?;
    say(&format!("TokenRefused: {message}"));
    let before = endings(trial)?;
    ensure!(before < trial.replicas, "the upgrade was over before the token was");
    trial.more_writes(200).await?;
    ensure!(endings(trial)? == before, "pods were ended by an operator whose token has expired");
    trial.notes.push(format!("after {before} pods: {message}"));
    renew(trial, "1h").await?;
    trial.finish(300).await
}

fn endings(trial: &Trial<'_>) -> Result<usize> {
    Ok(audit::endings(&trial.audit.requests(&trial.namespace)?).len())
}
