//! The `windlass` command.

mod crds;
#[cfg(feature = "sim")]
mod demo;
mod executor;
mod operator;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Upgrades stateful systems on Kubernetes without taking them down.
#[derive(Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator: watch QuorumClusters and carry out their upgrades
    ///
    /// Several may run at once: they compete for a Lease, and one acts. On SIGTERM the Lease is given back. Logs go to standard
    /// error; RUST_LOG chooses what is logged, for example RUST_LOG=windlass_operator=debug.
    Operator(operator::Arguments),
    /// Run one task of the operator's, in the pod of a Job that it made
    ///
    /// Says how it ended in one line of JSON, on standard output and in the termination log. Exit codes: 0 done; 1 something that nobody
    /// foresaw; 2 what it was told makes no sense; 3 credentials are missing or not accepted; 4 no member gave what was asked for; 5 what
    /// was taken could not be stored; 6 too late.
    Executor(executor::Arguments),
    /// Print the CustomResourceDefinitions, ready for kubectl apply
    Crds(crds::Arguments),
    /// Watch an upgrade on a cluster inside this process: needs no Kubernetes, changes nothing
    ///
    /// Starts an embedded Kubernetes with three nodes and a TiKV PD cluster of three members, runs the operator on it, asks for
    /// a newer version and shows what happens. Everything is judged by a checker that knows the true state of the members.
    /// Exits with 0 when the upgrade ended well and nothing was violated.
    #[cfg(feature = "sim")]
    Demo(demo::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Operator(arguments) => operator::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Executor(arguments) => executor::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "sim")]
        Command::Demo(arguments) => demo::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        anstream::eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
