//! What all scenarios share: the cluster, the images, Windlass ready to be run.

use std::path::{Path, PathBuf};

use anyhow::Result;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::operator::Installation;
use crate::{
    applications::{self, EtcdPair},
    cluster::{self, Cluster, Shape},
};

/// The place where scenarios happen.
pub struct Site {
    /// The cluster.
    pub cluster: Cluster,
    /// An administrator's client.
    pub client: Client,
    /// Where etcd comes from and goes to.
    pub etcd: EtcdPair,
    /// Windlass.
    pub windlass: Installation,
    /// Decides everything random.
    pub seed: u64,
}

impl Site {
    /// Brings up the cluster if it is not up, and prepares everything. Without a program of Windlass, one is built.
    pub async fn prepare(seed: u64, program: Option<PathBuf>) -> Result<Self> {
        let options =
            cluster::Options { name: "default".into(), shape: Shape::Node, played_nodes: 0, api_server: Vec::new() };
        let cluster = cluster::up(&options).await?;
        let client = client(&cluster.kubeconfig()).await?;
        let etcd = applications::load(&cluster)?;
        let windlass = Installation::install(&cluster, client.clone(), program)?;
        Ok(Self { cluster, client, etcd, windlass, seed })
    }
}

/// A client that tries nothing again by itself: a refused eviction is an answer.
async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}
