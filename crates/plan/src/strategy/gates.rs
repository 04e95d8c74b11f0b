//! Gates: named conditions, asked in order, the first objection counts. Each strategy has lists of its own; how they are asked, what people may
//! set aside and what was evaluated elsewhere is the same for all.

use std::borrow::Cow;

use crate::{
    approval,
    bug::{self, Bug},
    gate::{About, CONCURRENT_OPERATION, ExternalGate, GateState, Outcome, Verdict, When, judge, overridable},
    hold::Hold,
    reason::Reason,
    strategy::{
        approval::approved,
        known::{
            ask::{Ask, Asks},
            decision::{Decision, wait_or_halt},
            step::{JobStep, Step},
            want::Want,
        },
        prepull,
    },
    window::open_for,
};

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
    /// Somebody else is at work on the same members.
    pub const LOCK: Self = Self { name: CONCURRENT_OPERATION, check: Check::External };

    /// A person approved it.
    pub const APPROVAL: Self = Self::own(approval::NAME, |ask| approved(ask));

    /// A maintenance window is open, and open for long enough as far as can be told.
    pub const WINDOW: Self = Self::own("MaintenanceWindow", |ask| open(ask));

    /// What people want to be asked elsewhere before every member.
    pub const OTHERS: Self = Self::others(When::BeforeMember);

    /// Nearly last: what has to run first does so when nothing else is in the way.
    pub const FIRST: Self = Self::others(When::BeforeUpgrade);

    /// What must be true before an upgrade is called done.
    pub const LAST: Self = Self::others(When::AfterUpgrade);

    /// The very last one: nothing is pulled before everything else would let a member go.
    pub const PULL: Self = Self::own(prepull::NAME, |ask| prepull::pulled(ask));

    /// Nobody said stop.
    pub const NOT_PAUSED: Self = Self::own("NotPaused", |ask| not_paused(ask.want()).into());

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

/// Nobody said stop.
fn not_paused(want: &Want) -> Verdict {
    if want.paused { Err(Hold::new(Reason::Paused, "paused")) } else { Ok(()) }
}

/// Members are taken down, and hand over, only while a window is open that is long enough.
fn open(ask: &impl Ask) -> Outcome {
    if bug::active(Bug::WindowIgnored) && ask.seen().quorum.leader.is(ask.member()) {
        return Outcome::Pass;
    }
    let needed = ask.expected().filter(|_| !bug::active(Bug::WindowEndIgnored));
    open_for(&ask.want().windows, needed, ask.now())
}

/// The first objection.
pub fn first_objection<S: Asks>(gates: &[Gate<S>], ask: &S::Ask<'_>) -> Verdict {
    let objection = evaluate(gates, ask).find(|gate| gate.state.blocks());
    objection.and_then(|gate| gate.hold).map_or(Ok(()), Err)
}

/// The first objection, and what can be done about it here: to make the Job whose word is missing, or those that pull the image.
pub fn first_thing<S: Asks, A: Step>(gates: &[Gate<S>], ask: &S::Ask<'_>) -> Option<Decision<A>> {
    if bug::active(Bug::HooksNotAwaited) && gates.iter().all(Gate::is_several) {
        return None;
    }
    let objection = evaluate(gates, ask).find(|gate| gate.state.blocks())?;
    let lacking = |gate: &&ExternalGate| gate.lacks_job && gate.name == objection.name;
    if let Some(gate) = ask.seen().external.iter().find(lacking) {
        return Some(Decision::Act(JobStep::Answer { gate: gate.name.clone() }.into()));
    }
    let pull = |hold: &Hold| prepull::next(ask.want(), ask.seen(), ask.target(), hold, ask.now());
    objection.hold.map(|hold| pull(&hold).unwrap_or_else(|| wait_or_halt(hold)))
}

/// Where all these gates stand, in their order, evaluated one by one.
pub fn evaluate<'q, 'a, S: Asks>(
    gates: &'q [Gate<S>],
    ask: &'q S::Ask<'a>,
) -> impl Iterator<Item = GateState> + use<'q, 'a, S> {
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
            let until = ask.want().overrides.get(name.as_ref()).copied().filter(|_| may);
            judge(name, outcome, until, ask.now())
        })
    })
}

/// What was evaluated elsewhere, of those that are meant.
fn said(ask: &impl Ask, is_meant: impl Fn(&&ExternalGate) -> bool) -> Vec<(Cow<'static, str>, Outcome)> {
    let said = |external: &ExternalGate| {
        let outcome = outdated(ask, external).map_or_else(|| external.outcome.clone(), Outcome::Unknown);
        (Cow::Owned(external.name.clone()), outcome)
    };
    ask.seen().external.iter().filter(is_meant).map(said).collect()
}

/// Why what was said elsewhere does not count any more: it was said before the last member was replaced and well again, or about another one.
fn outdated(ask: &impl Ask, external: &ExternalGate) -> Option<Hold> {
    let asked = external.asked.as_ref().filter(|_| ask.under_way().is_some())?;
    if external.outcome != Outcome::Pass || external.when != When::BeforeMember {
        return None;
    }
    let (name, next) = (&external.name, ask.member());
    let hold = |message: String| Some(Hold::new(asked.again, message));
    if let Some((last, _)) = ask.last_settled().filter(|(_, since)| asked.at <= *since)
        && !bug::active(Bug::OldMeasureCounts)
    {
        return hold(format!("{name} said so before {last} was replaced and well, and is asked again"));
    }
    match &asked.about {
        About::Next(about) if about.as_ref() != Some(next) && !bug::active(Bug::YesForAll) => {
            hold(format!("{name} was not asked about {next} yet"))
        }
        About::Next(_) | About::All => None,
    }
}
