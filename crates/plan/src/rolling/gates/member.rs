//! Whether the members are known, and up in every sense.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    bug::{self, Bug},
    fact::Fact,
    gate::Verdict,
    hold::Hold,
    quorum::{Complaint, Member, MemberName, Seat, can_spare_one},
    reason::Reason,
    rolling::{
        known::{stage::StageKind, view::View, workload::Pod},
        lag,
    },
    strategy::known::want::Want,
    version::Version,
};

/// All pods exist and none is on its way out.
pub fn pods_present(view: &View) -> Verdict {
    absent(view).map_or(Ok(()), |(_, hold)| Err(hold))
}

/// The first member whose pod does not exist, is on its way out, or is about to be.
pub fn absent(view: &View) -> Option<(MemberName, Hold)> {
    let missing = (0..view.workload.replicas).find_map(|index| {
        let name = view.workload.member(index);
        let hold = match view.pod(&name) {
            None => missing(view, &name),
            Some(pod) if pod.terminating && !bug::active(Bug::PreviousNotAwaited) => {
                Hold::new(Reason::PodNotReady, format!("pod {name} is terminating"))
            }
            Some(_) => return None,
        };
        Some((name, hold))
    });
    // A set that is scaled down loses a member, too: at any moment, if it has not gone yet.
    let leaving = view.pods.iter().find(|pod| pod.index >= view.workload.replicas);
    missing.or_else(|| {
        let name = leaving?.name.clone();
        let hold = Hold::new(Reason::PodNotReady, format!("pod {name} is to go, for the set is scaled down"));
        Some((name, hold))
    })
}

/// A pod that does not exist. Most StatefulSets make one only when those below it are ready: whatever keeps one of these is what a person
/// has to look at.
fn missing(view: &View, name: &MemberName) -> Hold {
    let message = format!("pod {name} does not exist yet");
    let sick = view.pods.iter().find_map(|pod| Some((pod, pod.trouble.as_ref().filter(|_| !pod.terminating)?)));
    match sick {
        Some((pod, trouble)) => {
            Hold::new(trouble.reason(), format!("{message}, and pod {} is not ready: {trouble}{}", pod.name, more(pod)))
        }
        None => Hold::new(Reason::PodNotReady, message),
    }
}

/// The system lists its members, and they are the pods.
pub fn members_known(want: &Want, view: &View) -> Verdict {
    if let Fact::Unknown(why) = &view.quorum.members {
        return Err(unknown(view, why));
    }
    if let Some(message) = non_voter(want, view) {
        return Err(Hold::new(Reason::MembersDoNotMatch, message));
    }
    let pods: BTreeMap<Seat, &MemberName> =
        view.pods.iter().map(|pod| (view.workload.seat(pod.index), &pod.name)).collect();
    let listed: BTreeSet<&Seat> = view.quorum.voters().filter_map(|(_, member)| member.seat.as_ref()).collect();
    let is_ours = |member: &Member| member.seat.as_ref().is_some_and(|seat| pods.contains_key(seat));
    let missing = names(pods.iter().filter(|(seat, _)| !listed.contains(seat)).map(|(_, name)| *name));
    let extra = names(view.quorum.voters().filter(|(_, member)| !is_ours(member)).map(|(name, _)| name));
    match (missing.is_empty(), extra.is_empty()) {
        (true, true) => Ok(()),
        (false, true) => Err(Hold::new(Reason::MembersDoNotMatch, format!("pods that are no members: {missing}"))),
        (true, false) => Err(Hold::new(Reason::MembersDoNotMatch, format!("members that have no pod: {extra}"))),
        (false, false) => Err(Hold::new(
            Reason::MembersDoNotMatch,
            format!("pods that are no members: {missing}; members that have no pod: {extra}"),
        )),
    }
}

/// What is to be said of a member without a vote. One that is about to get a vote makes another quorum of this one half way, so it is waited
/// for, unless a person says that it is meant to stay as it is. In a pod of this set it would be replaced as if it had a vote.
fn non_voter(want: &Want, view: &View) -> Option<String> {
    if bug::active(Bug::NonVotersIgnored) {
        return None;
    }
    let is_ours = |(_, member): &(&MemberName, &Member)| {
        let is_in = |pod: &Pod| member.seat.as_ref() == Some(&view.workload.seat(pod.index));
        view.pods.iter().any(is_in)
    };
    if let Some((learner, _)) = view.quorum.non_voters().find(is_ours) {
        return Some(format!(
            "{learner} is a learner, a member without a vote, in a pod of this StatefulSet: promote it, or give it a set of its own"
        ));
    }
    let (learner, _) = view.quorum.non_voters().next().filter(|_| !want.accept_non_voters)?;
    Some(format!(
        "{learner} is a learner, a member without a vote: promote or remove it first, or set spec.policy.acceptNonVoters if it is meant to stay"
    ))
}

/// Why nobody knows the members. A token that is refused is a cause of its own, and another token is all that helps.
fn unknown(view: &View, why: &str) -> Hold {
    if view.quorum.refused {
        return Hold::new(Reason::TokenRefused, why);
    }
    Hold::new(Reason::MembersUnknown, format!("the members are not known: {why}"))
}

/// Somebody leads, and everybody agrees who.
pub fn leader_known(view: &View) -> Verdict {
    match &view.quorum.leader {
        Fact::Unknown(why) => Err(Hold::new(Reason::LeaderUnknown, format!("the leader is not known: {why}"))),
        Fact::Known(leader) if view.quorum.voter(leader).is_none() => {
            Err(Hold::new(Reason::LeaderUnknown, format!("{leader} is said to lead and is no member")))
        }
        Fact::Known(_) => Ok(()),
    }
}

