//! The new image is pulled on the node before anybody stops; one that can't be is noticed before anybody has.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{audit, say, scenario::trial::Trial};

/// An image that nobody has, then the right one.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let new = trial.pair()?.new.clone();
    trial.bind("windlass-jobs")?;
    let missing = "windlass.test/etcd:nobody-has-it";
    let limits = json!({"prePull": true});
    trial.resource.change(json!({"version": new.version, "image": missing, "upgrade": limits})).await?;
    trial.resource.waits_for(&["ImageNotPullable"], 120).await?;
    let message = trial.resource.seen().await?.message;
    say(&format!("ImageNotPullable: {message}"));
    trial.more_writes(40).await?;
    ensure!(audit::endings(&trial.audit.requests(&trial.namespace)?).is_empty(), "pods were ended in spite of it");
    ensure!(trial.sets.get(trial.application.name()).await?.metadata.generation == Some(1), "the set was written to");
    trial.notes.push(message);
    trial.resource.change(json!({"image": new.image})).await?;
    trial.finish(240).await
}
