//! What the rolling strategy sees, records and does: types, and no decision.

pub mod contest;
pub mod mark;
pub mod order;
pub mod owners;
pub mod parked;
pub mod record;
pub mod stage;
pub mod step;
pub mod template_trial;
pub mod view;
pub mod workload;

/// One member at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rolling;
