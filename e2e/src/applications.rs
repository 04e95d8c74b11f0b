//! The images that the tests run: etcd in two versions, one that crashes, and Windlass itself.

use std::{fs, path::Path};

use anyhow::Result;

use crate::{
    cluster::{
        Cluster,
        tools::{Tool, build},
    },
    image::{self, Entry, Image},
    say,
};

const ETCD_MODULE: &str = "go.etcd.io/etcd/server/v3";

/// An etcd image and what it says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// `3.6.16`.
    pub version: String,
    /// `windlass.test/etcd:3.6.16`.
    pub image: String,
}

/// What an etcd upgrade goes from and to.
pub struct EtcdPair {
    /// Where it starts.
    pub old: Etcd,
    /// Where it goes.
    pub new: Etcd,
}

/// An image whose program exits with 3 at once.
pub const CRASHING: &str = "windlass.test/crash:1";

/// Builds the test applications' images and loads those that the node does not know yet.
pub fn load(cluster: &Cluster) -> Result<EtcdPair> {
    let known = cluster.images()?;
    let archives = cluster.folder().join("images");
    fs::create_dir_all(&archives)?;
    let ensure = |image: &Image, file: &str| -> Result<()> {
        if known.contains(&image.name) {
            return Ok(());
        }
        say(&format!("loading {}", image.name));
        image.write(&archives.join(file))?;
        cluster.load_image(&archives.join(file))
    };
    let crash = ["/bin/sh", "-c", "echo 'this build can not start' >&2; exit 3"].map(str::to_owned);
    ensure(&image::busybox(CRASHING, crash.to_vec()), "crash.tar")?;
    let pair = EtcdPair { old: etcd(Tool::EtcdOld)?, new: etcd(Tool::EtcdNew)? };
    ensure(&etcd_image(&pair.old, &build(Tool::EtcdOld)?), "etcd-old.tar")?;
    ensure(&etcd_image(&pair.new, &build(Tool::EtcdNew)?), "etcd-new.tar")?;
    Ok(pair)
}

fn etcd(tool: Tool) -> Result<Etcd> {
    let version = tool.version(ETCD_MODULE)?.trim_start_matches('v').to_owned();
    Ok(Etcd { image: format!("windlass.test/etcd:{version}"), version })
}

/// etcd with a shell beside it, for the start script that people's StatefulSets have.
fn etcd_image(etcd: &Etcd, programs: &Path) -> Image {
    let mut image = image::busybox(&etcd.image, vec!["/usr/local/bin/etcd".into()]);
    image.entries.push(("usr/local/bin/etcd".into(), Entry::Program(programs.join("server"))));
    image
}
