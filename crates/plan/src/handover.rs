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
    let candidates: Vec<&Pod> =
        view.pods.iter().filter(|pod| pod.name != victim.name && pod.is_up() && may_take_over(want, view, victim, pod)).collect();
    let replaced = candidates.iter().filter(|pod| !view.is_outdated(pod)).min_by_key(|pod| (pod.ready_since, Reverse(pod.index)));
    let latest = candidates.iter().filter(|pod| view.is_outdated(pod)).min_by_key(|pod| pod.index);
    if bug::active(Bug::OutdatedTarget) {
        let next = candidates.iter().filter(|pod| view.is_outdated(pod)).max_by_key(|pod| pod.index);
        return next.or(replaced).copied().ok_or_else(|| nobody(victim));
    }
    replaced.or(latest).copied().ok_or_else(|| nobody(victim))
}

/// Healthy, and not older than the leader unless going back was declared (H15).
fn may_take_over(want: &Want, view: &View, victim: &Pod, candidate: &Pod) -> bool {
    let version = |name: &MemberName| view.quorum.member(name).and_then(|member| member.version.known());
    let forward = match (version(&victim.name), version(&candidate.name)) {
        (Some(from), Some(to)) => to >= from,
        (None, _) | (_, None) => false,
    };
    view.quorum.member(&candidate.name).is_some_and(Member::is_healthy) && (forward || want.allow_downgrade)
}

fn nobody(victim: &Pod) -> Hold {
    Hold::new(Reason::NoHandOverTarget, format!("{} leads, and no other member is healthy and at least as new", victim.name))
}
