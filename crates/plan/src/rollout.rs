//! The rolling planner: one member at a time, highest ordinal first, held by the StatefulSet's partition (C1–C8).
//!
//! ```text
//!  at rest ──▶ WriteTemplate (everything held) ──▶ for each index from the top:
//!                 [leader? HandOver] ─▶ HoldEvictions ─▶ Permit ─▶ new pod ready ─▶ healthy ─▶ caught up
//!                                                          └─ anything changes: TakeBack
//!              ──▶ currentRevision == updateRevision ──▶ ReleaseEvictions ─▶ Park ─▶ at rest
//! ```
//! A revert half way is the same road with the old template: the members that were replaced are the outdated ones then.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    decision::{Decision, Hold, Plan, Step},
    gate::{self, Ask, BEFORE_RESTART, Gate},
    handover,
    mend::{self, BEFORE_MEND},
    permit,
    reason::{Reason, Stalls},
    record::Record,
    retarget::{anything_replaced, correct_version, is_revert, passable, retarget, revert},
    stage::{HandOver, StageKind},
    want::{Target, Want},
    workload::{Evictions, Pod, Strategy, View},
};

/// While a permit stands or leadership moves, seconds count.
pub(crate) const WATCHFUL: Duration = Duration::from_secs(1);
/// Something is on its way; an event usually comes first, but applications send none.
const SOON: Duration = Duration::from_secs(2);
/// After so many hand-overs that came to nothing a person should look.
const HAND_OVER_PATIENCE: u32 = 3;

/// What to do now about one workload.
pub fn plan(want: &Want, view: &View, now: Timestamp) -> Plan {
    let mut record = view.record.clone();
    if let Some(record) = &mut record {
        note_progress(record, view);
    }
    let decision = decide(want, view, &mut record, now);
    Plan { decision: permit::release_if_idle(decision, view), record }
}

