//! Who goes first, and how a pod is let go. The road is one; these are its forks.
//!
//! | | ReverseOrdinal | LeaderLast |
//! |---|---|---|
//! | the StatefulSet's strategy | RollingUpdate | OnDelete |
//! | held with the template | partition = replicas (H8) | by the strategy itself, `rollingUpdate` gone (H22) |
//! | whose turn | the highest outdated | whoever is down already (H13), followers from the top, the leader |
//! | let go | the partition is lowered: a permit (H9) | the pod is deleted or evicted (H12), the one that was seen |
//! | comes back from the new template | at or above the partition | always |
//! | concluded | currentRevision == updateRevision (H11) | when all are well: currentRevision never moves (H7) |

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::{
        known::{
            order::Order,
            owners::Field,
            record::Record,
            stage::StageKind,
            step::{Decision, Step},
            view::View,
            workload::{Pod, Strategy},
        },
        mend, owners,
    },
    strategy::known::want::Want,
};

/// The order of the next upgrade: what is asked for, otherwise what the set's own strategy suggests.
pub(crate) fn asked(want: &Want, view: &View) -> Order {
    want.order.unwrap_or_else(|| Order::of(view.workload.strategy))
}

/// Whether the StatefulSet's strategy is the one that this upgrade set; if not, somebody else did.
pub(crate) fn strategy_is_ours(view: &View, record: &Record) -> Result<(), Hold> {
    let message = match (record.order, view.workload.strategy) {
        (Order::LeaderLast, Strategy::OnDelete) => return Ok(()),
        (Order::ReverseOrdinal, Strategy::RollingUpdate { partition }) if is_ours(view, record, partition) => {
            return Ok(());
        }
        // The template and OnDelete are one write, and it has not landed.
        (Order::LeaderLast, Strategy::RollingUpdate { partition })
            if record.revision.is_none() && partition == record.partition && record.is_changed(view) =>
        {
            return Ok(());
        }
        (Order::ReverseOrdinal, Strategy::RollingUpdate { partition }) => {
            format!("somebody set the partition to {partition}; this upgrade had set it to {}", record.partition)
        }
        (Order::ReverseOrdinal, Strategy::OnDelete) => format!(
            "somebody set the update strategy to OnDelete; this upgrade had set RollingUpdate with partition {}",
            record.partition
        ),
        (Order::LeaderLast, Strategy::RollingUpdate { partition }) => format!(
            "somebody set the update strategy to RollingUpdate with partition {partition}; this upgrade had set OnDelete"
        ),
    };
    let blame = owners::blame(view, &[Field::Partition, Field::Strategy]);
    Err(Hold::new(Reason::StrategyChanged, format!("{message}{blame}")))
}

/// Whether the partition that stands is one that we wrote: as recorded, or as managedFields tell where a record could not be kept.
pub(crate) fn is_ours(view: &View, record: &Record, partition: u32) -> bool {
    let written = view.owners.known().is_some_and(|owners| owners.is_ours(Field::Partition));
    record.accounts_for(partition) || (written && record.order == Order::ReverseOrdinal)
}

/// Whose turn it is; none when nobody is outdated.
pub(crate) fn next<'a>(want: &Want, view: &'a View, record: &Record) -> Option<&'a Pod> {
    match record.order {
        // A broken one first: nothing else goes on while it is there (C5), and replacing it costs nothing.
        Order::ReverseOrdinal => mend::deletable(want, view, record).or_else(|| view.outdated().next_back()),
        Order::LeaderLast => {
            let leads = |pod: &&Pod| view.quorum.leader.is(&pod.name);
            if bug::active(Bug::LeaderGoesFirst)
                && let Some(leader) = view.outdated().find(leads)
            {
                return Some(leader);
            }
            let lost = |pod: &&Pod| mend::is_lost(want, view, record, pod) && !bug::active(Bug::LostOneWaits);
            let follower = |pod: &&Pod| !leads(pod);
            // The lowest first: with OrderedReady a pod is not made anew while one below it is not ready.
            view.outdated()
                .find(lost)
                .or_else(|| view.outdated().rfind(follower))
                .or_else(|| view.outdated().next_back())
        }
    }
}

/// What a pod goes through.
pub(crate) struct Exits {
    /// The partition as it was found.
    pub partition: u32,
    /// The budget that it is evicted within; none where a budget of ours lets nobody else go.
    pub through: Option<String>,
}

/// Lets this pod go: everything that must hold before does.
pub(crate) fn let_go(
    want: &Want,
    view: &View,
    record: &mut Record,
    victim: &Pod,
    exits: Exits,
    now: Timestamp,
) -> Decision {
    let Exits { partition, through } = exits;
    record.stage = None;
    record.enter(StageKind::Replace, &victim.name, now);
    match record.order {
        Order::ReverseOrdinal if mend::deletable(want, view, record) == Some(victim) => mend::delete(record, victim),
        Order::ReverseOrdinal => {
            let to = if bug::active(Bug::PartitionTooLow) { victim.index.saturating_sub(1) } else { victim.index };
            record.move_partition(partition, to);
            record.hand_over = None;
            Decision::Act(Step::Permit { pod: victim.name.clone(), partition: to })
        }
        Order::LeaderLast if mend::is_lost(want, view, record, victim) => mend::delete(record, victim),
        Order::LeaderLast => {
            record.hand_over = None;
            let (uid, image) = (victim.uid.clone(), record.target.image.clone());
            Decision::Act(Step::Replace { pod: victim.name.clone(), uid, image, through })
        }
    }
}
