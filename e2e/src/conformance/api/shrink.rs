//! Makes a failing script short: first everything behind the first difference goes, then every step that does not matter.

use super::step::Script;
use super::{Difference, Stage};

/// How often a script is played to make it shorter.
const TRIES: usize = 80;

/// Prints the shortest script found that still fails, and returns its differences.
pub async fn shrink(stage: &Stage, script: &Script, first: Vec<Difference>) -> anyhow::Result<Vec<Difference>> {
    let mut best = (script.clone(), first);
    let mut tries = 0;
    let mut chunk = best.0.steps.len().div_ceil(2);
    let end = best.1.iter().map(|difference| difference.step + 1).max().unwrap_or(script.steps.len());
    let mut prefix = script.clone();
    prefix.steps.truncate(end);
    attempt(stage, prefix, &mut best, &mut tries).await?;
    while chunk > 0 && tries < TRIES {
        let mut start = 0;
        while start < best.0.steps.len() && tries < TRIES {
            let mut shorter = best.0.clone();
            let stop = (start + chunk).min(shorter.steps.len());
            shorter.steps.drain(start..stop);
            if !attempt(stage, shorter, &mut best, &mut tries).await? {
                start += chunk;
            }
        }
        chunk /= 2;
    }
    println!("script {} fails; the shortest that does, after {tries} tries:", script.name);
    for (number, step) in best.0.steps.iter().enumerate() {
        println!("  {number}: {}", step.describe());
    }
    Ok(best.1)
}

async fn attempt(
    stage: &Stage,
    shorter: Script,
    best: &mut (Script, Vec<Difference>),
    tries: &mut usize,
) -> anyhow::Result<bool> {
    *tries += 1;
    let namespace = format!("s-{}-{}-{tries}", stage.run, shorter.name);
    let played = stage.play(&namespace, &shorter).await?;
    let fails = !played.differences.is_empty() && shorter.steps.len() < best.0.steps.len();
    if fails {
        *best = (shorter, played.differences);
    }
    Ok(fails)
}
