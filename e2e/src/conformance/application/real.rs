//! Real processes on loopback, in a folder of their own that goes with them.

use std::{
    collections::BTreeMap,
    marker::PhantomData,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::Child,
    time::Instant,
};
use windlass_systems::{Network, Peer, Transport};

use super::{Application, Binaries, play::Which};

/// A process that finds data it can't go with ends, and any other answers its peers: on a machine that takes longer nothing can be told.
const SETTLED: Duration = Duration::from_mins(2);
/// One that answers its peers may still end when it comes to what they have agreed on. Where they agree on nothing, it answers no client, and
/// after so long it counts as one that stays.
const ALONE: Duration = Duration::from_secs(10);
/// A process that has heard a signal is killed after this time.
const GRACE: Duration = Duration::from_mins(1);

/// The processes of one play.
pub(super) struct Real<'a, A> {
    binaries: &'a Binaries,
    first_port: u16,
    folder: PathBuf,
    running: BTreeMap<String, (Child, Which)>,
    network: Network,
    application: PhantomData<A>,
}

/// Whether a process goes on until it answers its clients, or for a while its peers, rather than end.
async fn stays(child: &mut Child, [clients, peers]: [String; 2]) -> Result<bool> {
    let mut since = None;
    loop {
        let answered = answers(&clients).await;
        if since.is_none() && answers(&peers).await {
            since = Some(Instant::now());
        }
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        if answered || since.is_some_and(|since| since.elapsed() > ALONE) {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn answers(address: &str) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /version HTTP/1.0\r\n\r\n").await?;
        stream.read_u8().await
    };
    tokio::time::timeout(Duration::from_secs(1), ask).await.is_ok_and(|answered| answered.is_ok())
}

/// Where a member's process runs.
pub(super) struct Place<'a, A> {
    pub binary: &'a Path,
    pub member: &'a str,
    /// Its data; nobody else writes there.
    pub data: PathBuf,
    /// Of the whole play.
    pub folder: &'a Path,
    real: &'a Real<'a, A>,
}

impl<A: Application> Place<'_, A> {
    /// Where this or another member takes requests of clients, and of its peers.
    pub fn addresses(&self, member: &str) -> [String; 2] {
        self.real.addresses(member)
    }
}

impl<'a, A: Application> Real<'a, A> {
    pub fn new(play: usize, binaries: &'a Binaries) -> Result<Self> {
        let folder = format!("windlass-conformance-{}-{}-{play}", A::MEMBERS[0], std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder)?;
        let first_port = A::FIRST_PORT + 10 * u16::try_from(play)?;
        let (running, network) = (BTreeMap::new(), Network::plain());
        Ok(Self { binaries, first_port, folder, running, network, application: PhantomData })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn port(&self, member: &str) -> u16 {
        let number = A::MEMBERS.iter().chain([&A::LATER]).position(|name| *name == member).unwrap_or_default();
        self.first_port + 2 * u16::try_from(number).unwrap_or_default()
    }

    pub fn addresses(&self, member: &str) -> [String; 2] {
        let port = self.port(member);
        [port, port + 1].map(|port| format!("127.0.0.1:{port}"))
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
        let (binary, _) = self.binaries.of(which);
        let data = self.folder.join(member);
        let restarted = data.exists();
        let place = Place { binary, member, data, folder: &self.folder, real: self };
        let mut child = A::command(&place)?
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(self.folder.join(format!("{member}.log")))?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {}", binary.display()))?;
        // Only a process that finds data can be of a version that does not fit it.
        if A::MAY_REFUSE && restarted {
            let settled = tokio::time::timeout(SETTLED, stays(&mut child, self.addresses(member))).await;
            if !settled
                .with_context(|| format!("{member} neither ended nor answered: the machine is too slow to tell"))??
            {
                return Ok(false);
            }
        }
        self.running.insert(member.to_owned(), (child, which));
        Ok(true)
    }

    /// Starts those again that have ended by themselves, as a kubelet does: some give up where they find no quorum.
    pub async fn revive(&mut self) -> Result<()> {
        let mut ended = Vec::new();
        for (member, (child, which)) in &mut self.running {
            if child.try_wait()?.is_some() {
                ended.push((member.clone(), *which));
            }
        }
        for (member, which) in ended {
            self.start(&member, which).await?;
        }
        Ok(())
    }

    pub async fn kill(&mut self, member: &str) -> Result<()> {
        if let Some((mut child, _)) = self.running.remove(member) {
            // One that has ended already is as dead as it should be.
            let _ = child.start_kill();
            child.wait().await?;
        }
        Ok(())
    }

    /// Ends a process with the signal that it may heed.
    pub async fn stop(&mut self, member: &str) -> Result<()> {
        if let Some((child, _)) = self.running.get_mut(member) {
            let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            kill_process(id.context("a process that runs")?, Signal::TERM)?;
            let _ = tokio::time::timeout(GRACE, child.wait()).await;
        }
        self.kill(member).await
    }

    /// The answer; none where none comes in time, or nobody takes the question.
    pub async fn ask(&self, member: &str, request: Request<Bytes>) -> Result<Option<Response<Bytes>>> {
        Ok(self.ask_for(A::PATIENCE, member, request).await)
    }

    /// The same with another patience.
    pub async fn ask_for(&self, time: Duration, member: &str, request: Request<Bytes>) -> Option<Response<Bytes>> {
        let answer = tokio::time::timeout(time, self.network.send(&self.peer(member), request)).await;
        answer.ok().and_then(Result::ok)
    }
}

impl<A> Drop for Real<'_, A> {
    fn drop(&mut self) {
        self.running.clear();
        // What is left of it in the temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
