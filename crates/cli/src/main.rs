//! The `windlass` command.

mod crds;
#[cfg(feature = "sim")]
mod demo;
mod operator;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Upgrades stateful systems on Kubernetes without taking them down.
#[derive(Parser)]
#[command(version, about, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator: watch QuorumClusters and carry out their upgrades
    Operator(operator::Arguments),
    /// Print the CustomResourceDefinitions, ready for kubectl apply
    Crds(crds::Arguments),
    /// Watch an upgrade on a cluster inside this process: needs no Kubernetes, changes nothing
    #[cfg(feature = "sim")]
    Demo(demo::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Operator(arguments) => operator::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Crds(arguments) => crds::run(&arguments).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "sim")]
        Command::Demo(arguments) => demo::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        anstream::eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
