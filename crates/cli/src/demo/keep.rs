//! `--keep`: the cluster stays, and kubectl can talk to it.

use std::{cell::RefCell, io::Write, time::Duration};

use anyhow::{Context, Result};
use jiff::Timestamp;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use windlass_sim::{clock::EPOCH, harness::Cluster};

use crate::demo::System;

/// How fast a cluster that is behind catches up with the person's clock.
const HURRY: f64 = 100_000.0;

/// When a cluster that is kept begins: kubectl compares its times with the person's clock. A few minutes ago, so that a cluster
/// that runs faster for the length of the demo is not in the future afterwards.
pub fn epoch() -> Timestamp {
    Timestamp::now().saturating_sub(Duration::from_mins(15)).unwrap_or(EPOCH)
}

/// Serves the API on loopback until somebody presses Ctrl-C, with a clock that shows what the person's does.
pub async fn keep(cluster: &Cluster, pace: &RefCell<f64>, shown: &[System]) -> Result<()> {
    pace.replace(HURRY);
    while cluster.clock.now() < Timestamp::now() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    pace.replace(1.0);
    let listener = TcpListener::bind("127.0.0.1:0").await.context("can't listen on loopback")?;
    let address = listener.local_addr()?;
    let namespace = shown.first().map_or("default", |system| system.namespace());
    let kubeconfig = kubeconfig(&address.to_string(), namespace);
    let path = std::env::temp_dir().join(format!("windlass-demo-{}.kubeconfig", std::process::id()));
    std::fs::write(&path, &kubeconfig).with_context(|| format!("can't write {}", path.display()))?;
    {
        let mut out = anstream::stdout().lock();
        write!(out, "\n{kubeconfig}\n")?;
        writeln!(out, "The cluster keeps running. In another terminal:\n")?;
        writeln!(out, "  export KUBECONFIG={}", path.display())?;
        let mut commands: Vec<&str> = shown.iter().map(|system| system.command()).collect();
        commands.dedup();
        for command in commands {
            writeln!(out, "  {command}")?;
        }
        writeln!(out, "\nPress Ctrl-C to end it.")?;
    }
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        served = cluster.api.clone().serve(listener) => served?,
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    std::fs::remove_file(&path).ok();
    Ok(())
}

fn kubeconfig(address: &str, namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: windlass-demo\nclusters:\n- name: windlass-demo\n  cluster:\n    server: http://{address}\n\
         contexts:\n- name: windlass-demo\n  context:\n    cluster: windlass-demo\n    user: windlass-demo\n    namespace: {namespace}\nusers:\n- name: windlass-demo\n  user: {{}}\n"
    )
}
