//! PD gives leadership to the member with the highest leader-priority by itself (H19): what was handed over would come back.

use anyhow::{Result, bail, ensure};

use crate::{audit, client::Client, say, scenario::trial::Trial};

/// Prefers the leader, which goes first, and takes that off once Windlass has said what is wrong.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let leader = trial.leader()?;
    prefer(trial, &leader, 100).await?;
    trial.ask_for_new().await?;
    trial.resource.waits_for(&["LeaderPriority"], 60).await?;
    let message = trial.resource.seen().await?.message;
    say(&format!("LeaderPriority: {message}"));
    trial.notes.push(format!("LeaderPriority: {message}"));
    trial.more_writes(200).await?;
    let endings = audit::endings(&trial.audit.requests(&trial.namespace)?);
    ensure!(endings.is_empty(), "pods were ended although leadership would come back");
    ensure!(trial.leader()? == leader, "leadership was moved although it would come back");
    prefer(trial, &leader, 0).await?;
    trial.finish(300).await
}

async fn prefer(trial: &Trial<'_>, pod: &str, priority: i32) -> Result<()> {
    let Client::Pd(pd) = trial.client() else { bail!("this is no PD") };
    match pd.set_priority(trial.address(pod)?, pod, priority).await {
        Ok(()) => Ok(()),
        Err(failure) => bail!("the priority of {pod} can't be set: {failure:?}"),
    }
}
