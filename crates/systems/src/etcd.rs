//! etcd: what each pod says of the cluster, handing leadership over, and a snapshot.
//!
//! Called by the operator once per pass, through the JSON gateway on the client port. It asks every pod itself. It must never merge
//! the pods' answers into one view, choose a target for leadership, or take a 200 to a transfer as proof that leadership moved.
//!
//! Facts of the wire that this relies on, from the sources of 3.5.35 and 3.6.16 and from running processes of both:
//!
//! - `POST /v3/maintenance/status` is the member's own state, also without a quorum and also of a learner. `leader` is left out
//!   while there is none. `errors` names that, too, and every alarm of the whole cluster. `version` is the process's; the version
//!   of the cluster is the lowest of all, so that a mixed cluster is nothing unusual.
//! - `POST /v3/cluster/member/list` with `linearizable: false` is what this member has applied; with `true` it needs a quorum and
//!   answers 503 after 7 s without one. A member that was added and never started has no name and no client URLs. A learner
//!   answers 503 (3.5) or 400 (3.6): it lists nobody.
//! - `GET /health` is 503 while an alarm is active, there is no leader, or a read through the quorum fails, for which it takes up to
//!   7 s (5 s and two election time-outs). A learner can be healthy. It needs no credentials.
//! - `GET /version` names the process's version and, as `etcdcluster`, the cluster's, `not_decided` before there is one. It needs no
//!   credentials. The cluster's follows some seconds after the last member was replaced, and only while all answer each other.
//! - `POST /v3/maintenance/transfer-leadership` is taken by the leader alone; everybody else answers 400, `etcdserver: not leader`.
//!   An unknown target and a learner are a 400, the leader itself is a 200. With a target that does not answer, it waits as long as
//!   the caller does; writes stand still for one election time-out meanwhile.
//! - With authentication switched on, a call without a token is a 400 with the words "user name is empty"; with a token that has expired,
//!   or that this member has forgotten when it was restarted, a 401; of a user who may not do that, a 403. Handing over and snapshots are
//!   for users with the role root, until 3.5 the status too.

mod login;
pub mod snapshot;
mod wire;

use bytes::Bytes;
use http::{Request, Uri};

pub use self::login::{Login, login};
pub use crate::call::Timeouts;
use crate::{
    call::{self, CallError, Failure, Reply, ask_all, call},
    gateway,
    secret::Secret,
    transport::{Peer, Transport},
};

/// What one pod answered, or why its answer is not known.
pub type Answer = call::Answer<Said>;

/// The cluster as one pod sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its own state.
    pub status: Status,
    /// Whether it takes part in a working quorum.
    pub health: Health,
    /// Every member that this pod knows of, never empty; none from a learner, which lists nobody.
    pub members: Option<Vec<EtcdMember>>,
    /// The version that the whole cluster has agreed on; none where this pod does not say, or where nothing is decided yet.
    pub cluster_version: Option<String>,
}

/// A member's own state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its id in Raft.
    pub member_id: u64,
    /// The version of the running process.
    pub version: String,
    /// The member that it follows; none while it knows of no leader.
    pub leader_id: Option<u64>,
    /// The last entry that it knows as committed.
    pub index: u64,
    /// The last entry that it has applied.
    pub applied: u64,
    /// Raft's term, as it knows it; none where it does not tell.
    pub term: Option<u64>,
    /// Whether it is a learner and so has no vote.
    pub is_learner: bool,
    /// Alarms of the cluster, in etcd's words.
    pub alarms: Vec<String>,
    /// The version that the cluster was told to go back to, if it was.
    pub downgrade: Option<String>,
}

/// Whether a pod takes part in a working quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It says yes.
    Yes,
    /// It says no, and why.
    No(String),
}

/// A member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdMember {
    /// Its id in Raft.
    pub id: u64,
    /// Its name; empty for a member that was added and has never started. It counts in the quorum all the same.
    pub name: String,
    /// The hosts in its client and peer URLs.
    pub hosts: Vec<String>,
    /// Whether it is a learner and so has no vote.
    pub is_learner: bool,
}

