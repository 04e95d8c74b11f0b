//! What a strategy brings to be played forward, and what is foreseen.

use std::{borrow::Cow, fmt};

use jiff::Timestamp;

use crate::{
    gate::GateState,
    hold::Hold,
    quorum::MemberName,
    rolling::known::{order::Order, workload},
    strategy::{
        Strategy,
        contract::Plan,
        known::{
            decision::Decision,
            want::{Target, Want},
        },
    },
    version::Version,
};

/// What a strategy brings to be played forward: what its own steps lead to when the best happens.
pub trait Foresee: Strategy {
    /// What the copy knows beside what can be seen.
    type Scene;

    /// As it is before anything happens.
    fn scene(view: &Self::View) -> Self::Scene;

    /// Keeps what the plan records.
    fn keep(view: &mut Self::View, plan: &Plan<Self>);

    /// A step of its own is done.
    fn carry_out(scene: &mut Self::Scene, view: &mut Self::View, step: &Self::Step);

    /// One thing that is on its way arrives; false where nothing is.
    fn arrive(scene: &mut Self::Scene, want: &Want, view: &mut Self::View, now: Timestamp) -> bool;

    /// In which order members are let go, where that is recorded.
    fn order(record: &Self::Record) -> Option<Order>;

    /// What is asked before an upgrade begins, by the names of the gates that ask the same.
    fn to_begin() -> Vec<Cow<'static, str>>;

    /// What a person should know beforehand of the ways of this strategy.
    fn notes(view: &Self::View, steps: &[Foreseen<Self::Step>]) -> Vec<Note>;
}

/// What would happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast<A> {
    /// What the planner answers now.
    pub decision: Decision<A>,
    /// Where every gate stands now, also those that are asked only once an upgrade is under way; empty where nobody would be disturbed.
    pub gates: Vec<GateState>,
    /// From where to where; none where nothing is begun.
    pub way: Option<Way>,
    /// The steps in their order.
    pub steps: Vec<Foreseen<A>>,
    /// How it ends.
    pub end: End,
    /// What a person should know before it begins.
    pub notes: Vec<Note>,
}

/// From where to where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What runs.
    pub from: Target,
    /// What shall run.
    pub to: Target,
    /// Who goes first; none where the strategy has no order.
    pub order: Option<Order>,
    /// It goes back to where an unfinished upgrade came from.
    pub rolling_back: bool,
}

/// One step, and what comes before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreseen<A> {
    /// The step.
    pub step: A,
    /// The gates that must let it through; none where it neither begins anything nor disturbs anybody.
    pub gates: Vec<Cow<'static, str>>,
    /// What is waited for before, and comes by itself if all goes well.
    pub after: Vec<Hold>,
    /// What it would wait for beyond that: people, or the calendar.
    pub waits: Vec<Hold>,
}

/// How a forecast ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// What is wanted is there.
    Done,
    /// Something holds, and nothing that would lift it is on its way.
    Held(Hold),
    /// It goes on for longer than is looked ahead.
    OutOfSight,
}

/// A move of leadership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which step it is, counted from 1.
    pub step: usize,
    /// Who leads before.
    pub from: MemberName,
    /// Who is meant to lead afterwards.
    pub to: MemberName,
}

/// What a person should know before it begins.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
pub enum Note {
    /// Replacing a member takes the quorum down (H14).
    TooFewMembers {
        /// How many there are.
        members: usize,
    },
    /// The StatefulSet's update strategy becomes another one (H7).
    StrategySwitched {
        /// What it is.
        from: workload::Strategy,
        /// What it becomes.
        to: workload::Strategy,
    },
    /// The partition stays at `replicas` in the end (H11).
    RolloutLocked {
        /// `replicas`.
        partition: u32,
    },
    /// The data goes to an older version (H15).
    Downgrade {
        /// What runs.
        from: Version,
        /// What is wanted.
        to: Version,
    },
    /// The system can't be told who leads next (H16).
    LeaderNotChosen,
    /// How long members take is not foreseen, and the windows end.
    WindowsEnd,
}

impl Note {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = |strategy: &workload::Strategy| match strategy {
            workload::Strategy::RollingUpdate { .. } => "RollingUpdate",
            workload::Strategy::OnDelete => "OnDelete",
        };
        match self {
            Self::TooFewMembers { members } => {
                let s = if *members == 1 { "" } else { "s" };
                write!(f, "with {members} member{s} none can be spared: replacing one takes the quorum down")
            }
            Self::StrategySwitched { from, to } => write!(
                f,
                "the StatefulSet's update strategy will be switched from {} to {}; deleting the QuorumCluster switches it back",
                kind(from),
                kind(to)
            ),
            Self::RolloutLocked { partition } => write!(
                f,
                "the StatefulSet's partition stays at {partition} afterwards, so that a stray change of its template rolls nothing"
            ),
            Self::Downgrade { from, to } => {
                write!(f, "{to} is older than {from}: whether the data survives that is for you to know")
            }
            Self::LeaderNotChosen => f.write_str(
                "this system can't be told who leads next: leadership may go to another member than shown, and move once more because of it",
            ),
            Self::WindowsEnd => {
                f.write_str("how long members take is not foreseen: a window may close before all of them are done")
            }
        }
    }
}
