//! The new image runs and never gets ready. Its deadline passes, a person is told, and a mended image finishes the job; or, where that is
//! asked for, it goes back by itself.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{applications::IDLE, say, scenario::trial::Trial};

/// A deadline that passes soon. It stays: a longer one would give the broken pod its time again.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let new = trial.pair()?.new.clone();
    let limits = json!({"deadlines": {"ready": "60s"}});
    trial.resource.change(json!({"version": new.version, "image": IDLE, "upgrade": limits})).await?;
    // Where no pod is held back by a partition, the template is put back as well.
    let reason = trial.resource.waits_for(&["DeadlineExceeded", "TemplateReverted"], 150).await?;
    let message = trial.resource.seen().await?.message;
    say(&format!("{reason}: {message}"));
    trial.notes.push(format!("{reason}: {message}"));
    trial.more_writes(40).await?;
    trial.resource.change(json!({"image": new.image})).await?;
    trial.finish(240).await
}

/// The same with `onDeadline: RollBack`.
pub async fn goes_back(trial: &mut Trial<'_>) -> Result<()> {
    let new = trial.pair()?.new.clone();
    let limits = json!({"deadlines": {"ready": "40s"}});
    let spec = json!({"version": new.version, "image": IDLE, "upgrade": limits, "onDeadline": "RollBack"});
    trial.resource.change(spec).await?;
    trial.resource.waits_for(&["RolledBack"], 180).await?;
    let message = trial.resource.seen().await?.message;
    say(&format!("RolledBack: {message}"));
    trial.notes.push(format!("RolledBack: {message}"));
    let whole = trial.resource.whole().await?;
    ensure!(whole["status"]["upgrade"].is_null(), "an upgrade is under way still: {}", whole["status"]["upgrade"]);
    trial.more_writes(40).await
}
