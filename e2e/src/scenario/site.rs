//! What all scenarios share: the cluster, the images, Windlass ready to be run.

use std::path::PathBuf;

use anyhow::Result;
use kube::Client;

use super::operator::Installation;
use crate::{
    applications::{self, EtcdPair},
    cluster::{self, Cluster, Shape},
};

/// The cluster's name: the one of `cargo xtask cluster up`.
pub const SITE: &str = "default";

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
            cluster::Options { name: SITE.into(), shape: Shape::Node, played_nodes: 0, api_server: Vec::new() };
        let cluster = cluster::up(&options).await?;
        let client = cluster::client(&cluster.kubeconfig()).await?;
        let etcd = applications::load(&cluster)?;
        let windlass = Installation::install(&cluster, client.clone(), program)?;
        windlass.load_images(&cluster)?;
        Ok(Self { cluster, client, etcd, windlass, seed })
    }
}
