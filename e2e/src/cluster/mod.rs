//! A real Kubernetes on this machine: built from Go modules, run in namespaces of its own, gone without a trace.
//!
//! ```text
//!   machine ── veth ── [ network, mount and process namespaces: etcd, kube-apiserver, kube-controller-manager,
//!                        kube-scheduler, containerd, kubelet, kube-proxy, DNS; pods on a bridge ]
//! ```
//! A control plane alone (`--control-plane-only`) needs neither root nor namespaces: it listens on loopback.

mod certificates;
mod control_plane;
mod kwok;
pub mod layout;
mod missing;
mod namespaces;
mod node;
mod packages;
mod process;
mod state;
pub mod tools;

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use self::{
    certificates::Authority,
    control_plane::Ports,
    layout::Layout,
    process::{Place, run},
    state::State,
    tools::Tool,
};
pub use self::{
    missing::{Missing, answers},
    process::Process,
};
use crate::say;

/// How much of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Shape {
    /// etcd and kube-apiserver: nobody else writes.
    ApiServer,
    /// With kube-controller-manager and kube-scheduler; no node, no containers, no root.
    ControlPlane,
    /// With a real node.
    Node,
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Several control planes may run side by side; there is one cluster with a node.
    pub name: String,
    /// How much of a cluster.
    pub shape: Shape,
    /// How many nodes KWOK plays.
    pub played_nodes: usize,
    /// More words for kube-apiserver.
    pub api_server: Vec<String>,
    /// The one user who is audited, and everything of it: what it reads, too, its Leases and its events. Without one, everybody's changes.
    pub audited: Option<&'static str>,
}

/// A cluster that runs.
#[derive(Clone, Debug)]
pub struct Cluster {
    layout: Layout,
    state: State,
}

/// Brings a cluster up; one that is up already is left as it is.
pub async fn up(options: &Options) -> Result<Cluster> {
    let layout = Layout::of(&options.name)?;
    if let Some(state) = State::read(&layout)? {
        if state.is_up() {
            ensure!(
                state.shape == options.shape && state.played_nodes == options.played_nodes,
                "a cluster of another shape is up; take it down first"
            );
            return Ok(Cluster { layout, state });
        }
        say("a cluster that is only half there is taken down first");
        down(&options.name)?;
    }
    missing::check(options.shape == Shape::Node)?;
    if options.shape == Shape::Node {
        packages::install()?;
        ensure!(!namespaces::exist(), "a cluster with a node is up already, under another name");
    }
    build_tools(options)?;
    fs::create_dir_all(layout.at("logs"))?;
    let result = launch(&layout, options).await;
    if result.is_err() {
        say(&format!("it did not come up; the logs are in {}", layout.at("logs").display()));
        end(&layout)?;
    }
    result
}

/// The cluster of this name, which must be up.
pub fn find(name: &str) -> Result<Cluster> {
    let layout = Layout::of(name)?;
    match State::read(&layout)? {
        Some(state) if state.is_up() => Ok(Cluster { layout, state }),
        Some(_) | None => bail!("no cluster is up; cargo xtask cluster up starts one"),
    }
}

/// Builds every tool, whether or not a cluster needs it; how many there are.
pub fn build_all() -> Result<usize> {
    missing::check(false)?;
    for tool in Tool::ALL {
        tools::build(tool)?;
    }
    Ok(Tool::ALL.len())
}

/// The real kubectl of the cluster's version.
pub fn kubectl() -> Result<PathBuf> {
    missing::check(false)?;
    Ok(tools::build(Tool::Kubernetes)?.join("kubectl"))
}

fn build_tools(options: &Options) -> Result<()> {
    tools::build(Tool::Kubernetes)?;
    tools::build(Tool::EtcdNew)?;
    if options.shape == Shape::Node {
        tools::build(Tool::Dns)?;
    }
    if options.played_nodes > 0 {
        tools::build(Tool::Kwok)?;
    }
    Ok(())
}

