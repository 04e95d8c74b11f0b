//! What a strategy brings, and what is made of it.

use std::{borrow::Cow, fmt::Debug};

use jiff::Timestamp;

use crate::{
    gate::GateState,
    gate::list::Asks,
    hold::Hold,
    quorum::MemberName,
    strategy::known::{
        approval::Approvals,
        decision::Decision,
        request::GivenUp,
        seen::Seen,
        snapshot::Attempt,
        step::Step,
        want::{Target, Want},
    },
};

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

    /// The target whose image comes next: another one that is to take this one's place, or its own.
    fn coming(&self) -> &Target;

    /// When it began.
    fn since(&self) -> Timestamp;

    /// Members that are done, in their order.
    fn done(&self) -> &[MemberName];

    /// Whose turn it is.
    fn next(&self) -> Option<&MemberName>;

    /// When the last member that was taken down was well again.
    fn settled(&self) -> Option<Timestamp>;

    /// It goes back to where an unfinished upgrade came from.
    fn is_rolling_back(&self) -> bool;

    /// Something is waited for, and its clock runs.
    fn is_waiting(&self) -> bool;

    /// What is waited for took longer than it may.
    fn is_overdue(&self, want: &Want, now: Timestamp) -> bool;

    /// A person asks to try again: every clock starts anew.
    fn forgive(&mut self);
}

/// A decision, and what to record before it is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<S: Strategy> {
    /// What to do.
    pub decision: Decision<S::Step>,
    /// The upgrade that is under way after this decision; none at rest.
    pub record: Option<S::Record>,
    /// What every gate says of the next disruptive step, in their order; empty where there is none to take.
    pub gates: Vec<GateState>,
    /// What was approved, and what is asked now.
    pub approvals: Approvals,
    /// The target that is given up after this decision.
    pub given_up: Option<GivenUp>,
    /// What the strategy keeps beside its record.
    pub kept: S::Kept,
    /// What people ask for once was answered.
    pub heard: bool,
    /// The last try to take a snapshot; none where there was none.
    pub attempt: Option<Attempt>,
}
