//! What the update strategy is while no upgrade is under way, where we set it: a stray change of the template must roll nothing (H8, H11).
//!
//! ```text
//!   parked at `replicas` ──▶ the set is scaled up: the new ones are above the partition ──▶ Park again
//!   switched from OnDelete, partition 0 ──▶ concluded, and nothing in the way ──▶ WriteTemplate, everything held
//!                                       └─▶ anything else: withdrawn, paused, held, somebody not well ──▶ PutBackStrategy
//! ```
//! Only what we wrote is minded. A partition that somebody else set at rest is theirs. What stood before our last write is ours as long as that
//! write was not seen: it may have been refused.

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    hold::Hold,
    reason::Reason,
    rolling::{
        known::{
            owners::{Field, Owners},
            parked::{Parked, Switched},
            record::Record,
            step::{Decision, Step},
            view::View,
            workload::{Pod, Strategy, Workload},
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

/// The same while nothing goes on. An upgrade whose template was never written is forgotten with the switch that came before it: it would stand
/// for as long as nothing goes on, and the next stray template would roll everybody.
pub(crate) fn let_go(view: &View, record: &mut Option<Record>) -> Option<Decision> {
    let unwritten = record.as_ref().is_none_or(|record| is_unwritten(view, record));
    let decision = mind(view).filter(|_| unwritten)?;
    *record = None;
    Some(decision)
}

/// Whether the switch stands and the template that it was for was not written.
pub fn is_unwritten(view: &View, record: &Record) -> bool {
    let switched = view.workload.strategy == Strategy::RollingUpdate { partition: 0 };
    let before = record.revision.is_none() && view.workload.image == record.from.image && record.from != record.target;
    let ours = view.parked.is_some_and(|parked| parked.accounts_for(0));
    switched && before && ours && !record.rolling_back && !bug::active(Bug::SwitchOutlivesRecord)
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

/// The switch that was written and does not stand. A person who says `resume` has ended what set it back.
fn lost_switch(view: &View) -> Option<Switched> {
    let counts = view.workload.strategy == Strategy::OnDelete && !view.resumed;
    view.parked.filter(|_| counts).and_then(|parked| parked.switched)
}

/// Whether a set that is OnDelete may be switched: not where somebody has set it back since the last time (H39). A write that was refused leaves
/// the strategy with whoever had it before.
pub(crate) fn may_switch(view: &View) -> Result<(), Hold> {
    let Some(Switched { at, times }) = lost_switch(view) else { return Ok(()) };
    if !owners::is_written_since(view, Field::Strategy, at, times) || bug::active(Bug::SwitchFought) {
        return Ok(());
    }
    let message = format!(
        "Windlass set updateStrategy of StatefulSet {} to RollingUpdate, and somebody set it to OnDelete again{}. Stop them from writing it, then \
         set spec.requests.resume of this QuorumCluster to a new value; or set spec.updateStrategy.rollingUpdate.order of this QuorumCluster to \
         LeaderLast, which keeps OnDelete",
        view.workload.name,
        owners::blame(view, &[Field::Strategy])
    );
    Err(Hold::new(Reason::StrategyChanged, message))
}

/// What is ours at rest once a set that is OnDelete is switched.
pub(crate) fn switched(view: &View, partition: u32, now: Timestamp) -> Parked {
    let times = lost_switch(view).map_or(0, |switched| switched.times).saturating_add(1);
    Parked { switched: Some(Switched { at: now, times }), ..Parked::at(partition) }
}

/// A switch of ours that stands while nothing can be decided, because the resource can't be read: it is put back.
/// Where a loop set it again since, by all that managedFields tell, it is theirs: undone at every look, it would come back at every look.
pub fn stand_down(workload: &Workload, owned: &Fact<Owners>, parked: Option<Parked>) -> Option<Decision> {
    let stands = workload.strategy == Strategy::RollingUpdate { partition: 0 } && workload.replicas > 0;
    let ours = parked.is_some_and(|parked| parked.accounts_for(0)) && stands && !owners::is_foreign(owned);
    (ours && !bug::active(Bug::SwitchLeftStanding)).then_some(Decision::Act(Step::PutBackStrategy))
}

/// The partition that is ours at rest after this decision, to be recorded with it.
pub(crate) fn after(decision: &Decision, view: &View, record: Option<&Record>) -> Option<Parked> {
    let stands = match view.workload.strategy {
        Strategy::OnDelete => None,
        Strategy::RollingUpdate { partition } => Some(partition),
    };
    if let Decision::Act(Step::Park { partition }) = decision {
        let before = stands.filter(|stands| view.parked.is_some_and(|parked| parked.accounts_for(*stands)));
        return Some(Parked { before, ..Parked::at(*partition) });
    }
    // One that was lost counts until nobody wants it any more.
    if lost_switch(view).is_some() && record.is_none() && *decision != Decision::Done {
        return view.parked;
    }
    let ended = view.record.is_some() && record.is_none();
    match stands? {
        partition if ended && partition >= view.workload.replicas => Some(Parked::at(partition)),
        partition if view.parked.is_some_and(|parked| parked.partition == partition) => Some(Parked::at(partition)),
        _ => view.parked,
    }
}
