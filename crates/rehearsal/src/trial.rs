//! The operator on trial: what the harness can't know. Who our processes are, when a run has ended, and who judges it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_sim::{
    faults::Strike,
    harness::{self, Program, Trial},
    journal::{Change, Entry},
    scenario::{self, End},
};

use crate::judge::{Verdict, judge};

/// A run of the operator, and how it must end.
pub type Scenario = scenario::Scenario<Ending>;
/// What became of one.
pub type Outcome = harness::Outcome<Verdict>;

/// How our processes' names begin.
const OURS: &str = "windlass";

/// Our processes by their names.
pub fn is_ours(user: &str) -> bool {
    user.starts_with(OURS)
}

/// How a run must end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Ready is True for the newest generation.
    #[default]
    Ready,
    /// Stalled or waiting for this reason, for the newest generation.
    Held(String),
    /// Ready, or held for one of these reasons.
    ReadyOr(Vec<String>),
}

impl End for Ending {
    fn has_come(&self, subject: &Value) -> bool {
        let generation = &subject["metadata"]["generation"];
        let conditions = subject.pointer("/status/conditions").and_then(Value::as_array);
        let mut ready = conditions.into_iter().flatten().filter(|condition| condition["type"] == "Ready");
        let Some(ready) = ready.next().filter(|ready| ready["observedGeneration"] == *generation) else {
            return false;
        };
        match self {
            Self::Ready => ready["status"] == "True",
            Self::Held(reason) => ready["status"] != "True" && ready["reason"] == reason.as_str(),
            Self::ReadyOr(reasons) => {
                ready["status"] == "True" || reasons.iter().any(|reason| ready["reason"] == reason.as_str())
            }
        }
    }
}

/// Runs a scenario to its end, on a runtime of its own with virtual time.
pub fn run(scenario: &Scenario, strikes: &[(u64, Strike)], program: &Program) -> std::io::Result<Outcome> {
    run_beside(scenario, strikes, program, None)
}

/// The same beside a program that is none of ours and suffers from nothing: somebody else's controller.
pub fn run_beside(
    scenario: &Scenario,
    strikes: &[(u64, Strike)],
    program: &Program,
    beside: Option<&Program>,
) -> std::io::Result<Outcome> {
    let judge = |journal: &[Entry]| judge(journal, scenario.max_leader_moves);
    harness::run(scenario, strikes, &Trial { name: OURS, program, says_taken_over, beside, judge: &judge })
}

/// Whoever acts says in the resource's status that its take-over has settled.
fn says_taken_over(change: &Change) -> bool {
    let operator = change.after.as_deref().and_then(|after| after.pointer("/status/operator"));
    operator.is_some_and(|operator| operator["predecessorDone"] == true)
}
