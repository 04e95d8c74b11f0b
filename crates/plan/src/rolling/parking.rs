//! What the update strategy is while no upgrade is under way, where we set it: a stray change of the template must roll nothing (H8, H11).
//!
//! ```text
//!   parked at `replicas` ──▶ the set is scaled up: the new ones are above the partition ──▶ Park again
//!   switched from OnDelete, partition 0 ──▶ concluded, and nothing in the way ──▶ WriteTemplate, everything held
//!                                       └─▶ anything else: withdrawn, paused, held, somebody not well ──▶ PutBackStrategy
//! ```
//! Only what we wrote is minded. A partition that somebody else set at rest is theirs. What stood before our last write is ours as long as that
//! write was not seen: it may have been refused.

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::{
        known::{
            contest::PATIENCE,
            decision::{Decision, Step},
            owners::Field,
            parked::Parked,
            record::Record,
            view::View,
            workload::{Pod, Strategy},
        },
        owners,
    },
};

/// What to do about a strategy of ours that does not hold everybody; none where it does, or is not ours.
pub(crate) fn mind(view: &View) -> Option<Decision> {
    let Strategy::RollingUpdate { partition } = view.workload.strategy else { return None };
    let ours = view.parked.is_some_and(|parked| parked.accounts_for(partition));
    if !ours || partition >= view.workload.replicas {
        return None;
    }
    if partition == 0 {
        // Under OnDelete whoever is lost comes back from the template that stands, concluded or not.
        return (!bug::active(Bug::SwitchLeftStanding)).then_some(Decision::Act(Step::PutBackStrategy));
    }
    // Held pods come back from the current revision: it must be the one that everybody runs.
    let caught_up = view.workload.observed
        && view.workload.current_revision == view.workload.update_revision
        && view.outdated().next().is_none();
    let park = Step::Park { partition: view.workload.replicas };
    (caught_up && !bug::active(Bug::ScaleUpNotParked)).then_some(Decision::Act(park))
}

/// The same at rest, where this was decided: what leads to the template at once goes first.
pub(crate) fn unless_leaving(view: &View, decision: &Decision) -> Option<Decision> {
    let leads_on = match decision {
        Decision::Act(Step::WriteTemplate { .. }) => true,
        // Within moments, if all are ready; otherwise perhaps never.
        Decision::Wait { on, .. } => {
            on.reason == Reason::AwaitingConclusion
                && view.outdated().next().is_none()
                && view.pods.iter().all(Pod::is_up)
        }
        Decision::Act(_) | Decision::Halt { .. } | Decision::Done => false,
    };
    if leads_on { None } else { mind(view) }
}

/// How often in a row a set that is OnDelete was switched already. A person who says `resume` has ended what set it back.
fn switches(view: &View) -> u32 {
    let counts = view.workload.strategy == Strategy::OnDelete && !view.resumed;
    view.parked.filter(|_| counts).map_or(0, |parked| parked.switches)
}

/// Whether a set that is OnDelete may be switched once more: not where that never stands, for somebody sets it back (H39).
pub(crate) fn may_switch(view: &View) -> Result<(), Hold> {
    let switches = switches(view);
    if switches < PATIENCE || bug::active(Bug::SwitchFought) {
        return Ok(());
    }
    let message = format!(
        "Windlass set the update strategy to RollingUpdate {switches} times and it is OnDelete each time{}. Keep others from writing \
         spec.updateStrategy, then set spec.requests.resume to a new value; or set spec.updateStrategy.rollingUpdate.order to LeaderLast, which \
         leaves it OnDelete",
        owners::blame(view, &[Field::Strategy])
    );
    Err(Hold::new(Reason::StrategyChanged, message))
}

/// The partition that is ours at rest after this decision, to be recorded with it.
pub(crate) fn after(decision: &Decision, view: &View, record: Option<&Record>) -> Option<Parked> {
    let stands = match view.workload.strategy {
        Strategy::OnDelete => None,
        Strategy::RollingUpdate { partition } => Some(partition),
    };
    let switches = switches(view);
    if let Decision::Act(Step::SwitchStrategy { partition } | Step::Park { partition }) = decision {
        let before = stands.filter(|stands| view.parked.is_some_and(|parked| parked.accounts_for(*stands)));
        let switches = if stands.is_none() { switches.saturating_add(1) } else { 0 };
        return Some(Parked { partition: *partition, before, switches });
    }
    if stands.is_none() && switches > 0 && record.is_none() {
        return view.parked;
    }
    let ended = view.record.is_some() && record.is_none();
    match stands? {
        partition if ended && partition >= view.workload.replicas => Some(Parked::at(partition)),
        partition if view.parked.is_some_and(|parked| parked.partition == partition) => Some(Parked::at(partition)),
        _ => view.parked,
    }
}
