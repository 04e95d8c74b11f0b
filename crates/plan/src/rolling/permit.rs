//! Permits: a lowered partition that Kubernetes has not used yet (H9), and evictions that are held for its sake (H12).
//!
//! A permit that stands is minded before everything else, and taken back as soon as anything speaks against it.

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    hold::Hold,
    quorum::Member,
    reason::Reason,
    rolling::{
        budget::{self, Exit},
        contest,
        gates::{
            list::{ask, gates},
            member,
        },
        handover::alone,
        known::{
            contest::Contest,
            order::Order,
            owners::{Field, Owners},
            record::Record,
            stage::StageKind,
            step::{Decision, Plan, Step},
            view::View,
            workload::{Evictions, Pod, Strategy, Workload},
        },
        mend, order, owners, parking, poison,
        retarget::{is_replaced, is_revert},
        template::template_changed,
    },
    strategy::{
        gates::first_objection,
        known::{
            decision::{WATCHFUL, halt, wait},
            want::{Trigger, Want},
        },
    },
};

/// What to do about the permit that stands; none if none of ours does.
pub(crate) fn mind(want: &Want, view: &View, record: &mut Record, now: Timestamp) -> Option<Decision> {
    if let Some(decision) = contest::mind(want, view, record, now) {
        return Some(decision);
    }
    if let Some(decision) = unseen(want.trigger, view, record) {
        return Some(decision);
    }
    let (pod, partition) = standing(view, record)?;
    match objection(want, view, record, pod, partition, now) {
        Err(because) if !bug::active(Bug::PermitLeftStanding) => Some(take_back(record, pod, partition, because)),
        // Kubernetes leaves a permit for a pod that is not ready unused (kubernetes#67250).
        Ok(()) if mend::deletable(want, view, record) == Some(pod) => Some(mend::delete(record, pod)),
        Ok(()) | Err(_) => {
            let stage = record.enter(StageKind::Replace, &pod.name, now);
            let message = format!("Kubernetes may replace pod {} and has not begun", pod.name);
            let hold = Hold::new(Reason::AwaitingReplacement, message);
            Some(if stage.is_overdue(&want.deadlines, now) { halt(hold) } else { wait(hold, WATCHFUL) })
        }
    }
}

/// Somebody else's image that the controller has not seen yet. Once it has, everybody at or above the partition is outdated and let go at once,
/// the leader among them: they are held before.
fn unseen(trigger: Trigger, view: &View, record: &mut Record) -> Option<Decision> {
    let Strategy::RollingUpdate { partition } = view.workload.strategy else { return None };
    let replicas = view.workload.replicas;
    let foreign = record.revision.is_some() && view.workload.image != record.target.image && !view.workload.observed;
    let ours = record.order == Order::ReverseOrdinal && trigger == Trigger::Version && record.contest.is_none();
    if !foreign || !ours || partition >= replicas || bug::active(Bug::UnseenTemplateUnminded) {
        return None;
    }
    let (pod, because) = (view.workload.member(replicas.saturating_sub(1)), template_changed(view, record));
    record.move_partition(partition, replicas);
    record.stage = None;
    record.hand_over = None;
    Some(Decision::Act(Step::TakeBack { pod, partition: replicas, because }))
}

/// What is left to do when nothing can be decided, because what is wanted can't be read: nobody would mind a permit, and drains must
/// not wait for a person. None if nothing is.
pub fn stand_down(trigger: Trigger, view: &View, because: &Hold) -> Option<Plan> {
    let mut record = view.record.clone();
    let permit = record
        .as_mut()
        .and_then(|record| let_nobody_go(trigger, view, record, because).or_else(|| unseen(trigger, view, record)));
    let rest = |record: Option<&Record>| hold_if_open(release_if_idle(halt(because.clone()), view), view, record);
    let let_go = permit.or_else(|| parking::let_go(view, &mut record));
    let decision = let_go.unwrap_or_else(|| rest(record.as_ref()));
    let parked = parking::after(&decision, view, record.as_ref());
    let (approvals, given_up) = (view.approvals.clone(), view.given_up.clone());
    matches!(decision, Decision::Act(_)).then_some(Plan {
        decision,
        record,
        gates: Vec::new(),
        approvals,
        given_up,
        attempt: view.attempt.clone(),
        kept: parked,
        heard: false,
    })
}

/// The permit that stands is taken back, and a strategy of somebody else's is held within bounds.
fn let_nobody_go(trigger: Trigger, view: &View, record: &mut Record, because: &Hold) -> Option<Decision> {
    // Where somebody else's strategy was held already, what is ours can't be told from theirs any more, and the number of holds is what counts.
    let uncontested = record.contest.is_none() && !owners::is_foreign(&view.owners);
    match standing(view, record).filter(|_| uncontested) {
        Some((pod, partition)) => Some(take_back(record, pod, partition, because.clone())),
        None => contest::stand_down(trigger, view, record),
    }
}

