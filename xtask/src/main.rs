//! The project's chores: `cargo xtask test`, `cargo xtask generate`.
#![expect(clippy::print_stdout, reason = "a program whose output is its purpose")]

mod citations;
mod generate;
mod parts;
mod purity;
mod shell;

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
}

fn main() -> Result<ExitCode> {
    match Arguments::parse().chore {
        Chore::Test { part, list } => parts::run(part.as_deref(), list),
        Chore::Generate { check } => generate::run(check).map(|()| ExitCode::SUCCESS),
    }
}
