//! The members of a quorum as they were seen, for the status and for whoever looks before there is one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::{Fact, MemberName, Quorum};

use crate::{conditions::Tri, word::Written};

/// One member as last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// The pod, and the member's name.
    pub pod: String,
    /// Leader, Follower or Unknown.
    #[schemars(with = "String")]
    pub role: Written<Role>,
    /// The version that the running process reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// True, False or Unknown.
    #[schemars(with = "String")]
    pub healthy: Written<Tri>,
    /// During an upgrade: InSync or Behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub lag: Option<Written<Lag>>,
}

/// What `role` of a member says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
pub enum Role {
    /// It leads.
    Leader,
    /// Another one leads.
    Follower,
    /// Who leads is not known.
    Unknown,
}

/// What `lag` of a member says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lag {
    /// It keeps up with the leader.
    InSync,
    /// It does not yet.
    Behind,
}

/// Whether a member that is so far behind keeps up all the same.
pub type InSync<'a> = &'a dyn Fn(&MemberName, u64) -> bool;

/// The members in these pods as seen, for the status. How far one is behind its leader is told where `in_sync` says what that means.
pub fn seen<'a>(
    pods: impl Iterator<Item = &'a MemberName>,
    quorum: &Quorum,
    in_sync: Option<InSync<'_>>,
) -> Vec<MemberStatus> {
    let describe = |pod: &MemberName| {
        let member = quorum.voter(pod);
        let role = match &quorum.leader {
            Fact::Known(leader) if leader == pod => Role::Leader,
            Fact::Known(_) => Role::Follower,
            Fact::Unknown(_) => Role::Unknown,
        };
        let healthy = match member.map(|member| &member.healthy) {
            Some(Fact::Known(true)) => Tri::True,
            Some(Fact::Known(false)) => Tri::False,
            Some(Fact::Unknown(_)) | None => Tri::Unknown,
        };
        // A number would change with every look, and every look would be a write.
        let lag = match member.map(|_| quorum.lag(pod)) {
            Some(Fact::Known(Some(lag))) => {
                in_sync.map(|in_sync| if in_sync(pod, lag) { Lag::InSync } else { Lag::Behind })
            }
            Some(Fact::Known(None) | Fact::Unknown(_)) | None => None,
        };
        MemberStatus {
            pod: pod.to_string(),
            role: Written::Known(role),
            version: member.and_then(|member| member.version.known()).map(ToString::to_string),
            healthy: Written::Known(healthy),
            lag: lag.map(Written::Known),
        }
    };
    pods.map(describe).collect()
}
