//! What people ask for once, and what is done by itself when a deadline passes (X4).
//!
//! ```text
//!   abort ───────────────────────────────────▶ Stopped: nothing new is begun, a permit that stands is taken back
//!   rollback, or a deadline and onDeadline ──▶ RolledBack: everybody goes back to where it came from, and stays there
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
    strategy::{
        contract::{Record, Strategy},
        known::{
            decision::{Decision, halt},
            request::{GivenUp, Outcome},
            want::{OnDeadline, Trigger, Want},
        },
    },
};

/// What is given up, after what people asked for.
pub(crate) fn take_in<S: Strategy>(want: &Want, view: &S::View, record: Option<&mut S::Record>) -> Option<GivenUp> {
    let seen = view.as_ref();
    let requests = seen.requests;
    let mut given_up = seen.given_up.clone().filter(|given_up| given_up.target == want.target && !requests.retry);
    let wanted = record.is_some() || S::lacks_target(want, view);
    if let Some(record) = record.filter(|_| requests.retry) {
        record.forgive();
    }
    let instead = |outcome| Some(GivenUp { target: want.target.clone(), outcome, because: None });
    if requests.abort && wanted {
        given_up = instead(Outcome::Stopped);
    }
    // Where the spec says already that it goes back, there is nothing to give up.
    let home =
        |record: &S::Record| if record.is_rolling_back() { record.target().clone() } else { record.from().clone() };
    let under_way = S::recorded(view).filter(|record| home(record) != want.target || !has_way_back(want, *record));
    if let Some(record) = under_way.filter(|_| requests.rollback) {
        let back = has_way_back(want, record) || bug::active(Bug::RolledForward);
        given_up = instead(if back { Outcome::RolledBack } else { Outcome::Stopped });
    }
    given_up
}

/// Whether where it came from is known, and ours to write. Where a rollout was taken over half way, nobody knows where it came from.
fn has_way_back(want: &Want, record: &impl Record) -> bool {
    want.trigger == Trigger::Version && record.from() != record.target()
}

/// The target is given up by itself, and the reason is kept: events are gone by the time somebody asks.
pub(crate) fn because_of<A>(want: &Want, decision: &Decision<A>) -> GivenUp {
    let because = match decision {
        Decision::Halt { on } | Decision::Wait { on, .. } => Some(format!("{}: {}", on.reason, on.message)),
        Decision::Act(_) | Decision::Done => None,
    };
    GivenUp { target: want.target.clone(), outcome: Outcome::RolledBack, because }
}

/// Whether the deadline that has passed means going back: only where there is a way back, and where the trouble is not a person's to
/// end. A member that is sealed wants its key and one that refuses our token wants another token, not another version.
pub(crate) fn gives_up<S: Strategy>(
    want: &Want,
    view: &S::View,
    record: Option<&S::Record>,
    decision: &Decision<S::Step>,
    now: Timestamp,
) -> bool {
    let (Some(record), Decision::Halt { on }) = (record, decision) else { return false };
    let safe = bug::active(Bug::DeadlineForcesDowngrade) || S::may_go_back(want, view, record).is_ok();
    want.on_deadline == OnDeadline::RollBack
        && want.trigger == Trigger::Version
        && want.target == *record.target()
        && !record.is_rolling_back()
        && record.from() != record.target()
        && (record.is_overdue(want, now) || matches!(on.reason, Reason::DeadlineExceeded | Reason::HandOverFailed))
        && !matches!(on.reason, Reason::MemberSealed | Reason::TokenRefused)
        && safe
}

/// What comes of a decision that was made because a target is given up.
pub(crate) fn conclude<A>(
    want: &Want,
    given_up: &GivenUp,
    record: Option<&impl Record>,
    decision: Decision<A>,
) -> Decision<A> {
    let target = &given_up.target;
    let because = given_up.because.as_ref().map(|because| format!(", because {because}")).unwrap_or_default();
    match (given_up.outcome, decision) {
        (Outcome::Stopped, Decision::Wait { on, .. }) if on.reason == Reason::Paused && !want.paused => {
            let message = format!("stopped on the way to {target}");
            halt(Hold::new(Reason::Aborted, message).and(how_to_go_back(want, record)))
        }
        (Outcome::RolledBack, Decision::Done) if !bug::active(Bug::GivenUpForgotten) => {
            let message = format!("{target} was given up, and everybody is back where it came from{because}");
            halt(Hold::new(Reason::RolledBack, message))
        }
        (Outcome::RolledBack, Decision::Halt { on }) if on.reason == Reason::DowngradeNotAllowed => halt(on.and(&format!(
            "Nothing is rolled back, and nothing goes on: set spec.requests.retry to a new value to go on to {target}"
        ))),
        (Outcome::Stopped | Outcome::RolledBack, decision) => decision,
    }
}

/// What leads back to where a stopped upgrade came from.
fn how_to_go_back(want: &Want, record: Option<&impl Record>) -> &'static str {
    match (want.trigger, record) {
        (_, None) => "No pod was replaced for it",
        (Trigger::Template, Some(_)) => {
            "To go back, restore the template where it comes from: Windlass does not write it"
        }
        (Trigger::Version, Some(record)) if record.from() == record.target() => {
            "Windlass took this rollout over half way and does not know what ran before: to go back, set spec.version and spec.image"
        }
        (Trigger::Version, Some(_)) => "To go back, set spec.requests.rollback to a new value",
    }
}

/// What is wanted instead of the target that was given up.
pub(crate) fn instead<'a, S: Strategy>(
    want: &'a Want,
    view: &S::View,
    record: Option<&S::Record>,
    given_up: &GivenUp,
) -> Cow<'a, Want> {
    let mut instead = want.clone();
    match (given_up.outcome, record) {
        (Outcome::Stopped, _) if bug::active(Bug::AbortTooLate) && record.is_some_and(Record::is_waiting) => {
            return Cow::Borrowed(want);
        }
        (Outcome::Stopped, _) => instead.paused = true,
        (Outcome::RolledBack, Some(record)) if record.is_rolling_back() => instead.target = record.target().clone(),
        (Outcome::RolledBack, Some(record)) => {
            instead.target = record.from().clone();
            instead.allow_downgrade |= bug::active(Bug::DeadlineForcesDowngrade);
        }
        (Outcome::RolledBack, None) if bug::active(Bug::GivenUpForgotten) => return Cow::Borrowed(want),
        (Outcome::RolledBack, None) => instead.target = S::standing(want, view),
    }
    Cow::Owned(instead)
}
