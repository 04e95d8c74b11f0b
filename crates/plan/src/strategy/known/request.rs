//! What people ask for once, and what was given up.

use serde::{Deserialize, Serialize};

use crate::strategy::known::want::Target;

/// Requests that were not answered yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Try again what was given up or took too long.
    pub retry: bool,
    /// Stop here.
    pub abort: bool,
    /// Go back to where the upgrade came from.
    pub rollback: bool,
}

/// A target that nobody tries to reach any more, until another one is asked for or a person says retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// What was asked for.
    pub target: Target,
    /// What happens instead.
    pub outcome: Outcome,
    /// Why it goes back by itself; none where a person asked for it.
    pub because: Option<String>,
}

/// What happens instead of going on. The words are those of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// Everybody stays as they are.
    Stopped,
    /// Everybody goes back.
    RolledBack,
}
