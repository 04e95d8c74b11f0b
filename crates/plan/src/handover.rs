//! Who leads while a member is down: the fewest and the safest moves (C3, H15, H16).

use std::cmp::Reverse;

use crate::{
    bug::{self, Bug},
    decision::Hold,
    quorum::{Member, MemberName},
    reason::Reason,
    want::Want,
    workload::{Pod, View},
};

/// The member that shall lead instead of `victim`.
///
/// A replaced member first, the one that has been up for longest: it is never taken down again, so leadership rests there.
/// With none yet, the member whose turn comes last: one more move, at the very end. With these two rules leadership moves once,
/// or twice where the first victim led.
pub fn target<'a>(want: &Want, view: &'a View, victim: &Pod) -> Result<&'a Pod, Hold> {
    let healthy = |pod: &&Pod| {
        pod.name != victim.name && pod.is_up() && view.quorum.member(&pod.name).is_some_and(Member::is_healthy)
    };
    let healthy: Vec<&Pod> = view.pods.iter().filter(healthy).collect();
    let candidates: Vec<&Pod> =
        healthy.iter().filter(|pod| want.allow_downgrade || is_as_new(view, victim, pod)).copied().collect();
    let replaced =
        candidates.iter().filter(|pod| !view.is_outdated(pod)).min_by_key(|pod| (pod.ready_since, Reverse(pod.index)));
    let latest = candidates.iter().filter(|pod| view.is_outdated(pod)).min_by_key(|pod| pod.index);
    let next = candidates.iter().filter(|pod| view.is_outdated(pod)).max_by_key(|pod| pod.index);
    if !want.names_target && candidates.len() < healthy.len() {
        // Nobody can say where leadership goes.
        return Err(nobody(victim, &healthy));
    }
    let choice = if bug::active(Bug::OutdatedTarget) { next.or(replaced) } else { replaced.or(latest) };
    choice.copied().ok_or_else(|| nobody(victim, &healthy))
}

/// Going forward, leadership never goes from newer to older (H15).
fn is_as_new(view: &View, victim: &Pod, candidate: &Pod) -> bool {
    let version = |name: &MemberName| view.quorum.member(name).and_then(|member| member.version.known());
    match (version(&victim.name), version(&candidate.name)) {
        (Some(from), Some(to)) => to >= from,
        (None, _) | (_, None) => false,
    }
}

fn nobody(victim: &Pod, healthy: &[&Pod]) -> Hold {
    let name = &victim.name;
    if healthy.is_empty() {
        return Hold::new(Reason::NoHandOverTarget, format!("{name} leads, and no other member is healthy"));
    }
    let message = format!("{name} leads and is newer than all other members: handing over would be a downgrade");
    Hold::new(Reason::DowngradeNotAllowed, message)
}
