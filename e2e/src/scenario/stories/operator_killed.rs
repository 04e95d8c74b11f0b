//! The operator is killed, again and again, at moments that the seed chooses.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::sleep;

use crate::{
    say,
    scenario::{trial::Trial, wait},
};

/// So many kills come just after it has begun to act: a moment in which it can do one thing or the other, and not all of them.
const ACTING: u64 = 4;
/// So many come while it competes for the lease or takes over, where it must not do anything yet.
const WAITING: u64 = 6;

/// The order and the moments are the seed's.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.ask_for_new().await?;
    let mut before = String::new();
    let (mut acting, mut waiting, mut amid) = (ACTING, WAITING, 0);
    while acting + waiting > 0 {
        let longest = if trial.rng.below(acting + waiting) < acting {
            acting -= 1;
            before = another_acts(trial, &before).await?;
            Duration::from_millis(500)
        } else {
            waiting -= 1;
            Duration::from_secs(8)
        };
        sleep(trial.rng.between(Duration::ZERO, longest)).await;
        let seen = trial.resource.seen().await?;
        say(&format!("killed at {} of {} done, {}", seen.completed, trial.replicas, seen.reason));
        amid += u64::from(!seen.ready);
        for operator in &mut trial.operators {
            operator.kill()?;
            operator.run()?;
        }
    }
    trial.notes.push(format!("killed {} times, {amid} times in the middle of the upgrade", ACTING + WAITING));
    ensure!(amid >= WAITING, "only {amid} kills came in the middle of the upgrade");
    trial.finish(240).await
}

/// Waits until another process than `before` acts on the resource; which one.
async fn another_acts(trial: &Trial<'_>, before: &str) -> Result<String> {
    wait::until("an operator to act on the resource", 60, async || {
        let whole = trial.resource.whole().await?;
        let operator = &whole["status"]["operator"];
        let id = operator["identity"].as_str().unwrap_or_default();
        Ok((operator["predecessorDone"] == true && id != before).then(|| id.to_owned()))
    })
    .await
}
