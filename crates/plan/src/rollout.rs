//! The rolling planner: one member at a time (C1–C8). Who goes first and how it is let go is the order's: see [`crate::order`].
//!
//! ```text
//!  at rest ──▶ WriteTemplate (everything held) ──▶ for each member, in its turn:
//!                 [leader? HandOver] ─▶ HoldEvictions ─▶ Permit ─▶ new pod ready ─▶ healthy ─▶ caught up
//!                                                          └─ anything changes: TakeBack
//!              ──▶ currentRevision == updateRevision ──▶ ReleaseEvictions ─▶ Park ─▶ at rest
//! ```
//! Under OnDelete the pod is deleted instead of permitted, so there is nothing to take back, to conclude or to park.
//! A revert half way is the same road with the old template: the members that were replaced are the outdated ones then.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    approval,
    budget::{self, Exit},
    bug::{self, Bug},
    decision::{Decision, Hold, Plan, Step},
    follow,
    gate::{self, Ask, BEFORE_RESTART, Gate},
    handover, lag,
    mend::{self, BEFORE_MEND},
    order::{self, Exits, Order},
    owners::{self, Field},
    pace, parking, permit, poison, prepull,
    quorum::MemberName,
    reason::{Reason, Stalls},
    record::Record,
    request::{self, GivenUp, Way},
    rest::at_rest,
    retarget::{self, correct_version, is_revert, revert},
    snapshot,
    stage::StageKind,
    want::{Trigger, Want},
    workload::{Evictions, Pod, Strategy, View},
};

/// While a permit stands or leadership moves, seconds count.
pub(crate) const WATCHFUL: Duration = Duration::from_secs(1);
/// Something is on its way; an event usually comes first, but applications send none.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// What to do now about one workload.
pub fn plan(want: &Want, view: &View, now: Timestamp) -> Plan {
    let view = &*approval::take_in(want, view);
    let view = &*lag::take_in(want, view, now);
    let view = &*view.as_of(now);
    let mut record = view.record.clone();
    if let Some(record) = &mut record {
        note_progress(record, view);
        pace::note(want, view, record, now);
    }
    let mut given_up = request::take_in(want, view, record.as_mut());
    let mut decision = request::heed(want, view, &mut record, given_up.as_ref(), now);
    if request::gives_up(want, view, record.as_ref(), &decision, now) {
        given_up = Some(GivenUp { target: want.target.clone(), way: Way::Back });
        decision = request::heed(want, view, &mut record, given_up.as_ref(), now);
    }
    let attempt = snapshot::attempt(&decision, view, record.as_ref());
    let decision = permit::hold_if_open(permit::release_if_idle(decision, view), view, record.as_ref()).punctual(now);
    let decision = lag::watch(decision, record.as_ref());
    if let Some(record) = &mut record {
        pace::begun(&decision, record, now);
        if let Decision::Act(Step::WriteTemplate { .. }) = decision {
            record.template_at = now;
            record.template_writes = record.template_writes.saturating_add(1);
        }
        record.next = order::next(want, view, record).map(|pod| pod.name.clone());
    }
    let parked = parking::after(&decision, view, record.as_ref());
    // Where another target is to take its place, that one's gates are what counts.
    let pursued = want.trigger == Trigger::Version && given_up.is_none();
    let due = |record: &Record| pursued && retarget::is_due(want, view, record, now) == Ok(true);
    if let Some(record) = &mut record {
        record.next_target = due(record).then(|| want.target.clone());
    }
    let asked = record.as_ref().filter(|record| record.next_target.is_none());
    let next_is_due = record.as_ref().is_some_and(|record| record.next_target.is_some());
    let gates = if next_is_due { gate::states_of_next(want, view, now) } else { gate::states(want, view, asked, now) };
    let approvals = approval::outlook(want, view, asked, &gates);
    Plan { decision, record, gates, approvals, given_up, attempt, parked, heard: true }
}

/// Brings the record up to what the cluster shows.
fn note_progress(record: &mut Record, view: &View) {
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
        .and_then(|leader| view.quorum.member(leader))
        .and_then(|leader| leader.version.known());
    if let Some(version) = led {
        record.note_leader(version);
    }
    // What may have led counts as what has: going back from it could lose what it wrote (H15).
    if view.unwatched && view.updated().next().is_some() && !bug::active(Bug::UnwatchedNeverLed) {
        let target = record.target.version.clone();
        record.note_leader(&target);
    }
}

