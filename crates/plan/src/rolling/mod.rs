//! The rolling planner: one member at a time (C1–C8). Who goes first and how it is let go is the order's: see [`order`].
//!
//! ```text
//!  at rest ──▶ WriteTemplate (everything held) ──▶ for each member, in its turn:
//!                 [leader? HandOver] ─▶ HoldEvictions ─▶ Permit ─▶ new pod ready ─▶ healthy ─▶ caught up
//!                                                          └─ anything changes: TakeBack
//!              ──▶ currentRevision == updateRevision ──▶ ReleaseEvictions ─▶ Park ─▶ at rest
//! ```
//! Under OnDelete the pod is deleted instead of permitted, so there is nothing to take back, to conclude or to park.
//! A revert half way is the same road with the old template: the members that were replaced are the outdated ones then.
//!
//! ```text
//!   plan ─┬─ take in   gates::approval, lag, progress, gates::pace    what people said and members did since the last look
//!         ├─ heed      request                                        stop, go back, try again
//!         │   └─ decide ─┬─ permit, contest     a lowered partition, and somebody else's strategy: minded before all else
//!         │              ├─ rest, follow        is anything wanted, and can it begin? parking holds what stands meanwhile
//!         │              └─ under_way ─┬─ retarget, poison   another mind half way; a template that nobody can live on
//!         │                            └─ roll               the next member: order, gates, handover, budget, mend
//!         ├─ note      parking, snapshot, gates::pace          what is about to happen, for the record
//!         └─ say       gates::outlook, gates::approval         where every gate stands, and what a person is asked
//!
//!   known    what is wanted, seen, recorded and decided: types alone, below everything
//!   ways, template, takeover   which versions lead to which; the write of the template; what a predecessor had begun
//! ```

pub mod budget;
pub(crate) mod contest;
pub(crate) mod decide;
pub mod follow;
pub mod gates;
pub mod handover;
pub mod known;
pub mod lag;
pub mod mend;
pub mod order;
pub mod owners;
pub mod parking;
pub mod permit;
pub mod poison;
pub(crate) mod progress;
pub mod request;
pub(crate) mod rest;
pub(crate) mod retarget;
pub(crate) mod roll;
pub mod snapshot;
pub mod takeover;
pub(crate) mod template;
pub(crate) mod under_way;
pub(crate) mod ways;

use jiff::Timestamp;

use self::{
    decide::decide,
    gates::{approval, outlook, pace},
    known::{
        approval::Approvals,
        decision::{Decision, Plan, Step},
        record::Record,
        request::GivenUp,
        view::View,
        want::{Target, Trigger, Want},
    },
};
use crate::gate::GateState;

/// What to do now about one workload.
pub fn plan(want: &Want, view: &View, now: Timestamp) -> Plan {
    let view = &*approval::take_in(want, view);
    let view = &*lag::take_in(want, view, now);
    let view = &*view.as_of(now);
    let mut record = view.record.clone();
    if let Some(record) = &mut record {
        progress::note_progress(record, view);
        pace::note(want, view, record, now);
    }
    let mut given_up = request::take_in(want, view, record.as_mut());
    let mut decision = heed(want, view, &mut record, given_up.as_ref(), now);
    if request::gives_up(want, view, record.as_ref(), &decision, now) {
        given_up = Some(request::because_of(want, &decision));
        decision = heed(want, view, &mut record, given_up.as_ref(), now);
    }
    let attempt = snapshot::attempt(&decision, view, record.as_ref());
    let decision = permit::hold_if_open(permit::release_if_idle(decision, view), view, record.as_ref()).punctual(now);
    let decision = lag::watch(decision, record.as_ref());
    let pursued = want.trigger == Trigger::Version && given_up.is_none();
    if let Some(record) = &mut record {
        note_decision(want, view, record, &decision, now);
        record.next_target = next_target(want, view, record, now).filter(|_| pursued);
    }
    let parked = match &decision {
        Decision::Act(Step::SwitchStrategy { partition }) => Some(parking::switched(view, *partition, now)),
        Decision::Act(_) | Decision::Wait { .. } | Decision::Halt { .. } | Decision::Done => {
            parking::after(&decision, view, record.as_ref())
        }
    };
    let (gates, approvals) = say(want, view, record.as_ref(), now);
    Plan { decision, record, gates, approvals, given_up, attempt, parked, heard: true }
}

/// What to do, given what is given up.
fn heed(want: &Want, view: &View, record: &mut Option<Record>, given_up: Option<&GivenUp>, now: Timestamp) -> Decision {
    let Some(given_up) = given_up else { return decide(want, view, record, now) };
    let instead = request::instead(want, view, record.as_ref(), given_up);
    let decision = decide(&instead, view, record, now);
    request::conclude(want, given_up, record.as_ref(), decision)
}

/// Notes what is about to happen.
fn note_decision(want: &Want, view: &View, record: &mut Record, decision: &Decision, now: Timestamp) {
    pace::begun(decision, record, now);
    if let Decision::Act(Step::WriteTemplate { .. }) = decision {
        record.template_at = now;
        record.template_writes = record.template_writes.saturating_add(1);
    }
    record.next = order::next(want, view, record).map(|pod| pod.name.clone());
}

/// The target that is to take the place of the one that is under way.
fn next_target(want: &Want, view: &View, record: &Record, now: Timestamp) -> Option<Target> {
    (retarget::is_due(want, view, record, now) == Ok(true)).then(|| want.target.clone())
}

/// Where the gates stand, and what a person is asked. Where another target is to take the place of this one, that one's gates are what counts.
fn say(want: &Want, view: &View, record: Option<&Record>, now: Timestamp) -> (Vec<GateState>, Approvals) {
    let next_is_due = record.is_some_and(|record| record.next_target.is_some());
    let asked = record.filter(|_| !next_is_due);
    let gates = match record {
        Some(_) if next_is_due => outlook::states_of_next(want, view, now),
        Some(_) | None => outlook::states(want, view, asked, now),
    };
    let approvals = approval::outlook(want, view, asked, &gates);
    (gates, approvals)
}
