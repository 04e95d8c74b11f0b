//! How a cluster is reached: the same flags for every command that needs one.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Where `--help` lists them.
pub const CONNECTION: &str = "Connection";

/// Which cluster, and as whom.
#[derive(Args)]
pub struct Access {
    /// The kubeconfig to use outside a cluster
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context
    #[arg(long, help_heading = CONNECTION)]
    context: Option<String>,
    /// The kubeconfig's cluster, in place of the context's
    #[arg(long, help_heading = CONNECTION)]
    cluster: Option<String>,
    /// The kubeconfig's user, in place of the context's
    #[arg(long, help_heading = CONNECTION)]
    user: Option<String>,
}

impl Access {
    /// What the client needs: from the flags, from KUBECONFIG, or from the pod that this runs in.
    pub async fn config(&self) -> Result<Config> {
        self.read().await.context("no way to reach a cluster: set KUBECONFIG, or run in a pod")
    }

    async fn read(&self) -> Result<Config> {
        let Self { kubeconfig, context, cluster, user } = self;
        if kubeconfig.is_none() && context.is_none() && cluster.is_none() && user.is_none() {
            return Ok(Config::infer().await?);
        }
        let options = KubeConfigOptions { context: context.clone(), cluster: cluster.clone(), user: user.clone() };
        match kubeconfig {
            Some(path) => Ok(Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?),
            None => Ok(Config::from_kubeconfig(&options).await?),
        }
    }
}
