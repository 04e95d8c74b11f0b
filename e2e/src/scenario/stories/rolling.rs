//! The plain upgrade.

use anyhow::Result;

use crate::scenario::trial::Trial;

/// Asks for the new version and waits for it.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.ask_for_new().await?;
    trial.finish(300).await
}
