//! The right to write. Every write is sent only while the term is ours, with a deadline inside it; what may have been sent and was not
//! answered is waited for, and what it may have reached is touched (H1, H5).

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{ResourceExt, api::PatchParams};
use serde_json::json;
use tokio::time::Instant;
use windlass_plan::{
    Reason,
    bug::{self, Bug},
    rolling::known::owners::MANAGER,
};

use crate::{
    Context,
    error::Error,
    lease::{Lease, Term},
};

/// How every write of ours says whose it is. Whose fields are whose is read back from that (H39).
pub fn as_us() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// Who touched an object last, and as what.
pub const TOUCHED: &str = "windlass.dev/touched-by";

/// The right to write: this process, in this term.
#[derive(Clone, Copy)]
pub struct Actor<'a> {
    /// What a pass needs from outside.
    pub context: &'a Context,
    /// The lease.
    pub lease: &'a Lease<'a>,
    /// The term in which the decision was made.
    pub term: &'a Term,
}

impl Actor<'_> {
    /// Sends one write: only while the term is ours, and with a deadline inside it.
    pub async fn write<T>(
        &self,
        verb: &'static str,
        what: &str,
        send: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        let left = self.lease.remaining(self.term)?;
        let deadline = left.min(self.context.settings.write_deadline);
        let answer = self.context.bounded(deadline, verb, what, send).await;
        self.context.metrics.write(verb, answer.as_ref().err().map(Error::class));
        answer
    }

    /// The same for what changes a StatefulSet, its pods or who may evict them. One that is not answered is remembered: nothing else is
    /// decided about that StatefulSet before it can't happen any more.
    pub async fn disrupt<T>(
        &self,
        verb: &'static str,
        what: &str,
        set: &StatefulSet,
        send: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        let answer = self.write(verb, what, send).await;
        if answer.as_ref().is_err_and(Error::may_still_happen) && !bug::active(Bug::UnansweredForgotten) {
            let longest = self.context.settings.longest_write;
            tracing::warn!(
                verb,
                what,
                ?longest,
                "a write was not answered; nothing is decided until it can't land any more"
            );
            self.context.unanswered.note(&key(set), Instant::now() + longest);
        }
        answer
    }
}

/// How unanswered writes about a StatefulSet are found again.
pub fn key(set: &StatefulSet) -> String {
    format!("{}/{}", set.namespace().unwrap_or_default(), set.name_any())
}

/// Waits until no write of our own that was not answered can still be worked on, and touches what it may have reached. None when there is
/// no such write: then anything may be decided.
pub async fn settle(
    actor: Actor<'_>,
    set: (&str, &str),
    touch: impl AsyncFnOnce() -> Result<(), Error>,
) -> Result<Option<Duration>, Error> {
    let key = format!("{}/{}", set.0, set.1);
    let Some(over) = actor.context.unanswered.over(&key) else { return Ok(None) };
    actor.context.metrics.hold(Reason::AwaitingAnswer);
    let left = over.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        return Ok(Some(left));
    }
    touch().await?;
    // Also where the StatefulSet is gone, and nothing is left to be touched.
    actor.context.unanswered.settled(&key);
    Ok(Some(Duration::ZERO))
}

/// Never the same twice: what changes nothing moves nothing.
pub fn mark(actor: Actor<'_>, seen: &impl ResourceExt) -> String {
    format!("{} {}", actor.term.id().as_str(), seen.resource_version().unwrap_or_default())
}

/// The patch that writes such a mark.
pub fn touching(mark: &str) -> serde_json::Value {
    json!({"metadata": {"annotations": {TOUCHED: mark}}})
}
