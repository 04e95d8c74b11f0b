//! What every strategy has in common: how a quorum comes from one version to another is its own affair, and the rest is done once, here.
//!
//! ```text
//!   plan ─┬─ take in   approval, and what the strategy itself notes    what people said and members did since the last look
//!         ├─ heed      request                                        stop, go back, try again: whatever the strategy
//!         │   └─ decide                                               the strategy's own
//!         ├─ note      snapshot, and what the strategy itself notes    what is about to happen, for the record
//!         └─ say       gates, approval                                where every gate stands, and what a person is asked
//! ```
//! A strategy brings a folder beside this one with its types and its decisions, and implements [`Strategy`]; see [`crate::rolling`]. What it gets
//! for that: requests (abort, rollback, retry), pause, deadlines that revert, approvals, windows, gates that are asked elsewhere, snapshots, and
//! images that are pulled ahead.

pub mod approval;
pub mod decision;
pub mod gates;
pub mod prepull;
pub mod pulls;
pub mod request;
pub mod seen;
pub mod snapshot;
pub mod step;
pub mod want;

use std::{borrow::Cow, fmt::Debug};

use jiff::Timestamp;

use self::{
    decision::{Decision, Plan},
    gates::Asks,
    request::GivenUp,
    seen::Seen,
    step::Step,
    want::{Target, Trigger, Want},
};
use crate::{gate::GateState, hold::Hold};

/// A way to bring a quorum from one version to another.
pub trait Strategy: Asks + Clone + Debug + PartialEq + Eq {
    /// One act of it.
    type Step: Step;
    /// What its decisions are made from.
    type View: Clone + AsRef<Seen> + AsMut<Seen>;
    /// What must outlive a restart of the operator while an upgrade is under way.
    type Record: Record;
    /// What it keeps beside that, also at rest.
    type Kept: Clone + Debug + PartialEq + Eq;

    /// The upgrade that is under way, as it was read.
    fn recorded(view: &Self::View) -> Option<&Self::Record>;

    /// Takes in what happened since the last look: the view as it counts now, and the record brought up to it.
    fn take_in<'a>(want: &Want, view: &'a Self::View, now: Timestamp) -> (Cow<'a, Self::View>, Option<Self::Record>);

    /// What to do now, given what is wanted.
    fn decide(
        want: &Want,
        view: &Self::View,
        record: &mut Option<Self::Record>,
        now: Timestamp,
    ) -> Decision<Self::Step>;

    /// Whether anything is to be done for the target, though nothing is under way.
    fn lacks_target(want: &Want, view: &Self::View) -> bool;

    /// What runs while nothing is under way.
    fn standing(want: &Want, view: &Self::View) -> Target;

    /// Whether everybody may go back to where the upgrade came from (H15).
    fn may_go_back(want: &Want, view: &Self::View, record: &Self::Record) -> Result<(), Hold>;

    /// The last word on a decision: what stands meanwhile, and when to look again.
    fn settle(
        decision: Decision<Self::Step>,
        view: &Self::View,
        record: Option<&Self::Record>,
        now: Timestamp,
    ) -> Decision<Self::Step>;

    /// Notes what is about to happen. `pursued` says that the target is not given up, and ours to pursue.
    fn note(
        want: &Want,
        view: &Self::View,
        record: Option<&mut Self::Record>,
        decision: &Decision<Self::Step>,
        pursued: bool,
        now: Timestamp,
    ) -> Self::Kept;

    /// Where every gate stands before the next step that disturbs anybody, and of which upgrade under way they were asked; none where they
    /// were asked about one that is to begin.
    fn outlook<'a>(
        want: &Want,
        view: &Self::View,
        record: Option<&'a Self::Record>,
        now: Timestamp,
    ) -> (Vec<GateState>, Option<&'a Target>);
}

/// What every strategy records of an upgrade.
pub trait Record: Clone + Debug + PartialEq + Eq {
    /// Where it goes.
    fn target(&self) -> &Target;

    /// Where it came from; the same as the target where nobody knows.
    fn from(&self) -> &Target;

    /// It goes back to where an unfinished upgrade came from.
    fn is_reverting(&self) -> bool;

    /// Something is waited for, and its clock runs.
    fn is_waiting(&self) -> bool;

    /// What is waited for took longer than it may.
    fn is_overdue(&self, want: &Want, now: Timestamp) -> bool;

    /// A person asks to try again: every clock starts anew.
    fn forgive(&mut self);
}

/// What to do now about one quorum.
pub fn plan<S: Strategy>(want: &Want, view: &S::View, now: Timestamp) -> Plan<S> {
    let view = &*approval::take_in::<S>(want, view);
    let (view, mut record) = S::take_in(want, view, now);
    let view = &*view;
    let mut given_up = request::take_in::<S>(want, view, record.as_mut());
    let mut decision = heed::<S>(want, view, &mut record, given_up.as_ref(), now);
    if request::gives_up::<S>(want, view, record.as_ref(), &decision, now) {
        given_up = Some(request::because_of(want, &decision));
        decision = heed::<S>(want, view, &mut record, given_up.as_ref(), now);
    }
    let attempt = snapshot::attempt::<S>(&decision, view, record.as_ref());
    let decision = S::settle(decision, view, record.as_ref(), now);
    let pursued = want.trigger == Trigger::Version && given_up.is_none();
    let kept = S::note(want, view, record.as_mut(), &decision, pursued, now);
    let (gates, about) = S::outlook(want, view, record.as_ref(), now);
    let approvals = approval::outlook(want, view.as_ref(), about, &gates);
    Plan { decision, record, gates, approvals, given_up, attempt, kept, heard: true }
}

/// What to do, given what is given up.
fn heed<S: Strategy>(
    want: &Want,
    view: &S::View,
    record: &mut Option<S::Record>,
    given_up: Option<&GivenUp>,
    now: Timestamp,
) -> Decision<S::Step> {
    let Some(given_up) = given_up else { return S::decide(want, view, record, now) };
    let instead = request::instead::<S>(want, view, record.as_ref(), given_up);
    let decision = S::decide(&instead, view, record, now);
    request::conclude(want, given_up, record.as_ref(), decision)
}
