//! The members of a quorum as they were seen, for the status and for whoever looks before there is one.

use windlass_plan::{Fact, Pod, Record, View};

use crate::{
    conditions::Tri,
    status::{Lag, MemberStatus, Role},
};

/// The members as seen, for the status, in the order of their ordinals.
pub fn seen(view: &View, upgrade: Option<&Record>, max_lag: i64) -> Vec<MemberStatus> {
    let max_lag = u64::try_from(max_lag).unwrap_or(0);
    let describe = |pod: &Pod| {
        let member = view.quorum.voter(&pod.name);
        let role = match &view.quorum.leader {
            Fact::Known(leader) if *leader == pod.name => Role::Leader,
            Fact::Known(_) => Role::Follower,
            Fact::Unknown(_) => Role::Unknown,
        };
        let healthy = match member.map(|member| &member.healthy) {
            Some(Fact::Known(true)) => Tri::True,
            Some(Fact::Known(false)) => Tri::False,
            Some(Fact::Unknown(_)) | None => Tri::Unknown,
        };
        // A number would change with every look, and every look would be a write.
        let lag = match member.map(|_| view.quorum.lag(&pod.name)) {
            Some(Fact::Known(Some(lag))) => upgrade.map(|upgrade| {
                let in_sync = lag <= max_lag || upgrade.keeps_up(&pod.name);
                if in_sync { Lag::InSync } else { Lag::Behind }
            }),
            Some(Fact::Known(None) | Fact::Unknown(_)) | None => None,
        };
        let word = |word: &'static str| word.to_owned();
        MemberStatus {
            pod: pod.name.to_string(),
            role: word(role.into()),
            version: member.and_then(|member| member.version.known()).map(ToString::to_string),
            healthy: word(healthy.text()),
            lag: lag.map(|lag| word(lag.into())),
        }
    };
    view.pods.iter().map(describe).collect()
}
