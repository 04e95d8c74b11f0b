//! What Windlass reports about a QuorumCluster, and what it must find again after a restart.

pub mod gates;
pub mod jobs;
pub mod members;
pub mod upgrade;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_plan::strategy::known::request::Outcome;

use self::{
    gates::{ApprovalStatus, GateStatus},
    jobs::{Intent, SnapshotAttempt},
    members::MemberStatus,
    upgrade::{Contest, Upgrade},
};
use crate::{
    phase::{self, Phase},
    quorum_cluster::requests::HandledRequests,
    word::Written,
};

/// The state of a QuorumCluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QuorumClusterStatus {
    /// The generation of the spec that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    // A string to the API server: an enum of its would refuse what another release of the operator has written.
    /// The state in one word, for people: UpToDate, Upgrading, RollingBack, Waiting, NeedsApproval, NeedsAttention or Paused. Programs should
    /// read the conditions.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "phase::read")]
    #[schemars(with = "Option<String>")]
    pub phase: Option<Phase>,
    /// The version that all members run; first set when all agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_version: Option<String>,
    /// The StatefulSet that holds the members now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The StatefulSet's update strategy before Windlass first wrote to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Adopted>,
    /// The partition that Windlass set while no upgrade was under way: one that holds everybody, or 0 for a moment on the way from OnDelete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked_partition: Option<i32>,
    /// The value before parkedPartition, kept until the StatefulSet shows parkedPartition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_parked_partition: Option<i32>,
    /// The change of the update strategy from OnDelete to RollingUpdate that was written last, until the StatefulSet shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_switch: Option<StrategySwitch>,
    /// Windlass could not read this resource for a while and did not see which member led. The next plan assumes that the new version did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leadership_unobserved: bool,
    /// The operator process that acts on this resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorClaim>,
    /// The current upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// Somebody else changed the update strategy while `upgrade` could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contest: Option<Contest>,
    // A record and no intent, and so not among them: its number never comes again, and what it is for, since when and whether it is used up decides
    // about upgrades long after its Job has ended. That the Job may be on its way is said by an intent of its number.
    /// The last try to take a snapshot before an upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotAttempt>,
    /// Jobs that are being created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<Intent>,
    /// The members as last observed, ordered by ordinal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pod"]))]
    pub members: Vec<MemberStatus>,
    /// Where every gate stands before the next step that disturbs a member, in the order in which they are asked; none where there is no
    /// such step to take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub gates: Vec<GateStatus>,
    /// Approvals: what is asked for, and what was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalStatus>,
    /// The target that is no longer tried, until the spec asks for another one or `spec.requests.retry` has a new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<Abandoned>,
    /// The requests that have been handled.
    #[serde(skip_serializing_if = "is_default")]
    pub requests: HandledRequests,
    /// Ready, Reconciling and Stalled, as kstatus reads them; and Upgrading, while `upgrade` is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

impl QuorumClusterStatus {
    /// An operator has acted here, though none may be named: one that called its claim otherwise has, before the API server dropped that. Each
    /// of these is written before the act that it is about, so where none is there nothing can be on its way.
    pub fn tells_of_acts(&self) -> bool {
        let at_rest = self.adopted.is_some() || self.parked_partition.is_some() || self.strategy_switch.is_some();
        let jobs = self.snapshot.is_some() || !self.intents.is_empty();
        self.upgrade.is_some() || self.contest.is_some() || self.abandoned.is_some() || at_rest || jobs
    }

    /// It goes back to where it came from.
    pub fn is_rolling_back(&self) -> bool {
        self.upgrade.as_ref().is_some_and(|upgrade| upgrade.rolling_back == Some(true))
    }
}

/// A change of the update strategy from OnDelete to RollingUpdate that was not seen yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrategySwitch {
    /// When it was written last.
    pub at: MicroTime,
    /// How often in a row.
    pub times: i32,
}

/// An update strategy to restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adopted {
    // Kubernetes' word and not ours: whatever it is, it is held against the StatefulSet's own.
    /// RollingUpdate or OnDelete.
    #[serde(rename = "type")]
    pub type_: String,
    /// The partition, where the StatefulSet had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
    /// All of it as it was found, whatever its fields: what Windlass replaced of it comes back so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub strategy: Option<Value>,
}

/// Whether it says no more than if it were not there.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true})
}

/// The operator process that acts on a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorClaim {
    /// Unique to one term of one operator process.
    pub identity: String,
    /// Increases by one with every take-over of this resource.
    pub term: i64,
    /// When this process took over.
    pub since: MicroTime,
    /// Whether every write that the previous process may have left unfinished can no longer take effect. Until then nothing is changed.
    pub predecessor_done: bool,
}

/// A target that was abandoned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Abandoned {
    /// The version of the target.
    pub version: String,
    /// The image of the target.
    pub image: String,
    /// Stopped: all members stay as they are. RolledBack: all members return to the version that the upgrade started from.
    #[schemars(with = "String")]
    pub outcome: Written<Outcome>,
    /// Why the upgrade was rolled back automatically; unset if a person asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