pub(crate) fn decide(want: &Want, view: &View, record: &mut Option<Record>, now: Timestamp) -> Decision {
    if let Some(record) = record
        && let Some(decision) = permit::mind(want, view, record, now)
    {
        return decision;
    }
    if want.paused {
        return paused(want, view, record.as_mut(), now);
    }
    if let Some(record) = record
        && want.trigger == Trigger::Version
        && let Err(hold) = order::strategy_is_ours(view, record)
    {
        return halt(hold);
    }
    if !view.workload.observed && !bug::active(Bug::ControllerNotAwaited) {
        return wait(
            Hold::new(Reason::ControllerBehind, "the StatefulSet's controller has not seen the newest spec yet"),
            SOON,
        );
    }
    let partition = found_partition(view);
    match (&record, want.trigger) {
        (None, _) => at_rest(want, view, record, partition, now),
        (Some(_), Trigger::Version) => under_way(want, view, record, partition, now),
        (Some(_), Trigger::Template) => follow::under_way(want, view, record, partition, now),
    }
}

/// Nothing is begun. Where there is nothing to begin either, what is wanted is there, and that is what people and kstatus are told.
fn paused(want: &Want, view: &View, record: Option<&mut Record>, now: Timestamp) -> Decision {
    if let Some(decision) = parking::mind(view).filter(|_| record.is_none()) {
        return decision;
    }
    let resting = match record {
        None => view.workload.observed && at_rest(want, view, &mut None, found_partition(view), now) == Decision::Done,
        // A template that nobody can live on is taken back as a permit is.
        Some(record) => match poison::put_back(want, view, record, now) {
            Some(decision) => return decision,
            None => false,
        },
    };
    if resting { Decision::Done } else { wait(Hold::new(Reason::Paused, "paused"), SOON) }
}

/// The partition as it was found; none is as good as 0.
fn found_partition(view: &View) -> u32 {
    match view.workload.strategy {
        Strategy::RollingUpdate { partition } => partition,
        Strategy::OnDelete => 0,
    }
}

pub(crate) fn template_changed(view: &View, record: &Record) -> Hold {
    let (image, revision) = (&view.workload.image, &view.workload.update_revision);
    let message = match &record.revision {
        Some(seen) if *image == record.target.image => {
            format!("somebody changed the pod template, not its image: it is revision {revision} and was {seen}")
        }
        Some(_) | None => {
            format!("somebody set the image to {image}; this upgrade had set it to {}", record.target.image)
        }
    };
    Hold::new(Reason::TemplateChanged, format!("{message}{}", owners::blame(view, &[Field::Image])))
}

/// An upgrade is under way: still the same one?
fn under_way(want: &Want, view: &View, slot: &mut Option<Record>, partition: u32, now: Timestamp) -> Decision {
    let Some(record) = slot else { return Decision::Done };
    let seen = poison::as_if_it_stood(view, record);
    if is_revert(want, record) {
        return revert(want, &seen, record, partition);
    }
    if let Err(hold) = correct_version(want, view, record) {
        return halt(hold);
    }
    match retarget::is_due(want, view, record, now) {
        Ok(true) if bug::active(Bug::MendBeforeTemplate) && record.order == Order::ReverseOrdinal => {
            if let Some(pod) = view.pods.last().filter(|pod| mend::is_broken(want, view, record, pod, now)) {
                return mend::delete(record, pod);
            }
        }
        Ok(true) => return retarget::take_place(want, view, slot, partition, now),
        Ok(false) => {}
        Err(hold) => return wait_or_halt(hold),
    }
    if record.is_put_back() {
        return poison::stay(want, view, record, now);
    }
    if view.resumed && view.workload.image == record.target.image && record.is_changed(view) {
        // A person says that the other template is meant.
        record.revision = Some(view.workload.update_revision.clone());
        record.completed.clear();
    }
    if record.is_changed(view) {
        if record.revision.is_some() || (owners::is_set_back(view, record) && !view.resumed) {
            return halt(template_changed(view, record));
        }
        if record.order == Order::ReverseOrdinal {
            record.move_partition(partition, view.workload.replicas);
        }
        return write_template(record, view.workload.replicas);
    }
    let decision = roll(want, view, record, partition, now);
    if decision == Decision::Done {
        *slot = None;
        return at_rest(want, view, slot, partition, now);
    }
    say_what_waits(want, record, decision)
}

/// Somebody who asks for another target while this one is stuck must learn why nothing happens.
fn say_what_waits(want: &Want, record: &Record, decision: Decision) -> Decision {
    match decision {
        Decision::Halt { on } if want.target != record.target && !want.paused => {
            let message = format!(
                "{}; {} is wanted, and waits until {} is reached or {} is asked for again",
                on.message, want.target.image, record.target, record.from
            );
            halt(Hold::new(on.reason, message))
        }
        Decision::Halt { .. } | Decision::Act(_) | Decision::Wait { .. } | Decision::Done => decision,
    }
}

