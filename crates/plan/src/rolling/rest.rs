//! At rest: is anything wanted, and can it begin? Also sets that somebody else left half done (H40), and sets whose strategy is not the
//! one that the wanted order needs (H7).
//!
//! ```text
//!   RollingUpdate, LeaderLast asked for     ──▶ WriteTemplate carries OnDelete, in the same write
//!   OnDelete, ReverseOrdinal asked for      ──▶ gates, approval, snapshot ──▶ SwitchStrategy (template unchanged, partition 0)
//!                                               ──▶ the controller has concluded ──▶ WriteTemplate with partition = replicas
//! ```
//! The partition of the switch is 0 and not `replicas`: nobody is outdated, so nothing can be replaced, and a pod that is lost before
//! the controller has concluded comes back from the template that stands. Held back, it would come back from the first one ever (H7).
//! It stands for that moment only: see [`super::parking`].

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    hold::Hold,
    quorum::MemberName,
    reason::Reason,
    rolling::{
        budget, follow,
        gates::{
            list,
            member::{self, Lacking},
        },
        known::{
            order::Order,
            owners::Field,
            record::Record,
            stage::StageKind,
            step::{Decision, Step},
            view::View,
            workload::{Pod, Strategy},
        },
        order, owners, parking, permit,
        roll::roll,
        template::begin,
        ways::passable,
    },
    strategy::{
        known::{
            decision::{SOON, halt, wait, wait_or_halt},
            want::{Target, Trigger, Want},
        },
        snapshot,
    },
    version::Version,
};

/// No upgrade is under way: is one wanted?
pub(crate) fn at_rest(
    want: &Want,
    view: &View,
    record: &mut Option<Record>,
    partition: u32,
    now: Timestamp,
) -> Decision {
    let mut next = record.take();
    let decision = what_is_wanted(want, view, &mut next, partition, now);
    if let Some(first) = parking::unless_leaving(view, &decision) {
        return first;
    }
    *record = next;
    decision
}

fn what_is_wanted(want: &Want, view: &View, record: &mut Option<Record>, partition: u32, now: Timestamp) -> Decision {
    if let Err(hold) = member::pods_present(view).and_then(|()| member::members_known(want, view)) {
        return wait_or_halt(hold);
    }
    if want.trigger == Trigger::Template
        && let Err(hold) = follow::is_held(view)
    {
        return halt(hold);
    }
    if !view.is_uniform() {
        return match want.trigger {
            Trigger::Version => adopt_half_done(want, view, record, partition, now),
            Trigger::Template => follow::begin(want, view, record, partition, now),
        };
    }
    let versions = match versions(view) {
        Ok(versions) => versions,
        Err(hold) => return wait(hold, SOON),
    };
    if view.workload.image == want.target.image || want.trigger == Trigger::Template {
        return match trouble(want, view) {
            None => Decision::Done,
            Some(hold) => wait_or_halt(hold),
        };
    }
    if let Err(hold) = owners::leave_it_to_us(want, view) {
        return halt(hold);
    }
    if let Err(hold) = versions.iter().try_for_each(|runs| passable(want, view, &want.target, runs)) {
        return wait_or_halt(hold);
    }
    let newest = versions.into_iter().max().unwrap_or_else(|| want.target.version.clone());
    let from = Target { version: newest, image: view.workload.image.clone() };
    if let Err(hold) = member::leader_known(view).and_then(|()| member::spare_member(want, view)) {
        return wait_or_halt(hold);
    }
    let order = order::asked(want, view);
    // A budget that no member could go under is told before anything is written.
    if let Err(hold) = budget::exit(want, view, order, false)
        && hold.reason.needs_a_person()
    {
        return halt(hold);
    }
    let switches = (order, view.workload.strategy) == (Order::ReverseOrdinal, Strategy::OnDelete);
    if switches && let Err(hold) = parking::may_switch(view) {
        return halt(hold);
    }
    if let Some(first) = list::may_begin(want, view, now) {
        return first;
    }
    if switches && bug::active(Bug::SwitchBeforeSnapshot) {
        return switch_over(want, view, &from.version);
    }
    let snapshot = match snapshot::before(want, view, now) {
        Ok(snapshot) => snapshot,
        Err(first) => return first,
    };
    let held = match (order, view.workload.strategy) {
        (Order::ReverseOrdinal, Strategy::OnDelete) => return switch_over(want, view, &from.version),
        (Order::ReverseOrdinal, Strategy::RollingUpdate { .. }) => view.workload.replicas,
        (Order::LeaderLast, Strategy::RollingUpdate { .. } | Strategy::OnDelete) => partition,
    };
    let next = Record::begin(order, from, want.target.clone(), held, partition, now);
    begin(Record { snapshot, ..next }, view.workload.replicas, record)
}

