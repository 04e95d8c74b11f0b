//! What `cargo xtask cluster`, `cargo xtask conformance` and `cargo xtask e2e` run.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program whose output is its purpose")]

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};
use windlass_e2e::{
    cluster::{self, Missing},
    conformance, kubectl, operator_image, scenario,
};

/// Tests on a real cluster.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A real Kubernetes on this machine
    Cluster {
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// The embedded cluster held to the real one: the same scripts on both, and the answers compared
    Conformance(conformance::command::Arguments),
    /// Upgrades of real applications on the real cluster, under load
    E2e(scenario::command::Arguments),
    /// The real kubectl on the embedded cluster of `windlass demo --keep`
    Kubectl {
        /// Another kubectl than the one that is built here
        #[arg(long)]
        kubectl: Option<PathBuf>,
        /// A program of Windlass with the embedded cluster; without it, one is built from these sources
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Windlass's own image: static, non-root, without the embedded cluster
    Image {
        /// The image's name and tag
        #[arg(long, default_value = "windlass.test/windlass:dev")]
        name: String,
        /// Where the OCI archive is written
        #[arg(long, default_value = "target/windlass-image.tar")]
        output: PathBuf,
        /// Make it known to the cluster that is up
        #[arg(long)]
        load: bool,
    },
}

#[derive(Subcommand)]
enum ClusterCommand {
    /// Build everything that the tests run, and start nothing
    Build,
    /// Build what it needs, start it, and print where its kubeconfig is
    Up(Shape),
    /// Stop it and leave nothing behind
    Down {
        /// The cluster's name
        #[arg(long, default_value = "default")]
        name: String,
    },
    /// Show what runs
    Status,
}

#[derive(clap::Args)]
struct Shape {
    /// The cluster's name; several control planes can run side by side
    #[arg(long, default_value = "default")]
    name: String,
    /// etcd, API server, controller-manager and scheduler on loopback: no node, no containers, no root
    #[arg(long)]
    control_plane_only: bool,
    /// So many nodes that KWOK plays
    #[arg(long, default_value_t = 0)]
    kwok_nodes: usize,
}

/// Something that the tests need is not here: neither passed nor failed.
const SKIPPED: u8 = 3;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse().command).await {
        Ok(code) => code,
        Err(error) => {
            if let Some(missing) = error.downcast_ref::<Missing>() {
                println!("{missing}");
                return ExitCode::from(SKIPPED);
            }
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Cluster { command } => run_cluster(command).await,
        Command::Conformance(arguments) => conformance::command::run(&arguments).await,
        Command::E2e(arguments) => scenario::command::run(&arguments).await,
        Command::Kubectl { kubectl, program } => {
            let kubectl = match kubectl {
                Some(kubectl) => kubectl,
                None => cluster::kubectl()?,
            };
            let program = program.map_or_else(operator_image::build_demo, Ok)?;
            let checks = kubectl::run(&kubectl, &program).await?;
            println!("kubectl: {checks} commands do what they do on a real cluster");
            Ok(ExitCode::SUCCESS)
        }
        Command::Image { name, output, load } => {
            let program = operator_image::build_program()?;
            let digest = operator_image::image(&name, &program)?.write(&output)?;
            println!("{name} {digest} {}", output.display());
            if load {
                cluster::find("default")?.load_image(&std::path::absolute(output)?)?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn run_cluster(command: ClusterCommand) -> Result<ExitCode> {
    match command {
        ClusterCommand::Build => {
            let count = cluster::build_all()?;
            println!("cluster: {count} folders of programs built");
        }
        ClusterCommand::Up(shape) => {
            let options = cluster::Options {
                name: shape.name,
                shape: if shape.control_plane_only { cluster::Shape::ControlPlane } else { cluster::Shape::Node },
                played_nodes: shape.kwok_nodes,
                api_server: Vec::new(),
                audited: None,
            };
            let cluster = cluster::up(&options).await?;
            println!("export KUBECONFIG={}", cluster.kubeconfig().display());
        }
        ClusterCommand::Down { name } => {
            let was_there = cluster::down(&name)?;
            println!("{}", if was_there { "the cluster is gone" } else { "there is no cluster" });
        }
        ClusterCommand::Status => {
            let clusters = cluster::status()?;
            if clusters.is_empty() {
                println!("no cluster is up");
            }
            for (name, story) in clusters {
                println!("{name}: {story}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
