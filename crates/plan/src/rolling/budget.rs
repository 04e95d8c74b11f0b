//! PodDisruptionBudgets: what keeps a drain from taking a second member down while one of them is being replaced (H12).
//!
//! | whose budget | how the pod goes | why that is safe |
//! |---|---|---|
//! | nobody's | ours is made first | |
//! | ours, which lets nobody go | as the order says | no eviction passes |
//! | theirs, LeaderLast | evicted, which takes one from the budget | whoever else evicts counts on the same budget |
//! | theirs, ReverseOrdinal | permitted, if the budget leaves a majority and one more | the controller deletes without asking the budget, and the budget notices late: one more eviction may pass |
//! | theirs, for a pod that is broken | deleted (H44) | the budget does not count it as healthy anyway |
//!
//! Theirs counts only if it is one, selects every pod of the set and no others, and leaves a majority; two of them on one pod make every
//! eviction fail, which is why ours is never added to theirs.

use crate::{
    bug::{self, Bug},
    hold::Hold,
    quorum::{can_spare_one, majority},
    reason::Reason,
    rolling::known::{
        order::Order,
        view::View,
        workload::{Budget, Counts, Evictions},
    },
    strategy::known::want::Want,
};

/// How a member's pod may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Not before evictions are held by a budget of ours.
    HoldFirst,
    /// As the order says: permitted or deleted.
    Plain,
    /// Evicted, within this budget.
    Evicted(String),
}

/// How a pod may go now, one that is `broken` already or a sound one; or what the budget that covers it has against it.
pub fn exit(want: &Want, view: &View, order: Order, broken: bool) -> Result<Exit, Hold> {
    let theirs = match &view.evictions {
        _ if bug::active(Bug::EvictionsNotHeld) => return Ok(Exit::Plain),
        Evictions::Open => return Ok(Exit::HoldFirst),
        Evictions::HeldByUs => return Ok(Exit::Plain),
        Evictions::Theirs(budgets) => budgets.as_slice(),
    };
    let budget = match theirs {
        [budget] => budget,
        // No eviction passes two of them, so nobody else goes; but neither can we evict.
        several if several.iter().all(|budget| budget.selects_all) && (broken || order == Order::ReverseOrdinal) => {
            return Ok(Exit::Plain);
        }
        several => return Err(too_many(several)),
    };
    let counts = exactly_ours(view, budget)?;
    let replicas = usize::try_from(view.workload.replicas).unwrap_or(usize::MAX);
    let needed = u32::try_from(majority(replicas)).unwrap_or(u32::MAX);
    let accepted = want.accept_downtime && !can_spare_one(view.quorum.size());
    let name = &budget.name;
    if counts.desired < needed && !accepted {
        let message = format!(
            "PodDisruptionBudget {name} keeps {} of {replicas} pods healthy, and {needed} are a majority: it would let a drain take the quorum down while a member is replaced",
            counts.desired
        );
        return Err(Hold::new(Reason::DisruptionBudgetTooLoose, message));
    }
    if broken {
        return Ok(Exit::Plain);
    }
    let lets_nobody_go = counts.desired >= counts.expected;
    match order {
        Order::ReverseOrdinal if lets_nobody_go || accepted || counts.desired > needed => Ok(Exit::Plain),
        Order::ReverseOrdinal if bug::active(Bug::BudgetCountsTooLate) => Ok(Exit::Plain),
        Order::ReverseOrdinal => {
            let message = format!(
                "PodDisruptionBudget {name} keeps {} of {replicas} pods healthy; Kubernetes replaces a member without asking it, and a drain could take another one before it notices. Set its maxUnavailable to 0 until the upgrade is done, delete it (Windlass holds one of its own then), or set spec.updateStrategy.rollingUpdate.order to LeaderLast, which evicts members within the budget",
                counts.desired
            );
            Err(Hold::new(Reason::DisruptionBudgetTooLoose, message))
        }
        Order::LeaderLast if bug::active(Bug::BudgetBypassed) => Ok(Exit::Plain),
        Order::LeaderLast if lets_nobody_go => {
            let message = format!("PodDisruptionBudget {name} lets none of {} pods go", counts.expected);
            Err(Hold::new(Reason::DisruptionBudgetTooTight, message))
        }
        Order::LeaderLast if counts.allowed == 0 => {
            let message = format!(
                "PodDisruptionBudget {name} lets no pod go now: it keeps {} of {} healthy, and one is away or has just been evicted",
                counts.desired, counts.expected
            );
            Err(Hold::new(Reason::AwaitingBudget, message))
        }
        Order::LeaderLast => Ok(Exit::Evicted(name.clone())),
    }
}

/// What a budget counted that covers exactly the pods of the set; otherwise it says nothing of how many of them stay.
fn exactly_ours(view: &View, budget: &Budget) -> Result<Counts, Hold> {
    let (name, set, replicas) = (&budget.name, &view.workload.name, view.workload.replicas);
    let loose = |message| Err(Hold::new(Reason::DisruptionBudgetTooLoose, message));
    if !budget.selects_all && !bug::active(Bug::BudgetOfOthersCounts) {
        return loose(format!(
            "PodDisruptionBudget {name} selects some pods of StatefulSet {set} and not all: nothing keeps a drain from the others. Let it select all of them, or none"
        ));
    }
    let Some(counts) = budget.counts else {
        let message = format!("the controller of PodDisruptionBudget {name} has not seen its newest spec yet");
        return Err(Hold::new(Reason::AwaitingBudget, message));
    };
    if counts.expected > replicas && !bug::active(Bug::BudgetOfOthersCounts) {
        return loose(format!(
            "PodDisruptionBudget {name} counts {} pods and StatefulSet {set} has {replicas}: those that it keeps healthy may be others. Give the set a budget of its own",
            counts.expected
        ));
    }
    if counts.expected < replicas {
        let message = format!("PodDisruptionBudget {name} counts {} of {replicas} pods so far", counts.expected);
        return Err(Hold::new(Reason::AwaitingBudget, message));
    }
    Ok(counts)
}

fn too_many(budgets: &[Budget]) -> Hold {
    let names: Vec<&str> = budgets.iter().map(|budget| budget.name.as_str()).collect();
    let names = names.join(", ");
    if budgets.iter().all(|budget| budget.selects_all) {
        let message = format!("the pods have more than one PodDisruptionBudget, so that no eviction passes: {names}");
        return Hold::new(Reason::DisruptionBudgetTooTight, message);
    }
    let message =
        format!("none of the PodDisruptionBudgets {names} covers all pods alone. Keep one that selects them all");
    Hold::new(Reason::DisruptionBudgetTooLoose, message)
}
