//! What was started, so that a later command finds it again.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::{Shape, layout::Layout, process::Process};

/// The processes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// How much of a cluster it is.
    pub shape: Shape,
    /// What holds the namespaces; none for a control plane alone.
    pub holder: Option<Process>,
    /// Everything else, in the order in which it was started.
    pub processes: Vec<Process>,
    /// How many nodes are played.
    pub played_nodes: usize,
    /// It came up completely.
    pub complete: bool,
}

impl State {
    /// Of a cluster of which nothing was started yet.
    pub fn new(shape: Shape, played_nodes: usize) -> Self {
        Self { shape, holder: None, processes: Vec::new(), played_nodes, complete: false }
    }

    /// What the folder says; none where there is nothing.
    pub fn read(layout: &Layout) -> Result<Option<Self>> {
        if !layout.state().exists() {
            return Ok(None);
        }
        let text = fs::read(layout.state())?;
        serde_json::from_slice(&text).map(Some).with_context(|| format!("{} can't be read", layout.state().display()))
    }

    /// Written after each start, so that an `up` that was interrupted can be taken down.
    pub fn write(&self, layout: &Layout) -> Result<()> {
        fs::write(layout.state(), serde_json::to_vec_pretty(self)?)?;
        Ok(())
    }

    /// An error that names a process that has ended.
    pub fn check(&self) -> Result<()> {
        match self.holder.iter().chain(&self.processes).find(|process| !process.runs()) {
            Some(process) => bail!("{} has ended", process.name),
            None => Ok(()),
        }
    }

    /// Everything runs.
    pub fn is_up(&self) -> bool {
        self.complete && self.check().is_ok()
    }
}
