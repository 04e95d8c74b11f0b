//! What every strategy's decisions are made from, whatever else it looks at.

use crate::{
    fact::Fact,
    gate::ExternalGate,
    quorum::Quorum,
    strategy::known::{
        approval::Approvals,
        pulls::Pulls,
        request::{GivenUp, Requests},
        snapshot::{Attempt, Progress},
    },
};

/// What every strategy sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What the system says of itself.
    pub quorum: Quorum,
    /// The last try to take a snapshot, as recorded.
    pub attempt: Option<Attempt>,
    /// What became of it.
    pub snapshot: Fact<Progress>,
    /// What became of the new image on the nodes, where it shall be there before anybody stops.
    pub pulls: Fact<Pulls>,
    /// A person asked to finish a rollout that was half done when it was adopted (H40), or to try again what failed.
    pub resumed: bool,
    /// What a person asks for once, and has not been answered yet.
    pub requests: Requests,
    /// The target that was given up, as recorded.
    pub given_up: Option<GivenUp>,
    /// What was approved, and what was asked.
    pub approvals: Approvals,
    /// Gates that were evaluated where the facts are, in their order.
    pub external: Vec<ExternalGate>,
}
