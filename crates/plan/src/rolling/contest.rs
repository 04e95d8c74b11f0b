//! Somebody sets the update strategy back while an upgrade is under way (H39, ADR 0015): with our template in it, Kubernetes would go on by
//! itself, on readiness alone, leader or not.
//!
//! ```text
//!   theirs, and lets somebody go ──▶ held once, by the write that holds everybody who is not replaced ──▶ seen ──▶ halt, by name
//!                                          └─ lost: tried again, a bounded number of times               │
//!   set back again after that ◀──────────────────────────────────────────────────────────────────────────┘
//!        └──▶ left alone, and said loudly: two writers that undo each other would free members at every turn;
//!             a leader whose turn is to come is asked to hand over, for nobody else asks it
//! ```
//! A person who has ended it says `resume`. What lets nobody go is only reported (`StrategyChanged`) and goes on when it is put back.

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    hold::Hold,
    reason::Reason,
    rolling::{
        handover::{self, alone, hand_over},
        known::{
            contest::{Contest, PATIENCE},
            order::Order,
            owners::{Field, Owners},
            record::Record,
            step::{Decision, Step},
            view::View,
            workload::{Pod, Strategy},
        },
        order, owners,
    },
    strategy::known::{
        decision::halt,
        want::{Trigger, Want},
    },
};

/// What to do about a strategy of somebody else's; none where there is none to mind.
pub(crate) fn mind(want: &Want, view: &View, record: &mut Record, now: Timestamp) -> Option<Decision> {
    if want.trigger != Trigger::Version {
        return None;
    }
    if view.resumed {
        record.contest = None;
        if let Some(decision) = take_over(view, record) {
            return Some(decision);
        }
    }
    let ours = order::strategy_is_ours(view, record).is_ok();
    let Some(pod) = let_go(view, record) else {
        let contest = record.contest.as_mut()?;
        contest.held |= ours;
        return Some(halt(contest.hold()));
    };
    if record.contest.is_none() && ours {
        return None;
    }
    may_hold(&mut record.contest, &view.owners).then(|| hold(record, pod, view.workload.strategy)).or_else(|| {
        let lost = record.contest.as_ref()?.lost(record.order, pod);
        Some(lead_away(want, view, record, now).unwrap_or_else(|| halt(lost)))
    })
}

/// What is left of that where what is wanted can't be read: a strategy of somebody else's is held within the same bounds.
pub(crate) fn stand_down(trigger: Trigger, view: &View, record: &mut Record) -> Option<Decision> {
    // Who follows somebody else's template leaves the strategy to them.
    let pod = let_go(view, record).filter(|_| record.order == Order::ReverseOrdinal || trigger == Trigger::Version)?;
    let ours =
        record.contest.is_none() && order::strategy_is_ours(view, record).is_ok() && !owners::is_foreign(&view.owners);
    if ours || bug::active(Bug::ForeignStrategyUnminded) {
        return None;
    }
    may_hold(&mut record.contest, &view.owners).then(|| hold(record, pod, view.workload.strategy))
}

/// The same where the resource itself can't be read, and its record can.
pub(crate) fn withdraw(
    trigger: Trigger,
    record: &mut Record,
    pod: &Pod,
    strategy: Strategy,
    owners: &Fact<Owners>,
) -> Option<Decision> {
    // Who follows somebody else's template leaves the strategy to them.
    let minded = record.order == Order::ReverseOrdinal
        || (trigger == Trigger::Version && !bug::active(Bug::UnrecordedOrderIgnored));
    let ours = minded && !bug::active(Bug::ForeignStrategyUnminded);
    (ours && may_hold(&mut record.contest, owners)).then(|| hold(record, pod, strategy))
}

/// Whether everybody may be held once more, which is counted; not where that was seen to stand, and not for ever.
pub(crate) fn may_hold(contest: &mut Option<Contest>, owners: &Fact<Owners>) -> bool {
    match contest {
        None => *contest = Some(Contest { by: writer(owners), holds: 1, held: false }),
        Some(contest) if (contest.held || contest.holds >= PATIENCE) && !bug::active(Bug::StrategyFought) => {
            return false;
        }
        Some(contest) => contest.holds = contest.holds.saturating_add(1),
    }
    true
}

