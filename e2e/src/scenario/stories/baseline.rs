//! The same change as everybody makes it: a new image in the StatefulSet, and Kubernetes does the rest.

use anyhow::Result;

use crate::scenario::{trial::Trial, wait};

/// Sets the image, and RollingUpdate where that is not the strategy, and waits until the StatefulSet is through.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.roll_by_itself().await?;
    trial.set_image(&trial.pair()?.new.image).await?;
    wait::until_so("the StatefulSet to be rolled out", 300, async || {
        let set = trial.sets.get(trial.application.name()).await?;
        let status = set.status.unwrap_or_default();
        let all = i32::try_from(trial.replicas).ok();
        Ok(status.observed_generation == set.metadata.generation
            && status.current_revision == status.update_revision
            && status.updated_replicas == all
            && status.ready_replicas == all)
    })
    .await
}
