//! What a gate says, and whether a person set it aside.
//!
//! An override names one gate and ends at a time (H43). It turns a hold or something unknown into [`State::Overridden`], which is
//! reported like every other state. What guards the quorum, its leader or our own writes can't be overridden at all.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    decision::Hold,
    gate::{Ask, BEFORE_RESTART, Check, Gate, Verdict},
    mend::BEFORE_MEND,
    quorum::MemberName,
    reason::Reason,
};

/// A node under a member is being emptied.
pub const NODE_DRAIN: &str = "NodeDrain";
/// Somebody else is at work on the same members.
pub const CONCURRENT_OPERATION: &str = "ConcurrentOperation";

/// What the operator evaluates outside of this crate, and may be overridden.
const EXTERNAL: [&str; 2] = [CONCURRENT_OPERATION, NODE_DRAIN];

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

/// Before what a gate is asked that was evaluated elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before every member that is taken down or hands over.
    BeforeMember,
    /// Before an upgrade begins, and not again.
    BeforeUpgrade,
    /// When everybody is replaced and well, before the upgrade is called done.
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
        Self { name: name.into(), when: When::BeforeMember, outcome, lacks_job: false, asked: None }
    }
}

/// Where a gate stands, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumIter, strum::IntoStaticStr)]
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

/// Where all these gates stand, in their order, evaluated one by one.
pub fn evaluate<'a>(gates: &'a [Gate], ask: &'a Ask<'a>) -> impl Iterator<Item = GateState> + 'a {
    gates.iter().flat_map(move |gate| {
        let said: Vec<(Cow<'static, str>, Outcome)> = match gate.check {
            Check::Own(check) => vec![(Cow::Borrowed(gate.name), check(ask))],
            Check::External => said(ask, |external| external.name == gate.name),
            // One that has an entry of its own is not told twice.
            Check::Others(when) => {
                said(ask, |external| external.when == when && !gates.iter().any(|other| other.name == external.name))
            }
        };
        let external = !matches!(gate.check, Check::Own(_));
        said.into_iter().map(move |(name, outcome)| {
            let may = external || overridable(&name) || bug::active(Bug::AnyGateOverridden);
            let until = ask.want.overrides.get(name.as_ref()).copied().filter(|_| may);
            judge(name, outcome, until, ask.now)
        })
    })
}

/// What was evaluated elsewhere, of those that are meant.
fn said(ask: &Ask<'_>, is_meant: impl Fn(&&ExternalGate) -> bool) -> Vec<(Cow<'static, str>, Outcome)> {
    let said = |external: &ExternalGate| {
        let outcome = outdated(ask, external).map_or_else(|| external.outcome.clone(), Outcome::Unknown);
        (Cow::Owned(external.name.clone()), outcome)
    };
    ask.view.external.iter().filter(is_meant).map(said).collect()
}

/// Why a yes does not count any more: it was said before the last member was replaced and well again, or about another member.
fn outdated(ask: &Ask<'_>, external: &ExternalGate) -> Option<Hold> {
    let (Some(record), Some(asked)) = (ask.record, &external.asked) else { return None };
    if external.outcome != Outcome::Pass || external.when != When::BeforeMember {
        return None;
    }
    let (name, victim) = (&external.name, &ask.victim.name);
    let hold = |message: String| Some(Hold::new(asked.again, message));
    let last = record.settled_since.iter().max_by_key(|(_, since)| **since);
    if let Some((last, _)) = last.filter(|(_, since)| asked.at <= **since)
        && !bug::active(Bug::OldMeasureCounts)
    {
        return hold(format!("{name} said so before {last} was replaced and well, and is asked again"));
    }
    match &asked.about {
        About::Next(about) if about.as_ref() != Some(victim) && !bug::active(Bug::YesForAll) => {
            hold(format!("{name} was not asked about {victim} yet"))
        }
        About::Next(_) | About::All => None,
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

/// The gates that can be overridden, in their order.
pub fn overridable_names() -> impl Iterator<Item = &'static str> {
    let own = BEFORE_RESTART.iter().filter(|gate| gate.overridable).map(|gate| gate.name);
    own.chain(EXTERNAL)
}

/// What people name themselves: `Check/NAME`, `Analysis/NAME`, `Hook/NAME`.
pub const KINDS: [&str; 3] = ["Check", "Analysis", "Hook"];

/// Whether this gate may be overridden: not what guards the quorum, its leader or our writes.
pub fn overridable(name: &str) -> bool {
    let named = || name.split_once('/').is_some_and(|(kind, name)| KINDS.contains(&kind) && !name.is_empty());
    overridable_names().any(|known| known == name) || named()
}

/// Refuses overrides of gates that can't be overridden, or don't exist (X5).
pub fn check_overrides<'a>(names: impl IntoIterator<Item = &'a str>) -> Verdict {
    let Some(name) = names.into_iter().find(|name| !overridable(name)) else { return Ok(()) };
    if bug::active(Bug::AnyGateOverridden) {
        return Ok(());
    }
    let exists = BEFORE_RESTART.iter().chain(BEFORE_MEND).any(|gate| gate.name == name);
    let trouble = if exists { "can't be overridden" } else { "does not exist" };
    let names: Vec<&str> = overridable_names().collect();
    let message = format!("gate {name} {trouble}; the ones that can be overridden are {}", names.join(", "));
    Err(Hold::new(Reason::InvalidSpec, message))
}
