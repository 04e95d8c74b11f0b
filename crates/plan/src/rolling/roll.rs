//! The template is in place: the next member, or the end. Each step of the road is a file: who goes (`order`), what must hold (`gates`), who
//! leads meanwhile (`handover`), what a drain may do (`budget`), how far the last one is (`progress`).

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::{
        budget::{self, Exit},
        gates::{
            list::{self, ask, gates},
            member,
        },
        handover::{alone, hand_over},
        known::{
            order::Order,
            record::Record,
            stage::StageKind,
            step::{Decision, Step},
            view::View,
            workload::Evictions,
        },
        mend,
        order::{self, Exits},
        poison,
        progress::{await_abandoned, await_replaced, note_completed, overdue_halt},
    },
    strategy::{
        gates::first_objection,
        known::{
            decision::{SOON, WATCHFUL, wait, wait_or_halt},
            want::Want,
        },
        prepull,
    },
};

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
    if let Err(hold) = first_objection(gates(want, view, record, victim), &ask(want, view, record, victim, now)) {
        if let Some(decision) = prepull::next(want, view, &record.target, &hold, now) {
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

/// All members are replaced and up: bring the StatefulSet to rest (H11).
fn conclude(want: &Want, view: &View, record: &mut Record, partition: u32, now: Timestamp) -> Decision {
    record.stage = None;
    record.hand_over = None;
    if let Err(hold) = member::members_known(want, view).and_then(|()| member::leader_known(view)) {
        return wait_or_halt(hold);
    }
    let version = record.target.version.clone();
    if let Some(lacking) = view.pods.iter().find_map(|pod| member::settled(want, view, &version, pod).err()) {
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
    list::may_finish(want, view, record, now).unwrap_or(Decision::Done)
}
