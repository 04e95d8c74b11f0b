//! What the update strategy is while no upgrade is under way, where we set it: a stray change of the template must roll nothing (H8, H11).
//!
//! ```text
//!   parked at `replicas` ──▶ the set is scaled up: the new ones are above the partition ──▶ Park again
//!   switched from OnDelete, partition 0 ──▶ concluded, and nothing in the way ──▶ WriteTemplate, everything held
//!                                       └─▶ anything else: withdrawn, paused, held, somebody not well ──▶ PutBackStrategy
//! ```
//! Only what we wrote is minded. A partition that somebody else set at rest is theirs.

use crate::{
    bug::{self, Bug},
    decision::{Decision, Step},
    reason::Reason,
    record::Record,
    workload::{Pod, Strategy, View},
};

/// What to do about a strategy of ours that does not hold everybody; none where it does, or is not ours.
pub(crate) fn mind(view: &View) -> Option<Decision> {
    let Strategy::RollingUpdate { partition } = view.workload.strategy else { return None };
    if view.parked != Some(partition) || partition >= view.workload.replicas {
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

/// The partition that is ours at rest after this decision, to be recorded with it.
pub(crate) fn after(decision: &Decision, view: &View, record: Option<&Record>) -> Option<u32> {
    if let Decision::Act(Step::SwitchStrategy { partition } | Step::Park { partition }) = decision {
        return Some(*partition);
    }
    let ended = view.record.is_some() && record.is_none();
    match view.workload.strategy {
        Strategy::OnDelete => None,
        Strategy::RollingUpdate { partition } if ended && partition >= view.workload.replicas => Some(partition),
        Strategy::RollingUpdate { .. } => view.parked,
    }
}
