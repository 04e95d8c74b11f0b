//! The applications in the pods: small honest models of what their processes answer and how their quorums behave.
//!
//! An application knows nothing of Kubernetes. The kubelets tell it when a process starts, stops, hangs and comes back; the
//! network hands it requests; it keeps its own timers through the world's queue.

pub mod bench;
pub mod etcd;
mod log;
mod member;
pub mod openbao;
pub mod pd;

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use jiff::Timestamp;

use crate::journal::QuorumTruth;
use crate::rng::Rng;

pub use pd::PdHandle;

use etcd::{EtcdCluster, EtcdEvent};
use openbao::{BaoCluster, BaoEvent};
use pd::{PdCluster, PdEvent};

/// How a process misbehaves towards callers while it otherwise works: a fault on the way to it, no part of its true state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum BadAnswer {
    /// 200 with a body that no parser takes.
    Garbage,
    /// 500 for everything.
    Status500,
    /// The connection opens and nothing ever comes.
    Nothing,
    /// The connection is refused.
    Refused,
    /// 200 with an empty body.
    Empty,
}

/// An application's own timer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AppEvent {
    Pd(PdEvent),
    Etcd(EtcdEvent),
    Openbao(BaoEvent),
}

/// What an application may use while it handles something.
pub(crate) struct Context {
    /// When the cluster began.
    pub epoch: Timestamp,
    /// Cluster time.
    pub now: Duration,
    /// Timers to set, by the time at which they ring.
    pub later: Vec<(Duration, AppEvent)>,
}

impl Context {
    /// What a clock on the wall showed at a time of the cluster.
    fn time(&self, at: Duration) -> Timestamp {
        self.epoch.saturating_add(at).unwrap_or(Timestamp::MAX)
    }
}

/// What a process says of itself on its pod.
pub(crate) type Labels = BTreeMap<&'static str, String>;

/// What a process answers.
pub(crate) struct Answer {
    pub response: Response<Bytes>,
    /// How long it thinks before it answers.
    pub after: Duration,
    /// For a request that wants a change: whether it made one.
    pub changed: bool,
}

impl Answer {
    fn after(mut self, after: Duration) -> Self {
        self.after += after;
        self
    }

    fn changed(mut self) -> Self {
        self.changed = true;
        self
    }
}

fn respond(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Answer { response, after: Duration::ZERO, changed: false }
}

fn plain(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    respond(status, "text/plain; charset=utf-8", body)
}

/// Which application runs in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pd,
    Etcd,
    Openbao,
}

impl Kind {
    /// Tells it from the container's name and image; most containers run nothing that is modelled here.
    pub fn of(container: &str, image: &str) -> Option<Self> {
        let (repository, _) = split_image(image);
        let base = repository.rsplit('/').next().unwrap_or_default();
        match (container, base) {
            ("pd", _) => Some(Self::Pd),
            ("etcd", _) => Some(Self::Etcd),
            ("openbao", _) => Some(Self::Openbao),
            (_, base) if base.starts_with("pd") => Some(Self::Pd),
            (_, base) if base.starts_with("etcd") => Some(Self::Etcd),
            (_, base) if base.starts_with("openbao") => Some(Self::Openbao),
            _ => None,
        }
    }
}

/// What founds a new application: all that it must know of the workload around it.
pub(crate) struct Founding {
    pub namespace: String,
    pub workload: String,
    /// The headless service that gives the pods their names.
    pub service: String,
    /// The pods that the workload starts with.
    pub members: Vec<String>,
}

/// One application: all the processes of one workload.
pub(crate) enum App {
    Pd(PdCluster),
    Etcd(EtcdCluster),
    Openbao(BaoCluster),
}

impl App {
    pub fn found(kind: Kind, founding: Founding, rng: Rng) -> Self {
        match kind {
            Kind::Pd => Self::Pd(PdCluster::new(founding, rng)),
            Kind::Etcd => Self::Etcd(EtcdCluster::new(founding, rng)),
            Kind::Openbao => Self::Openbao(BaoCluster::new(founding, rng)),
        }
    }

    /// Why a process of this version ends as soon as it has started; none if it does not.
    pub fn refusal(&self, pod: &str, version: &str) -> Option<String> {
        match self {
            Self::Pd(_) | Self::Openbao(_) => None,
            Self::Etcd(etcd) => etcd.refusal(pod, version),
        }
    }

    /// This member leads at once, by an election that nobody asked for, if it serves and the quorum stands.
    pub fn elect(&mut self, context: &mut Context, pod: &str) {
        match self {
            Self::Pd(pd) => pd.elect(context, pod),
            Self::Etcd(etcd) => etcd.elect(context, pod),
            Self::Openbao(bao) => bao.elect(context, pod),
        }
    }

    /// A process serves from now on.
    pub fn started(&mut self, context: &mut Context, pod: &str, version: &str) {
        match self {
            Self::Pd(pd) => pd.started(context, pod, version),
            Self::Etcd(etcd) => etcd.started(context, pod, version),
            Self::Openbao(bao) => bao.started(context, pod, version),
        }
    }

    /// A process is gone; after a signal it had the time to hand over.
    pub fn stopped(&mut self, context: &mut Context, pod: &str, graceful: bool) {
        match self {
            Self::Pd(pd) => pd.stopped(context, pod, graceful),
            Self::Etcd(etcd) => etcd.stopped(context, pod, graceful),
            Self::Openbao(bao) => bao.stopped(context, pod, graceful),
        }
    }

