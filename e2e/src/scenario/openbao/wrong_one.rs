//! OpenBao elects whom it likes. Highest ordinal first, so that a leader that steps down can be followed by one that is not upgraded.

use anyhow::Result;
use serde_json::json;

use crate::scenario::trial::Trial;

/// Asks for the order in which that happens.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.resource.change(json!({"updateStrategy": {"rollingUpdate": {"order": "ReverseOrdinal"}}})).await?;
    trial.ask_for_new().await?;
    trial.finish(400).await
}
