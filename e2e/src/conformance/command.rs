//! `cargo xtask conformance`.

use std::{process::ExitCode, time::Duration};

use anyhow::{Result, ensure};
use clap::Args;

use super::statefulset::Part;
use super::{api, application, schema, statefulset};
use crate::cluster::{self, Cluster, Options, Shape};

/// How many operations a full run compares at least, and CI's part.
const FULL: usize = 20_000;
const CI: usize = 2_000;
/// How many scenarios of workloads CI's part has.
const CI_SCENARIOS: usize = 170;

/// What is compared.
#[derive(Args)]
pub struct Arguments {
    /// CI's part: fewer random scripts, a third of the scenarios of StatefulSets and Jobs, a few of Deployments
    #[arg(long)]
    ci: bool,
    /// Compare at least so many operations
    #[arg(long)]
    operations: Option<usize>,
    /// Where the random scripts come from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only scripts and scenarios whose names contain this; random-<seed> for one random script
    #[arg(long)]
    only: Option<String>,
    /// Break one rule of the embedded cluster after the other, and demand that each is noticed
    #[arg(long)]
    deviations: bool,
    /// Only the simulated applications with real processes of theirs, without any control plane
    #[arg(long, conflicts_with = "deviations")]
    applications: bool,
    /// How many seconds a real process may take to come to the simulated one's answer
    #[arg(long, default_value_t = 60)]
    patience: u64,
    /// How often a play of an application is played that differs: chance has elections that nobody asked for
    #[arg(long, default_value_t = 3)]
    plays: usize,
}

/// Runs it on control planes of its own, which are taken down at the end.
pub async fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.applications {
        let reports = compare_applications(arguments).await?;
        for report in &reports {
            println!("{report}");
        }
        let equal = reports.iter().all(|report| report.differences.is_empty());
        return Ok(if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let server = start("conformance-api", Shape::ApiServer, 0).await?;
    let answers = compare_api(arguments, &server).await;
    let types = compare_types(&server).await;
    cluster::down("conformance-api")?;
    let (answers, types) = (answers?, types?);
    for difference in &types {
        println!("{difference:?}");
    }

    let controllers = start("conformance-sets", Shape::ControlPlane, 1).await?;
    let sets = compare_sets(arguments, &controllers).await;
    cluster::down("conformance-sets")?;
    let sets = sets?;

    if arguments.deviations {
        let count = api::Deviation::ALL.len() + statefulset::Broken::all().count();
        println!("conformance: {count} deviations, all noticed");
        return Ok(ExitCode::SUCCESS);
    }
    let applications = compare_applications(arguments).await?;
    // Once more, where whoever reads the end of a long log finds it.
    for difference in
        answers.differences.iter().map(ToString::to_string).chain(sets.differences.iter().map(ToString::to_string))
    {
        println!("{difference}");
    }
    for report in &applications {
        println!("{report}");
    }
    println!("types: {} differences", types.len());
    let [set, job, deployment] = [Part::Set, Part::Job, Part::Deployment].map(|part| {
        let (scenarios, differences) = sets.of(part);
        format!("{scenarios} scenarios, {differences} differences")
    });
    println!(
        "conformance: {} scripts, {} operations, {} watch events, {} differences; statefulset: {set}; job: {job}; deployment: {deployment}",
        answers.scripts,
        answers.operations,
        answers.watch_events,
        answers.differences.len(),
    );
    let equal = answers.differences.is_empty()
        && types.is_empty()
        && sets.differences.is_empty()
        && applications.iter().all(|report| report.differences.is_empty());
    Ok(if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn compare_api(arguments: &Arguments, server: &Cluster) -> Result<api::Report> {
    let operations = arguments.operations.unwrap_or(if arguments.ci { CI } else { FULL });
    let options = api::Options { operations, seed: arguments.seed, only: arguments.only.clone(), deviation: None };
    if !arguments.deviations {
        return api::run(&server.kubeconfig(), &options).await;
    }
    for (deviation, noticed) in api::deviations(&server.kubeconfig(), &options).await? {
        ensure!(noticed, "{deviation} went unnoticed");
    }
    Ok(api::Report::default())
}

/// The table by which the embedded API merges, with what the server publishes.
async fn compare_types(server: &Cluster) -> Result<Vec<schema::Difference>> {
    schema::check(&cluster::client(&server.kubeconfig()).await?).await
}

async fn compare_sets(arguments: &Arguments, controllers: &Cluster) -> Result<statefulset::Report> {
    if arguments.deviations {
        statefulset::deviations(&controllers.kubeconfig()).await?;
        return Ok(statefulset::Report::default());
    }
    let limit = arguments.ci.then_some(CI_SCENARIOS);
    let options = statefulset::Options { only: arguments.only.clone(), limit, deviation: None };
    statefulset::run(&controllers.kubeconfig(), &options).await
}

/// The simulated applications with real processes; each report is printed, and once more at the end by whoever asked for them.
async fn compare_applications(arguments: &Arguments) -> Result<Vec<application::Report>> {
    let options = application::Options {
        only: arguments.only.as_deref(),
        patience: Duration::from_secs(arguments.patience),
        plays: arguments.plays,
    };
    let reports = application::run(&options).await?;
    for report in &reports {
        for difference in &report.differences {
            println!("{difference}");
        }
    }
    Ok(reports)
}

async fn start(name: &str, shape: Shape, played_nodes: usize) -> Result<Cluster> {
    let off = format!("--disable-admission-plugins={}", api::ADMISSION_PLUGINS_OFF.join(","));
    // Objects of the scripts are to be just what they wrote; the controllers need the rest.
    let api_server = if shape == Shape::ApiServer { vec![off] } else { Vec::new() };
    cluster::up(&Options { name: name.to_owned(), shape, played_nodes, api_server, audited: None }).await
}
