//! What people put before the next resource of a fleet, and before it is called done: where each of it stands.
//!
//! ```text
//!   before a resource that serves   paused, the tier's approval, a window, checks and analyses, the tier's own analyses
//!   before the first of these images  hooks, when nothing else is in the way
//!   before a tier is done           its own analyses
//!   before all of it is done        hooks
//! ```
//! What has no image yet gets one whatever these say (E5).

use std::borrow::Cow;

use jiff::Timestamp;

use super::{
    record::TierRecord,
    view::View,
    want::{Tier, TierName, Want},
};
use crate::{
    approval,
    bug::{self, Bug},
    gate::{self, ExternalGate, GateState, Outcome, When},
    hold::Hold,
    reason::Reason,
    window,
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

/// Everything that a person may have put before the next resource of this tier that serves. `hooks_passed` says that these images have begun.
pub(super) fn before_next(
    tier: &Tier,
    want: &Want,
    view: &View<'_>,
    kept: &mut TierRecord,
    hooks_passed: bool,
    now: Timestamp,
) -> Vec<GateState> {
    let paused = if want.paused { Outcome::Hold(Hold::new(Reason::Paused, "paused")) } else { Outcome::Pass };
    let mut states = vec![judge(Cow::Borrowed("NotPaused"), paused, want, now)];
    if tier.approval {
        let name = of_tier(approval::NAME, &tier.name);
        states.push(judge(Cow::Owned(name), approved(tier, kept), want, now));
    }
    let open = window::open_for(&want.windows, None, now);
    states.push(judge(Cow::Borrowed("MaintenanceWindow"), open, want, now));
    states.extend(said(view.gates, When::BeforeMember, want, now));
    states.extend(own(tier, view, want, now));
    if !hooks_passed && !bug::active(Bug::HooksNotAwaited) {
        states.extend(said(view.gates, When::BeforeUpgrade, want, now));
    }
    states
}

/// Whether a person approved the tier's image. Who is asked can answer.
fn approved(tier: &Tier, kept: &mut TierRecord) -> Outcome {
    if kept.approved {
        return Outcome::Pass;
    }
    kept.asked = true;
    let message = format!("{}: image {} is wanted and not approved yet", tier.name, tier.image);
    Outcome::Hold(Hold::new(Reason::AwaitingApproval, message))
}

/// A tier's own gates let it be done.
pub(super) fn are_content(tier: &Tier, view: &View<'_>, want: &Want, now: Timestamp) -> bool {
    own(tier, view, want, now).all(|gate| !gate.state.blocks())
}

/// What is asked when everybody is up to date, before all of it is called done.
pub(super) fn before_done(view: &View<'_>, want: &Want, now: Timestamp) -> Vec<GateState> {
    if bug::active(Bug::HooksNotAwaited) {
        return Vec::new();
    }
    said(view.gates, When::AfterUpgrade, want, now).collect()
}

/// The first that does not let it go on.
pub(super) fn objection(states: &[GateState]) -> Option<&GateState> {
    states.iter().find(|gate| gate.state.blocks())
}

/// The first objection, if all that it lacks is its Job.
pub(super) fn lacking(states: &[GateState], view: &View<'_>) -> Option<String> {
    let name = &objection(states)?.name;
    view.gates.iter().any(|gate| gate.lacks_job && gate.name == *name).then(|| name.to_string())
}

/// Adds what is not listed yet: what counts for several tiers is shown once.
pub(super) fn list(listed: &mut Vec<GateState>, states: Vec<GateState>) {
    for state in states {
        if listed.iter().all(|other| other.name != state.name) {
            listed.push(state);
        }
    }
}

fn own<'a>(tier: &Tier, view: &View<'a>, want: &'a Want, now: Timestamp) -> impl Iterator<Item = GateState> + use<'a> {
    let gates = view.tier_gates.get(&tier.name).map(Vec::as_slice).unwrap_or_default();
    let gates = if bug::active(Bug::TierAnalysisIgnored) { &[] } else { gates };
    said(gates, When::BeforeMember, want, now)
}

/// Where gates stand that were evaluated elsewhere.
fn said<'a>(
    gates: &'a [ExternalGate],
    when: When,
    want: &'a Want,
    now: Timestamp,
) -> impl Iterator<Item = GateState> + use<'a> {
    let meant = gates.iter().filter(move |gate| gate.when == when);
    meant.map(move |gate| judge(Cow::Owned(gate.name.clone()), gate.outcome.clone(), want, now))
}

/// An override without a tier sets the gate aside wherever there is one of that name.
fn judge(name: Cow<'static, str>, outcome: Outcome, want: &Want, now: Timestamp) -> GateState {
    let (plain, _) = split(&name);
    let set_aside = [name.as_ref(), plain].into_iter().filter_map(|name| want.overrides.get(name)).max().copied();
    let set_aside = set_aside.filter(|_| gate::overridable(plain));
    gate::judge(name, outcome, set_aside, now)
}
