//! What happens when somebody changes their mind half way: a revert, a new target, a corrected version (H10, H15).
//!
//! Under OnDelete a new target is written at once. Under a partition it is while nothing is replaced; afterwards it waits its turn, unless the present one can't be reached
//! because the members that were replaced for it are broken (ADR 0005). Wherever it is written, it has passed the gates that the first one
//! passed: until then nobody is let go for the one that nobody wants any more. Going back to where the upgrade came from is a revert, and a
//! revert is finished first, with the same exception.

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::{
        gates::{list, member},
        known::{
            order::Order,
            record::Record,
            step::Decision,
            template_trial::TemplateTrial,
            view::View,
            workload::{Pod, Strategy},
        },
        mend, owners, poison,
        progress::note_completed,
        roll::roll,
        template::{begin, write_template},
        ways::{not_below_led, passable, path},
    },
    strategy::{
        known::{
            decision::{SOON, halt, wait, wait_or_halt},
            snapshot::Snapshot,
            want::{Trigger, Want},
        },
        snapshot,
    },
};

/// The same image under another version is no new target: a person corrected what the image contains.
pub(crate) fn correct_version(want: &Want, view: &View, record: &mut Record) -> Result<(), Hold> {
    if record.rolling_back || want.target.image != record.target.image || want.target.version == record.target.version {
        return Ok(());
    }
    if record.from == record.target {
        record.from = want.target.clone();
    }
    passable(want, view, &want.target, &record.from.version)?;
    record.target = want.target.clone();
    Ok(())
}

/// Whether a person wants to go back to where the unfinished upgrade came from. A revert itself is finished first.
pub(crate) fn is_revert(want: &Want, record: &Record) -> bool {
    want.target == record.from && want.target != record.target && !record.rolling_back
}

/// Whether any pod has begun to change for the upgrade that is under way, whatever template stands by now. Until the template was seen, none
/// can have.
pub(crate) fn anything_replaced(view: &View, record: &Record) -> bool {
    let replaced = || view.pods.iter().any(|pod| is_replaced(view, record, pod));
    record.revision.is_some() && (replaced() || view.permitted().is_some() || member::pods_present(view).is_err())
}

/// Whether this pod is made from the target's template, from somebody else's that stands by now, or is up from one that was given up. Where what
/// stands is the template before, put back, nobody was replaced by that.
pub(crate) fn is_replaced(view: &View, record: &Record, pod: &Pod) -> bool {
    let hides = bug::active(Bug::ForeignTemplateHides);
    let ours = record.revision.as_ref() == Some(&pod.revision);
    let as_before = pod.revision == view.workload.current_revision;
    let earlier = record.abandoned.contains(&pod.name) && !pod.is_down() && !as_before;
    let theirs = !view.is_outdated(pod) && (!as_before || hides);
    theirs || ((ours || earlier) && !hides)
}

/// Whether everybody may go back to where the unfinished upgrade came from.
pub(crate) fn may_revert(want: &Want, view: &View, record: &Record) -> Result<(), Hold> {
    // Whoever leads now counts, so it must be known; a pod that is gone at the moment does not matter.
    if !want.allow_downgrade {
        member::leader_known(view).and_then(|()| leader_version(view))?;
    }
    not_below_led(want, record, &record.from.version)?;
    way_back(want, view, record)
}

/// Back to where an unfinished upgrade came from: the old template, everything held, and the replaced members are outdated.
pub(crate) fn revert(want: &Want, view: &View, record: &mut Record, partition: u32) -> Decision {
    if let Err(hold) = may_revert(want, view, record) {
        return wait_or_halt(hold);
    }
    if record.revision.is_some() {
        // Also the one that is gone at the moment: it may come back on either template.
        let absent = (0..view.workload.replicas).map(|index| view.workload.member(index));
        let absent = absent.filter(|name| view.pod(name).is_none_or(|pod| pod.terminating));
        let replaced = view.pods.iter().filter(|pod| is_replaced(view, record, pod)).map(|pod| pod.name.clone());
        let replaced: Vec<_> = replaced.chain(absent).collect();
        record.abandoned.extend(replaced);
    }
    std::mem::swap(&mut record.from, &mut record.target);
    record.rolling_back = true;
    record.hand_overs = 0;
    record.revision = None;
    record.template_trial = TemplateTrial::Running;
    record.completed.clear();
    record.stage = None;
    record.hand_over = None;
    if record.order == Order::ReverseOrdinal {
        record.move_partition(partition, view.workload.replicas);
    }
    write_template(record, view.workload.replicas)
}

