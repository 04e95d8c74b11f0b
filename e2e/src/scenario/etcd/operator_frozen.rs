//! The operator that acts is frozen for longer than its lease. Another takes over. Then the first one wakes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use tokio::time::sleep;

use crate::{
    say,
    scenario::{operator, trial::Trial, wait},
};

/// Freezes the first operator at a moment that the seed chooses.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.ask_for_new().await?;
    let operator = operator(trial).await?;
    // The first one holds the lease: the second can only stand by.
    let second = trial.site.windlass.start("etcd-operator-frozen-second", 6).await?;
    trial.operators.push(second);
    let moment = trial.rng.between(Duration::from_secs(1), Duration::from_secs(8));
    sleep(moment).await;
    let seen = trial.resource.seen().await?;
    say(&format!("frozen after {} ms: {} done, {}", moment.as_millis(), seen.completed, seen.reason));
    first(trial)?.freeze()?;
    wait::until_so("the second operator to take over", 60, async || {
        let whole = trial.resource.whole().await?;
        let now = &whole["status"]["operator"];
        Ok(now["predecessorDone"] == true && now["identity"].as_str() != Some(&operator))
    })
    .await?;
    let moment = trial.rng.between(Duration::ZERO, Duration::from_secs(3));
    sleep(moment).await;
    let woken = Timestamp::now();
    first(trial)?.resume()?;
    trial.finish(240).await?;

    let credential = first(trial)?.credential.clone();
    let requests = trial.audit.requests(&trial.namespace)?;
    let by_first = requests.iter().filter(|request| request.credential() == Some(&credential) && request.writes());
    let (early, late): (Vec<_>, Vec<_>) = by_first.partition(|request| request.request_received_timestamp < woken);
    ensure!(!early.is_empty(), "the first operator is not in the audit log: {} does not show", operator::USER);
    let landed: Vec<String> = late
        .iter()
        .filter(|request| request.succeeded())
        .map(|request| format!("{} {} {}", request.verb, request.object_ref.resource, request.object_ref.name))
        .collect();
    ensure!(landed.is_empty(), "the operator that woke wrote {}", landed.join(", "));
    trial.notes.push(format!("after it woke, the frozen operator sent {} writes, none landed", late.len()));
    Ok(())
}

fn first<'a>(trial: &'a Trial<'_>) -> Result<&'a operator::LocalOperator> {
    trial.operators.first().context("there is no operator")
}

async fn operator(trial: &Trial<'_>) -> Result<String> {
    wait::until("an operator to act on the resource", 60, async || {
        let whole = trial.resource.whole().await?;
        Ok(whole["status"]["operator"]["identity"].as_str().map(str::to_owned))
    })
    .await
}
