//! What the rolling strategy takes back under a resource that can't be read: nobody would mind a permit that stands.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;
use serde::Deserialize as _;
use serde_json::{Value, json};
use windlass_api::{QuorumCluster, translate};
use windlass_plan::{
    Decision, Hold, Order, Step,
    rolling::{
        known::{contest::Contest, parked::Parked, workload::Strategy},
        parking, permit,
    },
    strategy::known::want::Trigger,
};

use crate::{
    actor::Actor,
    error::Error,
    lenient::Whole,
    quorum::{
        observe::Observed,
        owners,
        rolling::view,
        stateful_set::{patch_set, strategy_patch, take_back},
        strategy::Withdrawal,
    },
};

/// The permit that stands is taken back, where an upgrade is under way or may be; at rest, a partition that is ours is minded.
pub fn withdraw(
    resource: &Whole<QuorumCluster>,
    observed: &Observed,
    set: &StatefulSet,
    hold: &Hold,
) -> Option<Withdrawal<Step>> {
    let workload = view::workload(set, String::new()).ok()?;
    let Some(written) = resource.raw.pointer("/status/upgrade").filter(|written| !written.is_null()) else {
        let parked = resource.raw.pointer("/status/parkedPartition").and_then(Value::as_u64);
        let parked = parked.and_then(|partition| u32::try_from(partition).ok()).map(Parked::at);
        let step = step(parking::stand_down(&workload, &owners::of_strategy(set), parked))?;
        return Some(Withdrawal { step: Some(step), recorded: None, contest: None });
    };
    let (pods, owners) = (view::pods(&workload, observed), owners::of_strategy(set));
    let trigger = resource.raw.pointer("/spec/trigger").and_then(|written| Trigger::deserialize(written).ok());
    let trigger = trigger.unwrap_or_default();
    let read = serde_json::from_value(written.clone()).ok().and_then(|upgrade| translate::record(&upgrade).ok());
    if let Some(mut record) = read {
        let before = record.clone();
        let step = step(permit::withdraw(trigger, &workload, &pods, &owners, &mut record, hold));
        let intent = step.as_ref().map(ToString::to_string);
        let value = json!(translate::upgrade(&record, workload.replicas, intent));
        let recorded = (step.is_some() || record != before).then_some(("upgrade", value));
        let contest = record.contest.map(|contest| contest.told(set.name_any().as_str(), workload.permitted(&pods)));
        return Some(Withdrawal { step, recorded, contest });
    }
    let contest = resource.raw.pointer("/status/contest").filter(|written| !written.is_null());
    let contest = contest.map(|written| {
        let read = serde_json::from_value(written.clone()).ok();
        // One that can't be read was written by somebody else: nobody knows how often anything was held.
        read.and_then(|contest| translate::contest(&contest).ok()).unwrap_or_else(Contest::exhausted)
    });
    let mut after = contest.clone();
    let order = written.pointer("/order").and_then(|written| Order::deserialize(written).ok());
    let step = step(permit::withdraw_unrecorded(trigger, order, &workload, &pods, &owners, &mut after, hold));
    let value = json!(after.as_ref().map(translate::written_contest));
    let recorded = (after != contest).then_some(("contest", value));
    let contest = after.map(|contest| contest.told(set.name_any().as_str(), workload.permitted(&pods)));
    Some(Withdrawal { step, recorded, contest })
}

/// Nothing else is ever done here but to put a strategy of ours back.
pub async fn undo(actor: Actor<'_>, observed: &Observed, set: &StatefulSet, step: &Step) -> Result<(), Error> {
    if let Step::TakeBack { partition, .. } = step {
        return take_back(actor, observed, set, *partition).await;
    }
    patch_set(actor, set, strategy_patch(set, Strategy::OnDelete)).await
}

fn step(decision: Option<Decision>) -> Option<Step> {
    match decision {
        Some(Decision::Act(step)) => Some(step),
        Some(Decision::Wait { .. } | Decision::Halt { .. } | Decision::Done) | None => None,
    }
}
