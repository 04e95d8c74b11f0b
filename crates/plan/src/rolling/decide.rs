//! What to do now, given what is wanted: mind what stands, then go on, or begin.

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::{
        follow,
        known::{record::Record, step::Decision, view::View, workload::Strategy},
        order, parking, permit, poison,
        rest::at_rest,
        under_way::under_way,
    },
    strategy::known::{
        decision::{SOON, halt, wait},
        want::{Trigger, Want},
    },
};

pub(crate) fn decide(want: &Want, view: &View, record: &mut Option<Record>, now: Timestamp) -> Decision {
    if let Some(record) = record
        && let Some(decision) = permit::mind(want, view, record, now)
    {
        return decision;
    }
    if want.paused {
        return paused(want, view, record, now);
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
    let decision = match (&record, want.trigger) {
        (None, _) => return at_rest(want, view, record, partition, now),
        (Some(_), Trigger::Version) => under_way(want, view, record, partition, now),
        (Some(_), Trigger::Template) => follow::under_way(want, view, record, partition, now),
    };
    if decision == Decision::Done && record.take().is_some() {
        return at_rest(want, view, record, partition, now);
    }
    decision
}

/// Nothing is begun. Where there is nothing to begin either, what is wanted is there, and that is what people and kstatus are told.
fn paused(want: &Want, view: &View, record: &mut Option<Record>, now: Timestamp) -> Decision {
    if let Some(decision) = parking::let_go(view, record) {
        return decision;
    }
    let paused = Hold::new(Reason::Paused, "paused");
    match record {
        None if view.workload.observed => match at_rest(want, view, &mut None, found_partition(view), now) {
            Decision::Done => Decision::Done,
            // Who is down is down, paused or not: to go on would not help.
            Decision::Wait { on, .. } | Decision::Halt { on } => {
                wait(paused.and(&format!("Nothing begins; it would wait for this besides: {}", on.message)), SOON)
            }
            Decision::Act(_) => wait(paused, SOON),
        },
        None => wait(paused, SOON),
        // A template that nobody can live on is taken back as a permit is.
        Some(record) => poison::put_back(want, view, record, now).unwrap_or_else(|| wait(paused, SOON)),
    }
}

/// The partition as it was found; none is as good as 0.
fn found_partition(view: &View) -> u32 {
    match view.workload.strategy {
        Strategy::RollingUpdate { partition } => partition,
        Strategy::OnDelete => 0,
    }
}
