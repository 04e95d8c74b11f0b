//! What people are told of a resource, whoever shows it to them and however: text and JSON come from the same value.
//!
//! ```text
//!   the resource as the API has it ─▶ QuorumOverview, FleetOverview    how it stands, by what the operator wrote
//!   a forecast of a quorum         ─▶ Outlook                          what would happen from here, and what blocks it now
//! ```
//! Everything here is pure, and nothing decides: reasons, steps and gates are the planner's own types. What a newer operator wrote and
//! this program does not know is told in its own words, or is not known.

mod fleet;
mod outlook;
mod quorum;
mod said;

pub use self::{
    fleet::{FleetOverview, Tier, TierState},
    outlook::{Ahead, Ended, Held, LeadershipMove, Outlook, Remark, Verdict},
    quorum::{Doing, Gate, Member, Place, QuorumOverview, Subject},
    said::Said,
};
