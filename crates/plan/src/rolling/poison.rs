//! A template that nobody can live on (H21). Under OnDelete every pod that is lost comes back from it, not only the one that was let go.
//!
//! ```text
//!   Running ──▶ the first member of it serves ──▶ Passed: the next ones follow, and it stays
//!      └──▶ the first one is broken or late ──▶ Reverted: the template before it stands, whoever is lost comes back as they were
//!                 ├──▶ it gets well after all ──▶ the template again, Passed
//!                 ├──▶ another target, or the old one, is asked for ──▶ the usual road, and the broken one goes first
//!                 └──▶ a person resumes ──▶ the template again, Pending
//! ```
//! Writing a template disturbs nobody under OnDelete, so it is put back as soon as trouble is named, and a person is called at the
//! deadline as ever. What has served once is not put back: its members would go backwards one by one as they are lost.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::{
        gates::member,
        known::{
            order::Order,
            owners::Field,
            record::Record,
            step::{Decision, Step},
            template_trial::TemplateTrial,
            view::View,
            workload::{Pod, Strategy},
        },
        mend, owners,
        progress::{await_replaced, note_completed},
        template::{template_changed, write_template},
    },
    strategy::known::{
        decision::{halt, wait, wait_or_halt},
        want::{Trigger, Want},
    },
};

/// What was seen, as it would be with the target's template in place: where that was put back, its pods are not outdated.
pub(crate) fn as_if_it_stood<'a>(view: &'a View, record: &Record) -> Cow<'a, View> {
    match &record.revision {
        Some(revision) if record.is_put_back() => {
            let mut seen = view.clone();
            seen.workload.image.clone_from(&record.target.image);
            seen.workload.update_revision = revision.clone();
            Cow::Owned(seen)
        }
        Some(_) | None => Cow::Borrowed(view),
    }
}

/// Puts the template back that was there before, if the first member of the new one can't be well. None if that is not so.
pub(crate) fn put_back(want: &Want, view: &View, record: &mut Record, now: Timestamp) -> Option<Decision> {
    let stands = record.revision.as_ref() == Some(&view.workload.update_revision)
        && view.workload.strategy == Strategy::OnDelete
        && !record.is_changed(view);
    // Also while nothing goes on, members come to serve from it.
    if stands && !bug::active(Bug::PausedTrialUnnoticed) {
        note_completed(want, view, record);
    }
    let unproven = record.template_trial == TemplateTrial::Running || bug::active(Bug::TrialForgotten);
    // Where a half-done rollout was adopted, nobody knows what was there before.
    let known = record.from.image != record.target.image;
    // Nor is it ours to write where Helm or Git does.
    let ours = want.trigger == Trigger::Version;
    let may = record.order == Order::LeaderLast && ours && unproven && stands && known;
    if !may || bug::active(Bug::PoisonLeftStanding) {
        return None;
    }
    if !view.updated().any(|pod| mend::is_broken(want, view, record, pod, now)) || !is_no_step_back(want, view, record)
    {
        return None;
    }
    record.template_trial = TemplateTrial::Reverted;
    Some(write_back(record))
}

/// A new member that is up would come back as the old version if it were lost: as safe as a revert, or not at all (H15).
fn is_no_step_back(want: &Want, view: &View, record: &Record) -> bool {
    let led = record.highest_led.as_ref().is_some_and(|led| *led > record.from.version);
    view.updated().all(Pod::is_down) || want.allow_downgrade || (member::leader_known(view).is_ok() && !led)
}

fn write_back(record: &Record) -> Decision {
    Decision::Act(Step::WriteTemplate { image: record.from.image.clone(), strategy: Some(Strategy::OnDelete) })
}

/// The write that put it back was lost. None if it landed, or somebody wrote yet another one.
pub(crate) fn put_back_again(view: &View, record: &Record) -> Option<Decision> {
    (view.workload.image == record.target.image && !owners::is_set_back(view, record)).then(|| write_back(record))
}

/// The template was put back: until its first member is well after all, or a person says what to do.
pub(crate) fn stay(want: &Want, view: &View, record: &mut Record, now: Timestamp) -> Decision {
    if let Some(again) = put_back_again(view, record) {
        return again;
    }
    if view.workload.image == record.target.image {
        let blame = owners::blame(view, &[Field::Image]);
        let (theirs, ours) = (&record.target.image, &record.from.image);
        let message = format!("somebody set the image to {theirs} again after Windlass had put {ours} back{blame}");
        return halt(Hold::new(Reason::TemplateChanged, message));
    }
    if view.workload.image != record.from.image {
        return halt(template_changed(view, record));
    }
    if view.resumed || view.requests.retry {
        return write_again(view, record, TemplateTrial::Running);
    }
    let seen = as_if_it_stood(view, record);
    let told = await_replaced(want, &seen, record, now);
    let version = &record.target.version;
    let is_well = |pod: &Pod| member::settled(want, &seen, version, pod).is_ok();
    let back = format!("the template of {} was put back, for nobody has served from that of {version}", record.from);
    match told {
        Some(Decision::Wait { on, recheck }) => wait(Hold::new(on.reason, format!("{}; {back}", on.message)), recheck),
        Some(Decision::Halt { on }) => halt(Hold::new(Reason::TemplateReverted, format!("{back}: {}", on.message))),
        Some(other @ (Decision::Act(_) | Decision::Done)) => other,
        None if seen.updated().next().is_none() => {
            halt(Hold::new(Reason::TemplateReverted, format!("{back}, and nobody runs it any more")))
        }
        None if seen.updated().all(is_well) => write_again(view, record, TemplateTrial::Passed),
        None => wait_or_halt(member::leader_known(view).err().unwrap_or_else(|| {
            Hold::new(Reason::MembersUnknown, format!("{back}; its first member is not known to be well"))
        })),
    }
}

/// The image that the template shall name when nobody minds the upgrade any more: where nobody has served from the new one, the one
/// before it, so that whoever is lost comes back as they were. None where the template stays.
pub fn parting_image(view: &View) -> Option<&str> {
    let record = view.record.as_ref()?;
    let seen = view.workload.observed.then_some(&view.workload.update_revision);
    let revision = record.revision.as_ref().or(seen);
    let unproven = record.order == Order::LeaderLast
        && record.template_trial == TemplateTrial::Running
        && view.workload.strategy == Strategy::OnDelete
        && !record.is_changed(view);
    let nobody_is_up = view.pods.iter().all(|pod| pod.is_down() || Some(&pod.revision) != revision);
    (unproven && nobody_is_up && record.from.image != record.target.image).then_some(&record.from.image)
}

fn write_again(view: &View, record: &mut Record, template_trial: TemplateTrial) -> Decision {
    record.template_trial = template_trial;
    record.revision = None;
    record.stage = None;
    write_template(record, view.workload.replicas)
}
