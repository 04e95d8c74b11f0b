//! What Windlass reports about a QuorumCluster, and what it must find again after a restart.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::{
    Order,
    gate::State,
    rolling::known::{stage::StageKind, template_trial::TemplateTrial},
    strategy::known::request::Outcome,
};

use crate::{
    conditions::Tri,
    phase::{self, Phase},
    schema::one_of,
    word::{Word, Written},
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
    #[serde(skip_serializing_if = "HandledRequests::is_empty")]
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

    /// An upgrade is on record, whichever strategy it is.
    pub fn is_upgrading(&self) -> bool {
        self.upgrade.is_some()
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
    pub strategy: Option<Found>,
}

/// Part of a StatefulSet as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Found(pub serde_json::Value);

impl JsonSchema for Found {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Found".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }

    fn inline_schema() -> bool {
        true
    }
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
    /// The newest version that has led since it began, or may have while this resource could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_led_version: Option<String>,
    /// How often leadership was asked to move.
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

/// The state of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateStatus {
    /// The gate's name.
    pub name: String,
    /// Passed, Holding, Unknown, Overridden or NotAsked. Holding and Unknown let nothing through.
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

/// A try to take a snapshot, written before its Job is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotAttempt {
    /// Grows by one, and never comes again.
    pub attempt: i32,
    /// The version of the upgrade that it is for.
    pub target_version: String,
    /// The image of the target version.
    pub target_image: String,
    /// When it was asked for.
    pub since: MicroTime,
    /// The Job that takes it.
    pub job: String,
    /// Whether an upgrade has started with this snapshot. If unset, it counts as used, and a new snapshot is taken.
    #[serde(default = "used")]
    pub used: bool,
}

fn used() -> bool {
    true
}

/// A Job that is being made. Written before it is asked for, so that a successor makes it first, and a late request misses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Intent {
    /// It takes a snapshot: the attempt that `status.snapshot` tells of.
    Snapshot {
        /// Its number.
        attempt: i32,
    },
    /// It is a hook's.
    Hook {
        /// The gate that waits for it.
        gate: String,
        /// Its name, which says on which occasion.
        job: String,
    },
    /// It has a node pull an image.
    Pull {
        /// Which image.
        image: String,
        /// On which node.
        node: String,
    },
}

/// A snapshot that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The size in bytes.
    pub size: i64,
    /// The SHA-256 checksum, in hexadecimal.
    pub checksum: String,
    /// Where it is stored.
    pub location: String,
}

/// A stage of replacing one member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Replace, Join or Sync.
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

/// One member as last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// The pod, and the member's name.
    pub pod: String,
    /// Leader, Follower or Unknown.
    pub role: Written<Role>,
    /// The version that the running process reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// True, False or Unknown.
    pub healthy: Written<Tri>,
    /// During an upgrade: InSync or Behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Written<Lag>>,
}

/// What `role` of a member says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
pub enum Role {
    /// It leads.
    Leader,
    /// Another one leads.
    Follower,
    /// Who leads is not known.
    Unknown,
}

/// What `lag` of a member says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lag {
    /// It keeps up with the leader.
    InSync,
    /// It does not yet.
    Behind,
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
    pub outcome: Written<Outcome>,
    /// Why the upgrade was rolled back automatically; unset if a person asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
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

impl HandledRequests {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
