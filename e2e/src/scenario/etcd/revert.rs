//! Somebody changes their mind half way.

use anyhow::Result;
use serde_json::json;

use crate::scenario::trial::Trial;

/// Asks for the old version again once the first member is done.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let old = trial.pair()?.old.version.clone();
    trial.ask_for_new().await?;
    trial.resource.completed(1, 120).await?;
    trial.resource.change(json!({"version": old})).await?;
    trial.resource.ready_at(&old, 240).await
}
