//! Where a cluster keeps its files, and the addresses that it uses.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// The node: the far end of the pair of interfaces between the machine and the cluster's own network namespace.
pub const NODE_ADDRESS: &str = "10.200.0.1";
/// The machine, as the cluster sees it.
pub const MACHINE_ADDRESS: &str = "10.200.0.254";
/// What pods get.
pub const POD_RANGE: &str = "10.244.0.0/16";
/// What Services get.
pub const SERVICE_RANGE: &str = "10.201.0.0/16";
/// The Service `kubernetes`.
pub const FIRST_SERVICE: &str = "10.201.0.1";

/// Everything that may be kept between runs: `$XDG_CACHE_HOME/windlass`.
pub fn cache() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME") {
        Some(base) if !base.is_empty() => PathBuf::from(base),
        Some(_) | None => {
            PathBuf::from(env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?).join(".cache")
        }
    };
    Ok(base.join("windlass"))
}

/// One cluster's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    folder: PathBuf,
}

impl Layout {
    /// The folder of the cluster of this name.
    pub fn of(name: &str) -> Result<Self> {
        Ok(Self { folder: cache()?.join("clusters").join(name) })
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file or folder in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What was started.
    pub fn state(&self) -> PathBuf {
        self.at("state.json")
    }

    /// An administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.at("kubeconfig")
    }

    /// The API server's audit log.
    pub fn audit_log(&self) -> PathBuf {
        self.at("logs/audit.log")
    }

    /// What a component wrote.
    pub fn log(&self, component: &str) -> PathBuf {
        self.at("logs").join(format!("{component}.log"))
    }
}