/// Asks every pod, all at once. One answer per peer, in the order given.
pub async fn observe(
    transport: &dyn Transport,
    peers: &[Peer],
    token: Option<&Secret>,
    timeouts: &Timeouts,
) -> Vec<Answer> {
    ask_all(peers, |peer| ask(transport, peer, token, timeouts)).await
}

async fn ask(
    transport: &dyn Transport,
    peer: &Peer,
    token: Option<&Secret>,
    timeouts: &Timeouts,
) -> Result<Said, CallError> {
    let post = |path, body| gateway::signed(gateway::post(path, body), token);
    // All are awaited to the end, and the first failure in this order is told: the same answers give the same message.
    let (status, members, health, versions) = futures::join!(
        call(transport, peer, post(gateway::STATUS, "{}"), timeouts.read),
        call(transport, peer, post("/v3/cluster/member/list", r#"{"linearizable":false}"#), timeouts.read),
        call(transport, peer, get("/health"), timeouts.health),
        call(transport, peer, get("/version"), timeouts.read),
    );
    let status = status?.read(wire::status).map_err(about_credentials)?;
    let members = match members? {
        reply if status.is_learner && !reply.status().is_success() => None,
        reply => Some(reply.read(wire::members).map_err(about_credentials)?),
    };
    let health = health_of(health?)?;
    // Only who enters another minor release needs it: a proxy that hides this path blinds nobody.
    let versions = versions.and_then(Reply::json::<wire::Versions>);
    let cluster_version = versions.ok().and_then(wire::Versions::of_the_cluster);
    Ok(Said { status, health, members, cluster_version })
}

/// Whether this member leads, by its own word.
pub async fn leads(
    transport: &dyn Transport,
    peer: &Peer,
    token: Option<&Secret>,
    timeouts: &Timeouts,
) -> Result<bool, CallError> {
    let request = gateway::signed(gateway::post(gateway::STATUS, "{}"), token);
    let status = call(transport, peer, request, timeouts.read).await?.read(wire::status).map_err(about_credentials)?;
    Ok(status.leader_id == Some(status.member_id))
}

fn get(path: &'static str) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = Uri::from_static(path);
    request
}

fn health_of(reply: Reply) -> Result<Health, CallError> {
    Ok(reply.json_also::<wire::Health>(&[503])?.meaning())
}

/// How it says that nobody in particular asked.
const NOBODY: &str = "user name is empty";

fn about_credentials(error: CallError) -> CallError {
    let words = [NOBODY, "invalid auth token", "revision of auth store is old"];
    error.denied_if(|text| words.iter().any(|words| text.contains(words)))
}

/// Whether logging in again helps: what was shown has expired or is not known to this member, or nothing was shown. Who may not do what
/// he asks for gains nothing by it.
pub fn wants_another_token(error: &CallError) -> bool {
    match error.failure() {
        Failure::Denied { code, .. } => *code != 403,
        Failure::Refused
        | Failure::TimedOut
        | Failure::Tls(_)
        | Failure::Broken(_)
        | Failure::Status { .. }
        | Failure::Unreadable(_)
        | Failure::TooLarge => false,
    }
}

/// Tells the leader to hand over to the member with the id `target`. `leader` is the pod that leads now.
///
/// Success means that this member saw it happen; read the others to believe it. After a time-out or a broken connection it may have
/// happened as well. Sent twice, or too late, it does no harm to the quorum: whoever does not lead refuses it.
pub async fn transfer_leader(
    transport: &dyn Transport,
    leader: &Peer,
    target: u64,
    token: Option<&Secret>,
    timeouts: &Timeouts,
) -> Result<(), CallError> {
    let request = gateway::post("/v3/maintenance/transfer-leadership", format!(r#"{{"targetID":"{target}"}}"#));
    let request = gateway::signed(request, token);
    call(transport, leader, request, timeouts.verb).await?.success().map(drop).map_err(about_credentials)
}
