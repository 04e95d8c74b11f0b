//! Real etcd processes on loopback, in a folder of their own that goes with them.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Request, Response};
use tokio::process::{Child, Command};
use windlass_systems::{Network, Peer, Transport};

use super::{LATER, MEMBERS, PATIENCE, Versions, Which};

/// Every play has ten ports from here on.
const FIRST_PORT: u16 = 26540;
/// A process that is going to end because of its version does so within this time.
const SETTLED: Duration = Duration::from_secs(3);

/// The processes of one play.
pub(super) struct Real<'a> {
    binaries: [(Which, &'a Path); 2],
    first_port: u16,
    folder: PathBuf,
    running: BTreeMap<String, Child>,
    network: Network,
}

impl<'a> Real<'a> {
    pub fn new(play: usize, binaries: [(Which, &'a Path); 2]) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("windlass-conformance-etcd-{}-{play}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let first_port = FIRST_PORT + 10 * u16::try_from(play)?;
        Ok(Self { binaries, first_port, folder, running: BTreeMap::new(), network: Network::plain() })
    }

    fn port(&self, member: &str) -> u16 {
        let number = MEMBERS.iter().chain([&LATER]).position(|name| *name == member).unwrap_or_default();
        self.first_port + 2 * u16::try_from(number).unwrap_or_default()
    }

    pub fn peer_url(&self, member: &str) -> String {
        format!("http://127.0.0.1:{}", self.port(member) + 1)
    }

    pub fn peer(&self, member: &str) -> Peer {
        Peer {
            pod: member.to_owned(),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: self.port(member),
            server_name: "127.0.0.1".to_owned(),
            tls: false,
        }
    }

    /// Starts a process and tells whether it stays.
    pub async fn start(&mut self, member: &str, which: Which) -> Result<bool> {
        let binary = self.binaries.iter().find(|(other, _)| *other == which).context("no such binary")?.1;
        let (client, peer) = (format!("http://127.0.0.1:{}", self.port(member)), self.peer_url(member));
        let founding = MEMBERS.contains(&member);
        let all = MEMBERS.iter().chain((!founding).then_some(&LATER));
        let cluster: Vec<String> = all.map(|name| format!("{name}={}", self.peer_url(name))).collect();
        let restarted = self.folder.join(member).exists();
        let mut child = Command::new(binary)
            .args(["--name", member, "--data-dir"])
            .arg(self.folder.join(member))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &cluster.join(",")])
            .args(["--initial-cluster-state", if founding { "new" } else { "existing" }])
            .args(["--log-level", "error"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(self.folder.join(format!("{member}.log")))?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {}", binary.display()))?;
        // Only a process that finds data can be of a version that does not fit it.
        if restarted && tokio::time::timeout(SETTLED, child.wait()).await.is_ok() {
            return Ok(false);
        }
        self.running.insert(member.to_owned(), child);
        Ok(true)
    }

    pub async fn kill(&mut self, member: &str) -> Result<()> {
        if let Some(mut child) = self.running.remove(member) {
            // One that has ended already is as dead as it should be.
            let _ = child.start_kill();
            child.wait().await?;
        }
        Ok(())
    }

    pub async fn ask(&self, member: &str, request: Request<Bytes>) -> Result<Option<Response<Bytes>>> {
        let what = format!("{} {} of {member}", request.method(), request.uri());
        match tokio::time::timeout(PATIENCE, self.network.send(&self.peer(member), request)).await {
            Err(_) => Ok(None),
            Ok(Ok(response)) => Ok(Some(response)),
            Ok(Err(error)) => bail!("{what}: {error}"),
        }
    }
}

impl Drop for Real<'_> {
    fn drop(&mut self) {
        self.running.clear();
        // What is left of it in the temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What the binaries say they are.
pub(super) async fn versions(binaries: [(Which, &Path); 2]) -> Result<Versions> {
    let mut found = Vec::new();
    for (_, binary) in binaries {
        let output = Command::new(binary).arg("--version").output().await;
        let output = output.with_context(|| format!("run {}", binary.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().find_map(|line| line.strip_prefix("etcd Version: ")).map(str::trim);
        found.push(version.with_context(|| format!("{} tells no version", binary.display()))?.to_owned());
    }
    let [old, new] = <[String; 2]>::try_from(found).map_err(|_| anyhow::anyhow!("two binaries"))?;
    Ok(Versions { old, new })
}
