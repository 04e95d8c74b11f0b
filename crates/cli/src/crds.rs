//! `windlass crds`: the CustomResourceDefinitions.

use std::io::Write;

use anyhow::Result;
use clap::{Args, ValueEnum};
use windlass_api::crd;

/// How they are printed.
#[derive(Args)]
pub struct Arguments {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Yaml,
    Json,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match arguments.output {
        Format::Json => {
            let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": crd::all()});
            writeln!(out, "{}", serde_json::to_string_pretty(&list)?)?;
        }
        Format::Yaml => {
            for crd in crd::all() {
                write!(out, "---\n{}", serde_saphyr::to_string(&crd)?)?;
            }
        }
    }
    Ok(())
}
