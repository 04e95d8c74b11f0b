//! The controller as a program: `dicom` looks after the Dicoms of the cluster that the environment names; `dicom crd` prints their
//! definition.

#![expect(clippy::print_stdout, reason = "a program whose output is its purpose")]

use anyhow::{Result, bail};
use kube::CustomResourceExt;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match std::env::args().nth(1).as_deref() {
        None => {
            let client = kube::Client::try_default().await?;
            let interrupted = async {
                // An end that can't be waited for comes by itself.
                let _ended = tokio::signal::ctrl_c().await;
            };
            dicom::controller::run_until(&client, interrupted).await;
        }
        Some("crd") => println!("{}", serde_json::to_string_pretty(&dicom::Dicom::crd())?),
        Some(other) => bail!("there is no command {other}; without one it runs, and `crd` prints the definition"),
    }
    Ok(())
}
