//! Lists of gates: named conditions, asked in order, the first objection counts. Each strategy has lists of its own, and so have fleets; how they
//! are asked, what people may set aside and what was evaluated elsewhere is the same for all.

use std::{borrow::Cow, time::Duration};

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    gate::{CONCURRENT_OPERATION, ExternalGate, GateState, Outcome, Verdict, When, judge, overridable},
    hold::Hold,
    reason::Reason,
    window::{Window, open_for},
};

/// What somebody asks gates.
pub trait Asks: 'static {
    /// The question.
    type Ask<'a>: Asked;
}

/// What a list of gates needs to know of the question.
pub trait Asked {
    /// When.
    fn now(&self) -> Timestamp;

    /// Somebody said stop.
    fn is_paused(&self) -> bool;

    /// When it may happen; whenever, where there are none.
    fn windows(&self) -> &[Window];

    /// How long it is expected to take; none where nothing was measured.
    fn expected(&self) -> Option<Duration>;

    /// What was evaluated elsewhere.
    fn elsewhere(&self) -> Vec<&ExternalGate>;

    /// Why what was said elsewhere does not count any more.
    fn outdated(&self, _: &ExternalGate) -> Option<Hold> {
        None
    }

    /// What a gate is called here.
    fn called(&self, gate: &'static str) -> Cow<'static, str> {
        Cow::Borrowed(gate)
    }

    /// Until when a person set aside what is called so, if it may be.
    fn set_aside(&self, name: &str) -> Option<Timestamp>;
}

/// How a gate is asked.
pub enum Check<S: Asks> {
    /// By what was seen.
    Own(for<'q, 'a> fn(&'q S::Ask<'a>) -> Outcome),
    /// It was evaluated elsewhere.
    External,
    /// All that were evaluated elsewhere, are asked then, and have no place of their own in the list.
    Others(When),
}

/// A named condition.
pub struct Gate<S: Asks> {
    /// How people call it.
    pub name: &'static str,
    /// What it demands.
    pub check: Check<S>,
}

impl<S: Asks> Gate<S> {
    /// Nobody said stop.
    pub const NOT_PAUSED: Self = Self::own("NotPaused", |ask| not_paused(ask).into());

    /// Somebody else is at work on the same members.
    pub const LOCK: Self = Self { name: CONCURRENT_OPERATION, check: Check::External };

    /// A maintenance window is open, and open for long enough as far as can be told.
    pub const WINDOW: Self = Self::own("MaintenanceWindow", |ask| {
        let needed = ask.expected().filter(|_| !bug::active(Bug::WindowEndIgnored));
        open_for(ask.windows(), needed, ask.now())
    });

    /// What people want to be asked elsewhere before every member.
    pub const OTHERS: Self = Self::others(When::BeforeEachMember);

    /// Nearly last: what has to run first does so when nothing else is in the way.
    pub const FIRST: Self = Self::others(When::BeforeUpgrade);

    /// What must be true before an upgrade is called done.
    pub const LAST: Self = Self::others(When::AfterUpgrade);

    /// What is told by what was seen. Whether a person may set it aside, its name says: see [`overridable`].
    pub const fn own(name: &'static str, check: for<'q, 'a> fn(&'q S::Ask<'a>) -> Outcome) -> Self {
        Self { name, check: Check::Own(check) }
    }

    /// All the others that were evaluated elsewhere.
    const fn others(when: When) -> Self {
        Self { name: "*", check: Check::Others(when) }
    }

    /// Whether it stands for several that have names of their own.
    pub fn is_several(&self) -> bool {
        matches!(self.check, Check::Others(_))
    }
}

fn not_paused(ask: &impl Asked) -> Verdict {
    if ask.is_paused() { Err(Hold::new(Reason::Paused, "paused")) } else { Ok(()) }
}

/// The first objection.
pub fn first_objection<S: Asks>(gates: &[Gate<S>], ask: &S::Ask<'_>) -> Verdict {
    let objection = evaluate(gates, ask).find(|gate| gate.state.blocks());
    objection.and_then(|gate| gate.hold).map_or(Ok(()), Err)
}

/// Whose Job is all that an objection lacks.
pub fn lacks_job<'a>(objection: &GateState, elsewhere: impl IntoIterator<Item = &'a ExternalGate>) -> Option<String> {
    let mut lacking = elsewhere.into_iter().filter(|gate| gate.lacks_job && gate.name == objection.name);
    lacking.next().map(|gate| gate.name.clone())
}

/// Where all these gates stand, in their order, evaluated one by one.
pub fn evaluate<'q, 'a, S: Asks>(
    gates: &'q [Gate<S>],
    ask: &'q S::Ask<'a>,
) -> impl Iterator<Item = GateState> + use<'q, 'a, S> {
    gates.iter().flat_map(move |gate| {
        let said: Vec<(Cow<'static, str>, Outcome)> = match gate.check {
            Check::Own(check) => vec![(ask.called(gate.name), check(ask))],
            Check::External => said(ask, |external| external.name == gate.name),
            // One that has an entry of its own is not told twice.
            Check::Others(when) => {
                said(ask, |external| external.when == when && !gates.iter().any(|other| other.name == external.name))
            }
        };
        let external = !matches!(gate.check, Check::Own(_));
        let may = external || overridable(gate.name) || bug::active(Bug::AnyGateOverridden);
        said.into_iter().map(move |(name, outcome)| {
            let until = ask.set_aside(&name).filter(|_| may);
            judge(name, outcome, until, ask.now())
        })
    })
}

/// What was evaluated elsewhere, of those that are meant.
fn said(ask: &impl Asked, is_meant: impl Fn(&ExternalGate) -> bool) -> Vec<(Cow<'static, str>, Outcome)> {
    let said = |external: &ExternalGate| {
        let outcome = ask.outdated(external).map_or_else(|| external.outcome.clone(), Outcome::Unknown);
        (Cow::Owned(external.name.clone()), outcome)
    };
    ask.elsewhere().into_iter().filter(|external| is_meant(external)).map(said).collect()
}
