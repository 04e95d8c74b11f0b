//! `cargo xtask e2e`.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::{Scenario, all, row, run, site::Site};

/// Which scenarios, and how they are shown.
#[derive(Args)]
pub struct Arguments {
    /// A scenario's name, or how names begin: etcd for all of etcd; without it, what CI runs
    name: Option<String>,
    /// List the scenarios with what they show, and run none
    #[arg(long)]
    list: bool,
    /// Decides everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep everything about a scenario that passed, too
    #[arg(long)]
    keep: bool,
    /// A static program of Windlass to run; without it, one is built from these sources
    #[arg(long)]
    program: Option<PathBuf>,
    /// How the closing table is printed
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// Runs what was asked for. Everything but the closing table goes to standard error.
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
pub async fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.list {
        for scenario in all() {
            println!("{:<26} {:<3} {}", scenario.name, if scenario.ci { "ci" } else { "" }, scenario.shows);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = choose(arguments.name.as_deref())?;
    let site = Site::prepare(arguments.seed, arguments.program.clone()).await?;
    let mut rows = Vec::new();
    for scenario in chosen {
        rows.push(run::run(&site, scenario, arguments.keep).await);
    }
    match arguments.output {
        Output::Table => println!("{}\n{}", row::table(&rows), closing(&rows)),
        Output::Json => println!("{}", serde_json::to_string(&rows)?),
    }
    Ok(if rows.iter().all(row::Row::passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The last line, which `cargo xtask test` reads.
fn closing(rows: &[row::Row]) -> String {
    let passed = rows.iter().filter(|row| row.passed()).count();
    let acknowledged: usize = rows.iter().map(|row| row.acknowledged).sum();
    let lost: usize = rows.iter().map(|row| row.lost).sum();
    format!("e2e: {passed} of {} scenarios passed, {acknowledged} writes acknowledged, {lost} lost", rows.len())
}

fn choose(name: Option<&str>) -> Result<Vec<&'static Scenario>> {
    let chosen: Vec<&Scenario> = match name {
        None => all().filter(|scenario| scenario.ci).collect(),
        Some(name) => match super::find(name) {
            Some(one) => vec![one],
            None => all().filter(|scenario| scenario.name.starts_with(name)).collect(),
        },
    };
    if chosen.is_empty() {
        bail!("no scenario is called that; --list shows them");
    }
    Ok(chosen)
}
