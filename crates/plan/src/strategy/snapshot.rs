//! A snapshot before an upgrade begins (D2). It is taken by a Job, outside of the operator (H6); here is decided when, and what its
//! outcome means.
//!
//! ```text
//!   nothing taken yet ─▶ TakeSnapshot (attempt 1) ─▶ running ─▶ done ─▶ the template is written
//!                              ▲                        └────▶ failed: a person asks for the next attempt
//!                              └─ the Job is not there: the same attempt again, under the same name
//! ```
//! One attempt at a time: as long as a Job runs, nothing asks for another one. An attempt serves one upgrade, and only while it is
//! fresh; its number never comes again, so no Job is taken for another's.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    hold::Hold,
    reason::Reason,
    strategy::{
        contract::{Record, Strategy},
        known::{
            decision::{Decision, SOON, halt, wait},
            seen::Seen,
            snapshot::{Attempt, Progress, Snapshot},
            step::{JobStep, Step},
            want::Want,
        },
    },
};

/// What was taken longer ago than this is not the state that an upgrade begins with.
pub const FRESH: Duration = Duration::from_hours(1);

/// How much later than its deadline a Job may be seen to end.
const GRACE: Duration = Duration::from_mins(1);

/// The snapshot that the upgrade to `want.target` begins with, none where nobody wants one; or what comes first.
pub fn before<A: Step>(want: &Want, seen: &Seen, now: Timestamp) -> Result<Option<Snapshot>, Decision<A>> {
    let Some(deadline) = want.snapshot else { return Ok(None) };
    let Some(attempt) = &seen.attempt else {
        // Never two at once, whatever became of the record of the first.
        let runs = seen.snapshot == Fact::Known(Progress::Running);
        let hold = Hold::new(Reason::AwaitingSnapshot, "a snapshot that is not on record is being taken");
        return Err(if runs { wait(hold, SOON) } else { take(want, 1, now) });
    };
    if bug::active(Bug::SnapshotNotAwaited) {
        return Ok(None);
    }
    let next = || Err(take(want, attempt.number.saturating_add(1), now));
    let another = attempt.used || attempt.target != want.target;
    match &seen.snapshot {
        Fact::Unknown(why) => Err(wait(awaiting(attempt, &format!("what became of it is not known: {why}")), SOON)),
        // Also where it is for another upgrade: the old one must have ended before the next is asked for (H6).
        Fact::Known(Progress::Running) => {
            let hold = awaiting(attempt, "its Job has not ended");
            Err(if is_past(attempt, deadline.saturating_add(GRACE), now) { halt(hold) } else { wait(hold, SOON) })
        }
        Fact::Known(_) if another => next(),
        // Its Job would come too late, and knows that.
        Fact::Known(Progress::Missing) if is_past(attempt, deadline, now) => next(),
        Fact::Known(Progress::Missing) => Err(Decision::Act(JobStep::TakeSnapshot { attempt: attempt.clone() }.into())),
        Fact::Known(Progress::Done(_)) if is_past(attempt, FRESH, now) => next(),
        Fact::Known(Progress::Done(snapshot)) => Ok(Some(snapshot.clone())),
        Fact::Known(Progress::Failed(_)) if seen.resumed || seen.requests.retry => next(),
        Fact::Known(Progress::Failed(why)) => Err(halt(Hold::new(
            Reason::SnapshotFailed,
            format!("no snapshot before the upgrade to {}, attempt {}: {why}", attempt.target, attempt.number),
        ))),
    }
}

/// The attempt to record with a decision: the one that is about to be made, or the last one, which an upgrade that begins uses up.
pub(crate) fn attempt<S: Strategy>(
    decision: &Decision<S::Step>,
    view: &S::View,
    record: Option<&S::Record>,
) -> Option<Attempt> {
    if let Decision::Act(step) = decision
        && let Some(JobStep::TakeSnapshot { attempt }) = step.job()
    {
        return Some(attempt.clone());
    }
    let begins = record.is_some_and(|record| S::recorded(view).is_none_or(|before| before.target() != record.target()));
    view.as_ref().attempt.clone().map(|attempt| Attempt { used: attempt.used || begins, ..attempt })
}

fn take<A: Step>(want: &Want, number: u32, now: Timestamp) -> Decision<A> {
    let attempt = Attempt { number, target: want.target.clone(), since: now, used: false };
    Decision::Act(JobStep::TakeSnapshot { attempt }.into())
}

fn awaiting(attempt: &Attempt, what: &str) -> Hold {
    let message = format!("the snapshot before the upgrade to {}, attempt {}: {what}", attempt.target, attempt.number);
    Hold::new(Reason::AwaitingSnapshot, message)
}

/// A clock that was set back ends nothing.
fn is_past(attempt: &Attempt, limit: Duration, now: Timestamp) -> bool {
    now >= attempt.since && now.duration_since(attempt.since).unsigned_abs() >= limit
}
