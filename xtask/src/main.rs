//! The project's chores: `cargo xtask test`, `generate`, `fuzz`, `cluster`, `e2e`, `image`.
#![expect(clippy::print_stdout, reason = "a program whose output is its purpose")]

mod citations;
mod dependencies;
mod generate;
mod parts;
mod purity;
mod shell;
mod structure;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The project's chores.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Test everything that can be tested here, and say what was skipped and why
    Test {
        /// Only the parts whose names contain this
        part: Option<String>,
        /// Run what takes hours, too: long walks, every crash, the whole of conformance, the image that is shipped, all scenarios
        #[arg(long)]
        full: bool,
        /// List the parts with their budgets, and run none
        #[arg(long)]
        list: bool,
    },
    /// Write the generated files: CustomResourceDefinitions and the reference of reasons
    Generate {
        /// Write nothing, and fail where a file is out of date
        #[arg(long)]
        check: bool,
    },
    /// Feed whatever reads foreign bytes with inputs that nobody would write
    Fuzz {
        /// For how long
        #[arg(long, default_value_t = 1)]
        minutes: u64,
        /// Where to begin; the same for the same inputs
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Keep inputs whose kind of answer no kept input has
        #[arg(long)]
        keep: bool,
    },
    /// A real Kubernetes on this machine: up, down, status
    #[command(disable_help_flag = true)]
    Cluster(Words),
    /// Upgrades of real applications on the real cluster, under load
    #[command(disable_help_flag = true)]
    E2e(Words),
    /// The embedded cluster held to a real API server, a real controller-manager and real etcd
    #[command(disable_help_flag = true)]
    Conformance(Words),
    /// The real kubectl on the embedded cluster of `windlass demo --keep`
    #[command(disable_help_flag = true)]
    Kubectl(Words),
    /// Windlass's own image, as an OCI archive
    #[command(disable_help_flag = true)]
    Image(Words),
}

/// Words for the program that does it, which also knows their help.
#[derive(clap::Args)]
struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

fn main() -> Result<ExitCode> {
    match Arguments::parse().chore {
        Chore::Test { part, full, list } => parts::run(part.as_deref(), full, list),
        Chore::Generate { check } => generate::run(check).map(|()| ExitCode::SUCCESS),
        Chore::Fuzz { minutes, seed, keep } => shell::fuzz(minutes, seed, keep),
        Chore::Cluster(Words { words }) => shell::e2e("cluster", &words),
        Chore::E2e(Words { words }) => shell::e2e("e2e", &words),
        Chore::Conformance(Words { words }) => shell::e2e("conformance", &words),
        Chore::Kubectl(Words { words }) => shell::e2e("kubectl", &words),
        Chore::Image(Words { words }) => shell::e2e("image", &words),
    }
}