async fn launch(layout: &Layout, options: &Options) -> Result<Cluster> {
    let start = Instant::now();
    let mut state = State::new(options.shape, options.played_nodes);
    state.write(layout)?;
    let authority = Authority::create(layout)?;
    let (place, ports) = match options.shape {
        Shape::ApiServer | Shape::ControlPlane => (Place::Machine, Ports::free()?),
        Shape::Node => {
            let holder = namespaces::create(layout)?;
            let place = namespaces::inside(&holder);
            state.holder = Some(holder);
            state.write(layout)?;
            (place, Ports::usual())
        }
    };
    say("starting the control plane");
    state.processes = control_plane::launch(layout, place, &ports, &authority, options)?;
    state.write(layout)?;
    let client = client(&layout.kubeconfig()).await?;
    let asked = || client.request_text(http::Request::get("/readyz").body(Vec::new()).unwrap_or_default());
    wait_until("the API server", async || {
        state.check()?;
        Ok(asked().await.is_ok_and(|answer| answer == "ok"))
    })
    .await?;
    if options.shape == Shape::Node {
        say("starting the node");
        state.processes.extend(node::launch(layout, place, &ports.server(), &authority)?);
        state.write(layout)?;
        kwok::wait_for_ready_nodes(&client, 1).await?;
    }
    if options.played_nodes > 0 {
        say(&format!("starting {} played nodes", options.played_nodes));
        state.processes.push(kwok::launch(layout, place, &ports.server(), &authority)?);
        state.write(layout)?;
        let beside_a_real_one = options.shape == Shape::Node;
        kwok::create_nodes(&client, options.played_nodes, beside_a_real_one).await?;
        kwok::wait_for_ready_nodes(&client, options.played_nodes + usize::from(beside_a_real_one)).await?;
    }
    state.complete = true;
    state.write(layout)?;
    say(&format!("the cluster is up after {} s", start.elapsed().as_secs()));
    Ok(Cluster { layout: layout.clone(), state })
}

/// Takes a cluster down and leaves nothing of it; true if there was one.
pub fn down(name: &str) -> Result<bool> {
    let layout = Layout::of(name)?;
    if !layout.folder().exists() {
        return Ok(false);
    }
    end(&layout)?;
    fs::remove_dir_all(layout.folder()).with_context(|| format!("{} can't be removed", layout.folder().display()))?;
    Ok(true)
}

/// Ends the processes and what they hold; the files stay.
fn end(layout: &Layout) -> Result<()> {
    let Some(state) = State::read(layout)? else { return Ok(()) };
    if state.holder.is_some() {
        return namespaces::remove(state.holder.as_ref());
    }
    for process in state.processes.iter().rev() {
        process.stop(Duration::from_secs(5))?;
    }
    Ok(())
}

/// The clusters that there are, with what runs of each.
pub fn status() -> Result<Vec<(String, String)>> {
    let folder = layout::cache()?.join("clusters");
    let mut lines = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return Ok(lines) };
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let layout = Layout::of(&name)?;
        let Some(state) = State::read(&layout)? else { continue };
        let parts: Vec<&Process> = state.holder.iter().chain(&state.processes).collect();
        let ended: Vec<&str> = parts.iter().filter(|part| !part.runs()).map(|part| part.name.as_str()).collect();
        let story = match ended.as_slice() {
            [] if state.complete => {
                format!("up, {} processes, kubeconfig {}", parts.len(), layout.kubeconfig().display())
            }
            [] => "not completely up".to_owned(),
            some => format!("ended: {}", some.join(", ")),
        };
        lines.push((name, story));
    }
    lines.sort();
    Ok(lines)
}

impl Cluster {
    /// An administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// The cluster's folder: logs and everything else.
    pub fn folder(&self) -> &Path {
        self.layout.folder()
    }

    /// The API server's audit log.
    pub fn audit_log(&self) -> PathBuf {
        self.layout.audit_log()
    }

    /// One of the cluster's own processes, to be frozen or killed.
    pub fn process(&self, name: &str) -> Result<&Process> {
        self.state.processes.iter().find(|process| process.name == name).with_context(|| format!("there is no {name}"))
    }

    /// Makes an image known to the node.
    pub fn load_image(&self, archive: &Path) -> Result<()> {
        let holder = self.state.holder.as_ref().context("a control plane alone runs no containers")?;
        node::load(namespaces::inside(holder), archive)
    }

    /// Names of the images that the node knows.
    pub fn images(&self) -> Result<Vec<String>> {
        let holder = self.state.holder.as_ref().context("a control plane alone runs no containers")?;
        let words = ["--address", node::SOCKET, "--namespace", "k8s.io", "images", "ls", "--quiet"];
        let names = run(namespaces::inside(holder).command("ctr").args(words))?;
        Ok(names.lines().map(str::to_owned).collect())
    }
}

/// A client for a kubeconfig. It tries nothing again by itself: a refusal is an answer.
pub async fn client(kubeconfig: &Path) -> Result<kube::Client> {
    let read = kube::config::Kubeconfig::read_from(kubeconfig);
    let read = read.with_context(|| format!("{} can't be read", kubeconfig.display()))?;
    let mut config = kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default()).await?;
    config.default_retry = false;
    // A watch may be silent for long.
    config.read_timeout = Some(Duration::from_mins(5));
    Ok(kube::Client::try_from(config)?)
}

const PATIENCE: Duration = Duration::from_mins(2);

fn wait_for(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let start = Instant::now();
    while !is_so() {
        if start.elapsed() > PATIENCE {
            bail!("{what} did not come up within {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

async fn wait_until(what: &str, is_so: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !is_so().await? {
        if start.elapsed() > PATIENCE {
            bail!("{what} did not come up within {} s", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
