//! `QuorumCluster`: a StatefulSet that already exists, the quorum system in it, and the version it shall run.

pub mod backup;
pub mod gates;
pub mod http;
pub mod requests;
pub mod system;
pub mod upgrade;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::strategy::known::want::{OnDeadline, Trigger};

use self::{
    backup::Backup,
    gates::Gates,
    requests::Requests,
    system::System,
    upgrade::{UpdateStrategy, UpgradeLimits},
};
use crate::{
    schema::{DNS_LABEL, DNS_NAME, IMAGE, one_of},
    status::QuorumClusterStatus,
};

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
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Message","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.backup) || !self.backup.preUpgradeSnapshot || !(self.system.type in ['Pd', 'Http'])").message("backup.preUpgradeSnapshot: this type of system gives no snapshots").field_path(".backup"))]
#[x_kube(validation = Rule::new("self.system.type == oldSelf.system.type").message("system.type can't change: delete this QuorumCluster and create another").field_path(".system.type"))]
#[x_kube(validation = Rule::new("self.trigger == 'Template' || has(self.version)").message("trigger Version needs a version").field_path(".version"))]
#[x_kube(validation = Rule::new("self.trigger == 'Version' || !has(self.image)").message("with trigger Template the StatefulSet's template says which image").field_path(".image"))]
#[x_kube(validation = Rule::new("self.trigger == 'Version' || !has(self.workload.initContainers) || self.workload.initContainers.size() == 0").message("with trigger Template nothing writes their images").field_path(".workload.initContainers"))]
#[x_kube(validation = Rule::new("self.trigger == 'Version' || self.onDeadline == 'Hold'").message("with trigger Template only who writes the template can roll it back").field_path(".onDeadline"))]
#[x_kube(validation = Rule::new("self.trigger == 'Version' || !has(self.updateStrategy.rollingUpdate.order) || self.updateStrategy.rollingUpdate.order == 'LeaderLast'").message("with trigger Template the order is LeaderLast").field_path(".updateStrategy.rollingUpdate.order"))]
pub struct QuorumClusterSpec {
    /// The StatefulSet that holds the members.
    #[x_kube(validation = Rule::new("self.statefulSet == oldSelf.statefulSet && self.container == oldSelf.container").message("workload can't change: delete this QuorumCluster and create another"))]
    pub workload: WorkloadRef,
    /// What runs in it and how to talk to it.
    pub system: System,
    /// What starts an upgrade.
    #[serde(default)]
    #[schemars(schema_with = "one_of::<Trigger>")]
    pub trigger: Trigger,
    /// The version that every member shall run, as the system itself reports it. A leading `v` makes no difference. With trigger Template
    /// it only says what the image contains, where the image's tag does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"))]
    pub version: Option<String>,
    /// The image that brings this version. Without it, the StatefulSet's image with the version in its tag replaced; the rest of the tag stays
    /// (v3.6.5-debian-12 becomes v3.6.6-debian-12). Required where the tag holds no version, or more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = IMAGE))]
    pub image: Option<String>,
    /// How members are updated.
    #[serde(default)]
    pub update_strategy: UpdateStrategy,
    /// Limits of one upgrade.
    #[serde(default)]
    pub upgrade: UpgradeLimits,
    /// Conditions that must hold, in addition to those that protect the quorum, before anything is written for a new version and again before
    /// each member is replaced or hands over leadership. status.gates shows the state of each gate.
    #[serde(default)]
    pub gates: Gates,
    /// The backup that is stored before an upgrade starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// Exceptions to what Windlass refuses by default.
    #[serde(default)]
    pub policy: Policy,
    /// What to do if a stage takes longer than its deadline.
    #[serde(default)]
    #[schemars(schema_with = "one_of::<OnDeadline>")]
    pub on_deadline: OnDeadline,
    /// One-time requests. Set a field to a new value to ask again.
    #[serde(default)]
    pub requests: Requests,
    /// What happens to the update strategy of the StatefulSet when this resource is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Pause: start nothing new, and withdraw any replacement that Kubernetes has not started yet.
    #[serde(default)]
    pub paused: bool,
}

/// The StatefulSet and container that run the members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// The name of a StatefulSet in this namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub stateful_set: String,
    /// The container that runs the quorum system.
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub container: String,
    /// Init containers that run the same image. It is updated together with that of the container. Only with trigger Version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)))]
    pub init_containers: Vec<String>,
}

/// Exceptions to what Windlass refuses by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// Allow an older version. Make sure that it can read the data of the newer one.
    pub allow_downgrade: bool,
    /// Allow upgrades with one or two members, which lose their quorum while a member is replaced.
    pub accept_downtime: bool,
    /// Allow permanent members without a vote: learners of etcd, and non-voters of OpenBao and Vault, in pods outside this StatefulSet. They do
    /// not count in the quorum, never become leader and are not upgraded. If false, an upgrade waits until they are promoted or removed.
    pub accept_non_voters: bool,
    /// Field managers that may keep owning the image, the update strategy or the replicas of the StatefulSet, named as in
    /// metadata.managedFields (for example argocd-controller), or KIND/NAME of a controlling owner. List one only after you configured it to leave
    /// those fields alone. This only lets an upgrade start: if the manager still changes a field, the upgrade stops with FieldOwned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub accept_owners: Vec<String>,
}

/// What happens to the update strategy of the StatefulSet when this resource is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Restore the update strategy from before the first upgrade. During an upgrade it is kept, so that no pod is replaced.
    #[default]
    Restore,
    /// Keep the current update strategy.
    Retain,
}
