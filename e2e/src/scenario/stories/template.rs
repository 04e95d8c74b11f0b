//! Somebody else writes the template: Windlass replaces the pods and leaves everything else of the set alone.

use anyhow::{Result, ensure};

use crate::scenario::trial::Trial;

/// Sets the image as Git would, waits for the new version, and looks who wrote what.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.set_image(&trial.pair()?.new.image).await?;
    trial.finish(300).await?;
    let set = trial.sets.get(trial.application.name()).await?;
    let strategy = set.spec.unwrap_or_default().update_strategy.and_then(|strategy| strategy.type_);
    ensure!(strategy.as_deref() == Some("OnDelete"), "the strategy is {strategy:?} afterwards");
    let generation = set.metadata.generation;
    ensure!(generation == Some(2), "the spec was written to more than once: it is of generation {generation:?}");
    Ok(())
}
