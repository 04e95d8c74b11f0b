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
//!   take in    lag, progress, gates::pace             what members did since the last look
//!   decide ─┬─ permit, contest                        a lowered partition, and somebody else's strategy: minded before all else
//!           ├─ rest, follow                           is anything wanted, and can it begin? parking holds what stands meanwhile
//!           └─ under_way ─┬─ retarget, poison         another mind half way; a template that nobody can live on
//!                         └─ roll                     the next member: order, gates, handover, budget, mend
//!   settle     permit, lag                            what stands while nothing is done
//!   note       parking, gates::pace                   what is about to happen, for the record
//!   outlook    gates::outlook                         where every gate stands
//!
//!   known    what is seen, recorded and done: types alone, below everything
//!   ways, template, takeover   which versions lead to which; the write of the template; what a predecessor had begun
//!   foresee                    what its steps lead to, for a forecast
//! ```
//! What comes before and after, and is the same for every strategy, is in [`crate::strategy`].

pub mod budget;
pub(crate) mod contest;
pub(crate) mod decide;
pub mod follow;
pub mod foresee;
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
pub(crate) mod rest;
pub(crate) mod retarget;
pub(crate) mod roll;
pub mod takeover;
pub(crate) mod template;
pub(crate) mod under_way;
pub(crate) mod ways;

use std::borrow::Cow;

use jiff::Timestamp;

use self::{
    gates::{outlook, pace},
    known::{
        Rolling,
        parked::Parked,
        record::Record,
        step::{Decision, Plan, Step},
        view::View,
    },
};
use crate::{
    gate::GateState,
    hold::Hold,
    quorum::MemberName,
    strategy::{
        self,
        contract::Strategy,
        known::want::{Target, Want},
    },
};

/// What to do now about one workload.
pub fn plan(want: &Want, view: &View, now: Timestamp) -> Plan {
    strategy::plan::<Rolling>(want, view, now)
}

impl Strategy for Rolling {
    type Step = Step;
    type View = View;
    type Record = Record;
    /// The partition that is ours while no upgrade is under way; none where it is not.
    type Kept = Option<Parked>;

    fn recorded(view: &View) -> Option<&Record> {
        view.record.as_ref()
    }

    fn take_in<'a>(want: &Want, view: &'a View, now: Timestamp) -> (Cow<'a, View>, Option<Record>) {
        let view = match lag::take_in(want, view, now) {
            Cow::Borrowed(view) => view.as_of(now),
            Cow::Owned(view) => Cow::Owned(view.as_of(now).into_owned()),
        };
        let mut record = view.record.clone();
        if let Some(record) = &mut record {
            progress::note_progress(record, &view);
            pace::note(want, &view, record, now);
        }
        (view, record)
    }

    fn decide(want: &Want, view: &View, record: &mut Option<Record>, now: Timestamp) -> Decision {
        decide::decide(want, view, record, now)
    }

    fn lacks_target(want: &Want, view: &View) -> bool {
        view.workload.image != want.target.image
    }

    /// The template's image, and the version that everybody runs.
    fn standing(want: &Want, view: &View) -> Target {
        let runs = view.quorum.voters().filter_map(|(_, member)| member.version.known()).max();
        Target { version: runs.unwrap_or(&want.target.version).clone(), image: view.workload.image.clone() }
    }

    fn may_go_back(want: &Want, view: &View, record: &Record) -> Result<(), Hold> {
        retarget::may_revert(want, view, record)
    }

    fn settle(decision: Decision, view: &View, record: Option<&Record>, now: Timestamp) -> Decision {
        let decision = permit::hold_if_open(permit::release_if_idle(decision, view), view, record).punctual(now);
        lag::watch(decision, record)
    }

    fn note(
        want: &Want,
        view: &View,
        record: Option<&mut Record>,
        decision: &Decision,
        pursued: bool,
        now: Timestamp,
    ) -> Option<Parked> {
        let record = record.map(|record| {
            note_decision(want, view, record, decision, now);
            record.next_target = next_target(want, view, record, now).filter(|_| pursued);
            &*record
        });
        match decision {
            Decision::Act(Step::SwitchStrategy { partition }) => Some(parking::switched(view, *partition, now)),
            Decision::Act(_) | Decision::Wait { .. } | Decision::Halt { .. } | Decision::Done => {
                parking::after(decision, view, record)
            }
        }
    }

    /// Where another target is to take the place of the one that is under way, that one's gates are what counts.
    fn outlook<'a>(
        want: &Want,
        view: &View,
        record: Option<&'a Record>,
        now: Timestamp,
    ) -> (Vec<GateState>, Option<&'a Target>) {
        if record.is_some_and(|record| record.next_target.is_some()) {
            return (outlook::states_of_next(want, view, now), None);
        }
        (outlook::states(want, view, record, now), record.map(|record| &record.target))
    }
}

impl strategy::Record for Record {
    fn target(&self) -> &Target {
        &self.target
    }

    fn from(&self) -> &Target {
        &self.from
    }

    fn is_rolling_back(&self) -> bool {
        self.rolling_back
    }

    fn coming(&self) -> &Target {
        self.next_target.as_ref().unwrap_or(&self.target)
    }

    fn since(&self) -> Timestamp {
        self.started_at
    }

    fn done(&self) -> &[MemberName] {
        &self.completed
    }

    fn next(&self) -> Option<&MemberName> {
        self.next.as_ref()
    }

    fn settled(&self) -> Option<Timestamp> {
        self.healthy_since.values().copied().max()
    }

    fn is_waiting(&self) -> bool {
        self.stage.is_some()
    }

    fn is_overdue(&self, want: &Want, now: Timestamp) -> bool {
        self.stage.as_ref().is_some_and(|stage| stage.is_overdue(&want.deadlines, now))
    }

    fn forgive(&mut self) {
        self.stage = None;
        self.hand_over = None;
        self.hand_overs = 0;
    }
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
