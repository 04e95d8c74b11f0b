//! The new image runs and never gets ready. Its deadline passes, a person is told, and a mended image finishes the job.

use anyhow::Result;
use serde_json::json;

use crate::{applications::IDLE, say, scenario::trial::Trial};

/// A short deadline, so that it passes; then the usual one again, and an image that is what it says.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let new = trial.pair()?.new.clone();
    let deadline = |ready: &str| json!({"deadlines": {"ready": ready}});
    trial.resource.change(json!({"version": new.version, "image": IDLE, "upgrade": deadline("30s")})).await?;
    // Where no pod is held back by a partition, the template is put back as well.
    let reason = trial.resource.waits_for(&["DeadlineExceeded", "TemplatePutBack"], 120).await?;
    let message = trial.resource.seen().await?.message;
    say(&format!("{reason}: {message}"));
    trial.notes.push(format!("{reason}: {message}"));
    trial.more_writes(40).await?;
    trial.resource.change(json!({"image": new.image, "upgrade": deadline("5m")})).await?;
    trial.finish(300).await
}
