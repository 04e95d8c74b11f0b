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

use serde::Serializer;

pub use self::{
    fleet::{FleetOverview, Tier, TierState},
    outlook::{Ahead, Ended, Held, LeadershipMove, Outlook, Remark, Verdict},
    quorum::{Doing, Gate, Member, Place, QuorumOverview, Subject},
    said::Said,
};

/// The planner's words are told by their names.
fn by_name<T: Copy + Into<&'static str>, S: Serializer>(word: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str((*word).into())
}

/// The same where there may be none.
#[expect(clippy::ref_option, reason = "serde passes references")]
fn by_name_if_any<T: Copy + Into<&'static str>, S: Serializer>(
    word: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match word {
        Some(word) => by_name(word, serializer),
        None => serializer.serialize_none(),
    }
}
