//! Mending: a replaced member that is broken, and a spec that was mended since (H44, ADR 0005).
//!
//! ```text
//!   broken on B ──▶ another target is asked for ──▶ WriteTemplate (everything held) ──▶ the controller has seen it
//!        ──▶ comes back right already?  no: Permit (the broken one alone) ──▶ DeletePod ──▶ the usual road
//! ```
//! Kubernetes does not replace a pod that is not ready (kubernetes#67250): with `OrderedReady` its update loop is not reached while any
//! pod is unready, the broken one included. So we delete it ourselves, and it comes back
//! - from the *update* revision if its index is at or above the partition,
//! - from the *current* revision if it is below, and that is the same one only in a revert of an upgrade that was not concluded.
//!
//! Hence: in such a revert the pod is deleted with everything held, whatever its index. On the way to a third template the partition is
//! lowered to the broken pod first, which only works if no outdated pod is above it, or Kubernetes would be free to replace that one, too.

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    gate::Verdict,
    hold::Hold,
    quorum::can_spare_one,
    reason::Reason,
    rolling::{
        gates::{
            ask::{Ask, Gate},
            member,
        },
        known::{
            order::Order,
            record::Record,
            stage::StageKind,
            step::{Decision, Step},
            view::View,
            workload::Pod,
        },
        ways::{not_below_led, passable},
    },
    strategy::known::want::{Target, Want},
};

/// What must be true before a broken member is replaced: much less than for a sound one, for it is counted as lost already.
pub const BEFORE_MEND: &[Gate] = &[
    Gate::NOT_PAUSED,
    Gate::own("PodsPresent", |ask| member::pods_present(ask.view).into()),
    Gate::own("NotLeading", |ask| not_leading(ask).into()),
    Gate::own("CostsNothing", |ask| costs_nothing(ask).into()),
    // The others are about the time for taking a member down; this one is down, and waiting makes nothing better.
    Gate::LOCK,
];

/// A quorum that can spare no member is down while its broken one is, and can't be asked; a person accepted that (H14).
fn is_down_anyway(want: &Want, view: &View, pod: &Pod) -> bool {
    let members = usize::try_from(view.workload.replicas).unwrap_or(usize::MAX);
    want.accept_downtime && !can_spare_one(members) && pod.is_down()
}

fn not_leading(ask: &Ask<'_>) -> Verdict {
    if ask.view.quorum.leader.is(&ask.victim.name) && ask.view.workload.replicas > 1 {
        return Err(Hold::new(Reason::LeaderUnknown, format!("{} is broken and is said to lead", ask.victim.name)));
    }
    if is_down_anyway(ask.want, ask.view, ask.victim) {
        return Ok(());
    }
    member::members_known(ask.want, ask.view).and_then(|()| member::leader_known(ask.view))
}

/// The others are a healthy majority without it, and all of that is known (C4).
fn costs_nothing(ask: &Ask<'_>) -> Verdict {
    if ask.view.quorum.survives_losing(&ask.victim.name)
        || is_down_anyway(ask.want, ask.view, ask.victim)
        || bug::active(Bug::MendCostsQuorum)
    {
        return Ok(());
    }
    Err(Hold::new(Reason::QuorumAtRisk, format!("the others are no healthy majority without {}", ask.victim.name)))
}

/// Whether this pod serves nobody, for its member is known to be unhealthy, and is ours to replace: because it was replaced for a target
/// that was given up, or because it is down and its turn is whenever we say (H13). Unknown is not enough (X1), except where the whole
/// quorum is down because of it, or where the pod never got ready for the target that was given up: then nobody may be left who could say
/// (ADR 0016).
pub(crate) fn is_lost(want: &Want, view: &View, record: &Record, pod: &Pod) -> bool {
    let given_up = record.abandoned.contains(&pod.name);
    let unhealthy = match view.quorum.voter(&pod.name).map(|member| &member.healthy) {
        Some(Fact::Known(healthy)) => !healthy,
        Some(Fact::Unknown(_)) => (given_up && pod.is_down()) || is_down_anyway(want, view, pod),
        None => is_down_anyway(want, view, pod),
    };
    let ours = match record.order {
        Order::ReverseOrdinal => given_up,
        Order::LeaderLast => given_up || pod.is_down(),
    };
    // One that the set is being scaled down by is on its way out anyway.
    let stays = pod.index < view.workload.replicas;
    ours && stays && view.is_outdated(pod) && !pod.terminating && unhealthy
}

/// The broken pod that can be deleted as things are: not ready, and its successor gets the right template.
pub(crate) fn deletable<'a>(want: &Want, view: &'a View, record: &Record) -> Option<&'a Pod> {
    view.outdated().rfind(|pod| {
        if bug::active(Bug::MendReadyPod) {
            return record.abandoned.contains(&pod.name) && !pod.terminating && may_delete(view, record, pod);
        }
        is_lost(want, view, record, pod) && pod.is_down() && may_delete(view, record, pod)
    })
}

