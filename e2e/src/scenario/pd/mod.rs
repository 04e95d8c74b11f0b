//! PD, from the old version to the new one.

mod priority;
pub mod set;

use super::{
    Deletions, Operators, Scenario,
    stories::{deadline, operator_killed},
};
use crate::client::Application;

/// The leader is on the ordinal that goes first.
const USUAL: Scenario = Scenario::usual(Application::Pd, Some(2));

/// All scenarios of PD.
pub const SCENARIOS: &[Scenario] = &[
    Scenario::baseline("pd-baseline", &USUAL),
    Scenario {
        name: "pd-rolling-3",
        shows: "three members, the leader on the ordinal that goes first; the operator in pods",
        ..USUAL
    },
    Scenario {
        name: "pd-operator-killed",
        shows: "five members, and the operator is killed at ten random moments",
        replicas: 5,
        leader: Some(4),
        operators: Operators::Local { count: 1, lease_seconds: 6 },
        run: |trial| Box::pin(operator_killed::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "pd-leader-priority",
        shows: "a member is preferred as the leader and would take leadership back: nothing moves until that is taken off",
        run: |trial| Box::pin(priority::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "pd-deadline",
        shows: "the new image never gets ready: its deadline passes, and a mended image finishes the job",
        deletions: Deletions::Any,
        run: |trial| Box::pin(deadline::run(trial)),
        ..USUAL
    },
];