    /// A process stands still, or goes on after it stood still.
    pub fn hung(&mut self, context: &mut Context, pod: &str, hung: bool) {
        match self {
            Self::Pd(pd) => pd.hung(context, pod, hung),
            Self::Etcd(etcd) => etcd.hung(context, pod, hung),
            Self::Openbao(bao) => bao.hung(context, pod, hung),
        }
    }

    /// A member hears nothing of the log from now on although it serves, or hears again.
    pub fn starve(&mut self, context: &Context, pod: &str, starved: bool) {
        match self {
            Self::Pd(pd) => pd.starve(context, pod, starved),
            Self::Etcd(etcd) => etcd.starve(context, pod, starved),
            Self::Openbao(bao) => bao.starve(context, pod, starved),
        }
    }

    /// So many entries are written to the log each second from now on.
    pub fn busy(&mut self, context: &Context, per_second: u64) {
        match self {
            Self::Pd(pd) => pd.busy(context, per_second),
            Self::Etcd(etcd) => etcd.busy(context, per_second),
            Self::Openbao(bao) => bao.busy(context, per_second),
        }
    }

    /// Who leads takes requests to hand over and goes on leading, or heeds them again.
    pub fn cling(&mut self, clings: bool) {
        match self {
            Self::Pd(pd) => pd.cling(clings),
            Self::Etcd(etcd) => etcd.cling(clings),
            Self::Openbao(bao) => bao.cling(clings),
        }
    }

    /// A timer rings.
    pub fn ring(&mut self, context: &mut Context, event: &AppEvent) {
        match (self, event) {
            (Self::Pd(pd), AppEvent::Pd(event)) => pd.ring(context, event),
            (Self::Etcd(etcd), AppEvent::Etcd(event)) => etcd.ring(context, event),
            (Self::Openbao(bao), AppEvent::Openbao(event)) => bao.ring(context, event),
            // A timer of a system that this workload does not run any more.
            (Self::Pd(_) | Self::Etcd(_) | Self::Openbao(_), _) => {}
        }
    }

    /// What the process in this pod answers; none when it can't answer within any caller's patience.
    pub fn answer(&mut self, context: &mut Context, pod: &str, request: &Request<Bytes>) -> Option<Answer> {
        match self {
            Self::Pd(pd) => pd.answer(context, pod, request),
            Self::Etcd(etcd) => etcd.answer(context, pod, request),
            Self::Openbao(bao) => bao.answer(context, pod, request),
        }
    }

    /// Members unseal themselves from now on when they start, or stay sealed until somebody unseals them.
    pub fn auto_unseal(&mut self, context: &mut Context, works: bool) {
        if let Self::Openbao(bao) = self {
            bao.auto_unseal(context, works);
        }
    }

    /// Somebody unseals a member.
    pub fn unseal(&mut self, context: &mut Context, pod: &str) {
        if let Self::Openbao(bao) = self {
            bao.unseal(context, pod);
        }
    }

    /// Whether the process in this pod passes the readiness probe that people give it.
    pub fn is_ready(&self, pod: &str) -> bool {
        match self {
            Self::Pd(_) | Self::Etcd(_) => true,
            Self::Openbao(bao) => bao.is_ready(pod),
        }
    }

    /// What processes say of themselves on their pods.
    pub fn labels(&self) -> Vec<(String, Labels)> {
        match self {
            Self::Pd(_) | Self::Etcd(_) => Vec::new(),
            Self::Openbao(bao) => bao.labels(),
        }
    }

    /// The quorum as it truly is.
    pub fn truth(&self) -> QuorumTruth {
        match self {
            Self::Pd(pd) => pd.truth(),
            Self::Etcd(etcd) => etcd.truth(),
            Self::Openbao(bao) => bao.truth(),
        }
    }
}

/// Repository and tag of an image reference; a digest is ignored.
fn split_image(image: &str) -> (&str, &str) {
    let tagged = image.split('@').next().unwrap_or_default();
    match tagged.rsplit_once(':') {
        // A colon before the last slash belongs to the registry's port.
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        Some(_) | None => (tagged, "latest"),
    }
}

/// The version that an image's process reports: its tag, with the leading `v` that release tags have.
pub(crate) fn version_of(image: &str) -> String {
    let (_, tag) = split_image(image);
    if tag.starts_with(|first: char| first.is_ascii_digit()) { format!("v{tag}") } else { tag.to_owned() }
}

/// A minor release.
type Minor = (u64, u64);

/// The minor release of a version; none where it is no release.
fn minor(version: &str) -> Option<Minor> {
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_application_is_told_by_the_container_or_the_image() {
        assert_eq!(Kind::of("pd", "registry:5000/whatever"), Some(Kind::Pd));
        assert_eq!(Kind::of("main", "registry:5000/pingcap/pd:v8.5.1"), Some(Kind::Pd));
        assert_eq!(Kind::of("main", "quay.example/coreos/etcd:v3.6.16"), Some(Kind::Etcd));
        assert_eq!(Kind::of("main", "quay.example/openbao/openbao:2.5.5"), Some(Kind::Openbao));
        assert_eq!(Kind::of("main", "nginx:1.29"), None);
    }

    #[test]
    fn the_version_is_the_tag_without_digest_or_port() {
        assert_eq!(version_of("registry:5000/pingcap/pd:v8.5.1@sha256:abc"), "v8.5.1");
        assert_eq!(version_of("pd:8.5.2"), "v8.5.2");
        assert_eq!(version_of("registry:5000/pd"), "latest");
    }
}