/// Whether its successor would be made from the template that was seen as ours.
fn may_delete(view: &View, record: &Record, pod: &Pod) -> bool {
    let seen = record.revision.as_ref() == Some(&view.workload.update_revision) && !record.is_changed(view);
    seen && pod.index < view.workload.replicas
        && (view.comes_back_updated(pod.index) || bug::active(Bug::MendOnHeldRevision))
}

/// The step that deletes it.
pub(crate) fn delete(record: &Record, pod: &Pod) -> Decision {
    let (uid, image) = (pod.uid.clone(), record.target.image.clone());
    Decision::Act(Step::DeletePod { pod: pod.name.clone(), uid, image })
}

/// Whether a member that was replaced for the present target can't be well: Kubernetes names what is wrong with its pod, or the time
/// for it to get ready, healthy or of the right version is up.
pub(crate) fn is_broken(want: &Want, view: &View, record: &Record, pod: &Pod, now: Timestamp) -> bool {
    let Err(lacking) = member::settled(want, view, &record.target.version, pod) else { return false };
    let named = !pod.is_up() && !pod.terminating && pod.trouble.is_some();
    let overdue = record.stage.as_ref().is_some_and(|stage| {
        stage.pod == pod.name && stage.kind == lacking.stage && stage.is_overdue(&want.deadlines, now)
    });
    let served = lacking.stage == StageKind::Sync;
    // One that is sealed is as sound as its key is far away.
    let sealed = lacking.hold.reason == Reason::MemberSealed;
    !view.is_outdated(pod) && !served && !sealed && (named || overdue)
}

/// Whether another target may be written half way, because the present one can't be reached: the members that the new template would
/// reach first are the broken ones. Everything is held by that write, so a pod that is lost before its turn comes back on the held
/// revision; where that would take a member back which is up or has been, it must be as safe as a revert (H10, H15).
pub(crate) fn needs_another_target(want: &Want, view: &View, record: &Record, now: Timestamp) -> Result<bool, Hold> {
    let broken = |pod: &Pod| is_broken(want, view, record, pod, now);
    // The new template reaches the members from the top: whoever is above a broken one would have to be replaced before it.
    let top = view.pods.last().filter(|pod| pod.index.saturating_add(1) == view.workload.replicas);
    if record.revision.is_none() || record.is_changed(view) || !top.is_some_and(broken) {
        return Ok(false);
    }
    if view
        .pods
        .iter()
        .filter(|pod| broken(pod))
        .any(|pod| view.pods.iter().any(|above| above.index > pod.index && !broken(above)))
    {
        return Ok(false);
    }
    let held = held(view, record);
    passable(want, view, &want.target, &held.version)?;
    let newest_led = record.highest_led.as_ref();
    let led = |limit: &Target| newest_led.filter(|led| **led > limit.version && !want.allow_downgrade);
    not_below_led(want, record, &want.target.version)?;
    // Whoever is up, and whoever was: a member that has been done once has data of the present target, also when its pod is broken or
    // gone by now, and Kubernetes makes a pod that is gone anew without asking.
    let up = view.pods.iter().filter(|pod| !pod.is_down() && pod.revision != view.workload.current_revision);
    let endangered = up.map(|pod| &pod.name).chain(&record.completed).next();
    if let Some(name) = endangered.filter(|_| !want.allow_downgrade) {
        member::leader_known(view)?;
        if let Some(led) = led(held) {
            let message = format!(
                "a member of version {led} has led, and {} would come back as {} if it were lost on the way to {}",
                name, held.version, want.target.version
            );
            return Err(Hold::new(Reason::DowngradeNotAllowed, message));
        }
    }
    Ok(true)
}

/// What a pod below the partition is made from: where the upgrade came from, until the controller has concluded it. Somebody's template that came
/// after that changes nothing about it.
pub(crate) fn held<'a>(view: &View, record: &'a Record) -> &'a Target {
    let current = &view.workload.current_revision;
    let ours = record.revision.as_ref() == Some(current) && !bug::active(Bug::ConcludedForgotten);
    let concluded = ours || *current == view.workload.update_revision;
    if concluded { &record.target } else { &record.from }
}

/// The members whose pods are broken now: they are given up with the target.
pub(crate) fn broken_members<'a>(
    want: &'a Want,
    view: &'a View,
    record: &'a Record,
    now: Timestamp,
) -> impl Iterator<Item = crate::MemberName> + 'a {
    view.pods.iter().filter(move |pod| is_broken(want, view, record, pod, now)).map(|pod| pod.name.clone())
}
