//! From the custom resource to the planner's types and back. What can't be read becomes a hold with the field's name in it.

mod claim;
mod gates;
mod record;
mod requests;
mod snapshot;
mod want;

use std::time::Duration;

use windlass_plan::{Hold, Reason};

pub(crate) use self::gates::windows;
pub use self::{
    claim::{operator, recorded, written_operator},
    gates::gate,
    record::{contest, record, upgrade, written_contest},
    requests::{approvals, given_up, is_fresh, requests, written_approvals, written_given_up},
    snapshot::{attempt, written_attempt},
    want::{pull_deadline, snapshot_deadline, want},
};

/// A duration as people write it, like `90s`; `field` is where.
pub fn duration(field: &str, text: &str) -> Result<Duration, Hold> {
    let signed = text.parse::<jiff::SignedDuration>().map_err(|error| invalid(field, &error))?;
    Duration::try_from(signed).map_err(|error| invalid(field, &error))
}

pub(crate) fn invalid(field: &str, why: &dyn std::fmt::Display) -> Hold {
    Hold::new(Reason::InvalidSpec, format!("{field}: {why}"))
}