/// What the leader runs is known.
fn leader_version(view: &View) -> Result<(), Hold> {
    let leader =
        view.quorum.leader.known().and_then(|leader| Some((leader, view.quorum.voter(leader)?.version.why()?)));
    match leader {
        Some((name, why)) => {
            Err(Hold::new(Reason::MembersUnknown, format!("{name} leads and its version is not known: {why}")))
        }
        None => Ok(()),
    }
}

/// Whether another target shall take the place of the one that is under way. One that waits its turn does not (ADR 0004).
pub(crate) fn is_due(want: &Want, view: &View, record: &Record, now: Timestamp) -> Result<bool, Hold> {
    if want.target == record.target || is_revert(want, record) {
        return Ok(false);
    }
    match record.order {
        // Whoever is lost comes back from the newest template, so no member goes back (H10).
        Order::LeaderLast => match retarget_is_safe(want, view, record) {
            Ok(()) => Ok(true),
            Err(hold) if record.is_put_back() => Err(hold),
            Err(_) => Ok(false),
        },
        // When members are replaced already, holding everything again would bring one that is evicted back on the old version (H10).
        // A target that can't be reached is given up all the same (H44).
        Order::ReverseOrdinal => {
            let untouched =
                !record.rolling_back && (!anything_replaced(view, record) || bug::active(Bug::RetargetHalfWay));
            let due =
                mend::needs_another_target(want, view, record, now)? || untouched || is_adopted(want, view, record);
            // What has led counts as well as what is left behind (H15).
            if due && !bug::active(Bug::RetargetBelowLeader) {
                not_below_led(want, record, &want.target.version)?;
            }
            Ok(due)
        }
    }
}

/// Somebody wrote another image half way, nobody is let go for it, and a person asks for that very image: whoever was replaced for it stays,
/// and whoever was replaced for the former one can go on to it. On the way back it is not known what was held where.
fn is_adopted(want: &Want, view: &View, record: &Record) -> bool {
    let stands = want.target.image == view.workload.image && view.permitted().is_none();
    let is_ours = record.order == Order::ReverseOrdinal && !record.rolling_back;
    // Ours would be written to the init containers, too; as it stands, pods would be made of two versions.
    stands && is_ours && record.revision.is_some() && view.workload.images_agree
}

/// What comes before the new target's template: the same as before the first one's. None where nothing does.
fn first(want: &Want, view: &View, record: &Record, now: Timestamp) -> Option<Decision> {
    if bug::active(Bug::RetargetUngated) {
        return None;
    }
    if view.pods.is_empty() {
        return Some(wait(Hold::new(Reason::PodNotReady, "there are no pods"), SOON));
    }
    // Who came to own the image since the upgrade began would write it back (H39). What stands already is not written over.
    let (workload, to) = (&view.workload, &want.target.image);
    let stands = workload.image == *to && workload.images_agree && workload.strategy == Strategy::OnDelete;
    if want.trigger == Trigger::Version
        && !stands
        && !is_adopted(want, view, record)
        && let Err(hold) = owners::leave_it_to_us(want, view)
    {
        return Some(halt(hold));
    }
    list::may_begin(want, view, now).or_else(|| snapshot_for(want, view, record, now).err())
}

/// The snapshot that the new target begins with: another one, unless members were replaced since the first. That is the state to go back
/// to then, and a later one would be of neither version.
fn snapshot_for(want: &Want, view: &View, record: &Record, now: Timestamp) -> Result<Option<Snapshot>, Decision> {
    match &record.snapshot {
        Some(taken) if anything_replaced(view, record) => Ok(Some(taken.clone())),
        taken => Ok(snapshot::before(want, view, now)?.or_else(|| taken.clone())),
    }
}

