//! The shapes of etcd's answers, as etcd writes them.
//!
//! Only what is used is declared. A field has a default only where the real server leaves it out; everything else that
//! is missing or of the wrong kind makes the answer unreadable. These types must never leave the adapter.

use serde::Deserialize;

use super::{EtcdMember, Status};
use crate::gateway::{self, host, wide};

/// How a member says in `errors` what the missing `leader` says already.
const NO_LEADER: &str = "etcdserver: no leader";

/// What a member's own state means.
pub(super) fn status(status: gateway::Status) -> Result<Status, String> {
    if status.version.is_empty() {
        return Err("it names no version".to_owned());
    }
    Ok(Status {
        member_id: status.header.member_id,
        leader_id: status.leader(),
        term: status.term(),
        version: status.version,
        index: status.index,
        applied: status.applied,
        is_learner: status.is_learner,
        alarms: status.errors.into_iter().filter(|error| error != NO_LEADER).collect(),
        downgrade: status.downgrade.target(),
    })
}

/// `POST /v3/cluster/member/list`.
#[derive(Debug, Deserialize)]
pub(super) struct Members {
    #[serde(default)]
    members: Vec<Member>,
}

#[derive(Debug, Deserialize)]
struct Member {
    #[serde(rename = "ID", deserialize_with = "wide")]
    id: u64,
    /// Left out for a member that was added and has never started.
    #[serde(default)]
    name: String,
    #[serde(default, rename = "peerURLs")]
    peer_urls: Vec<String>,
    /// Left out likewise.
    #[serde(default, rename = "clientURLs")]
    client_urls: Vec<String>,
    #[serde(default, rename = "isLearner")]
    is_learner: bool,
}

/// What a list of members means.
pub(super) fn members(list: Members) -> Result<Vec<EtcdMember>, String> {
    // A server is at least a member itself, so an empty list is not a fact about the cluster.
    if list.members.is_empty() {
        return Err("it names no members".to_owned());
    }
    let meaning = |member: Member| {
        let mut hosts: Vec<String> =
            member.client_urls.iter().chain(&member.peer_urls).filter_map(|url| host(url)).collect();
        hosts.dedup();
        EtcdMember { id: member.id, name: member.name, hosts, is_learner: member.is_learner }
    };
    Ok(list.members.into_iter().map(meaning).collect())
}

/// `GET /version`.
#[derive(Debug, Deserialize)]
pub(super) struct Versions {
    etcdcluster: String,
}

impl Versions {
    pub(super) fn of_the_cluster(self) -> Option<String> {
        (self.etcdcluster != "not_decided").then_some(self.etcdcluster)
    }
}

/// `GET /health`.
#[derive(Debug, Deserialize)]
pub(super) struct Health {
    health: String,
    /// Left out before 3.5.
    #[serde(default)]
    reason: String,
}

impl Health {
    pub(super) fn meaning(self) -> super::Health {
        if self.health == "true" { super::Health::Yes } else { super::Health::No(self.reason) }
    }
}
