//! What all scenarios share: the cluster, the images, Windlass ready to be run.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use anyhow::{Context, Result};
use kube::Client;

use super::operator::Installation;
use crate::{
    applications::{self, Pair},
    client::Application,
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
    /// Where applications come from and go to.
    pairs: BTreeMap<Application, Pair>,
    /// Windlass.
    pub windlass: Installation,
    /// Decides everything random.
    pub seed: u64,
}

impl Site {
    /// Brings up the cluster if it is not up, and prepares everything for these applications. Without a program of Windlass, one is
    /// built.
    pub async fn prepare(applications: &BTreeSet<Application>, seed: u64, program: Option<PathBuf>) -> Result<Self> {
        applications::check(applications)?;
        let options = cluster::Options {
            name: SITE.into(),
            shape: Shape::Node,
            played_nodes: 0,
            api_server: Vec::new(),
            audited: None,
        };
        let cluster = cluster::up(&options).await?;
        let client = cluster::client(&cluster.kubeconfig()).await?;
        let pairs = applications::load(&cluster, applications)?;
        let windlass = Installation::install(&cluster, client.clone(), program)?;
        windlass.load_images(&cluster)?;
        Ok(Self { cluster, client, pairs, windlass, seed })
    }

    /// Where an application comes from and goes to.
    pub fn pair(&self, application: Application) -> Result<&Pair> {
        self.pairs.get(&application).with_context(|| format!("{} was not prepared", application.name()))
    }
}
