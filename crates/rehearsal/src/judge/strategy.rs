//! What a strategy of somebody else's lets go is held again once, in time (H39).

use std::time::Duration;

use super::{
    Judge, Verdict,
    deed::{Cause, Deed, Step},
};

/// How long we have to hold what somebody else opened: a write of ours may be without an answer at that moment, the touches that settle it may
/// be, and then the hold itself.
const HOLD: Duration = Duration::from_secs(90);

pub(super) struct Strategy;

impl Judge for Strategy {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        let Deed::Replaced(gone, Cause::Others(since)) = step.deed else { return };
        let Some(set) = step.record.set(&gone.set) else { return };
        let pod = &gone.pod.1;
        let in_time = step.at.duration_since(*since).unsigned_abs() < HOLD;
        if in_time || set.held_once || step.record.was_absent(*since, step.at) {
            verdict.races += 1;
            // Their doing, and still one that we could have led away from.
            let leads = set.sound_and_leading(pod).1 && !set.is_alone();
            verdict.leader_restarts += usize::from(leads && !in_time);
        } else {
            verdict.object(step.at, &format!("{pod} deleted under somebody else's strategy that we did not hold"));
        }
    }
}