/// Whom Kubernetes may delete at any moment. Before its controller has seen our template nobody is outdated yet, and everybody will be.
fn let_go<'a>(view: &'a View, record: &Record) -> Option<&'a Pod> {
    let unseen = || {
        let Strategy::RollingUpdate { partition } = view.workload.strategy else { return None };
        let ours = record.revision.is_none() && view.workload.image == record.target.image && !view.workload.observed;
        let mut pods = view.pods.iter().filter(|_| ours && !bug::active(Bug::UnseenOursUnminded));
        pods.rfind(|pod| pod.index >= partition && !pod.terminating)
    };
    view.permitted().or_else(unseen)
}

/// A person says that it is over: what they left is taken as it is where it lets nobody go, and held where it does, and then it goes on. Should
/// it be set back again, that is a new contest.
fn take_over(view: &View, record: &mut Record) -> Option<Decision> {
    if order::strategy_is_ours(view, record).is_ok() {
        return None;
    }
    match (record.order, view.workload.strategy, view.permitted()) {
        (Order::ReverseOrdinal, Strategy::RollingUpdate { .. }, Some(pod)) => {
            Some(hold(record, pod, view.workload.strategy))
        }
        (Order::ReverseOrdinal, Strategy::RollingUpdate { partition }, None) => {
            record.move_partition(partition, partition);
            None
        }
        (Order::LeaderLast, Strategy::RollingUpdate { .. }, _) => Some(Decision::Act(Step::PutBackStrategy)),
        (Order::ReverseOrdinal | Order::LeaderLast, Strategy::OnDelete, _) => None,
    }
}

/// Kubernetes will come to the leader, and asks nobody: leadership goes to a replaced member before that, or, where there is none, leaves the one
/// whose turn is next. Otherwise it would go from one outdated member to another and back, without end. None where there is nothing to ask for,
/// or it was asked for already.
fn lead_away(want: &Want, view: &View, record: &mut Record, now: Timestamp) -> Option<Decision> {
    let Strategy::RollingUpdate { partition } = view.workload.strategy else { return None };
    let leads = |pod: &&Pod| view.quorum.leader.is(&pod.name) && pod.index >= partition && !pod.terminating;
    let leader = view.outdated().find(leads).filter(|_| !alone(view))?;
    let is_next = view.permitted().is_some_and(|next| next.name == leader.name);
    let settles = || handover::target(want, view, leader).is_ok_and(|to| !view.is_outdated(to));
    if !is_next && !settles() && !bug::active(Bug::LeadershipWanders) {
        return None;
    }
    match hand_over(want, view, record, leader, now)? {
        asked @ Decision::Act(_) => Some(asked),
        Decision::Wait { .. } | Decision::Halt { .. } | Decision::Done => None,
    }
}

/// Who set it.
fn writer(owners: &Fact<Owners>) -> String {
    let owners = owners.known();
    let writer = |field| owners.and_then(|owners| owners.writer(field));
    writer(Field::Partition)
        .or_else(|| writer(Field::Strategy))
        .map_or_else(|| "somebody".to_owned(), ToString::to_string)
}

/// Holds everybody who is not replaced. Never more: a replaced one below the partition would come back as the old version (H10).
fn hold(record: &mut Record, pod: &Pod, strategy: Strategy) -> Decision {
    record.stage = None;
    record.hand_over = None;
    match (record.order, strategy) {
        (Order::ReverseOrdinal, Strategy::RollingUpdate { partition }) => {
            let above = pod.index.saturating_add(1);
            record.move_partition(partition, above);
            let over = || Hold::new(Reason::StrategyChanged, "somebody else's partition would let several members go");
            let because = record.contest.as_ref().map_or_else(over, Contest::hold);
            Decision::Act(Step::TakeBack { pod: pod.name.clone(), partition: above, because })
        }
        // Under OnDelete nobody is let go, so the first of these never comes here.
        (Order::ReverseOrdinal, Strategy::OnDelete)
        | (Order::LeaderLast, Strategy::RollingUpdate { .. } | Strategy::OnDelete) => {
            Decision::Act(Step::PutBackStrategy)
        }
    }
}
