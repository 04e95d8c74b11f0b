//! Runs the API's conformance scripts alone: `KUBECONFIG` names the real server; arguments are `operations`, `seed`, `only`.
#![allow(clippy::print_stdout, reason = "it is a program")]

use windlass_e2e::conformance::api::{Options, deviations, run};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let kubeconfig = std::path::PathBuf::from(std::env::var("KUBECONFIG")?);
    let mut arguments = std::env::args().skip(1);
    let operations = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let only = arguments.next();
    let options = Options { operations, seed, only, deviation: None };
    if std::env::var_os("DEVIATIONS").is_some() {
        for (deviation, caught) in deviations(&kubeconfig, &options).await? {
            println!("{deviation}: {}", if caught { "caught" } else { "MISSED" });
        }
        return Ok(());
    }
    let report = run(&kubeconfig, &options).await?;
    println!(
        "conformance: {} scripts, {} operations, {} watch events, {} differences",
        report.scripts,
        report.operations,
        report.watch_events,
        report.differences.len()
    );
    Ok(())
}
