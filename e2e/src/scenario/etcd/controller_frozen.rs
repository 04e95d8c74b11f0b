//! A lowered partition is a permit that can be used much later (H9): the controller-manager freezes before it uses one, leadership
//! moves onto the permitted member, and the controller-manager wakes.

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::json;

use super::pause_after_the_first;
use crate::{
    cluster::Process,
    say,
    scenario::{trial::Trial, wait},
};

const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// A frozen process that wakes whatever happens to the test.
struct Frozen<'a>(&'a Process);

impl<'a> Frozen<'a> {
    fn freeze(process: &'a Process) -> Result<Self> {
        process.signal(Signal::STOP)?;
        Ok(Self(process))
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.signal(Signal::CONT) {
            say(&format!("{} stays frozen: {error:#}", self.0.name));
        }
    }
}

/// Freezes the controller-manager while the operator is paused, so that the next permit is not used.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    pause_after_the_first(trial).await?;
    let before = trial.partition().await?;
    let frozen = Frozen::freeze(trial.site.cluster.process(CONTROLLER_MANAGER)?)?;
    trial.resource.change(json!({"paused": false})).await?;
    let permitted = wait::until("a permit that nobody uses", 60, async || {
        let partition = trial.partition().await?;
        Ok((partition < before).then_some(partition))
    })
    .await?;
    let pod = trial.application.pod(usize::try_from(permitted).context("a partition below zero")?);
    let uid = trial.uid(&pod).await?;
    say(&format!("{pod} may be replaced, and leadership moves onto it"));
    trial.lead_once(&pod).await?;
    wait::until_so("the permit to be taken back", 60, async || Ok(trial.partition().await? > permitted)).await?;
    ensure!(trial.uid(&pod).await? == uid, "{pod} was replaced while the controller-manager was frozen");
    drop(frozen);
    trial.notes.push(format!("the permit for {pod} was taken back"));
    trial.finish(240).await
}
