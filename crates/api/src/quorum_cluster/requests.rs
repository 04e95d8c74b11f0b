//! One-time requests, and which of them were handled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One-time requests. Set a field to a new value to ask again; status.requests shows the values that were handled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// Finish a rollout that was half done when this StatefulSet was adopted; try again what failed and waits for a person; continue after
    /// somebody else changed the StatefulSet (FieldOwned, TemplateChanged).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub resume: Option<String>,
    /// Approve the step in status.approval.asked. Later steps are not approved by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub approve: Option<String>,
    /// Stop the upgrade: no further member is replaced until `retry`, `rollback` or a new target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub abort: Option<String>,
    /// Roll back the current upgrade to the version that it started from, and stay there until `retry` or a new target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub rollback: Option<String>,
    /// Retry an upgrade that was stopped, was rolled back or missed a deadline. All deadlines start again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub retry: Option<String>,
}

/// The values of `spec.requests` that were handled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandledRequests {
    /// See `spec.requests.resume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// See `spec.requests.approve`. A value is handled also where it answered no question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// See `spec.requests.abort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<String>,
    /// See `spec.requests.rollback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<String>,
    /// See `spec.requests.retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
}
