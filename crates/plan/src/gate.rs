//! Where a gate stands, whoever asks it: what it says, and whether a person set it aside.
//!
//! An override names one gate and ends at a time (H43). It turns a hold or something unknown into [`State::Overridden`], which is
//! reported like every other state.

pub mod list;

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    approval,
    bug::{self, Bug},
    hold::Hold,
    quorum::MemberName,
    reason::Reason,
};

/// A node under a member is being emptied.
pub const NODE_DRAIN: &str = "NodeDrain";

/// Somebody else is at work on the same members.
pub const CONCURRENT_OPERATION: &str = "ConcurrentOperation";

/// A gate's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Go on.
    Pass,
    /// Not now.
    Hold(Hold),
    /// It can't be told, which blocks as well.
    Unknown(Hold),
    /// Nobody asks: whoever runs the operator said so, and why is said here.
    NotAsked(Hold),
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Ok(()) => Self::Pass,
            Err(hold) if hold.reason.is_ignorance() => Self::Unknown(hold),
            Err(hold) => Self::Hold(hold),
        }
    }
}

/// Before what a gate is asked that was evaluated elsewhere. The words are those of the custom resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
pub enum When {
    /// Before an upgrade begins, and again before it goes on to another target.
    BeforeUpgrade,
    /// Before every member that is taken down or hands over.
    BeforeEachMember,
    /// When everybody is replaced and well, before the upgrade is called done. Not after a rollback.
    AfterUpgrade,
}

/// A gate that was evaluated where its facts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalGate {
    /// How people call it, also in an override.
    pub name: String,
    /// Before what it is asked.
    pub when: When,
    /// What it says.
    pub outcome: Outcome,
    /// It says nothing before its Job has run, and there is none yet.
    pub lacks_job: bool,
    /// When somebody elsewhere said so, where that matters.
    pub asked: Option<Asked>,
}

/// When somebody elsewhere was asked, and about whom. What they said counts for the member that comes next, and not for the one after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When they said so.
    pub at: Timestamp,
    /// About whom.
    pub about: About,
    /// Why it is waited for until they are asked again.
    pub again: Reason,
}

/// Whom somebody elsewhere was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// All of them.
    All,
    /// The member whose turn they were told it is; none where that was not known.
    Next(Option<MemberName>),
}

impl ExternalGate {
    /// One that is asked before every member.
    pub fn new(name: impl Into<String>, outcome: Outcome) -> Self {
        Self { name: name.into(), when: When::BeforeEachMember, outcome, lacks_job: false, asked: None }
    }
}

/// Where a gate stands, in a word: that of the status.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::EnumIter, strum::IntoStaticStr,
)]
pub enum State {
    /// It lets the next step through.
    Passed,
    /// It does not.
    Holding,
    /// It can't tell, and so does not.
    Unknown,
    /// It would not, and a person set it aside.
    Overridden,
    /// Nobody asks it.
    NotAsked,
}

impl State {
    /// The word in the status.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether nothing may go on.
    pub fn blocks(self) -> bool {
        match self {
            Self::Holding | Self::Unknown => true,
            Self::Passed | Self::Overridden | Self::NotAsked => false,
        }
    }
}

/// Where one gate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateState {
    /// Which.
    pub name: Cow<'static, str>,
    /// Where it stands.
    pub state: State,
    /// What speaks against going on; none if nothing does.
    pub hold: Option<Hold>,
    /// Until when it is set aside.
    pub overridden_until: Option<Timestamp>,
}

impl GateState {
    /// For a person; empty where all is well.
    pub fn message(&self) -> String {
        match (&self.hold, self.overridden_until) {
            (None, _) => String::new(),
            // Nothing is to be done about it.
            (Some(hold), None) if self.state == State::NotAsked => hold.message.clone(),
            (Some(hold), None) => hold.to_string(),
            (Some(hold), Some(until)) => format!("overridden until {until}: {}", hold.message),
        }
    }
}

/// Where a gate stands that says this, and that a person may have set aside until then.
pub(crate) fn judge(
    name: Cow<'static, str>,
    outcome: Outcome,
    set_aside: Option<Timestamp>,
    now: Timestamp,
) -> GateState {
    let (state, hold) = match outcome {
        Outcome::Pass => return GateState { name, state: State::Passed, hold: None, overridden_until: None },
        Outcome::Unknown(_) if bug::active(Bug::UnknownGatePasses) => {
            return GateState { name, state: State::Passed, hold: None, overridden_until: None };
        }
        Outcome::NotAsked(hold) => {
            return GateState { name, state: State::NotAsked, hold: Some(hold), overridden_until: None };
        }
        Outcome::Hold(hold) => (State::Holding, hold),
        Outcome::Unknown(hold) => (State::Unknown, hold),
    };
    match set_aside.filter(|until| now < *until || bug::active(Bug::OverrideOutlivesItself)) {
        Some(until) => GateState { name, state: State::Overridden, hold: Some(hold), overridden_until: Some(until) },
        None => GateState { name, state, hold: Some(hold), overridden_until: None },
    }
}

/// What is asked without a name of people's own, and may be set aside: what people asked for, and what the operator evaluates outside of this
/// crate. Never what guards the quorum, its leader or our writes (H43).
const OVERRIDABLE: [&str; 6] =
    [approval::NAME, "MaintenanceWindow", "Soak", "ImagePulled", CONCURRENT_OPERATION, NODE_DRAIN];

/// The gates that can be overridden, in their order.
pub fn overridable_names() -> impl Iterator<Item = &'static str> {
    OVERRIDABLE.into_iter()
}

/// Whether this gate may be overridden: not what guards the quorum, its leader or our writes.
pub fn overridable(name: &str) -> bool {
    let named = || name.split_once('/').is_some_and(|(kind, name)| KINDS.contains(&kind) && !name.is_empty());
    overridable_names().any(|known| known == name) || named()
}

/// What people name themselves: `Check/NAME`, `Analysis/NAME`, `Hook/NAME`.
pub const KINDS: [&str; 3] = ["Check", "Analysis", "Hook"];

/// A condition's answer.
pub type Verdict = Result<(), Hold>;
