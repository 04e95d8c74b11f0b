//! The members of a quorum as they were seen, for the status and for whoever looks before there is one.

use windlass_plan::{Fact, MemberName, Quorum};

use crate::{
    conditions::Tri,
    status::{Lag, MemberStatus, Role},
};

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
            role: role.into(),
            version: member.and_then(|member| member.version.known()).map(ToString::to_string),
            healthy: healthy.into(),
            lag: lag.map(Into::into),
        }
    };
    pods.map(describe).collect()
}
