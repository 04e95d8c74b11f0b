//! What was written down before it was asked for (H1): a request for a Job carries no fence, so it follows its intent, and whoever takes over makes
//! the Jobs of the intents that it finds.

use windlass_api::status::jobs::Intent;

use super::{Draft, Maker};
use crate::{
    actor::Actor,
    error::{Class, Error},
};

/// Makes the Jobs of these intents. What each is made from is told by `draft`.
pub async fn carry_out(
    actor: Actor<'_>,
    maker: &Maker,
    intents: &[Intent],
    draft: impl AsyncFn(&Intent) -> Result<Draft, Error>,
) -> Result<(), Error> {
    for intent in intents {
        // Boxed: a Job is a large thing to hold.
        Box::pin(async { maker.make(actor, draft(intent).await?).await }).await?;
    }
    Ok(())
}

/// No more than this are settled: more than one decision ever reserves. A status that somebody else has written keeps nobody busy for long.
const MOST: usize = 100;

/// The same at a take-over, for what a predecessor may still be about to make: its late request meets a name that is taken.
pub async fn settle(
    actor: Actor<'_>,
    maker: &Maker,
    intents: &[Intent],
    draft: impl AsyncFn(&Intent) -> Result<Draft, Error>,
) -> Result<(), Error> {
    for intent in intents.iter().take(MOST) {
        match carry_out(actor, maker, std::slice::from_ref(intent), &draft).await {
            // Refused for now: a request of the predecessor's that comes later may pass.
            Err(error) if error.may_pass() => return Err(error),
            // Nobody may make it, or there is nothing to make it from: for the predecessor neither.
            Err(error) if matches!(error.class(), Class::Refused | Class::Stale) => {}
            other => other?,
        }
    }
    Ok(())
}
