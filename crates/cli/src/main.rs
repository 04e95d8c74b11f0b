//! The `windlass` command.

mod access;
mod crds;
#[cfg(feature = "sim")]
mod demo;
mod executor;
mod login;
mod operator;
mod plan;

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
    /// Run the operator: carry out what QuorumClusters and ServiceImages ask for
    ///
    /// Several may run at once: they compete for a Lease, and one acts. On SIGTERM the Lease is given back. Logs go to standard
    /// error; RUST_LOG chooses what is logged, for example RUST_LOG=windlass_operator=debug.
    Operator(operator::Arguments),
    /// Run one task of the operator, in the pod of a Job that it created
    ///
    /// Says how it ended in one line of JSON, on standard output and in the termination log. Exit codes: 0 done; 1 something that nobody
    /// foresaw; 2 what it was told makes no sense; 3 credentials are missing or not accepted; 4 no member gave what was asked for; 5 what
    /// was taken could not be stored; 6 too late.
    Executor(executor::Arguments),
    /// Show what an upgrade would do, step by step, and what blocks it now: reads only, changes nothing
    ///
    /// Looks at the cluster as the operator does, and lets the operator's own planner say what it would do from here, as if nothing went
    /// wrong: the steps with what comes before each, where leadership moves, where every gate stands now, and what holds. With
    /// --filename the QuorumCluster need not exist yet; its StatefulSet, pods and members are read live. Members are asked at their
    /// pods' addresses, so run it where those can be reached.
    ///
    /// Exits with 0 when there is nothing to do or the first member can go, with 1 on an error, and with 2 when a gate or something
    /// else holds right now.
    Plan(plan::Arguments),
    /// Print the CustomResourceDefinitions, ready for kubectl apply
    Crds(crds::Arguments),
    /// Watch upgrades on a cluster inside this process: needs no Kubernetes, changes nothing
    ///
    /// Starts an embedded Kubernetes with three nodes, runs the operator on it, and upgrades a TiKV PD cluster and then an OpenBao
    /// cluster of three members each: first the plan, then what happens. Then a ServiceImage gives 200 custom resources a new image, tier
    /// by tier: a line of cells for each tier shows who is old, on the way, up to date or failed, and whose image a person chose; beside
    /// it is what the tier waits for. Everything is judged by checkers that know the true state of the members, and the history of the
    /// API. Exits with 0 when the upgrades ended well and nothing was violated.
    #[cfg(feature = "sim")]
    Demo(demo::Arguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nobody is left to tell where standard error is closed.
            let _told = error.print();
            // Not clap's own 2: that is plan's word for blocked.
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let done = match arguments.command {
        Command::Operator(arguments) => operator::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Executor(arguments) => executor::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "sim")]
        Command::Demo(arguments) => demo::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        anstream::eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