/// What is taken back of an upgrade that nobody minds any more (H40); none where nothing of ours lets anybody go. Nobody is held above a member that
/// was replaced: it would come back as it was before, and nobody would keep drains away (H10).
pub fn leave(trigger: Trigger, view: &View) -> Option<Step> {
    let mut record = view.record.clone()?;
    let falls_back = |pod: &Pod| record.order == Order::ReverseOrdinal && is_replaced(view, &record, pod);
    if view.permitted().is_some_and(falls_back) && !bug::active(Bug::LeftAbove) {
        return None;
    }
    match let_nobody_go(trigger, view, &mut record, &Hold::new(Reason::Paused, "nobody minds it any more"))? {
        Decision::Act(step) => Some(step),
        Decision::Wait { .. } | Decision::Halt { .. } | Decision::Done => None,
    }
}

/// What is left to do where the resource itself can't be read, and an upgrade of it is under way: the permit that stands is taken back, for
/// nobody would mind it (H9), and one of somebody else's is held, within bounds. Evictions stay as they are, for who has not joined yet can't
/// be told.
pub fn withdraw(
    trigger: Trigger,
    workload: &Workload,
    pods: &[Pod],
    owners: &Fact<Owners>,
    record: &mut Record,
    because: &Hold,
) -> Option<Decision> {
    let Strategy::RollingUpdate { partition } = workload.strategy else { return None };
    let Some(pod) = workload.permitted(pods) else {
        if let Some(contest) = record.contest.as_mut() {
            contest.held |= partition == record.partition || is_our_partition(owners);
        }
        return None;
    };
    // A value that was ours before may be somebody else's by now.
    if record.contest.is_none() && record.accounts_for(partition) && !owners::is_foreign(owners) {
        return Some(take_back(record, pod, partition, because.clone()));
    }
    contest::withdraw(trigger, record, pod, workload.strategy, owners)
}

/// The same where the record can't be read either: whose partition it is, only managedFields tell, and what is not known to be ours is held within
/// the same bounds. Nobody is taken down by one that is too high.
pub fn withdraw_unrecorded(
    trigger: Trigger,
    order: Option<Order>,
    workload: &Workload,
    pods: &[Pod],
    owners: &Fact<Owners>,
    contest: &mut Option<Contest>,
    because: &Hold,
) -> Option<Decision> {
    if !matches!(workload.strategy, Strategy::RollingUpdate { .. }) || bug::active(Bug::UnreadableIsNothing) {
        return None;
    }
    let ours = is_our_partition(owners);
    let Some(pod) = workload.permitted(pods) else {
        if let Some(contest) = contest {
            contest.held |= ours;
        }
        return None;
    };
    // Who follows somebody else's template leaves the strategy to them; and under OnDelete a partition of ours lets nobody go.
    let switched = order == Some(Order::LeaderLast) && !bug::active(Bug::UnrecordedOrderIgnored);
    if (switched && trigger == Trigger::Template) || (!ours && !contest::may_hold(contest, owners)) {
        return None;
    }
    if switched {
        return Some(Decision::Act(Step::PutBackStrategy));
    }
    let theirs = contest.as_ref().filter(|_| !ours).map(|contest| contest.told(&workload.name, None));
    let because = theirs.map_or_else(|| because.clone(), |told| Hold::new(Reason::FieldOwned, told));
    let partition = pod.index.saturating_add(1);
    Some(Decision::Act(Step::TakeBack { pod: pod.name.clone(), partition, because }))
}

fn is_our_partition(owners: &Fact<Owners>) -> bool {
    owners.known().is_some_and(|owners| owners.is_ours(Field::Partition))
}

/// The pod that our partition permits Kubernetes to replace. One that somebody else set is [`contest`]'s.
fn standing<'a>(view: &'a View, record: &Record) -> Option<(&'a Pod, u32)> {
    let Strategy::RollingUpdate { partition } = view.workload.strategy else { return None };
    view.permitted().filter(|_| order::is_ours(view, record, partition)).map(|pod| (pod, partition))
}

/// What speaks against the permit now.
fn objection(want: &Want, view: &View, record: &Record, pod: &Pod, partition: u32, now: Timestamp) -> Result<(), Hold> {
    first_objection(gates(want, view, record, pod), &ask(want, view, record, pod, now))?;
    let ignored = bug::active(Bug::LeaderNotChecked) || bug::active(Bug::HandOverNotVerified);
    if view.quorum.leader.is(&pod.name) && !alone(view) && !ignored {
        return Err(Hold::new(Reason::LeaderUnknown, format!("{} leads now", pod.name)));
    }
    let broken = mend::is_lost(want, view, record, pod);
    if budget::exit(want, view, record.order, broken)? == Exit::HoldFirst {
        return Err(Hold::new(Reason::QuorumAtRisk, "nothing keeps a drain from taking a second member down"));
    }
    if record.is_changed(view) {
        return Err(template_changed(view, record));
    }
    let several = view.outdated().filter(|pod| pod.index >= partition).nth(1).is_some();
    if several && !bug::active(Bug::PartitionTooLow) {
        // After the first one Kubernetes would go on by itself, on readiness alone.
        let message = format!("partition {partition} permits more members than {}", pod.name);
        return Err(Hold::new(Reason::QuorumAtRisk, message));
    }
    if is_revert(want, record) {
        return Err(Hold::new(Reason::Paused, format!("{} is wanted again", want.target)));
    }
    Ok(())
}

