//! `QuorumCluster`: a StatefulSet that already exists, the quorum system in it, and the version it shall run.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::path::{self, Path};

use crate::status::QuorumClusterStatus;

/// Keeps a quorum that lives in a StatefulSet at the wanted version, one member at a time.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "QuorumCluster",
    namespaced,
    status = "QuorumClusterStatus",
    shortname = "qc",
    category = "windlass",
    doc = "Keeps a quorum that lives in a StatefulSet at the wanted version, one member at a time.",
    derive = "PartialEq",
    printcolumn = r#"{"name":"System","type":"string","jsonPath":".spec.system.type"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.currentVersion"}"#,
    printcolumn = r#"{"name":"Target","type":"string","jsonPath":".spec.version"}"#,
    printcolumn = r#"{"name":"Done","type":"string","jsonPath":".status.upgrade.progress"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Waits for","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.backup) || !self.backup.preUpgradeSnapshot || self.system.type != 'Pd'").message("backup.preUpgradeSnapshot: PD gives no snapshots").field_path(".backup"))]
#[x_kube(validation = Rule::new("self.system.type == oldSelf.system.type").message("system.type can't change: delete this QuorumCluster and create another").field_path(".system.type"))]
pub struct QuorumClusterSpec {
    /// The StatefulSet that holds the members.
    #[x_kube(validation = Rule::new("self == oldSelf").message("workload can't change: delete this QuorumCluster and create another"))]
    pub workload: WorkloadRef,
    /// What runs in it and how to talk to it.
    pub system: System,
    /// The version that every member shall run, as the system itself reports it. A leading `v` makes no difference.
    #[schemars(regex(pattern = r"^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"))]
    pub version: String,
    /// The image that brings this version. Without it, today's image with the version as its tag; where today's tag begins
    /// with `v`, so does the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub image: Option<String>,
    /// How members are brought to the new version.
    #[serde(default)]
    pub update_strategy: UpdateStrategy,
    /// Limits of one upgrade.
    #[serde(default)]
    pub upgrade: UpgradeLimits,
    /// What is stored before an upgrade begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// What is allowed that is refused otherwise.
    #[serde(default)]
    pub policy: Policy,
    /// Things that a person asks for once: a new value asks anew.
    #[serde(default)]
    pub requests: Requests,
    /// What happens to the StatefulSet's update strategy when this resource is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Begin nothing new, and take back what Kubernetes has not begun yet.
    #[serde(default)]
    pub paused: bool,
}

/// Where the members live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// The StatefulSet's name, in this resource's namespace.
    #[schemars(length(min = 1, max = 253))]
    pub stateful_set: String,
    /// The container whose image is the system's.
    #[schemars(length(min = 1, max = 63))]
    pub container: String,
}

/// The systems that Windlass can talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SystemType {
    /// TiKV's Placement Driver.
    Pd,
    /// etcd, through the JSON gateway on its client port.
    Etcd,
    /// OpenBao with Raft storage.
    OpenBao,
    /// Vault with Raft storage.
    Vault,
}

impl SystemType {
    /// The name in the custom resource.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pd => "Pd",
            Self::Etcd => "Etcd",
            Self::OpenBao => "OpenBao",
            Self::Vault => "Vault",
        }
    }

    /// Whether it gives a snapshot of its data.
    pub fn gives_snapshots(self) -> bool {
        match self {
            Self::Pd => false,
            Self::Etcd | Self::OpenBao | Self::Vault => true,
        }
    }

    /// Whether it can be told who shall lead next.
    pub fn names_target(self) -> bool {
        match self {
            Self::Pd | Self::Etcd => true,
            Self::OpenBao | Self::Vault => false,
        }
    }

    /// Which ways between its versions there are.
    pub fn path(self) -> Path {
        match self {
            Self::Pd => path::PD,
            Self::Etcd => path::ETCD,
            Self::OpenBao | Self::Vault => path::OPENBAO,
        }
    }
}

