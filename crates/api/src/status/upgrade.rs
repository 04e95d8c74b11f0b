//! The upgrade that is under way.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::{
    Order,
    rolling::known::{stage::StageKind, template_trial::TemplateTrial},
};

use crate::{schema::one_of, status::jobs::Snapshot, word::Written};

/// The upgrade that is under way. Written before each act, so that a successor knows what was about to happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// The version that the upgrade goes to.
    pub target_version: String,
    /// The image of the target version.
    pub target_image: String,
    /// The version that the upgrade started from.
    pub from_version: String,
    /// The image that the upgrade started from.
    pub from_image: String,
    /// Order of replacement.
    #[serde(default = "by_partition")]
    #[schemars(schema_with = "one_of::<Order>")]
    pub order: Order,
    /// With order LeaderLast, whether the new template works: Running until a member has served from it, then Passed. Reverted if the first
    /// member could not, so that the previous template was written again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub template_trial: Option<Written<TemplateTrial>>,
    // Always written, and so missing only from a record that an operator wrote that knew other names: half of it is gone.
    /// Whether members are being brought back to the version that an unfinished upgrade started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_back: Option<bool>,
    /// The revision that the StatefulSet's controller made of the target's template, once it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// When the upgrade started.
    pub started_at: MicroTime,
    /// The partition that was written last or is about to be written.
    pub current_partition: i32,
    /// Partitions that may still show because the last write of the partition was not seen yet.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub previous_partitions: Vec<i32>,
    /// When Windlass last wrote the template; startedAt if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_at: Option<MicroTime>,
    /// How often in a row Windlass wrote the template without seeing it in place.
    #[serde(default)]
    pub template_writes: i32,
    /// Somebody else changed the update strategy during the upgrade, which waits for spec.requests.resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contest: Option<Contest>,
    /// The members that are replaced and healthy.
    #[serde(default)]
    pub completed_pods: Vec<String>,
    /// Number of members that are done, of all members, like 1/3.
    #[serde(default)]
    pub progress: String,
    /// The newest version that has led since it began, or may have while nobody could look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_led_version: Option<String>,
    /// Raft's term when the leader was seen last. Where one is skipped, somebody else may have led in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raft_term: Option<i64>,
    /// How often leadership was asked to move since the upgrade began, turned round, or somebody asked to go on.
    #[serde(default)]
    pub handover_count: i32,
    /// The hand-over that was asked for and has not been seen yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_handover: Option<PendingHandover>,
    /// Members that were replaced for a target that was abandoned since. One of them that is broken may be deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub abandoned_pods: Vec<String>,
    /// The target that takes this one's place as soon as its gates let it. Nobody is let go for this one meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_target: Option<NextTarget>,
    /// The snapshot that was taken before it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// The current stage of the replacement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// The member that is being replaced, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacing: Option<PodSince>,
    /// How long the members took that were replaced so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pod"]))]
    pub durations: Vec<PodDuration>,
    /// Since when each replaced member has been healthy without interruption.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pod"]))]
    pub healthy_since: Vec<PodSince>,
    /// Where the leader was when members were seen to be behind it. Who has reached that keeps up, however far the leader is by then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pod"]))]
    pub marks: Vec<Mark>,
    /// The member whose turn is next. Webhooks are asked about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The act that was decided last, by name and object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
}

fn by_partition() -> Order {
    Order::ReverseOrdinal
}

/// A change of the update strategy by somebody else during an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contest {
    /// Who did, as far as the StatefulSet's managedFields tell.
    pub by: String,
    /// How often Windlass wrote what holds everybody.
    pub holds: i32,
    /// That was seen to stand. It is not written again.
    #[serde(default)]
    pub held: bool,
}

/// A version and its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextTarget {
    /// The version.
    pub version: String,
    /// Its image.
    pub image: String,
}

/// A member and a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSince {
    /// The member's pod.
    pub pod: String,
    /// Since when.
    pub since: MicroTime,
}

/// Where the leader was at one moment, for a member that was behind it then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The member's pod.
    pub pod: String,
    /// The leader's position in its log.
    pub index: i64,
    /// When that was.
    pub since: MicroTime,
    /// When the member was last seen to have reached such a mark, as long as that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<MicroTime>,
}

/// A member and how long it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodDuration {
    /// The member's pod.
    pub pod: String,
    /// From the permit until it was well again, like `1m 12s`.
    pub took: String,
}

/// A stage of replacing one member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Replace, Join or Sync.
    #[schemars(with = "String")]
    pub name: Written<StageKind>,
    /// The member's pod.
    pub pod: String,
    /// Deadlines count from here.
    pub since: MicroTime,
}

/// A hand-over that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingHandover {
    /// Whom leadership was asked to leave.
    pub pod: String,
    /// When it was asked last; its deadline counts from here.
    pub since: MicroTime,
    /// How often it was asked.
    #[serde(default)]
    pub attempts: i32,
    /// Why the last request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
