//! Somebody else writes the template, Helm or Git, and we only replace the pods (X7). The template is never written here.
//!
//! ```text
//!   OnDelete, also at rest ──▶ another template is seen ──▶ the usual road, leader last
//!                                 └─ yet another one half way ──▶ is it a downgrade of what has led?  no: afresh, from there
//! ```
//! Whoever is lost comes back from the newest template at any moment, with us or without; so there is nothing to hold a new one back
//! with, and nothing to put back where its first member is broken (H21): whoever wrote it has to.

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    hold::Hold,
    reason::Reason,
    rolling::{
        gates::list,
        known::{order::Order, record::Record, step::Decision, view::View, workload::Strategy},
        retarget::correct_version,
        roll::roll,
        template::write_template,
        ways::passable,
    },
    strategy::{
        known::{
            decision::{halt, wait_or_halt},
            want::{Target, Want},
        },
        snapshot,
    },
    version::Version,
};

/// Kubernetes replaces nobody by itself when the template changes (H39).
pub(crate) fn is_held(view: &View) -> Result<(), Hold> {
    match view.workload.strategy {
        Strategy::OnDelete => Ok(()),
        Strategy::RollingUpdate { .. } if bug::active(Bug::FollowsRollingUpdate) => Ok(()),
        Strategy::RollingUpdate { .. } => Err(Hold::new(
            Reason::UnsupportedStrategy,
            "trigger Template needs the update strategy OnDelete, also while nothing changes: with RollingUpdate Kubernetes \
             replaces the pods itself as soon as the template changes",
        )),
    }
}

/// A template that some pods are not made from.
pub(crate) fn begin(want: &Want, view: &View, slot: &mut Option<Record>, partition: u32, now: Timestamp) -> Decision {
    let before = slot.take();
    let led = before.as_ref().and_then(|before| before.highest_led.clone());
    let image = |version| Target { version, image: view.workload.image.clone() };
    let from = match leaves(want, view, led.as_ref()) {
        Ok(version) => image(version),
        Err(hold) => {
            *slot = before;
            return wait_or_halt(hold);
        }
    };
    let mut record =
        Record::begin(Order::LeaderLast, from, image(want.target.version.clone()), partition, partition, now);
    record.revision = Some(view.workload.update_revision.clone());
    if let Some(before) = before {
        // Another template passes the gates that the first one passed.
        if let Some(first) = list::may_follow(want, view, now).filter(|_| !bug::active(Bug::RetargetUngated)) {
            *slot = Some(before);
            return first;
        }
        // Replaced for a template that was given up: one of them that is broken goes first.
        let replaced = view.outdated().filter(|pod| before.revision.as_ref() == Some(&pod.revision));
        let replaced: Vec<_> = replaced.map(|pod| pod.name.clone()).collect();
        record = record.instead_of(before);
        record.abandoned.extend(replaced);
    } else {
        if let Some(first) = list::may_follow(want, view, now) {
            return first;
        }
        // One that is taken half way would be of a state that nobody wants to go back to.
        record.snapshot = match snapshot::before(want, view, now) {
            Ok(snapshot) => snapshot,
            Err(first) => return first,
        };
    }
    if bug::active(Bug::TemplateTakenOver) {
        *slot = Some(record.clone());
        return write_template(&record, view.workload.replicas);
    }
    let decision = roll(want, view, &mut record, partition, now);
    *slot = (decision != Decision::Done).then_some(record);
    decision
}

/// The newest version that is left behind, if the new template is no downgrade of any that has led or leads no more than it must (H15).
fn leaves(want: &Want, view: &View, led: Option<&Version>) -> Result<Version, Hold> {
    let mut newest: Option<&Version> = None;
    for pod in view.outdated().filter(|pod| !pod.is_down()) {
        let version = match view.quorum.voter(&pod.name).map(|member| &member.version) {
            Some(Fact::Known(version)) => version,
            Some(Fact::Unknown(why)) => {
                return Err(Hold::new(Reason::MembersUnknown, format!("{}'s version is not known: {why}", pod.name)));
            }
            None => return Err(Hold::new(Reason::MembersUnknown, format!("{} is not known as a member", pod.name))),
        };
        newest = newest.max(Some(version));
    }
    // Without anything on record, whoever runs may have led.
    let highest = led.or(newest);
    if let Some(highest) = highest.filter(|_| !bug::active(Bug::FollowsAnyTemplate)) {
        passable(want, view, &want.target, highest)?;
    }
    Ok(newest.unwrap_or(&want.target.version).clone())
}

/// Pods are being replaced: still for the same template?
pub(crate) fn under_way(
    want: &Want,
    view: &View,
    slot: &mut Option<Record>,
    partition: u32,
    now: Timestamp,
) -> Decision {
    let Some(record) = slot else { return Decision::Done };
    if let Err(hold) = is_held(view) {
        return halt(hold);
    }
    // An upgrade of ours that was under way when the template became somebody else's goes on as theirs.
    if record.is_changed(view) || record.order != Order::LeaderLast {
        return begin(want, view, slot, partition, now);
    }
    if let Err(hold) = correct_version(want, view, record) {
        return halt(hold);
    }
    // A newer member that came to lead meanwhile, when the leader was lost, makes a downgrade of what was none (H15).
    let led = record.highest_led.as_ref().filter(|led| **led > record.target.version);
    if let Some(Err(hold)) =
        led.filter(|_| !bug::active(Bug::FollowsAnyTemplate)).map(|led| passable(want, view, &record.target, led))
    {
        return halt(hold);
    }
    roll(want, view, record, partition, now)
}