pub(crate) fn begin(record: Record, replicas: u32, slot: &mut Option<Record>) -> Decision {
    let decision = write_template(&record, replicas);
    *slot = Some(record);
    decision
}

pub(crate) fn write_template(record: &Record, replicas: u32) -> Decision {
    let strategy = (!bug::active(Bug::TemplateWithoutPartition)).then_some(record.order.holding(replicas));
    Decision::Act(Step::WriteTemplate { image: record.target.image.clone(), strategy })
}

/// The template is in place: the next member, or the end.
pub(crate) fn roll(want: &Want, view: &View, record: &mut Record, partition: u32, now: Timestamp) -> Decision {
    note_completed(want, view, record);
    if let Some(decision) = await_hand_over(want, view, record, now) {
        return decision;
    }
    if let Some(decision) = await_replaced(want, view, record, now) {
        return poison::put_back(want, view, record, now).unwrap_or(decision);
    }
    let Some(victim) = order::next(want, view, record) else {
        return conclude(want, view, record, partition, now);
    };
    if let Err(hold) = gate::first_objection(gates(want, view, record, victim), &ask(want, view, record, victim, now)) {
        if let Some(decision) = prepull::next(want, view, Some(&*record), &hold, now) {
            record.stage = None;
            return decision;
        }
        if hold.reason.is_idle() {
            // Everybody is well, perhaps for days: no clock runs meanwhile.
            record.stage = None;
            return wait_or_halt(hold);
        }
        // Kubernetes does not replace a pod that is not ready (kubernetes#67250): that may take a person.
        if !victim.is_up() && record.enter(StageKind::Replace, &victim.name, now).is_overdue(&want.deadlines, now) {
            return overdue_halt(record, &hold);
        }
        return await_abandoned(want, view, record, &hold, now).unwrap_or_else(|| wait_or_halt(hold));
    }
    if view.quorum.leader.is(&victim.name) && !alone(view) && !bug::active(Bug::LeaderNotChecked) {
        if let Some(decision) = hand_over(want, view, record, victim, now) {
            return decision;
        }
    } else {
        record.stage = None;
        record.hand_over = None;
    }
    let broken = mend::is_lost(want, view, record, victim);
    let through = match budget::exit(want, view, record.order, broken) {
        Ok(Exit::HoldFirst) => return Decision::Act(Step::HoldEvictions),
        Ok(Exit::Plain) => None,
        Ok(Exit::Evicted(budget)) => Some(budget),
        Err(hold) => return wait_or_halt(hold),
    };
    order::let_go(want, view, record, victim, Exits { partition, through }, now)
}

/// Notes who is done, and so whether the template has proven itself.
pub(crate) fn note_completed(want: &Want, view: &View, record: &mut Record) {
    let version = record.target.version.clone();
    // Who was done once stays so, broken, gone or on the way: its data is of this target. The gates look at everybody again before
    // anybody goes (D5).
    let done = |name: &MemberName| match view.pod(name) {
        Some(pod) if view.is_outdated(pod) => false,
        Some(pod) if gate::settled(want, view, &version, pod).is_ok() => true,
        Some(_) | None => record.completed.contains(name),
    };
    record.completed = (0..view.workload.replicas).map(|index| view.workload.member(index)).filter(done).collect();
    poison::note_proof(record);
}

/// While leadership is on its way nobody knows who leads; that is what was asked for, and its own clock runs.
fn await_hand_over(want: &Want, view: &View, record: &Record, now: Timestamp) -> Option<Decision> {
    let asked = record.hand_over.as_ref()?;
    let why = view.quorum.leader.why()?;
    if asked.is_overdue(&want.deadlines, now) {
        return None;
    }
    Some(wait(
        Hold::new(Reason::AwaitingHandOver, format!("leadership was asked to leave {}: {why}", asked.pod)),
        WATCHFUL,
    ))
}