/// What keeps the quorum from being well; none where nothing does. A member that is behind for a while is the system's daily life, nothing is
/// about to be taken down for it, and it must not hide what is wrong with another.
fn trouble(want: &Want, view: &View) -> Option<Hold> {
    let mut lacking: Vec<Lacking> = lacking(want, view, &want.target.version).collect();
    if bug::active(Bug::BehindHidesSick) {
        lacking.truncate(1);
    }
    // Nobody's position says anything without a leader, so that one comes first.
    let sick = lacking.iter().find(|lacking| lacking.stage != StageKind::Sync).map(|lacking| lacking.hold.clone());
    let unclear = || lacking.iter().find(|lacking| lacking.hold.reason != Reason::MemberBehind);
    sick.or_else(|| member::leader_known(view).err()).or_else(|| unclear().map(|lacking| lacking.hold.clone()))
}

/// What each member lacks that is not well, highest ordinal first, where this version is what they shall run.
fn lacking<'a>(want: &'a Want, view: &'a View, version: &'a Version) -> impl Iterator<Item = Lacking> + 'a {
    view.pods.iter().rev().filter_map(|pod| member::settled(want, view, version, pod).err())
}

/// Its pod is not up.
fn is_down(lacking: &Lacking) -> bool {
    lacking.stage == StageKind::Replace
}

/// The set is OnDelete and shall be rolled by its partition: its current revision has to catch up first, and only does so under
/// RollingUpdate, when everybody is ready (H7).
fn switch_over(want: &Want, view: &View, version: &Version) -> Decision {
    // One that is behind is up all the same, and nobody is taken down by the switch.
    if let Some(lacking) = lacking(want, view, version).find(|lacking| lacking.hold.reason != Reason::MemberBehind) {
        let message = format!(
            "order ReverseOrdinal needs the update strategy RollingUpdate, and that is set when all are well: {}",
            lacking.hold.message
        );
        return wait_or_halt(Hold::new(lacking.hold.reason, message));
    }
    let partition = if bug::active(Bug::SwitchHeldBack) { view.workload.replicas } else { 0 };
    Decision::Act(Step::SwitchStrategy { partition })
}

/// The set was half upgraded before we came (H40): nothing is begun until a person says so. It is finished in the order that its
/// strategy stands for, for that is changed at rest only.
fn adopt_half_done(want: &Want, view: &View, record: &mut Option<Record>, partition: u32, now: Timestamp) -> Decision {
    let outdated: Vec<&str> = view.outdated().map(|pod| pod.name.as_str()).collect();
    if view.workload.image != want.target.image && view.updated().next().is_none() {
        return write_over(want, view, record, partition, now);
    }
    let hold = match outdated.as_slice() {
        [] => Hold::new(
            Reason::AwaitingConclusion,
            "all pods are replaced and the StatefulSet's controller has not concluded the rollout yet",
        ),
        _ if view.updated().next().is_none() => Hold::new(
            Reason::RolloutPending,
            format!(
                "the pod template was changed, though not its image, and no pod is replaced for it yet{}",
                match view.workload.strategy {
                    Strategy::RollingUpdate { partition } => format!(": partition {partition} holds them"),
                    Strategy::OnDelete => String::new(),
                }
            ),
        ),
        some => Hold::new(
            Reason::RolloutPending,
            format!(
                "a rollout that Windlass did not begin is half done: {} not replaced yet{}",
                some.join(", "),
                if view.workload.image == want.target.image {
                    String::new()
                } else {
                    format!("; it goes to image {}, and {} is wanted after it", view.workload.image, want.target.image)
                }
            ),
        ),
    };
    if hold.reason == Reason::AwaitingConclusion {
        // It concludes when all are ready: what keeps one from that says more.
        let version = version_of_replaced(want, view);
        let lacking = version.and_then(|version| lacking(want, view, &version).find(is_down));
        return lacking.map_or_else(|| wait(hold, SOON), |lacking| wait_or_halt(lacking.hold));
    }
    if !view.resumed {
        return halt(hold);
    }
    if let Err(hold) = owners::leave_it_to_us(want, view) {
        return halt(hold);
    }
    let Some(version) = version_of_replaced(want, view) else {
        let message = format!("{}; no replaced member tells its version yet", hold.message);
        return halt(Hold::new(Reason::RolloutPending, message));
    };
    // Where it came from is not known any more, so it can't be reverted: from and target are the same.
    let target = Target { version, image: view.workload.image.clone() };
    if !bug::active(Bug::AdoptedDowngrade)
        && let Err(hold) = view.outdated().try_for_each(|pod| may_follow(want, view, &target, pod))
    {
        return wait_or_halt(hold);
    }
    let order = Order::of(view.workload.strategy);
    let mut resumed = Record::begin(order, target.clone(), target, partition, partition, now);
    resumed.revision = Some(view.workload.update_revision.clone());
    let decision =
        permit::mind(want, view, &mut resumed, now).unwrap_or_else(|| roll(want, view, &mut resumed, partition, now));
    *record = Some(resumed);
    decision
}

