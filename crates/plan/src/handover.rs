//! Who leads while a member is down: the fewest and the safest moves (C3, H15, H16).

use std::{borrow::Cow, cmp::Reverse};

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    decision::{Hold, Step},
    gate,
    quorum::{Member, MemberName},
    reason::Reason,
    record::Record,
    request,
    stage::HandOver,
    want::Want,
    workload::{Pod, View},
};

/// After so many hand-overs that came to nothing a person should look (D4). Where nobody can say who shall lead, asking again and again would
/// depose one after the other; where somebody can, it would not help either.
const PATIENCE: u32 = 3;

/// Whether it was asked for as often as it may be.
pub(crate) fn is_exhausted(asked: &HandOver) -> bool {
    asked.attempts > PATIENCE
}

/// Asks, and notes that it was asked.
pub(crate) fn begin(
    view: &View,
    record: &mut Record,
    from: &Pod,
    to: MemberName,
    attempts: u32,
    now: Timestamp,
) -> Step {
    record.hand_over = Some(HandOver { pod: from.name.clone(), since: now, attempts, answer: None });
    record.hand_overs = record.hand_overs.saturating_add(1);
    // From here on it may lead, whether or not we ever see it do so.
    if let Some(version) = view.quorum.member(&to).and_then(|member| member.version.known()) {
        record.note_leader(version);
    }
    Step::HandOver { from: from.name.clone(), to }
}

/// What a new leader does about a hand-over that its predecessor had recorded and may never have sent (H6): it is finished, so that a late one
/// finds leadership where it wants it, unless nobody wants it any more. It counts as another attempt: take-overs have no end either.
pub fn finish(want: &Want, view: &View, now: Timestamp) -> Option<(Step, Record)> {
    let mut record = view.record.clone()?;
    let given_up = request::take_in(want, view, Some(&mut record));
    let wanted = match &given_up {
        Some(given_up) if !bug::active(Bug::AbortedHandOverFinished) => {
            request::instead(want, view, Some(&record), given_up)
        }
        Some(_) | None => Cow::Borrowed(want),
    };
    let asked = record.hand_over.clone().filter(|asked| !is_exhausted(asked))?;
    let from = view.pod(&asked.pod).filter(|from| view.quorum.leader.is(&from.name))?;
    if wanted.paused || wanted.target != record.target {
        return None;
    }
    // Its window may be closed by now.
    gate::policy_objection(&wanted, view, from, now).ok()?;
    let to = target(&wanted, view, from).ok()?.name.clone();
    let step = begin(view, &mut record, from, to, asked.attempts.saturating_add(1), now);
    Some((step, record))
}

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
