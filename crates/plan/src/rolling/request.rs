//! What people ask for once, and what is done by itself when a deadline passes (X4).
//!
//! ```text
//!   abort ───────────────────────────────────▶ Stopped: nothing new is begun, a permit that stands is taken back
//!   rollback, or a deadline and onDeadline ──▶ Back: everybody goes back to where it came from, and stays there
//!   retry, or another target ────────────────▶ forgotten, and every clock starts anew
//! ```
//! What is given up is a target. It is recorded beside the upgrade and outlives it, or a revert that has ended would begin the same
//! upgrade again.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::{
        known::{
            decision::{Decision, halt},
            record::Record,
            request::{GivenUp, Way},
            view::View,
            want::{OnDeadline, Target, Trigger, Want},
        },
        retarget,
    },
};

/// What is given up, after what people asked for.
pub(crate) fn take_in(want: &Want, view: &View, record: Option<&mut Record>) -> Option<GivenUp> {
    let requests = view.requests;
    let mut given_up = view.given_up.clone().filter(|given_up| given_up.target == want.target && !requests.retry);
    let wanted = record.is_some() || view.workload.image != want.target.image;
    if let Some(record) = record.filter(|_| requests.retry) {
        record.stage = None;
        record.hand_over = None;
    }
    let instead = |way| Some(GivenUp { target: want.target.clone(), way });
    if requests.abort && wanted {
        given_up = instead(Way::Stopped);
    }
    if requests.rollback && view.record.is_some() {
        // Where somebody else writes the template, only they can write the old one.
        given_up = instead(if want.trigger == Trigger::Version { Way::Back } else { Way::Stopped });
    }
    given_up
}

/// Whether the deadline that has passed means going back: only where there is a way back, and where the trouble is not a person's to
/// end. A member that is sealed wants its key and one that refuses our token wants another token, not another version.
pub(crate) fn gives_up(want: &Want, view: &View, record: Option<&Record>, decision: &Decision, now: Timestamp) -> bool {
    let (Some(record), Decision::Halt { on }) = (record, decision) else { return false };
    let overdue = record.stage.as_ref().is_some_and(|stage| stage.is_overdue(&want.deadlines, now));
    let safe = bug::active(Bug::DeadlineForcesDowngrade) || retarget::may_revert(want, view, record).is_ok();
    want.on_deadline == OnDeadline::Revert
        && want.trigger == Trigger::Version
        && want.target == record.target
        && !record.reverting
        && record.from != record.target
        && (overdue || matches!(on.reason, Reason::DeadlineExceeded | Reason::HandOverFailed))
        && !matches!(on.reason, Reason::MemberSealed | Reason::TokenRefused)
        && safe
}

/// What comes of a decision that was made because a target is given up.
pub(crate) fn conclude(want: &Want, given_up: &GivenUp, decision: Decision) -> Decision {
    match (given_up.way, decision) {
        (Way::Stopped, Decision::Wait { on, .. }) if on.reason == Reason::Paused && !want.paused => {
            halt(Hold::new(Reason::Aborted, format!("stopped on the way to {}", given_up.target)))
        }
        (Way::Back, Decision::Done) if !bug::active(Bug::GivenUpForgotten) => {
            let message = format!("{} was given up, and everybody is back where it came from", given_up.target);
            halt(Hold::new(Reason::RolledBack, message))
        }
        (Way::Stopped | Way::Back, decision) => decision,
    }
}

/// What is wanted instead of the target that was given up.
pub(crate) fn instead<'a>(want: &'a Want, view: &View, record: Option<&Record>, given_up: &GivenUp) -> Cow<'a, Want> {
    let mut instead = want.clone();
    match (given_up.way, record) {
        (Way::Stopped, _) if bug::active(Bug::AbortTooLate) && record.is_some_and(|record| record.stage.is_some()) => {
            return Cow::Borrowed(want);
        }
        (Way::Stopped, _) => instead.paused = true,
        (Way::Back, Some(record)) if record.reverting => instead.target = record.target.clone(),
        (Way::Back, Some(record)) => {
            instead.target = record.from.clone();
            instead.allow_downgrade |= bug::active(Bug::DeadlineForcesDowngrade);
        }
        (Way::Back, None) if bug::active(Bug::GivenUpForgotten) => return Cow::Borrowed(want),
        (Way::Back, None) => instead.target = standing(want, view),
    }
    Cow::Owned(instead)
}

/// What stands at rest: the template's image, and the version that everybody runs.
fn standing(want: &Want, view: &View) -> Target {
    let members = view.quorum.members.known().into_iter().flatten();
    let runs = members.filter_map(|(_, member)| member.version.known()).max();
    Target { version: runs.unwrap_or(&want.target.version).clone(), image: view.workload.image.clone() }
}