/// The quorum is large enough to lose a member at all, or a person accepts that it goes down (H14).
pub fn spare_member(want: &Want, view: &View) -> Verdict {
    let members = view.quorum.size();
    if can_spare_one(members) || want.accept_downtime {
        return Ok(());
    }
    Err(Hold::new(
        Reason::TooFewMembers,
        format!(
            "with {members} member{} none can be spared: replacing one takes the quorum down",
            if members == 1 { "" } else { "s" }
        ),
    ))
}

/// What a member lacks to count as up: the stage it is in, and the hold that says so.
pub struct Lacking {
    /// Which stage's clock runs.
    pub stage: StageKind,
    /// What is waited for.
    pub hold: Hold,
}

/// Whether a member is up in every sense: its pod ready, itself healthy, and, once replaced, of the right version and caught up.
pub fn settled(want: &Want, view: &View, version: &Version, pod: &Pod) -> Result<(), Lacking> {
    let lacking = |stage, reason, message| Err(Lacking { stage, hold: Hold::new(reason, message) });
    let name = &pod.name;
    if !pod.is_up() {
        return Err(Lacking { stage: StageKind::Replace, hold: unready(view, pod) });
    }
    // A member that was just replaced is expected not to answer for a while, and has a reason of its own if it goes on.
    let replaced = view.record.is_some() && !view.is_outdated(pod);
    let silent = if replaced { Reason::MemberNotJoined } else { Reason::MembersUnknown };
    let Some(member) = view.quorum.voter(name) else {
        return Err(Lacking { stage: StageKind::Join, hold: unlisted(view, pod, silent) });
    };
    match &member.healthy {
        Fact::Known(true) => {}
        Fact::Known(false) => {
            let reason = match &member.trouble {
                Some(Complaint::Sealed) => Reason::MemberSealed,
                Some(Complaint::Other(_)) | None => Reason::MemberUnhealthy,
            };
            let trouble = member.trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
            return lacking(StageKind::Join, reason, format!("{name} is not healthy{trouble}{}", more(pod)));
        }
        Fact::Unknown(why) => {
            return lacking(
                StageKind::Join,
                silent,
                format!("{name}'s pod is ready, and its health is not known: {why}{}", more(pod)),
            );
        }
    }
    let runs = match &member.version {
        Fact::Known(runs) => runs,
        Fact::Unknown(why) => {
            return lacking(StageKind::Join, Reason::MembersUnknown, format!("{name}'s version is not known: {why}"));
        }
    };
    if runs != version && !view.is_outdated(pod) {
        return lacking(
            StageKind::Join,
            Reason::VersionMismatch,
            format!("{name} runs {runs} from image {}, and {version} was asked for", view.workload.image),
        );
    }
    match view.quorum.lag(name) {
        Fact::Known(Some(lag)) if lag > want.max_lag && !lag::keeps_up(view, name) => lacking(
            StageKind::Sync,
            Reason::MemberBehind,
            format!(
                "{name} is more than {} entries behind the leader, and has not reached where that was at an earlier look",
                want.max_lag
            ),
        ),
        Fact::Known(_) => Ok(()),
        Fact::Unknown(why) => {
            lacking(StageKind::Sync, Reason::MembersUnknown, format!("{name}'s position is not known: {why}"))
        }
    }
}

/// What keeps a pod from being up, in the most telling words that there are.
fn unready(view: &View, pod: &Pod) -> Hold {
    let name = &pod.name;
    // Where Kubernetes has no word for it, the member may have one: OpenBao's pods are not ready while they are sealed.
    let complaint = view.quorum.voter(name).and_then(|member| member.trouble.as_ref());
    let member = complaint.map(|complaint| format!(": {complaint}")).unwrap_or_default();
    let reason = match complaint {
        Some(Complaint::Sealed) => Reason::MemberSealed,
        Some(Complaint::Other(_)) | None => Reason::PodNotReady,
    };
    match &pod.trouble {
        _ if pod.terminating => Hold::new(Reason::PodNotReady, format!("pod {name} is terminating")),
        Some(trouble) => Hold::new(trouble.reason(), format!("pod {name} is not ready: {trouble}{}", more(pod))),
        None => {
            let min_ready = view.workload.min_ready.as_secs();
            let long =
                if min_ready == 0 { String::new() } else { format!(" for {min_ready}s, as minReadySeconds asks") };
            Hold::new(reason, format!("pod {name} is not ready{long}{member}{}", more(pod)))
        }
    }
}

/// Where its log tells more, as the end of a message; empty where nobody knows.
fn more(pod: &Pod) -> String {
    pod.log.as_ref().map(|log| format!("; {log}")).unwrap_or_default()
}

/// A pod that is ready and no member.
fn unlisted(view: &View, pod: &Pod, silent: Reason) -> Hold {
    match &view.quorum.members {
        Fact::Known(_) => {
            let listed = names(view.quorum.voters().map(|(name, _)| name));
            let message = format!("pod {} is ready, and the members are {listed}{}", pod.name, more(pod));
            Hold::new(silent, message)
        }
        Fact::Unknown(why) => unknown(view, why),
    }
}

fn names<'a>(names: impl Iterator<Item = &'a MemberName>) -> String {
    // In the order of the alphabet, whatever order they came in.
    names.map(MemberName::as_str).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}