/// Whether who was not replaced yet may go on to what a rollout of somebody else's goes to. After this nobody asks about them again.
fn may_follow(want: &Want, view: &View, target: &Target, pod: &Pod) -> Result<(), Hold> {
    match view.quorum.voter(&pod.name).map(|member| &member.version) {
        Some(Fact::Known(version)) => passable(want, view, target, version),
        Some(Fact::Unknown(_)) | None if bug::active(Bug::AdoptedUnknown) => Ok(()),
        Some(Fact::Unknown(why)) => Err(unversioned(&pod.name, why)),
        None => Err(unversioned(&pod.name, "it is not among the members")),
    }
}

fn unversioned(name: &MemberName, why: &str) -> Hold {
    Hold::new(Reason::MembersUnknown, format!("{name}'s version is not known: {why}"))
}

/// Somebody set an image that is not wanted and that no pod runs: there is nothing to finish. A person may want ours instead. Where the
/// members came from is not known any more, so that can't be reverted: from and target are the same.
fn write_over(want: &Want, view: &View, record: &mut Option<Record>, partition: u32, now: Timestamp) -> Decision {
    if !view.resumed {
        let message = format!(
            "somebody set the image to {}, and no pod runs it yet; {} is wanted{}",
            view.workload.image,
            want.target.image,
            owners::blame(view, &[Field::Image])
        );
        return halt(Hold::new(Reason::TemplateChanged, message));
    }
    if let Err(hold) = owners::leave_it_to_us(want, view) {
        return halt(hold);
    }
    let versions = match versions(view) {
        Ok(versions) => versions,
        Err(hold) => return wait(hold, SOON),
    };
    if let Err(hold) = versions.iter().try_for_each(|runs| passable(want, view, &want.target, runs)) {
        return wait_or_halt(hold);
    }
    if let Some(first) = list::may_begin(want, view, now) {
        return first;
    }
    let snapshot = match snapshot::before(want, view, now) {
        Ok(snapshot) => snapshot,
        Err(first) => return first,
    };
    let order = Order::of(view.workload.strategy);
    let held = match order {
        Order::ReverseOrdinal => view.workload.replicas,
        Order::LeaderLast => partition,
    };
    let next = Record::begin(order, want.target.clone(), want.target.clone(), held, partition, now);
    begin(Record { snapshot, ..next }, view.workload.replicas, record)
}

/// What a rollout that somebody else began goes to: what is wanted, if that is its image, otherwise what its first members say.
fn version_of_replaced(want: &Want, view: &View) -> Option<Version> {
    if view.workload.image == want.target.image {
        return Some(want.target.version.clone());
    }
    view.updated().find_map(|pod| view.quorum.voter(&pod.name)?.version.known().cloned())
}

fn versions(view: &View) -> Result<Vec<Version>, Hold> {
    view.quorum
        .voters()
        .map(|(name, member)| match &member.version {
            Fact::Known(version) => Ok(version.clone()),
            Fact::Unknown(why) => Err(unversioned(name, why)),
        })
        .collect()
}
