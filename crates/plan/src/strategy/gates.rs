//! What the gates of every strategy have in common: what each can ask, and what is done about an objection.

use std::time::Duration;

use jiff::Timestamp;

pub use crate::gate::list::{Asks, Gate, evaluate, first_objection};
use crate::{
    approval,
    bug::{self, Bug},
    gate::{
        About, ExternalGate, Outcome, When,
        list::{Asked, lacks_job},
    },
    hold::Hold,
    strategy::{
        approval::approved,
        known::{
            ask::Ask,
            decision::{Decision, wait_or_halt},
            step::{JobStep, Step},
        },
        prepull,
    },
    window::Window,
};

impl<S: Asks> Gate<S>
where
    for<'a> S::Ask<'a>: Ask,
{
    /// A person approved it.
    pub const APPROVAL: Self = Self::own(approval::NAME, |ask| approved(ask));

    /// The very last one: nothing is pulled before everything else would let a member go.
    pub const PULL: Self = Self::own(prepull::NAME, |ask| prepull::pulled(ask));
}

impl<A: Ask> Asked for A {
    fn now(&self) -> Timestamp {
        Ask::now(self)
    }

    fn is_paused(&self) -> bool {
        self.want().paused
    }

    /// Members are taken down, and hand over, only while one is open.
    fn windows(&self) -> &[Window] {
        if bug::active(Bug::WindowIgnored) && self.seen().quorum.leader.is(self.member()) {
            return &[];
        }
        &self.want().windows
    }

    fn expected(&self) -> Option<Duration> {
        Ask::expected(self)
    }

    fn elsewhere(&self) -> Vec<&ExternalGate> {
        self.seen().external.iter().collect()
    }

    fn outdated(&self, external: &ExternalGate) -> Option<Hold> {
        outdated(self, external)
    }

    fn set_aside(&self, name: &str) -> Option<Timestamp> {
        self.want().overrides.get(name).copied()
    }
}

/// The first objection, and what can be done about it here: to make the Job whose word is missing, or those that pull the image.
pub fn first_thing<S: Asks, A: Step>(gates: &[Gate<S>], ask: &S::Ask<'_>) -> Option<Decision<A>>
where
    for<'a> S::Ask<'a>: Ask,
{
    if bug::active(Bug::HooksNotAwaited) && gates.iter().all(Gate::is_several) {
        return None;
    }
    let objection = evaluate(gates, ask).find(|gate| gate.state.blocks())?;
    if let Some(gate) = lacks_job(&objection, &ask.seen().external) {
        return Some(Decision::Act(JobStep::Answer { gate }.into()));
    }
    let pull = |hold: &Hold| prepull::next(ask.want(), ask.seen(), ask.target(), hold, Ask::now(ask));
    objection.hold.map(|hold| pull(&hold).unwrap_or_else(|| wait_or_halt(hold)))
}

/// Why what was said elsewhere does not count any more: it was said before the last member was replaced and well again, or about another one.
fn outdated(ask: &impl Ask, external: &ExternalGate) -> Option<Hold> {
    let asked = external.asked.as_ref().filter(|_| ask.under_way().is_some())?;
    if external.outcome != Outcome::Pass || external.when != When::BeforeEachMember {
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