/// The quorum system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct System {
    /// Which system.
    #[serde(rename = "type")]
    pub type_: SystemType,
    /// Where each member's HTTP API listens: PD's and etcd's client port; for OpenBao and Vault, set 8200.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Talk TLS; without it, plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Who asks: OpenBao and Vault tell who their members are, and step down, only for a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
}

fn default_port() -> i32 {
    2379
}

/// TLS to the members. The certificate must be valid for the pod's DNS name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// A Secret in this namespace with the certificate authority as `ca.crt`.
    #[schemars(length(min = 1, max = 253))]
    pub ca_secret: String,
    /// A Secret in this namespace of type kubernetes.io/tls (`tls.crt`, `tls.key`) that the members accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub client_secret: Option<String>,
}

/// How Windlass gets a token: exactly one of these. Its policy must allow `read` on `sys/storage/raft/configuration` and
/// `sys/storage/raft/autopilot/state`, and `update` with `sudo` on `sys/step-down`; for snapshots, `read` on
/// `sys/storage/raft/snapshot`; and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.tokenSecret), has(self.kubernetes), has(self.jwt)].filter(given, given).size() == 1").message("set exactly one of tokenSecret, kubernetes and jwt"))]
pub struct Auth {
    /// A Secret in this namespace with the token as `token`. Whoever renews it writes it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub token_secret: Option<String>,
    /// Log in with the operator's own ServiceAccount token at an auth method of type `kubernetes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<LogIn>,
    /// Log in with the operator's own ServiceAccount token at an auth method of type `jwt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt: Option<LogIn>,
}

/// Where and as whom to log in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogIn {
    /// The role that gives the policy.
    #[schemars(length(min = 1, max = 253))]
    pub role: String,
    /// Where the auth method is mounted; `kubernetes` or `jwt` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub mount: Option<String>,
    /// The namespace of OpenBao or Vault that the auth method is in; the root namespace without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,
}

/// How members are brought to the new version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// The way.
    #[serde(rename = "type", default)]
    pub type_: StrategyType,
    /// Details of RollingUpdate.
    #[serde(default)]
    pub rolling_update: RollingUpdate,
}

/// The ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StrategyType {
    /// Pod by pod in the same StatefulSet.
    #[default]
    RollingUpdate,
}

/// Details of RollingUpdate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// Who goes first. Without it, LeaderLast where the StatefulSet's own strategy is OnDelete, otherwise ReverseOrdinal. The strategy
    /// that the order needs is set when the next upgrade begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Order {
    /// Highest ordinal first, held by the StatefulSet's partition.
    #[default]
    ReverseOrdinal,
    /// Followers from the highest ordinal down, then the leader, which moves once. Each pod is deleted by Windlass under the strategy
    /// OnDelete.
    LeaderLast,
}

/// Limits of one upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeLimits {
    /// How long each stage of replacing a member may take, counted from that stage's start.
    #[serde(default)]
    pub deadlines: Deadlines,
    /// What executor Jobs run: an image of Windlass. Without it, the one that the operator was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub executor_image: Option<String>,
    /// A replaced member counts as caught up when it is at most so many log entries behind the leader.
    #[serde(default = "default_lag")]
    #[schemars(range(min = 0))]
    pub max_lag_entries: i64,
}

fn default_lag() -> i64 {
    100
}

impl Default for UpgradeLimits {
    fn default() -> Self {
        Self { deadlines: Deadlines::default(), executor_image: None, max_lag_entries: default_lag() }
    }
}

/// Deadlines, written like `90s`, `5m` or `1h30m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Deadlines {
    /// From asking the leader to hand over until leadership is seen elsewhere; then it is asked again.
    #[schemars(regex(pattern = DURATION))]
    pub step_down: String,
    /// From permitting the replacement until the new pod is Ready.
    #[schemars(regex(pattern = DURATION))]
    pub ready: String,
    /// From Ready until the member is healthy.
    #[schemars(regex(pattern = DURATION))]
    pub health: String,
    /// From healthy until the member has caught up.
    #[schemars(regex(pattern = DURATION))]
    pub sync: String,
}

