//! Making a resource ours before anything is decided about it (H1): the same for every kind that carries a claim.

use std::time::Duration;

use windlass_api::{status::OperatorClaim, translate};
use windlass_plan::{
    Reason,
    fence::{self, Claim, Recorded},
};

use crate::actor::Actor;

/// What to do about the claim first.
pub enum Stand {
    /// It is ours: act.
    Held,
    /// Look again after this long.
    Wait(Duration),
    /// Write this into the status by compare-and-swap, and look again.
    Claim(OperatorClaim),
    /// Touch what a predecessor may still be writing, then write this, and look again.
    Touch(OperatorClaim),
}

/// Where this process stands with a resource that says this about who acts on it.
pub fn stand(actor: Actor<'_>, recorded: &Recorded) -> Stand {
    let (context, now) = (actor.context, actor.context.clock.now());
    match fence::claim(recorded, actor.term.id(), context.settings.longest_write, now) {
        Claim::Held => Stand::Held,
        Claim::WaitUntil(until) => {
            context.metrics.hold(Reason::TakingOver);
            // Never longer than that, should the clock go backwards.
            Stand::Wait(until.duration_since(now).unsigned_abs().min(context.settings.longest_write))
        }
        Claim::Take(operator) => {
            if recorded.is_somebody() {
                context.metrics.take_over();
            }
            Stand::Claim(translate::written_operator(&operator))
        }
        Claim::Touch(operator) => Stand::Touch(translate::written_operator(&operator)),
    }
}
