//! The operator is killed, again and again, at moments that the seed chooses.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::sleep;

use crate::{
    say,
    scenario::{trial::Trial, wait},
};

const KILLS: usize = 10;

/// Half of the kills come while it takes over or competes, half soon after it has begun to act. So a life is too short to finish
/// the upgrade in.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.ask_for_new().await?;
    let mut before = String::new();
    let mut amid = 0;
    for kill in 1..=KILLS {
        let longest = if kill == 1 || trial.rng.one_in(2) {
            before = acting(trial, &before).await?;
            Duration::from_millis(1500)
        } else {
            Duration::from_secs(8)
        };
        sleep(trial.rng.between(Duration::ZERO, longest)).await;
        let seen = trial.resource.seen().await?;
        say(&format!("kill {kill}: {} of {} done, {}", seen.completed, trial.replicas, seen.reason));
        amid += usize::from(!seen.ready);
        for operator in &mut trial.operators {
            operator.kill()?;
            operator.run()?;
        }
    }
    trial.notes.push(format!("killed {KILLS} times, {amid} times in the middle of the upgrade"));
    ensure!(amid >= KILLS / 2, "only {amid} kills came in the middle of the upgrade");
    trial.finish(240).await
}

/// Waits until another process than `before` acts on the resource; which one.
async fn acting(trial: &Trial<'_>, before: &str) -> Result<String> {
    wait::until("an operator to act on the resource", 60, async || {
        let whole = trial.resource.whole().await?;
        let election = &whole["status"]["election"];
        let id = election["id"].as_str().unwrap_or_default();
        Ok((election["settled"] == true && id != before).then(|| id.to_owned()))
    })
    .await
}