fn take_back(record: &mut Record, pod: &Pod, partition: u32, because: Hold) -> Decision {
    let above = pod.index.saturating_add(1);
    record.move_partition(partition, above);
    record.stage = None;
    record.hand_over = None;
    Decision::Act(Step::TakeBack { pod: pod.name.clone(), partition: above, because })
}

/// Evictions are not held at rest, nor while a person is waited for and nothing is on its way: drains must go on.
pub(crate) fn release_if_idle(decision: Decision, view: &View) -> Decision {
    let resting = match &decision {
        Decision::Halt { .. } | Decision::Done => true,
        Decision::Wait { on, .. } => on.reason.is_idle(),
        Decision::Act(_) => false,
    };
    if !resting || view.evictions != Evictions::HeldByUs {
        return decision;
    }
    if is_quiet(view) {
        return Decision::Act(Step::ReleaseEvictions);
    }
    match (decision, view.record.as_ref().and_then(|record| going_back(view, record).next())) {
        (Decision::Halt { on }, Some(pod)) => halt(held_meanwhile(&on, pod)),
        (Decision::Wait { on, recheck }, Some(pod)) => Decision::Wait { on: held_meanwhile(&on, pod), recheck },
        (decision, _) => decision,
    }
}

/// The same, with why drains of these pods have to wait as well.
fn held_meanwhile(on: &Hold, pod: &Pod) -> Hold {
    on.and(&format!("Evictions stay held meanwhile: {} would come back as it was before", pod.name))
}

/// Evictions that nobody holds while a member that we let go is not back: the budget that held them was taken away, and ours takes its
/// place. The same while everybody is held above a member that was replaced, whoever did that and however long ago it was well.
pub(crate) fn hold_if_open(decision: Decision, view: &View, record: Option<&Record>) -> Decision {
    let waits = match &decision {
        Decision::Wait { .. } | Decision::Halt { .. } => true,
        Decision::Act(_) | Decision::Done => false,
    };
    let away = |record: &Record| {
        let back = !bug::active(Bug::OpenAbove) && going_back(view, record).next().is_some();
        (record.replacing.is_some() && !is_quiet(view)) || back
    };
    if waits && record.is_some_and(away) && view.evictions == Evictions::Open && !bug::active(Bug::BudgetGoneUnnoticed)
    {
        Decision::Act(Step::HoldEvictions)
    } else {
        decision
    }
}

/// Whether nobody is on the way out or back, and nobody would come back as they were before.
fn is_quiet(view: &View) -> bool {
    let up = view.pods.iter().all(Pod::is_up) && member::pods_present(view).is_ok();
    let safe = |record: &Record| all_joined(view, record) && going_back(view, record).next().is_none();
    view.permitted().is_none() && up && view.record.as_ref().is_none_or(safe)
}

/// Whether every member that was replaced has joined: one that has not is down because of us, ready or not, whatever template stands by now,
/// and a drain would take a second one.
fn all_joined(view: &View, record: &Record) -> bool {
    let seen = poison::as_if_it_stood(view, record);
    let given_up = |pod: &Pod| record.abandoned.contains(&pod.name) || is_replaced(view, record, pod);
    let ours = |pod: &&Pod| !seen.is_outdated(pod) || (given_up(pod) && !bug::active(Bug::GivenUpNotAwaited));
    let joined = |pod: &Pod| view.quorum.voter(&pod.name).is_some_and(Member::is_healthy);
    view.pods.iter().filter(ours).all(joined)
}

/// The members that were replaced and would come back from the revision before if a drain took them now: where a template of somebody else's
/// stands, everybody is held above them (H10). A revert means them to.
fn going_back<'a>(view: &'a View, record: &'a Record) -> impl Iterator<Item = &'a Pod> {
    let held = &view.workload.current_revision;
    let partition = match view.workload.strategy {
        Strategy::RollingUpdate { partition } if record.revision.as_ref() != Some(held) && !record.rolling_back => {
            partition
        }
        Strategy::RollingUpdate { .. } | Strategy::OnDelete => 0,
    };
    let partition = if bug::active(Bug::DrainedBack) { 0 } else { partition };
    let replaced = move |pod: &&Pod| pod.index < partition && pod.revision != *held && is_replaced(view, record, pod);
    view.pods.iter().filter(replaced)
}