/// Waits for replaced members, each stage within its own deadline (C2, D4).
pub(crate) fn await_replaced(want: &Want, view: &View, record: &mut Record, now: Timestamp) -> Option<Decision> {
    if bug::active(Bug::PreviousNotAwaited) {
        return None;
    }
    let version = record.target.version.clone();
    if let Some((member, hold)) = gate::absent(view) {
        // Gone, and not yet back: the clock of the replacement runs.
        let overdue = record.enter(StageKind::Replace, &member, now).is_overdue(&want.deadlines, now);
        return Some(if overdue { overdue_halt(record, &hold) } else { wait(hold, SOON) });
    }
    let (pod, lacking) =
        view.updated().find_map(|pod| gate::settled(want, view, &version, pod).err().map(|lacking| (pod, lacking)))?;
    if lacking.stage == StageKind::Sync && gate::leader_known(view).is_err() {
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
fn await_abandoned(want: &Want, view: &View, record: &mut Record, on: &Hold, now: Timestamp) -> Option<Decision> {
    let version = record.target.version.clone();
    let abandoned = view.outdated().filter(|pod| record.abandoned.contains(&pod.name));
    let lacks = |pod: &Pod| Some((pod.name.clone(), gate::settled(want, view, &version, pod).err()?));
    let (pod, lacking) = abandoned.filter_map(lacks).find(|(_, lacking)| lacking.hold == *on)?;
    record.enter(lacking.stage, &pod, now).is_overdue(&want.deadlines, now).then(|| overdue_halt(record, on))
}

fn overdue_halt(record: &Record, hold: &Hold) -> Decision {
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

/// The leader's turn has come. None when leadership may be taken as moved.
pub(crate) fn hand_over(
    want: &Want,
    view: &View,
    record: &mut Record,
    victim: &Pod,
    now: Timestamp,
) -> Option<Decision> {
    let to = match handover::target(want, view, victim) {
        Ok(to) => to.name.clone(),
        Err(hold) => return Some(wait_or_halt(hold)),
    };
    let asked = record.hand_over.as_ref().filter(|asked| asked.pod == victim.name);
    if asked.is_some() && bug::active(Bug::HandOverNotVerified) {
        return None;
    }
    let asks_again = bug::active(Bug::HandOverUnbounded) || view.resumed;
    let exhausted = asked.is_some_and(handover::is_exhausted);
    if let Some(asked) = asked.filter(|asked| (exhausted && !asks_again) || !asked.is_overdue(&want.deadlines, now)) {
        let answer =
            asked.answer.as_ref().map(|answer| format!("; the last request failed: {answer}")).unwrap_or_default();
        let stays = format!("leadership was asked to leave {} and is still there", victim.name);
        return Some(if exhausted {
            let message = format!("{stays}, after {} attempts{answer}", asked.attempts);
            halt(Hold::new(Reason::HandOverFailed, message))
        } else {
            wait(Hold::new(Reason::AwaitingHandOver, format!("{stays}{answer}")), WATCHFUL)
        });
    }
    let attempts = asked.filter(|_| !view.resumed).map_or(0, |asked| asked.attempts).saturating_add(1);
    record.stage = None;
    Some(Decision::Act(handover::begin(view, record, victim, to, attempts, now)))
}

/// All members are replaced and up: bring the StatefulSet to rest (H11).
fn conclude(want: &Want, view: &View, record: &mut Record, partition: u32, now: Timestamp) -> Decision {
    record.stage = None;
    record.hand_over = None;
    if let Err(hold) = gate::members_known(want, view).and_then(|()| gate::leader_known(view)) {
        return wait_or_halt(hold);
    }
    let version = record.target.version.clone();
    if let Some(lacking) = view.pods.iter().find_map(|pod| gate::settled(want, view, &version, pod).err()) {
        return wait_or_halt(lacking.hold);
    }
    if !view.is_concluded() {
        let message = "all pods are replaced and the StatefulSet's controller has not concluded the rollout yet";
        return wait(Hold::new(Reason::AwaitingConclusion, message), SOON);
    }
    if view.evictions == Evictions::HeldByUs {
        return Decision::Act(Step::ReleaseEvictions);
    }
    if record.order == Order::ReverseOrdinal && partition != view.workload.replicas {
        record.move_partition(partition, view.workload.replicas);
        return Decision::Act(Step::Park { partition: view.workload.replicas });
    }
    gate::may_finish(want, view, record, now).unwrap_or(Decision::Done)
}

/// A member that is alone has nobody to hand over to; only `acceptDowntime` comes this far (H14).
pub(crate) fn alone(view: &View) -> bool {
    view.quorum.size() == 1
}

pub(crate) fn ask<'a>(want: &'a Want, view: &'a View, record: &'a Record, victim: &'a Pod, now: Timestamp) -> Ask<'a> {
    Ask { want, view, record: Some(record), version: &record.target.version, victim, now }
}

/// What must hold before this one is taken down: less for one that is lost already.
pub(crate) fn gates(want: &Want, view: &View, record: &Record, victim: &Pod) -> &'static [Gate] {
    if mend::is_lost(want, view, record, victim) { BEFORE_MEND } else { BEFORE_RESTART }
}

pub(crate) fn wait(on: Hold, recheck: Duration) -> Decision {
    Decision::Wait { on, recheck }
}

pub(crate) fn halt(on: Hold) -> Decision {
    Decision::Halt { on }
}

pub(crate) fn wait_or_halt(on: Hold) -> Decision {
    if on.reason.needs_a_person() { halt(on) } else { wait(on, SOON) }
}
