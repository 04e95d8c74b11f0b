//! How far an upgrade is: who is done, and who is waited for, each stage within its own deadline (C2, D4).

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    hold::Hold,
    quorum::MemberName,
    reason::{Reason, Stalls},
    rolling::{
        gates::member,
        known::{
            order::Order, record::Record, stage::StageKind, step::Decision, template_trial::TemplateTrial, view::View,
            workload::Pod,
        },
    },
    strategy::known::{
        decision::{SOON, halt, wait, wait_or_halt},
        want::Want,
    },
};

/// Brings the record up to what the cluster shows.
pub(crate) fn note_progress(record: &mut Record, view: &View) {
    record.note_partition(view);
    let observed = view.workload.observed || bug::active(Bug::ControllerNotAwaited);
    if record.revision.is_none() && observed && view.workload.image == record.target.image {
        record.revision = Some(view.workload.update_revision.clone());
        record.template_writes = 0;
    }
    let led = view
        .quorum
        .leader
        .known()
        .and_then(|leader| view.quorum.voter(leader))
        .and_then(|leader| leader.version.known());
    if let Some(version) = led {
        record.note_leader(version);
    }
    let skipped = view.quorum.term.filter(|_| led.is_some()).is_some_and(|term| record.note_term(term));
    let unseen =
        (view.unwatched && !bug::active(Bug::UnwatchedNeverLed)) || (skipped && !bug::active(Bug::TermIgnored));
    // What may have led counts as what has: going back from it could lose what it wrote (H15).
    if unseen && view.updated().next().is_some() {
        let target = record.target.version.clone();
        record.note_leader(&target);
    }
}

/// Notes who is done, and so whether the template has proven itself.
pub(crate) fn note_completed(want: &Want, view: &View, record: &mut Record) {
    let version = record.target.version.clone();
    // Who was done once stays so, broken, gone or on the way: its data is of this target. The gates look at everybody again before
    // anybody goes (D5).
    let done = |name: &MemberName| match view.pod(name) {
        Some(pod) if view.is_outdated(pod) => false,
        Some(pod) if member::settled(want, view, &version, pod).is_ok() => true,
        Some(_) | None => record.completed.contains(name),
    };
    record.completed = (0..view.workload.replicas).map(|index| view.workload.member(index)).filter(done).collect();
    note_proof(record);
}

/// Waits for replaced members, each stage within its own deadline (C2, D4).
pub(crate) fn await_replaced(want: &Want, view: &View, record: &mut Record, now: Timestamp) -> Option<Decision> {
    if bug::active(Bug::PreviousNotAwaited) {
        return None;
    }
    let version = record.target.version.clone();
    if let Some((member, hold)) = member::absent(view) {
        // Gone, and not yet back: the clock of the replacement runs.
        let overdue = record.enter(StageKind::Replace, &member, now).is_overdue(&want.deadlines, now);
        return Some(if overdue { overdue_halt(record, &hold) } else { wait(hold, SOON) });
    }
    let (pod, lacking) = view
        .updated()
        .find_map(|pod| member::settled(want, view, &version, pod).err().map(|lacking| (pod, lacking)))?;
    if lacking.stage == StageKind::Sync && member::leader_known(view).is_err() {
        // Nobody can be behind a leader that is not known. The gates say so, and no clock changes.
        return None;
    }
    let stage = record.enter(lacking.stage, &pod.name, now);
    if stage.is_overdue(&want.deadlines, now) {
        return Some(overdue_halt(record, &lacking.hold));
    }
    Some(match lacking.stage {
        // Some of what is wrong with a pod never passes by itself.
        StageKind::Replace => wait_or_halt(lacking.hold),
        // Also what would need a person elsewhere: PD shows its old version for a moment after it has started.
        StageKind::Join | StageKind::Sync => wait(lacking.hold, SOON),
    })
}

/// A member that was replaced for a target that was given up is down because of us until it is well, on the way back, too: its stage has
/// the deadline that it had on the way there (D4). One that nobody touched has none (C5).
pub(crate) fn await_abandoned(
    want: &Want,
    view: &View,
    record: &mut Record,
    on: &Hold,
    now: Timestamp,
) -> Option<Decision> {
    let version = record.target.version.clone();
    let abandoned = view.outdated().filter(|pod| record.abandoned.contains(&pod.name));
    let lacks = |pod: &Pod| Some((pod.name.clone(), member::settled(want, view, &version, pod).err()?));
    let (pod, lacking) = abandoned.filter_map(lacks).find(|(_, lacking)| lacking.hold == *on)?;
    record.enter(lacking.stage, &pod, now).is_overdue(&want.deadlines, now).then(|| overdue_halt(record, on))
}

pub(crate) fn overdue_halt(record: &Record, hold: &Hold) -> Decision {
    let stage = record.stage.as_ref().map_or("", |stage| stage.kind.lacking());
    let pod = record.stage.as_ref().map_or("", |stage| stage.pod.as_str());
    let message = format!("the time for {pod} is up and {stage}: {}", hold.message);
    match hold.reason.stalls() {
        // It names what to do better than a deadline does.
        Stalls::AtOnce => halt(hold.clone()),
        Stalls::AtDeadline => halt(Hold::new(hold.reason, message)),
        Stalls::Never => halt(Hold::new(Reason::DeadlineExceeded, message)),
    }
}

/// Notes that somebody serves from the template.
pub(crate) fn note_proof(record: &mut Record) {
    if record.order == Order::LeaderLast && !record.completed.is_empty() {
        record.template_trial = TemplateTrial::Passed;
    }
}
