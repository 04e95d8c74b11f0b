//! The programs that a cluster is made of, built from the Go modules in `e2e/tools` and kept by the hash of what they are
//! built from.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::layout;
use crate::say;

/// One folder of `e2e/tools`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// API server, controller-manager, scheduler, kubelet, kube-proxy, kubectl.
    Kubernetes,
    /// The version that etcd upgrades start from.
    EtcdOld,
    /// The version that they go to, and the cluster's own store.
    EtcdNew,
    /// Nodes and pods that are only played.
    Kwok,
    /// The cluster's DNS.
    Dns,
    /// An S3 server, for the scenario that sends a snapshot to one. It is built where that is asked for.
    Minio,
}

impl Tool {
    /// Those that every cluster and CI's share of the scenarios are made from.
    pub const ALL: [Self; 5] = [Self::Kubernetes, Self::EtcdOld, Self::EtcdNew, Self::Kwok, Self::Dns];

    fn folder(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::EtcdOld => "etcd-old",
            Self::EtcdNew => "etcd-new",
            Self::Kwok => "kwok",
            Self::Dns => "dns",
            Self::Minio => "minio",
        }
    }

    /// What is built: the module's tools, or the program that lies in the folder.
    fn target(self) -> &'static str {
        match self {
            Self::Kubernetes | Self::EtcdOld | Self::EtcdNew | Self::Kwok | Self::Minio => "tool",
            Self::Dns => ".",
        }
    }

    fn source(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(self.folder())
    }

    /// The version that its go.mod requires of `module`.
    pub fn version(self, module: &str) -> Result<String> {
        let text = fs::read_to_string(self.source().join("go.mod"))?;
        let line = text
            .lines()
            .find_map(|line| line.trim().trim_start_matches("require ").strip_prefix(module)?.strip_prefix(' '));
        let version = line.and_then(|rest| rest.split_whitespace().next());
        Ok(version.with_context(|| format!("{}/go.mod does not require {module}", self.folder()))?.to_owned())
    }

    fn linker_flags(self) -> Result<String> {
        let plain = "-s -w".to_owned();
        match self {
            Self::Kubernetes => {
                let version = self.version("k8s.io/kubernetes")?;
                let mut numbers = version.trim_start_matches('v').split('.');
                let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
                let at = "k8s.io/component-base/version";
                Ok(format!("{plain} -X {at}.gitVersion={version} -X {at}.gitMajor={major} -X {at}.gitMinor={minor}"))
            }
            Self::EtcdOld | Self::EtcdNew | Self::Kwok | Self::Dns | Self::Minio => Ok(plain),
        }
    }
}

/// The folder with a tool's programs, built now if it is not there yet.
pub fn build(tool: Tool) -> Result<PathBuf> {
    let flags = tool.linker_flags()?;
    let shelf = layout::cache()?.join("tools");
    let place = shelf.join(format!("{}-{}", tool.folder(), fingerprint(tool, &flags)?));
    if place.is_dir() {
        return Ok(place);
    }
    say(&format!("building {} from its Go module (minutes when nothing is cached)", tool.folder()));
    let start = Instant::now();
    let unfinished = shelf.join(format!("{}-unfinished-{}", tool.folder(), std::process::id()));
    fs::create_dir_all(&unfinished)?;
    let output = Command::new("go")
        .args(["build", "-trimpath", "-ldflags", &flags, "-o"])
        .arg(format!("{}/", unfinished.display()))
        .arg(tool.target())
        .current_dir(tool.source())
        // Static, because the programs also go into images that hold nothing else.
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=readonly")
        .output()
        .context("go can't be started")?;
    ensure!(
        output.status.success(),
        "go build of {} failed: {}",
        tool.folder(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    // Renamed when complete: a build that was interrupted leaves nothing that looks built.
    if fs::rename(&unfinished, &place).is_err() {
        ensure!(place.is_dir(), "{} can't be put in place", place.display());
        fs::remove_dir_all(&unfinished)?;
    }
    say(&format!("built {} in {} s", tool.folder(), start.elapsed().as_secs()));
    Ok(place)
}

/// What the programs depend on: sources, flags and Go itself.
fn fingerprint(tool: Tool, flags: &str) -> Result<String> {
    let mut hash = Sha256::new();
    let mut files: Vec<PathBuf> = fs::read_dir(tool.source())?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    for file in files {
        hash.update(fs::read(&file)?);
    }
    hash.update(flags);
    hash.update(Command::new("go").arg("version").output()?.stdout);
    let mut digest = format!("{:x}", hash.finalize());
    digest.truncate(16);
    Ok(digest)
}
