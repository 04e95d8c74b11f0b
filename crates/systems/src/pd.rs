//! PD (Placement Driver): what each pod says of the cluster, and handing leadership over.
//!
//! Called by the operator once per pass. It asks every pod itself, because a follower would otherwise repeat what the
//! leader says and a cut-off pod would look informed. It must never merge the pods' answers into one view, choose a
//! target for leadership, or take a 200 to a transfer as proof that leadership moved.
//!
//! Facts of the wire that this relies on, from PD's source (v4.0 to v8.5.7 and the main branch of August 2026) and
//! recordings of v8.5.7:
//!
//! - `PD-Allow-follower-handle` with any value makes a follower answer from what it knows itself (since v4.0). Without
//!   it a follower waits up to 3 s for a leader and forwards.
//! - `GET /pd/api/v1/members`: ids pass 2^53. `leader` is PD's, `etcd_leader` is Raft's; they differ for a moment after
//!   a transfer and each is left out while unknown. `binary_version` is what the member wrote to etcd when it started:
//!   a process that is only just starting still shows the version before it. `leader_priority` is left out where it is
//!   zero, and also where there is no etcd leader to read it from.
//! - `GET /pd/api/v1/health`: an array. The server pings one member after the other, up to 3 s for each silent one, so
//!   this call has a time-out of its own. It tells reachability and nothing about Raft. Up to v8.5.4 a pinged
//!   member forwards the ping to the leader: without a leader everybody counts as unhealthy, the pod itself included.
//! - `GET /pd/api/v2/ready` (since v8.5.2, 404 before) is always answered by the pod itself: 200 once it has loaded the
//!   regions and could lead. The leader of a cluster that is not bootstrapped answers 500.
//! - `POST /v3/maintenance/status` is the embedded etcd's JSON gateway on the client port, on by default
//!   (`enable-grpc-gateway = true`; the switch exists since v3.1.0). Switched off, the path answers 404. `raftIndex` is
//!   what this member knows as committed, so lag is the distance to the leader's index, not to its own.
//! - `POST /pd/api/v1/leader/transfer/{name}` answers after etcd has moved its leader, within 5 s, or 500. PD's leader
//!   follows etcd's a moment later. An unknown name is a 500; the leader's own name is a 200.

mod wire;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};

pub use crate::call::Timeouts;
use crate::{
    call::{self, CallError, Reply, ask_all, call},
    escape, gateway,
    transport::{Peer, Transport},
};

const ALLOW_FOLLOWER: HeaderName = HeaderName::from_static("pd-allow-follower-handle");

/// What one pod answered, or why its answer is not known.
pub type Answer = call::Answer<Said>;

/// The cluster as one pod sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Every member that this pod knows of; never empty.
    pub members: Vec<PdMember>,
    /// The name of PD's leader; none while this pod knows of none.
    pub leader: Option<String>,
    /// The name of the embedded etcd's leader, which PD's follows.
    pub etcd_leader: Option<String>,
    /// Which members this pod could ping, by name.
    pub health: BTreeMap<String, bool>,
    /// Whether this pod itself could lead.
    pub ready: Ready,
    /// Where this pod is in the Raft log; none where the gateway is switched off.
    pub raft: Option<RaftPosition>,
}

/// A member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdMember {
    /// Its name; empty for a member that was added and has never started. It counts in the quorum all the same.
    pub name: String,
    /// Its id in Raft.
    pub id: u64,
    /// The host in its first client URL.
    pub host: Option<String>,
    /// The version that it wrote down when it last started, as told; empty where it has written none.
    pub version: String,
    /// Its priority for leading; none where the pod had no etcd leader to read it from.
    pub leader_priority: Option<i32>,
}

/// Whether a pod has loaded what it needs in order to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It says yes.
    Yes,
    /// It says no.
    No,
    /// This version has no such question.
    NotOffered,
}

