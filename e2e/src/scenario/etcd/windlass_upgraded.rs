//! Windlass itself is upgraded while it upgrades etcd. Both images hold the same build: what is shown is the change of hands.

use anyhow::Result;

use crate::scenario::{operator, trial::Trial};

/// Changes the Deployment's image once the first member is done.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.ask_for_new().await?;
    trial.resource.completed(1, 120).await?;
    trial.site.windlass.change_image(operator::IMAGES[1]).await?;
    trial.finish(240).await?;
    trial.site.windlass.available().await
}
