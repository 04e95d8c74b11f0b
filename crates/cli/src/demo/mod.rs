//! `windlass demo`: quorums and a fleet, upgraded by the real operator on a cluster inside this process.

mod fleet;
mod frame;
mod keep;
mod pace;
mod quorum;
mod screen;
mod summary;

use std::{cell::RefCell, io::Write, process::ExitCode, rc::Rc, time::Duration};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;
use tokio::task::LocalSet;
use windlass_rehearsal::{
    operator,
    setting::{OPENBAO, PD},
    stamping,
};
use windlass_sim::{clock::Clock, faults::Process, harness::Cluster, world::Settings};

use crate::demo::summary::Summary;

/// The kind that all systems share.
const DEFINITION: &str = "CustomResourceDefinition";
/// Cluster time after which something must be wrong.
const PATIENCE: Duration = Duration::from_mins(30);

/// How the demo is shown.
#[derive(Args)]
pub struct Arguments {
    /// Show this one alone; without it, one after the other
    #[arg(long, value_enum)]
    system: Option<System>,
    /// How many times faster than real time
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plain lines instead of a live picture; chosen by itself when the output is no terminal
    #[arg(long)]
    no_tty: bool,
    /// Print a summary for machines on the last line
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Leave the cluster running afterwards, and print a kubeconfig for it
    #[arg(long)]
    keep: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum System {
    /// TiKV's PD, highest ordinal first
    Pd,
    /// OpenBao, its leader last
    Openbao,
    /// 200 custom resources that get a new image, tier by tier
    Fleet,
}

impl System {
    /// Where it lives.
    fn namespace(self) -> &'static str {
        match self {
            Self::Pd => PD.namespace,
            Self::Openbao => OPENBAO.namespace,
            Self::Fleet => stamping::NAMESPACE,
        }
    }

    /// How a person looks at it.
    fn command(self) -> &'static str {
        match self {
            Self::Pd | Self::Openbao => "kubectl get quorumclusters -A",
            Self::Fleet => "kubectl get serviceimages,dicoms -A",
        }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && (0.1..=100_000.0).contains(&speed) => Ok(speed),
        Ok(_) => Err("must be between 0.1 and 100000".into()),
        Err(error) => Err(error.to_string()),
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    LocalSet::new().block_on(&runtime, play(arguments))
}

async fn play(arguments: &Arguments) -> Result<ExitCode> {
    let clock = if arguments.keep { Clock::start_at(keep::epoch()) } else { Clock::start() };
    let cluster = Cluster::with(arguments.seed, clock, Settings::default());
    let pace = Rc::new(RefCell::new(arguments.speed));
    tokio::task::spawn_local(cluster.world.clone().run());
    tokio::task::spawn_local(pace::keep(pace.clone()));
    create(&cluster, PD.objects(0, "", "").into_iter().filter(|object| object["kind"] == DEFINITION))?;
    let process = Process::new("windlass-0-0", cluster.clock, cluster.journal.clone(), arguments.seed);
    let seat = cluster.seat(&process);
    tokio::task::spawn_local(async move { process.live(operator(seat)).await });

    let systems = arguments.system.map_or_else(|| System::value_variants().to_vec(), |system| vec![system]);
    let (mut upgrades, mut fleets) = (Vec::new(), Vec::new());
    for system in &systems {
        match system {
            System::Pd => upgrades.push(quorum::upgrade(arguments, &cluster, PD).await?),
            System::Openbao => upgrades.push(quorum::upgrade(arguments, &cluster, OPENBAO).await?),
            System::Fleet => fleets.push(fleet::upgrade(arguments, &cluster).await?),
        }
    }
    let summary = Summary::of(&cluster, upgrades, fleets);
    let mut out = anstream::stdout().lock();
    match arguments.output {
        Some(Output::Json) => writeln!(out, "{}", serde_json::to_string(&summary)?)?,
        None => write!(out, "{}", summary.text())?,
    }
    drop(out);
    if arguments.keep {
        keep::keep(&cluster, &pace, &systems).await?;
    }
    Ok(if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn create(cluster: &Cluster, objects: impl IntoIterator<Item = Value>) -> Result<()> {
    for object in objects {
        if let Err(status) = cluster.api.create_value("user", object) {
            bail!("the embedded cluster refused an object: {status}");
        }
    }
    Ok(())
}