/// Where a member is in the Raft log, as told by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaftPosition {
    /// The last entry that it has applied.
    pub applied: u64,
    /// Raft's term, as it knows it; none where it does not tell.
    pub term: Option<u64>,
    /// The last entry that it knows as committed.
    pub index: u64,
    /// The member that it follows; none while there is no leader.
    pub leader_id: Option<u64>,
    /// Its own id.
    pub member_id: u64,
    /// Whether it is a learner and so has no vote.
    pub is_learner: bool,
}

/// Asks every pod, all at once. One answer per peer, in the order given.
pub async fn observe(transport: &dyn Transport, peers: &[Peer], timeouts: &Timeouts) -> Vec<Answer> {
    ask_all(peers, |peer| ask(transport, peer, timeouts)).await
}

async fn ask(transport: &dyn Transport, peer: &Peer, timeouts: &Timeouts) -> Result<Said, CallError> {
    let read = |path, limit| call(transport, peer, get(path), limit);
    // All are awaited to the end, and the first failure in this order is told: the same answers give the same message.
    let (members, health, ready, raft) = futures::join!(
        read("/pd/api/v1/members", timeouts.read),
        read("/pd/api/v1/health", timeouts.health),
        read("/pd/api/v2/ready", timeouts.read),
        call(transport, peer, raft_status(), timeouts.read),
    );
    let wire::Membership { members, leader, etcd_leader } = members?.read(wire::Members::meaning)?;
    let health = wire::health_by_name(health?.json()?);
    Ok(Said { members, leader, etcd_leader, health, ready: readiness(&ready?), raft: raft_position(raft?)? })
}

fn get(path: &'static str) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = Uri::from_static(path);
    request.headers_mut().insert(ALLOW_FOLLOWER, HeaderValue::from_static("true"));
    request
}

fn raft_status() -> Request<Bytes> {
    let mut request = gateway::post(gateway::STATUS, "{}");
    request.headers_mut().insert(ALLOW_FOLLOWER, HeaderValue::from_static("true"));
    request
}

fn readiness(reply: &Reply) -> Ready {
    match reply.status() {
        StatusCode::OK => Ready::Yes,
        StatusCode::NOT_FOUND => Ready::NotOffered,
        _ => Ready::No,
    }
}

fn raft_position(reply: Reply) -> Result<Option<RaftPosition>, CallError> {
    match reply.status() {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => Ok(None),
        _ => Ok(Some(wire::raft_position(&reply.json::<gateway::Status>()?))),
    }
}

/// Tells the leader to hand over to the member named `target`. `leader` is the pod that leads now.
///
/// Success means that the server has carried it out as far as it knows; read the members to believe it. After a
/// time-out or a broken connection it may have happened as well. Sent twice, or too late, it does no harm to the
/// quorum: it only moves leadership between members.
pub async fn transfer_leader(
    transport: &dyn Transport,
    leader: &Peer,
    target: &str,
    timeouts: &Timeouts,
) -> Result<(), CallError> {
    // Without the header for followers: should the pod have lost leadership meanwhile, it passes the request on to the
    // leader.
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = transfer_path(target);
    call(transport, leader, request, timeouts.verb).await?.success().map(drop)
}

fn transfer_path(target: &str) -> Uri {
    let path = format!("/pd/api/v1/leader/transfer/{}", escape::segment(target));
    // Every byte is one that a path may hold, so only a name of absurd length fails; the bare path then asks for nobody
    // and is refused.
    Uri::try_from(path).unwrap_or_else(|_| Uri::from_static("/pd/api/v1/leader/transfer/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment_of_the_path() {
        assert_eq!(transfer_path("pd-0.peer.ns.svc"), "/pd/api/v1/leader/transfer/pd-0.peer.ns.svc");
        assert_eq!(transfer_path("../a?b#c é"), "/pd/api/v1/leader/transfer/..%2Fa%3Fb%23c%20%C3%A9");
    }

    #[test]
    fn a_name_of_absurd_length_asks_for_nobody() {
        assert_eq!(transfer_path(&"x".repeat(70_000)), "/pd/api/v1/leader/transfer/");
    }
}
