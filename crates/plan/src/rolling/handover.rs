//! Who leads while a member is down: the fewest and the safest moves (C3, H15, H16).

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    hold::Hold,
    quorum::{Member, MemberName},
    reason::Reason,
    rolling::known::{
        record::Record,
        stage::HandOver,
        step::{Decision, Step},
        view::View,
        workload::Pod,
    },
    strategy::known::{
        decision::{WATCHFUL, halt, wait, wait_or_halt},
        want::Want,
    },
};

/// After so many hand-overs that came to nothing a person should look (D4). Where nobody can say who shall lead, asking again and again would
/// depose one after the other; where somebody can, it would not help either.
const PATIENCE: u32 = 3;

/// Whether it was asked so often since the upgrade began, turned round, or a person said `resume` or `retry`, that somebody should look: nobody
/// needs more than all members together may take. Each time it moved, and came back before Kubernetes had replaced who had led.
fn wanders(view: &View, record: &Record) -> bool {
    let most = u32::try_from(view.quorum.size()).unwrap_or(u32::MAX).saturating_mul(PATIENCE + 1);
    record.hand_overs >= most
}

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
    record.hand_over = Some(HandOver { pod: from.name.clone(), since: now, attempts, last_error: None });
    record.hand_overs = record.hand_overs.saturating_add(1);
    // From here on it may lead, whether or not we ever see it do so.
    if let Some(version) = view.quorum.voter(&to).and_then(|member| member.version.known()) {
        record.note_leader(version);
    }
    Step::HandOver { from: from.name.clone(), to }
}

/// The member that shall lead instead of `victim`.
///
/// A replaced member first, the one that has been up for longest: it is never taken down again, so leadership rests there.
/// With none yet, the member whose turn comes last: one more move, at the very end. With these two rules leadership moves once,
/// or twice where the first victim led.
pub fn target<'a>(want: &Want, view: &'a View, victim: &Pod) -> Result<&'a Pod, Hold> {
    let healthy = |pod: &&Pod| {
        pod.name != victim.name && pod.is_up() && view.quorum.voter(&pod.name).is_some_and(Member::is_healthy)
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
    let version = |name: &MemberName| view.quorum.voter(name).and_then(|member| member.version.known());
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

/// The leader's turn has come. None when leadership may be taken as moved.
pub(crate) fn hand_over(
    want: &Want,
    view: &View,
    record: &mut Record,
    victim: &Pod,
    now: Timestamp,
) -> Option<Decision> {
    let to = match target(want, view, victim) {
        Ok(to) => to.name.clone(),
        Err(hold) => return Some(wait_or_halt(hold)),
    };
    if view.resumed {
        record.hand_overs = 0;
    }
    let asked = record.hand_over.as_ref().filter(|asked| asked.pod == victim.name);
    if asked.is_some() && bug::active(Bug::HandOverNotVerified) {
        return None;
    }
    let asks_again = bug::active(Bug::HandOverUnbounded) || view.resumed;
    let exhausted = asked.is_some_and(is_exhausted);
    if let Some(asked) = asked.filter(|asked| (exhausted && !asks_again) || !asked.is_overdue(&want.deadlines, now)) {
        let error = asked.last_error.as_ref().map(|error| format!(". The last request failed: {error}"));
        let error = error.unwrap_or_default();
        return Some(if exhausted {
            let (name, times) = (&victim.name, asked.attempts);
            let message =
                format!("Windlass asked {name} to hand leadership over {times} times, and it still leads{error}");
            halt(Hold::new(Reason::HandOverFailed, message))
        } else {
            let message = format!("leadership was asked to leave {} and is still there{error}", victim.name);
            wait(Hold::new(Reason::AwaitingHandOver, message), WATCHFUL)
        });
    }
    if asked.is_none() && wanders(view, record) && !asks_again {
        let message = format!(
            "Windlass asked for a hand-over {} times, and leadership comes back to whoever is to be replaced next; now {} leads",
            record.hand_overs, victim.name
        );
        return Some(halt(Hold::new(Reason::HandOverFailed, message)));
    }
    let attempts = asked.filter(|_| !view.resumed).map_or(0, |asked| asked.attempts).saturating_add(1);
    record.stage = None;
    Some(Decision::Act(begin(view, record, victim, to, attempts, now)))
}

/// A member that is alone has nobody to hand over to; only `acceptDowntime` comes this far (H14).
pub(crate) fn alone(view: &View) -> bool {
    view.quorum.size() == 1
}
