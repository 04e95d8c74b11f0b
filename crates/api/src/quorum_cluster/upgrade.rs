//! How members are updated, and the limits of one upgrade.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::Order;

use crate::schema::{DURATION, IMAGE, one_of};

/// How members are updated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// How members are updated.
    #[serde(rename = "type")]
    pub type_: StrategyType,
    /// Settings for type RollingUpdate.
    pub rolling_update: RollingUpdate,
}

/// How members are updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::EnumIter)]
pub enum StrategyType {
    /// Replace the pods of the StatefulSet one at a time.
    #[default]
    RollingUpdate,
}

/// Settings for type RollingUpdate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// Order of replacement. Defaults to LeaderLast if the update strategy of the StatefulSet is OnDelete, otherwise to ReverseOrdinal. The
    /// update strategy that the order needs is set when the next upgrade starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "one_of::<Order>", extend("nullable" = true))]
    pub order: Option<Order>,
}

/// Limits of one upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpgradeLimits {
    /// The longest time that each stage of a member's replacement may take.
    pub deadlines: Deadlines,
    /// The image of executor Jobs: an image of Windlass. Defaults to the one in the operator's configuration. Other images must be allowed by
    /// the operator's flag `--allow-executor-image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = IMAGE))]
    pub executor_image: Option<String>,
    /// The largest number of log entries that a member may be behind the leader and still count as caught up.
    #[schemars(range(min = 0))]
    pub max_lag_entries: i64,
    /// How long a replaced member must stay ready, healthy and caught up before the next one is replaced, and before leadership may be handed to it. If it
    /// fails in that time, the time starts again. In the format of a deadline.
    #[schemars(regex(pattern = DURATION))]
    pub soak: String,
    /// Pull the new image on every node that runs a member before anything is written, and go on only when all nodes have it. A Job for each
    /// node does it, with the pull secrets and the ServiceAccount of the StatefulSet; this needs the role `windlass-jobs` in this namespace. The
    /// gate ImagePulled shows the progress.
    pub pre_pull: bool,
    /// Show the last line of a container's log, and its termination message, in the status while a replaced member does not become healthy.
    /// Everyone who may read this resource can then read it, and logs can contain secrets. If false, messages only tell how to read the log.
    /// Needs the role `windlass-logs` in this namespace; a log that can't be read delays nothing.
    pub show_logs: bool,
}

impl Default for UpgradeLimits {
    fn default() -> Self {
        Self {
            deadlines: Deadlines::default(),
            executor_image: None,
            max_lag_entries: 100,
            soak: "0s".into(),
            pre_pull: false,
            show_logs: false,
        }
    }
}

/// Deadlines, in the format `90s`, `5m` or `1h30m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Deadlines {
    /// From the request to hand over until another member leads. After that, the request is repeated.
    #[schemars(regex(pattern = DURATION))]
    pub handover: String,
    /// From the start of the replacement until the new pod is Ready.
    #[schemars(regex(pattern = DURATION))]
    pub ready: String,
    /// From the pod being Ready until the member is healthy.
    #[schemars(regex(pattern = DURATION))]
    pub health: String,
    /// From the member being healthy until it has caught up with the leader.
    #[schemars(regex(pattern = DURATION))]
    pub sync: String,
    /// With `prePull`, the time for a node to pull the new image. After that, Windlass keeps trying for an hour and reports that it needs
    /// attention.
    #[schemars(regex(pattern = DURATION))]
    pub pull: String,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { handover: "30s".into(), ready: "5m".into(), health: "2m".into(), sync: "2m".into(), pull: "10m".into() }
    }
}
