//! Where gates stand, of either kind of resource, and what was approved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::gate::State;

use crate::word::{Word, Written};

/// The state of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateStatus {
    /// The gate's name.
    pub name: String,
    /// Passed, Holding, Unknown, Overridden or NotAsked. Holding and Unknown let nothing through.
    #[schemars(with = "String")]
    pub state: Written<State>,
    /// Why the gate holds, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub reason: Option<Word>,
    /// Why the gate holds and what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Approvals: what is asked for, and what was granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalStatus {
    /// What a new value of `spec.requests.approve` would approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Question>,
    /// What was approved and still counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<Question>,
}

/// Something to approve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Where the upgrade goes.
    pub target_version: String,
    /// The image of the target version.
    pub target_image: String,
    /// The member that leads and would hand over; none where the upgrade itself is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<String>,
}
