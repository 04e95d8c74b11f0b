//! What the rolling strategy adds to the status. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use windlass_api::{
    QuorumClusterStatus,
    status::{Adopted, StrategySwitch},
};
use windlass_plan::{
    Decision, Plan, Record, Step, View,
    rolling::known::{parked::Parked, workload::Strategy},
};

use crate::quorum::observe::Observed;

/// Writes what stands at rest, what was found before our first write, and whether anybody watched who leads.
pub fn write_rest(status: &mut QuorumClusterStatus, observed: &Observed, view: &View, plan: &Plan) {
    status.workload = Some(view.workload.name.clone());
    let switches = matches!(plan.decision, Decision::Act(Step::SwitchStrategy { .. }));
    if (plan.record.is_some() || switches) && status.adopted.is_none() {
        status.adopted = Some(adopted(observed, view));
    }
    write_parked(status, plan.kept);
    // A plan takes it in as soon as it sees a member of the new version again; what only stands down does not.
    let noted = |record: &Record| {
        let begun = record.replacing.is_some() || !record.completed.is_empty();
        !begun || record.highest_led.as_ref() >= Some(&record.target.version)
    };
    status.leadership_unobserved &= !(plan.heard && plan.record.as_ref().is_none_or(noted));
}

fn write_parked(status: &mut QuorumClusterStatus, parked: Option<Parked>) {
    let written = |partition: u32| i32::try_from(partition).unwrap_or(i32::MAX);
    status.parked_partition = parked.map(|parked| written(parked.partition));
    status.previous_parked_partition = parked.and_then(|parked| parked.before).map(written);
    status.strategy_switch = parked
        .and_then(|parked| parked.switched)
        .map(|switched| StrategySwitch { at: MicroTime(switched.at), times: written(switched.times) });
}

/// The strategy as it was before our first write.
fn adopted(observed: &Observed, view: &View) -> Adopted {
    let update = observed.set.as_ref().and_then(|set| set.spec.as_ref()).and_then(|spec| spec.update_strategy.as_ref());
    let partition = update.and_then(|update| update.rolling_update.as_ref()).and_then(|rolling| rolling.partition);
    let strategy = observed.strategy.clone();
    match view.workload.strategy {
        Strategy::OnDelete => Adopted { type_: "OnDelete".into(), partition: None, strategy },
        Strategy::RollingUpdate { .. } => Adopted { type_: "RollingUpdate".into(), partition, strategy },
    }
}