/// What a duration looks like.
const DURATION: &str = r"^([0-9]+(h|m|s|ms))+$";

impl Default for Deadlines {
    fn default() -> Self {
        Self { step_down: "30s".into(), ready: "5m".into(), health: "2m".into(), sync: "2m".into() }
    }
}

/// What is stored before an upgrade begins. A Job does it, so that neither the operator's death nor its memory is at stake; the Job
/// has no rights in Kubernetes, only what is mounted into its pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// Take a snapshot of the quorum's data before every upgrade, and begin only when it is stored. Etcd, OpenBao and Vault.
    #[serde(default)]
    pub pre_upgrade_snapshot: bool,
    /// Where snapshots go.
    pub destination: Destination,
    /// How long taking and storing one may take, written like `90s`, `5m` or `1h30m`.
    #[serde(default = "default_backup_deadline")]
    #[schemars(regex(pattern = DURATION))]
    pub deadline: String,
    /// The ServiceAccount of the Job's pod. It needs no rights; its token is mounted only where `system.auth` says that Windlass logs in
    /// with one, and then it is this account that the role must allow.
    #[serde(default = "default_service_account")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: String,
}

fn default_backup_deadline() -> String {
    "10m".into()
}

fn default_service_account() -> String {
    "windlass-executor".into()
}

/// Where snapshots go: exactly one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.volume) != has(self.s3)").message("set exactly one of volume and s3"))]
pub struct Destination {
    /// A volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// A bucket of S3 or of something that speaks like it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Destination>,
}

/// A place on a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeDestination {
    /// A PersistentVolumeClaim in this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,
    /// The folder in the volume; it is made where it is not there. The top without it.
    #[serde(default)]
    #[schemars(regex(pattern = r"^([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$"), length(max = 512))]
    pub path: String,
}

/// A place in a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Destination {
    /// Where the service is, like `https://s3.eu-central-1.amazonaws.com`.
    #[schemars(regex(pattern = r"^https?://[A-Za-z0-9.-]+(:[0-9]+)?/?$"), length(max = 512))]
    pub endpoint: String,
    /// The bucket, as the first part of the path.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"))]
    pub bucket: String,
    /// What names of objects begin with.
    #[serde(default)]
    #[schemars(regex(pattern = r"^([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$"), length(max = 512))]
    pub prefix: String,
    /// The region that requests are signed for.
    #[serde(default = "default_region")]
    #[schemars(regex(pattern = r"^[a-z0-9-]{1,64}$"))]
    pub region: String,
    /// A Secret in this namespace with `accessKeyId` and `secretAccessKey`; putting objects under the prefix is all that they must allow.
    #[schemars(length(min = 1, max = 253))]
    pub credentials_secret: String,
    /// A Secret in this namespace with the certificate authority of the service as `ca.crt`; without it, the image's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ca_secret: Option<String>,
}

fn default_region() -> String {
    "us-east-1".into()
}

/// What is allowed that is refused otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Going to an older version. Whether the data survives that is for you to know.
    #[serde(default)]
    pub allow_downgrade: bool,
    /// With one or two members, replacing one takes the quorum down: accept that.
    #[serde(default)]
    pub accept_downtime: bool,
}

/// Edge-triggered requests: any value that differs from the one handled last (see status.requests) asks anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// Finish a rollout that was half done when this StatefulSet was adopted; try again what failed and waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub resume: Option<String>,
}

/// What happens to the StatefulSet's update strategy when this resource is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// It becomes what it was before the first upgrade; in the middle of an upgrade it stays as it is, so that nothing moves.
    #[default]
    Restore,
    /// It stays as it is.
    Retain,
}