/// Brings the record up to what the cluster shows.
fn note_progress(record: &mut Record, view: &View) {
    let observed = view.workload.observed || bug::active(Bug::ControllerNotAwaited);
    if record.revision.is_none() && observed && view.workload.image == record.target.image {
        record.revision = Some(view.workload.update_revision.clone());
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
}

fn decide(want: &Want, view: &View, record: &mut Option<Record>, now: Timestamp) -> Decision {
    if let Some(record) = record
        && let Some(decision) = permit::mind(want, view, record, now)
    {
        return decision;
    }
    if want.paused {
        return paused(want, view, record.as_ref(), now);
    }
    let Strategy::RollingUpdate { partition } = view.workload.strategy else {
        return halt(unusable_strategy(record.as_ref()));
    };
    if let Some(record) = record
        && !record.accounts_for(partition)
    {
        let message =
            format!("somebody set the partition to {partition}; this upgrade had set it to {}", record.partition);
        return halt(Hold::new(Reason::StrategyChanged, message));
    }
    if !view.workload.observed && !bug::active(Bug::ControllerNotAwaited) {
        return wait(
            Hold::new(Reason::ControllerBehind, "the StatefulSet's controller has not seen the newest spec yet"),
            SOON,
        );
    }
    match record {
        None => at_rest(want, view, record, partition, now),
        Some(_) => under_way(want, view, record, partition, now),
    }
}

/// Nothing is begun. Where there is nothing to begin either, what is wanted is there, and that is what people and kstatus are told.
fn paused(want: &Want, view: &View, record: Option<&Record>, now: Timestamp) -> Decision {
    let resting = match (record, view.workload.strategy) {
        (None, Strategy::RollingUpdate { partition }) if view.workload.observed => {
            at_rest(want, view, &mut None, partition, now) == Decision::Done
        }
        (None | Some(_), Strategy::RollingUpdate { .. } | Strategy::OnDelete) => false,
    };
    if resting { Decision::Done } else { wait(Hold::new(Reason::Paused, "paused"), SOON) }
}

fn unusable_strategy(record: Option<&Record>) -> Hold {
    match record {
        Some(record) => Hold::new(
            Reason::StrategyChanged,
            format!(
                "somebody set the update strategy to OnDelete; this upgrade had set RollingUpdate with partition {}",
                record.partition
            ),
        ),
        // H7: partition on a set that was OnDelete brings pods back on the first template it ever had.
        None => Hold::new(
            Reason::UnsupportedStrategy,
            "the StatefulSet's update strategy is OnDelete, and this order needs RollingUpdate",
        ),
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
    Hold::new(Reason::TemplateChanged, message)
}

/// No upgrade is under way: is one wanted?
fn at_rest(want: &Want, view: &View, record: &mut Option<Record>, partition: u32, now: Timestamp) -> Decision {
    if let Err(hold) = gate::pods_present(view).and_then(|()| gate::members_known(view)) {
        return wait_or_halt(hold);
    }
    if !view.is_uniform() {
        return adopt_half_done(want, view, record, partition, now);
    }
    let versions = match versions(view) {
        Ok(versions) => versions,
        Err(hold) => return wait(hold, SOON),
    };
    if view.workload.image == want.target.image {
        let lacking = view.pods.iter().rev().find_map(|pod| gate::settled(want, view, &want.target.version, pod).err());
        // A member that is behind for a while is the system's daily life, and nothing is about to be taken down.
        return match lacking.filter(|lacking| lacking.stage != StageKind::Sync) {
            None => Decision::Done,
            Some(lacking) => wait_or_halt(lacking.hold),
        };
    }
    if let Err(hold) = versions.iter().try_for_each(|runs| passable(want, view, &want.target, runs)) {
        return halt(hold);
    }
    let newest = versions.into_iter().max().unwrap_or_else(|| want.target.version.clone());
    let from = Target { version: newest, image: view.workload.image.clone() };
    if let Err(hold) = gate::leader_known(view).and_then(|()| gate::spare_member(want, view)) {
        return wait_or_halt(hold);
    }
    begin(Record::begin(from, want.target.clone(), view.workload.replicas, partition, now), record)
}

/// The set was half upgraded before we came (H40): nothing is begun until a person says so.
fn adopt_half_done(want: &Want, view: &View, record: &mut Option<Record>, partition: u32, now: Timestamp) -> Decision {
    let outdated: Vec<&str> = view.outdated().map(|pod| pod.name.as_str()).collect();
    let hold = match outdated.as_slice() {
        [] => Hold::new(
            Reason::AwaitingConclusion,
            "all pods are replaced and the StatefulSet's controller has not concluded the rollout yet",
        ),
        some => Hold::new(
            Reason::HalfUpgraded,
            format!("a rollout that Windlass did not begin is half done: {} not replaced yet", some.join(", ")),
        ),
    };
    if hold.reason == Reason::AwaitingConclusion {
        return wait(hold, SOON);
    }
    if !view.resumed {
        return halt(hold);
    }
    let Some(version) = version_of_replaced(want, view) else {
        let message = format!("it goes to image {}, and no replaced member tells its version yet", view.workload.image);
        return halt(Hold::new(Reason::HalfUpgraded, format!("{}; {message}", hold.message)));
    };
    // Where it came from is not known any more, so it can't be reverted: from and target are the same.
    let target = Target { version, image: view.workload.image.clone() };
    let mut resumed = Record::begin(target.clone(), target, partition, partition, now);
    resumed.revision = Some(view.workload.update_revision.clone());
    let decision =
        permit::mind(want, view, &mut resumed, now).unwrap_or_else(|| roll(want, view, &mut resumed, partition, now));
    *record = Some(resumed);
    decision
}

/// What a rollout that somebody else began goes to: what is wanted, if that is its image, otherwise what its first members say.
fn version_of_replaced(want: &Want, view: &View) -> Option<crate::Version> {
    if view.workload.image == want.target.image {
        return Some(want.target.version.clone());
    }
    view.updated().find_map(|pod| view.quorum.member(&pod.name)?.version.known().cloned())
}

/// An upgrade is under way: still the same one?
fn under_way(want: &Want, view: &View, slot: &mut Option<Record>, partition: u32, now: Timestamp) -> Decision {
    let Some(record) = slot else { return Decision::Done };
    if is_revert(want, record) {
        return revert(want, view, record, partition);
    }
    if let Err(hold) = correct_version(want, view, record) {
        return halt(hold);
    }
    if want.target != record.target {
        let untouched = !record.reverting && (!anything_replaced(view, record) || bug::active(Bug::RetargetHalfWay));
        // A target that changed when members are replaced already waits its turn: holding everything again would bring a replaced
        // member that is evicted back on the old version (H10). One that can't be reached is given up (H44).
        match mend::needs_another_target(want, view, record, now) {
            Ok(broken) if broken && bug::active(Bug::MendBeforeTemplate) => {
                if let Some(pod) = view.pods.last() {
                    return mend::delete(record, pod);
                }
            }
            Ok(broken) if broken || untouched => return retarget(want, view, slot, partition, now),
            Ok(_) => {}
            Err(hold) => return wait_or_halt(hold),
        }
    }
    if view.resumed && view.workload.image == record.target.image && record.is_changed(view) {
        // A person says that the other template is meant.
        record.revision = Some(view.workload.update_revision.clone());
        record.completed.clear();
    }
    if record.is_changed(view) {
        if record.revision.is_some() {
            return halt(template_changed(view, record));
        }
        record.move_partition(partition, view.workload.replicas);
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

pub(crate) fn begin(record: Record, slot: &mut Option<Record>) -> Decision {
    let decision = write_template(&record, record.partition);
    *slot = Some(record);
    decision
}

pub(crate) fn write_template(record: &Record, replicas: u32) -> Decision {
    let partition = (!bug::active(Bug::TemplateWithoutPartition)).then_some(replicas);
    Decision::Act(Step::WriteTemplate { image: record.target.image.clone(), partition })
}

/// The template is in place: the next member, or the end.
fn roll(want: &Want, view: &View, record: &mut Record, partition: u32, now: Timestamp) -> Decision {
    let version = record.target.version.clone();
    record.completed = view
        .updated()
        .filter(|pod| gate::settled(want, view, &version, pod).is_ok())
        .map(|pod| pod.name.clone())
        .collect();

    if let Some(decision) = await_hand_over(want, view, record, now).or_else(|| await_replaced(want, view, record, now))
    {
        return decision;
    }
    // A broken one first: nothing else goes on while it is there (C5), and replacing it costs nothing.
    let Some(victim) = mend::deletable(want, view, record).or_else(|| view.outdated().next_back()) else {
        return conclude(want, view, record, partition);
    };
    if let Err(hold) = gate::first_objection(gates(want, view, record, victim), &ask(want, view, record, victim)) {
        // Kubernetes does not replace a pod that is not ready (kubernetes#67250): that may take a person.
        if !victim.is_up() && record.enter(StageKind::Replace, &victim.name, now).is_overdue(&want.deadlines, now) {
            return overdue_halt(record, &hold);
        }
        return wait_or_halt(hold);
    }
    if view.quorum.leader.is(&victim.name) && !alone(view) && !bug::active(Bug::LeaderNotChecked) {
        if let Some(decision) = hand_over(want, view, record, victim, now) {
            return decision;
        }
    } else {
        record.stage = None;
        record.hand_over = None;
    }
    match gate::evictions_held(want, view) {
        Ok(true) => {}
        Ok(false) => return Decision::Act(Step::HoldEvictions),
        Err(hold) => return wait_or_halt(hold),
    }
    if mend::deletable(want, view, record) == Some(victim) {
        record.stage = None;
        record.enter(StageKind::Replace, &victim.name, now);
        return mend::delete(record, victim);
    }
    let to = if bug::active(Bug::PartitionTooLow) { victim.index.saturating_sub(1) } else { victim.index };
    record.move_partition(partition, to);
    record.stage = None;
    record.hand_over = None;
    record.enter(StageKind::Replace, &victim.name, now);
    Decision::Act(Step::Permit { pod: victim.name.clone(), partition: to })
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
fn await_replaced(want: &Want, view: &View, record: &mut Record, now: Timestamp) -> Option<Decision> {
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
fn hand_over(want: &Want, view: &View, record: &mut Record, victim: &Pod, now: Timestamp) -> Option<Decision> {
    let to = match handover::target(want, view, victim) {
        Ok(to) => to.name.clone(),
        Err(hold) => return Some(wait_or_halt(hold)),
    };
    let asked = record.hand_over.as_ref().filter(|asked| asked.pod == victim.name);
    if asked.is_some() && bug::active(Bug::HandOverNotVerified) {
        return None;
    }
    if let Some(asked) = asked.filter(|asked| !asked.is_overdue(&want.deadlines, now)) {
        let hold = Hold::new(
            Reason::AwaitingHandOver,
            format!("leadership was asked to leave {} and is still there", victim.name),
        );
        return Some(if asked.attempts > HAND_OVER_PATIENCE {
            halt(Hold::new(Reason::DeadlineExceeded, format!("{}, after {} attempts", hold.message, asked.attempts)))
        } else {
            wait(hold, WATCHFUL)
        });
    }
    let attempts = asked.map_or(0, |asked| asked.attempts).saturating_add(1);
    record.stage = None;
    record.hand_over = Some(HandOver { pod: victim.name.clone(), since: now, attempts });
    record.hand_overs = record.hand_overs.saturating_add(1);
    // From here on it may lead, whether or not we ever see it do so.
    if let Some(version) = view.quorum.member(&to).and_then(|member| member.version.known()) {
        record.note_leader(version);
    }
    Some(Decision::Act(Step::HandOver { from: victim.name.clone(), to }))
}

/// All members are replaced and up: bring the StatefulSet to rest (H11).
fn conclude(want: &Want, view: &View, record: &mut Record, partition: u32) -> Decision {
    record.stage = None;
    record.hand_over = None;
    if let Err(hold) = gate::members_known(view).and_then(|()| gate::leader_known(view)) {
        return wait_or_halt(hold);
    }
    let version = record.target.version.clone();
    if let Some(lacking) = view.pods.iter().find_map(|pod| gate::settled(want, view, &version, pod).err()) {
        return wait_or_halt(lacking.hold);
    }
    if view.workload.current_revision != view.workload.update_revision {
        let message = "all pods are replaced and the StatefulSet's controller has not concluded the rollout yet";
        return wait(Hold::new(Reason::AwaitingConclusion, message), SOON);
    }
    if view.evictions == Evictions::HeldByUs {
        return Decision::Act(Step::ReleaseEvictions);
    }
    if partition != view.workload.replicas {
        record.move_partition(partition, view.workload.replicas);
        return Decision::Act(Step::Park { partition: view.workload.replicas });
    }
    Decision::Done
}

/// A member that is alone has nobody to hand over to; only `acceptDowntime` comes this far (H14).
pub(crate) fn alone(view: &View) -> bool {
    view.quorum.size() == 1
}

fn versions(view: &View) -> Result<Vec<crate::Version>, Hold> {
    let members = view.quorum.members.known().into_iter().flatten();
    members
        .map(|(name, member)| match &member.version {
            crate::Fact::Known(version) => Ok(version.clone()),
            crate::Fact::Unknown(why) => {
                Err(Hold::new(Reason::MembersUnknown, format!("{name}'s version is not known: {why}")))
            }
        })
        .collect()
}

pub(crate) fn ask<'a>(want: &'a Want, view: &'a View, record: &'a Record, victim: &'a Pod) -> Ask<'a> {
    Ask { want, view, version: &record.target.version, victim }
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
