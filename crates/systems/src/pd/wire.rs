//! The shapes of PD's answers, as PD writes them.
//!
//! Only what is used is declared. A field has a default only where the real server leaves it out; everything else that
//! is missing or of the wrong kind makes the answer unreadable. These types must never leave the adapter.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{PdMember, RaftPosition};
use crate::gateway::{Status, host};

/// `GET /pd/api/v1/members`.
#[derive(Debug, Deserialize)]
pub(super) struct Members {
    #[serde(rename = "members")]
    listed: Option<Vec<Member>>,
    /// Left out while this server knows of no leader.
    #[serde(default)]
    leader: Option<Leader>,
    #[serde(default)]
    etcd_leader: Option<Leader>,
}

/// What a list of members means.
pub(super) struct Membership {
    pub members: Vec<PdMember>,
    pub leader: Option<String>,
    pub etcd_leader: Option<String>,
}

impl Members {
    pub(super) fn meaning(self) -> Result<Membership, String> {
        let etcd_leader = self.etcd_leader.and_then(Leader::name);
        // Without an etcd leader the server skips the priorities, and a skipped one looks like zero.
        let priorities_were_read = etcd_leader.is_some();
        let members: Vec<PdMember> =
            self.listed.unwrap_or_default().into_iter().map(|member| member.meaning(priorities_were_read)).collect();
        // A server is at least a member itself, so an empty list is not a fact about the cluster.
        if members.is_empty() {
            return Err("it names no members".to_owned());
        }
        Ok(Membership { members, leader: self.leader.and_then(Leader::name), etcd_leader })
    }
}

#[derive(Debug, Deserialize)]
struct Member {
    /// Left out for a member that was added and has never started.
    #[serde(default)]
    name: String,
    #[serde(rename = "member_id")]
    id: u64,
    /// Left out likewise.
    #[serde(default)]
    client_urls: Vec<String>,
    /// Left out where the member has not written it yet.
    #[serde(default)]
    binary_version: String,
    /// Left out where it is zero.
    #[serde(default)]
    leader_priority: i32,
}

impl Member {
    fn meaning(self, priorities_were_read: bool) -> PdMember {
        let host = self.client_urls.first().and_then(|url| host(url));
        PdMember {
            name: self.name,
            id: self.id,
            host,
            version: self.binary_version,
            leader_priority: priorities_were_read.then_some(self.leader_priority),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Leader {
    #[serde(default)]
    name: String,
}

impl Leader {
    /// A leader without a name is how an empty message is written: nobody.
    fn name(self) -> Option<String> {
        (!self.name.is_empty()).then_some(self.name)
    }
}

/// `GET /pd/api/v1/health`: an array, in which an entry can be null.
pub(super) type Healths = Vec<Option<Health>>;

#[derive(Debug, Deserialize)]
pub(super) struct Health {
    name: String,
    health: bool,
}

/// By name; of two with one name the worse counts.
pub(super) fn health_by_name(healths: Healths) -> BTreeMap<String, bool> {
    let mut by_name = BTreeMap::new();
    for Health { name, health } in healths.into_iter().flatten() {
        by_name.entry(name).and_modify(|known| *known &= health).or_insert(health);
    }
    by_name
}

/// `POST /v3/maintenance/status` of the embedded etcd's JSON gateway.
pub(super) fn raft_position(status: &Status) -> RaftPosition {
    RaftPosition {
        applied: status.applied,
        term: status.term(),
        index: status.index,
        leader_id: status.leader(),
        member_id: status.header.member_id,
        is_learner: status.is_learner,
    }
}
