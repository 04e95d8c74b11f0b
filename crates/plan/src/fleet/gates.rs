//! What people put before the next resource of a fleet, and before it is called done: where each of it stands.
//!
//! ```text
//!   before a resource that serves   paused, the tier's approval, a window, checks and analyses, the tier's own analyses
//!   before the first of these images  hooks, when nothing else is in the way
//!   before a tier is done           its own analyses
//!   before all of it is done        hooks
//! ```
//! What has no image yet gets one whatever these say (E5).

use std::{borrow::Cow, time::Duration};

use jiff::Timestamp;

use super::{
    record::TierRecord,
    view::View,
    want::{Tier, TierName, Want},
};
use crate::{
    approval,
    bug::{self, Bug},
    gate::{
        ExternalGate, GateState, Outcome, When,
        list::{Asked, Asks, Gate, evaluate, lacks_job},
    },
    hold::Hold,
    reason::Reason,
    window::Window,
};

/// Between the name of a gate and the tier that it is of.
const OF: char = '@';

/// What a gate of one tier is called. The empty tier has no name to show.
pub fn of_tier(gate: &str, tier: &TierName) -> String {
    format!("{gate}{OF}{}", tier.0)
}

/// A gate's name without a tier, and the tier where it is of one.
pub fn split(gate: &str) -> (&str, Option<&str>) {
    gate.split_once(OF).map_or((gate, None), |(plain, tier)| (plain, Some(tier)))
}

/// Fleets ask the same gates as everybody.
struct Fleet;

/// May the next resource of this tier have its image? Or, without a tier: may all of it be called done?
struct Ask<'a> {
    want: &'a Want,
    view: &'a View<'a>,
    tier: Option<(&'a Tier, &'a TierRecord)>,
    /// These images have begun already.
    hooks_passed: bool,
    now: Timestamp,
}

impl Asks for Fleet {
    type Ask<'a> = Ask<'a>;
}

impl Asked for Ask<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn is_paused(&self) -> bool {
        self.want.paused
    }

    fn windows(&self) -> &[Window] {
        &self.want.windows
    }

    fn expected(&self) -> Option<Duration> {
        None
    }

    /// What is asked for all of it, then a tier's own. Hooks that run first have done so where these images have begun.
    fn elsewhere(&self) -> Vec<&ExternalGate> {
        let hooks = |when: When| when == When::BeforeEachMember || !bug::active(Bug::HooksNotAwaited);
        let asked = |gate: &&ExternalGate| hooks(gate.when) && !(self.hooks_passed && gate.when == When::BeforeUpgrade);
        let own = self.tier.map(|(tier, _)| own(tier, self.view)).unwrap_or_default();
        self.view.gates.iter().filter(asked).chain(own).collect()
    }

    fn called(&self, gate: &'static str) -> Cow<'static, str> {
        match self.tier {
            Some((tier, _)) if gate == approval::NAME => Cow::Owned(of_tier(gate, &tier.name)),
            Some(_) | None => Cow::Borrowed(gate),
        }
    }

    /// An override without a tier sets the gate aside wherever there is one of that name.
    fn set_aside(&self, name: &str) -> Option<Timestamp> {
        let (plain, _) = split(name);
        [name, plain].into_iter().filter_map(|name| self.want.overrides.get(name)).max().copied()
    }
}

const BEFORE_NEXT: &[Gate<Fleet>] = &[Gate::NOT_PAUSED, Gate::WINDOW, Gate::OTHERS, Gate::FIRST];

/// The same where the tier wants an approval.
const BEFORE_NEXT_APPROVED: &[Gate<Fleet>] =
    &[Gate::NOT_PAUSED, Gate::own(approval::NAME, |ask| approved(ask)), Gate::WINDOW, Gate::OTHERS, Gate::FIRST];

const BEFORE_DONE: &[Gate<Fleet>] = &[Gate::LAST];

/// Everything that a person may have put before the next resource of this tier that serves. `hooks_passed` says that these images have begun.
pub(super) fn before_next(
    tier: &Tier,
    want: &Want,
    view: &View<'_>,
    kept: &mut TierRecord,
    hooks_passed: bool,
    now: Timestamp,
) -> Vec<GateState> {
    let gates = if tier.approval { BEFORE_NEXT_APPROVED } else { BEFORE_NEXT };
    let states = evaluate(gates, &Ask { want, view, tier: Some((tier, kept)), hooks_passed, now }).collect();
    // Who is asked can answer.
    kept.asked |= tier.approval && !kept.approved;
    states
}

/// Whether a person approved the tier's image.
fn approved(ask: &Ask<'_>) -> Outcome {
    let Some((tier, _)) = ask.tier.filter(|(_, kept)| !kept.approved) else { return Outcome::Pass };
    let message = format!("{}: image {} is wanted and not approved yet", tier.name, tier.image);
    Outcome::Hold(Hold::new(Reason::AwaitingApproval, message))
}

/// A tier's own gates let it be done.
pub(super) fn are_content(tier: &Tier, view: &View<'_>, want: &Want, now: Timestamp) -> bool {
    let own = View { gates: own(tier, view), ..*view };
    let ask = Ask { want, view: &own, tier: None, hooks_passed: true, now };
    !evaluate(&[Gate::<Fleet>::OTHERS], &ask).any(|gate| gate.state.blocks())
}

/// What is asked when everybody is up to date, before all of it is called done.
pub(super) fn before_done(view: &View<'_>, want: &Want, now: Timestamp) -> Vec<GateState> {
    evaluate(BEFORE_DONE, &Ask { want, view, tier: None, hooks_passed: true, now }).collect()
}

/// The first that does not let it go on.
pub(super) fn objection(states: &[GateState]) -> Option<&GateState> {
    states.iter().find(|gate| gate.state.blocks())
}

/// The first objection, if all that it lacks is its Job.
pub(super) fn lacking(states: &[GateState], view: &View<'_>) -> Option<String> {
    lacks_job(objection(states)?, view.gates)
}

/// Adds what is not listed yet: what counts for several tiers is shown once.
pub(super) fn list(listed: &mut Vec<GateState>, states: Vec<GateState>) {
    for state in states {
        if listed.iter().all(|other| other.name != state.name) {
            listed.push(state);
        }
    }
}

fn own<'a>(tier: &Tier, view: &View<'a>) -> &'a [ExternalGate] {
    let gates = view.tier_gates.get(&tier.name).map(Vec::as_slice).unwrap_or_default();
    if bug::active(Bug::TierAnalysisIgnored) { &[] } else { gates }
}