/// Another target is due: its template, or what comes before that. What nobody can live on does not stand meanwhile (H21).
pub(crate) fn take_place(
    want: &Want,
    view: &View,
    slot: &mut Option<Record>,
    partition: u32,
    now: Timestamp,
) -> Decision {
    let Some(record) = slot else { return Decision::Done };
    let seen = poison::as_if_it_stood(view, record).into_owned();
    let Some(first) = first(want, &seen, record, now) else { return retarget(want, &seen, slot, partition, now) };
    if record.is_put_back() {
        return poison::put_back_again(view, record).unwrap_or(first);
    }
    if record.is_changed(view) && record.revision.is_some() {
        return first;
    }
    note_completed(want, view, record);
    poison::put_back(want, view, record, now).unwrap_or(first)
}

/// A new target before any member was touched, or because the ones that were are broken: nothing stands in the way.
fn retarget(want: &Want, view: &View, slot: &mut Option<Record>, partition: u32, now: Timestamp) -> Decision {
    let Some(record) = slot.take() else { return Decision::Done };
    let from = match record.order {
        Order::ReverseOrdinal if anything_replaced(view, &record) => mend::held(view, &record).clone(),
        // What is left behind is where a revert goes, and what stands again should nobody live on the new template (H21).
        Order::LeaderLast if record.template_trial == TemplateTrial::Passed || record.from == want.target => {
            record.target.clone()
        }
        Order::ReverseOrdinal | Order::LeaderLast => record.from.clone(),
    };
    let snapshot = snapshot_for(want, view, &record, now);
    let ready = passable(want, view, &want.target, &from.version).map_err(wait_or_halt).and(snapshot);
    let snapshot = match ready {
        Ok(snapshot) => snapshot,
        Err(first) => {
            *slot = Some(record);
            return first;
        }
    };
    let mut next = Record::begin(record.order, from, want.target.clone(), record.partition, partition, now);
    next.previous_partitions.extend(record.previous_partitions.iter().copied());
    // Under somebody else's template nobody is judged by ours any more; whoever was replaced for it may be broken.
    let stray = record.order == Order::ReverseOrdinal && record.revision.is_some() && record.is_changed(view);
    let strays = view.pods.iter().filter(|pod| stray && is_replaced(view, &record, pod)).map(|pod| pod.name.clone());
    let broken: Vec<_> = mend::broken_members(want, view, &record, now).chain(strays).collect();
    let adopted = is_adopted(want, view, &record) && !bug::active(Bug::AdoptedAbove);
    let mut next = Record { snapshot, ..next.instead_of(record) };
    next.abandoned.extend(broken);
    if adopted {
        // Its template stands. Held anew, everybody whom Kubernetes has replaced for it already would come back as they were before (H10).
        next.revision = Some(view.workload.update_revision.clone());
        let decision = roll(want, view, &mut next, partition, now);
        *slot = Some(next);
        return decision;
    }
    if next.order == Order::ReverseOrdinal {
        next.move_partition(partition, view.workload.replicas);
    }
    begin(next, view.workload.replicas, slot)
}

/// Whether another target may be written half way under OnDelete: there is a way to it from everything that runs, and nothing newer has
/// led (H15). A member that does not tell its version runs what its template says.
pub(crate) fn retarget_is_safe(want: &Want, view: &View, record: &Record) -> Result<(), Hold> {
    let runs = view.quorum.voters().filter_map(|(_, member)| member.version.known());
    let proven = (record.template_trial == TemplateTrial::Passed).then_some(&record.target.version);
    for version in runs.chain([&record.from.version]).chain(proven) {
        passable(want, view, &want.target, version)?;
    }
    not_below_led(want, record, &want.target.version)
}

/// A system that does not go back as a whole still can while a member that has not left stays where it is: the others go back to it.
fn way_back(want: &Want, view: &View, record: &Record) -> Result<(), Hold> {
    let back = &record.from.version;
    let way = path(want, view, &record.target.version, back);
    let stays = |pod: &Pod| {
        let version = view.quorum.voter(&pod.name).and_then(|member| member.version.known());
        pod.is_up() && version.is_some_and(|version| version.minor() == back.minor())
    };
    if way.is_ok() || view.pods.iter().any(stays) {
        return Ok(());
    }
    way.map_err(|hold| Hold { message: format!("no member runs {back} any more, and {}", hold.message), ..hold })
}
