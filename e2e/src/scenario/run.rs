//! Runs scenarios one after the other, and closes with one line for each.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::{Scenario, evidence, facts, facts::Facts, row::Row, site::Site, trial::Trial};
use crate::say;

/// No scenario may take longer, whatever it waits for.
const LIMIT: Duration = Duration::from_mins(8);

/// Runs one scenario to its row. Everything about one that fails is kept, and with `always` of one that passes.
pub async fn run(site: &Site, scenario: &Scenario, always: bool) -> Row {
    say(&format!("== {}: {}", scenario.name, scenario.shows));
    let begun = Instant::now();
    let mut row = Row { scenario: scenario.name.to_owned(), members: scenario.replicas, ..Row::default() };
    let mut trial = Trial::new(site, scenario);
    let result = tokio::time::timeout(LIMIT, go(scenario, &mut trial)).await;
    let result = result.unwrap_or_else(|_| Err(anyhow!("it took longer than {} s", LIMIT.as_secs())));
    let closed = trial.close().await;
    if let Err(error) = result {
        row.wrong.push(format!("{error:#}"));
    }
    let facts = match closed {
        Ok(facts) => {
            row.measure(&facts);
            match site.pair(scenario.application) {
                Ok(pair) => row.wrong.extend(facts::broken(scenario, &facts, (scenario.ends_at)(pair))),
                Err(error) => row.wrong.push(format!("{error:#}")),
            }
            Some(facts)
        }
        Err(error) => {
            row.wrong.push(format!("what happened can't be told: {error:#}"));
            None
        }
    };
    row.notes.clone_from(&trial.notes);
    if always || !row.passed() {
        keep(&mut row, &trial, facts.as_ref()).await;
    }
    // The operators end before their resource does.
    trial.operators.clear();
    if let Err(error) = trial.remove().await {
        row.wrong.push(format!("it left something behind: {error:#}"));
    }
    row.seconds = begun.elapsed().as_secs();
    say(&format!("== {}: {} after {} s", scenario.name, if row.passed() { "ok" } else { "FAILED" }, row.seconds));
    row
}

async fn go(scenario: &Scenario, trial: &mut Trial<'_>) -> Result<()> {
    trial.set_up(scenario).await?;
    say(&format!("{} is up, load and witness run", scenario.application.name()));
    (scenario.run)(trial).await?;
    // What was done shows in what comes after it, too.
    trial.more_writes(40).await
}

async fn keep(row: &mut Row, trial: &Trial<'_>, facts: Option<&Facts>) {
    match evidence::keep(trial, facts).await {
        Ok(folder) => row.evidence = Some(folder.display().to_string()),
        Err(error) => row.wrong.push(format!("the evidence can't be kept: {error:#}")),
    }
}
