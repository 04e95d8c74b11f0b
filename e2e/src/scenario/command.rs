//! `cargo xtask e2e`.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::{
    Scenario, all,
    control_plane::{self, Check, mass},
    row, run,
    site::{SITE, Site},
};
use crate::cluster;

/// Which scenarios, and how they are shown.
#[derive(Args)]
pub struct Arguments {
    /// A scenario's name, or how names begin: etcd, http, openbao or pd for all of one, control-plane for what needs no containers,
    /// service-image for a large fleet; without it, what CI runs
    name: Option<String>,
    /// List the scenarios with what they show, and run none
    #[arg(long)]
    list: bool,
    /// How many resources the fleet of service-image has
    #[arg(long, default_value_t = 10_000)]
    resources: usize,
    /// Decides everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep everything about a scenario that passed, too
    #[arg(long)]
    keep: bool,
    /// Take the cluster down afterwards; without it the next run finds it up
    #[arg(long)]
    down: bool,
    /// A program of Windlass to run; without it, the one that is shipped is built: static, and without the embedded cluster
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
        for check in control_plane::CHECKS {
            println!("{:<26} {:<3} {}", check.name, "ci", check.shows);
        }
        println!("{:<26} {:<3} {}", mass::NAME, "", mass::SHOWS);
        for scenario in all() {
            println!("{:<26} {:<3} {}", scenario.name, if scenario.ci { "ci" } else { "" }, scenario.shows);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    let (checks, scenarios) = if arguments.name.as_deref() == Some(mass::NAME) {
        rows.push(mass::run(arguments.resources, arguments.program.clone()).await?);
        (Vec::new(), Vec::new())
    } else {
        choose(arguments.name.as_deref())?
    };
    if !checks.is_empty() {
        rows.extend(control_plane::run(&checks, arguments.program.clone()).await?);
    }
    if !scenarios.is_empty() {
        let applications = scenarios.iter().map(|scenario| scenario.application).collect();
        let site = Site::prepare(&applications, arguments.seed, arguments.program.clone()).await?;
        for scenario in scenarios {
            rows.push(run::run(&site, scenario, arguments.keep).await);
        }
        if arguments.down {
            cluster::down(SITE)?;
        }
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

/// One by its whole name, otherwise all whose names begin so.
fn choose(name: Option<&str>) -> Result<(Vec<&'static Check>, Vec<&'static Scenario>)> {
    let Some(name) = name else {
        return Ok((control_plane::named(""), all().filter(|scenario| scenario.ci).collect()));
    };
    let scenarios: Vec<&Scenario> = match super::find(name) {
        Some(one) => vec![one],
        None => all().filter(|scenario| scenario.name.starts_with(name)).collect(),
    };
    let checks = control_plane::named(name);
    if checks.is_empty() && scenarios.is_empty() {
        bail!("no scenario is called that; --list shows them");
    }
    Ok((checks, scenarios))
}
