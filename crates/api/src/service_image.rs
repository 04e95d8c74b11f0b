//! ServiceImage: which image the resources of a kind shall have, tier by tier (E1).

use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{Condition, MicroTime, Time},
    util::intstr::IntOrString,
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::gate::When;

use crate::{
    quorum_cluster::{Analysis, DURATION, GATE_NAME, IMAGE, JobHook, MaintenanceWindow, ObjectCheck, ServiceRef},
    status::{GateStatus, Intent, OperatorClaim},
};

/// The image that the resources of a kind shall have, tier by tier.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "ServiceImage",
    plural = "serviceimages",
    shortname = "svcimg",
    category = "windlass",
    status = "ServiceImageStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Kind","type":"string","jsonPath":".spec.target.kind"}"#,
    printcolumn = r#"{"name":"Complete","type":"string","jsonPath":".status.conditions[?(@.type=='Complete')].status"}"#,
    printcolumn = r#"{"name":"Priority","type":"integer","jsonPath":".status.currentPriority"}"#,
    printcolumn = r#"{"name":"Updated","type":"string","jsonPath":".status.progress"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Message","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.target)").message("it says which resources get the image; add, for one: target: {group: examples.windlass.dev, version: v1, kind: Dicom}").field_path(".target").reason(Reason::FieldValueRequired))]
#[x_kube(validation = Rule::new("self.tiers.all(tier, has(tier.image) || has(self.defaultImage))").message("a tier without an image needs defaultImage").field_path(".tiers"))]
#[x_kube(validation = Rule::new("(has(self.gates) && has(self.gates.__namespace__)) || self.tiers.all(tier, !has(tier.analysis) || tier.analysis.size() == 0)").message("analysis asks somewhere: set gates.namespace").field_path(".tiers"))]
pub struct ServiceImageSpec {
    /// The image of every tier that names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = IMAGE))]
    pub default_image: Option<String>,
    /// The resources that get it.
    #[x_kube(validation = Rule::new("self.group == oldSelf.group && self.kind == oldSelf.kind").message("target.group and target.kind can't change: delete this ServiceImage and create another"))]
    pub target: TargetKind,
    /// Who goes first. A resource belongs to the tier that its label `upgrade-tier` names.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["upgradeTier"]))]
    pub tiers: Vec<TierSpec>,
    /// A limit beside those of the tiers: how many may be on their way at once among those with the same value of a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// What must be so before the next resource that serves is changed. status.gates shows where each stands.
    #[serde(default)]
    pub gates: FleetGates,
    /// Things that a person asks for once: a new value asks anew.
    #[serde(default)]
    pub requests: FleetRequests,
    /// Change no resource that serves. New ones still get their image.
    #[serde(default)]
    pub paused: bool,
    /// Show the last line of a container's log in messages while resources don't get up to date. Whoever may read this resource reads it
    /// then, and logs hold what nobody meant to show: without it, messages only say how to read the log. Needs the role `windlass-logs` in
    /// the namespaces of the resources; a log that can't be read holds nothing up.
    #[serde(default)]
    pub show_logs: bool,
}

/// The resources of one kind. By default they keep the contract of managed resources: `spec.image`, `spec.manuallySpecifiedImage`,
/// `spec.failureHaltsUpdate`, `status.observedGeneration`, and the conditions `UpToDate` and `Deployed`. Expressions are in CEL and see
/// the resource as `self`; what can't be evaluated is not known, and blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetKind {
    /// Their API group; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253), regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"))]
    pub group: String,
    /// The version to speak.
    #[schemars(length(max = 63), regex(pattern = r"^v[0-9][a-z0-9]*$"))]
    pub version: String,
    /// Their kind.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$"))]
    pub kind: String,
    /// What the API server calls them, in the plural; without it, the kind in small letters and an `s`. It matters where the author's own
    /// rights decide: they are asked for by this name, and another one is not believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub resource: Option<String>,
    /// Only those in namespaces with these labels, as kubectl's `-l` writes them; in all of them without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub namespace_selector: Option<String>,
    /// Only those with these labels, as kubectl's `-l` writes them; all of them without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub label_selector: Option<String>,
    /// Where the image is in a resource: names of fields, with dots. Another path later on is written from then on; what is at the old one stays
    /// as it is.
    #[serde(default = "spec_image")]
    #[schemars(length(max = 253), regex(pattern = r"^\.?spec(\.[A-Za-z_][A-Za-z0-9_-]*)+$"))]
    pub image_path: String,
    /// Yields true where a resource is up to date with its spec. It counts where `status.observedGeneration` has reached the generation, or
    /// where it compares the image and so would not be true of another one. Without it: `status.observedGeneration` has reached the
    /// generation, and the condition `UpToDate` is True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub ready: Option<String>,
    /// Yields true where a resource has failed and will not get there by itself; it counts where `ready` would. Without it: the condition
    /// `Failed` is True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub failed: Option<String>,
    /// Yields true where a person chose the image, so that it is left alone. Without it: `spec.manuallySpecifiedImage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub manual: Option<String>,
    /// Yields true where a resource has served at least once. Without it: the condition `Deployed` is True. What does not say counts as one that
    /// has, if it has an image, unless it was seen without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub deployed: Option<String>,
    /// Yields true where the failure of a resource halts everything. Without it: `spec.failureHaltsUpdate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub failure_halts: Option<String>,
    /// Yields the label selector of a resource's pods, as kubectl's `-l` writes it, so that messages can say what is wrong with them; they are
    /// looked for in the resource's own namespace. Without it: `status.selector`, where a resource has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub pod_selector: Option<String>,
}

impl TargetKind {
    /// What the API server calls its resources, as far as the author says.
    pub fn plural(&self) -> String {
        self.resource.clone().unwrap_or_else(|| format!("{}s", self.kind.to_ascii_lowercase()))
    }
}

fn spec_image() -> String {
    ".spec.image".to_owned()
}

/// One tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TierSpec {
    /// The value of the label `upgrade-tier`. The empty one takes all that no other tier names.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub upgrade_tier: String,
    /// The image; `defaultImage` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = IMAGE))]
    pub image: Option<String>,
    /// Higher ones go first. The next one begins when this one is up to date.
    #[serde(default)]
    pub priority: i64,
    /// Shares of the tier that go first, each until it has been up to date for its soak.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub canary: Vec<CanaryStep>,
    /// How many may be on their way at once, as a number or a percentage; all of them without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([1-9][0-9]?|100)%$"))]
    pub max_in_flight: Option<IntOrString>,
    /// A brake: how many may fail whose failure does not halt by itself, as a number or a percentage, before everything halts. Without it: none
    /// while a canary goes first, and then any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(0|[1-9][0-9]?|100)%$"))]
    pub max_failures: Option<IntOrString>,
    /// How long a resource may take until it is up to date, written like `90s` or `10m`. One that takes longer has failed.
    #[serde(default = "ten_minutes")]
    #[schemars(length(max = 32), regex(pattern = DURATION))]
    pub progress_deadline: String,
    /// Wait for `requests.approve` before the first resource gets a new image.
    #[serde(default)]
    pub approval: bool,
    /// What Prometheus must measure before the next resource of this tier is changed, and before the tier is complete. The gate of each is
    /// called `Analysis/`, its name, `@` and the tier. It is asked in `gates.namespace`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub analysis: Vec<Analysis>,
}

fn ten_minutes() -> String {
    "10m".to_owned()
}

/// A share of a tier that goes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStep {
    /// So many of a hundred; at least one.
    #[schemars(range(min = 1, max = 100))]
    pub percent: u8,
    /// How long all of them must have been up to date before more go.
    #[serde(default = "no_time")]
    #[schemars(length(max = 32), regex(pattern = DURATION))]
    pub soak: String,
}

fn no_time() -> String {
    "0s".to_owned()
}

/// A limit among those with the same value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// Which label. Resources without it are not limited by this.
    #[schemars(length(min = 1, max = 317))]
    pub label: String,
    /// How many may be on their way at once.
    #[schemars(range(min = 1))]
    pub max_in_flight: u32,
}

/// What must be so before the next resource that serves is changed. New ones get their image whatever this says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.__namespace__) || !((has(self.checks) && self.checks.size() > 0) || (has(self.analysis) && self.analysis.size() > 0) || (has(self.hooks) && self.hooks.size() > 0))").message("checks, analysis and hooks ask somewhere: set namespace").field_path(".namespace"))]
pub struct FleetGates {
    /// Where checks, analysis and hooks find their objects, Services, Secrets and CronJobs. It must have been allowed when the operator was
    /// started (`--allow-gates-in NAMESPACE`): whoever may write ServiceImages need not be allowed to look there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = GATE_NAME))]
    pub namespace: Option<String>,
    /// Resources are only changed while one of these is open; without any, at all times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub windows: Vec<MaintenanceWindow>,
    /// What must be so of objects in `namespace`. The gate of each is called `Check/` and its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub checks: Vec<ObjectCheck>,
    /// What Prometheus must measure, whichever tier it is. The gate of each is called `Analysis/` and its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub analysis: Vec<Analysis>,
    /// Whom to ask, or what to run, before and after. The gate of each is called `Hook/` and its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub hooks: Vec<FleetHook>,
    /// Gates to set aside for a while.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["gate"]))]
    pub overrides: Vec<FleetOverride>,
}

/// One gate that is set aside for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetOverride {
    /// Which, by its name in status.gates. Without `@` and a tier it is set aside in all of them.
    #[schemars(regex(pattern = OVERRIDABLE), length(max = 140))]
    pub gate: String,
    /// Until when. Afterwards it counts again.
    pub until: Time,
}

/// The gates that can be set aside.
const OVERRIDABLE: &str = r"^(MaintenanceWindow|(Approval|Analysis/[a-z0-9]([-a-z0-9]*[a-z0-9])?)(@[A-Za-z0-9._-]*)?|(Check|Hook)/[a-z0-9]([-a-z0-9]*[a-z0-9])?)$";

/// Whom to ask, or what to run: either `webhook` or `job`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.webhook) != has(self.job)").message("set either webhook or job"))]
pub struct FleetHook {
    /// How people call it.
    #[schemars(length(max = 63), regex(pattern = GATE_NAME))]
    pub name: String,
    /// Before or after what.
    pub when: FleetHookTime,
    /// A Service that is sent a POST with JSON that says what is about to happen. A 2xx is yes, 409 is no, everything else is no answer. It is
    /// asked again until it says yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<ServiceRef>,
    /// A Job that must complete. It must bear being run again: another edit of this resource runs another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobHook>,
}

/// When a hook of a fleet has its say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FleetHookTime {
    /// Before the first resource that serves gets one of these images. Other images are asked for anew, in whichever tier.
    BeforeUpgrade,
    /// When every tier is complete and resources were changed, before the ServiceImage is.
    AfterUpgrade,
}

impl From<FleetHookTime> for When {
    fn from(time: FleetHookTime) -> Self {
        match time {
            FleetHookTime::BeforeUpgrade => Self::BeforeUpgrade,
            FleetHookTime::AfterUpgrade => Self::AfterUpgrade,
        }
    }
}

/// Things that a person asks for once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetRequests {
    /// A new value approves the images that wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub approve: Option<String>,
    /// A new value gives everybody who failed or took too long their time again, and ends a fight over a field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub retry: Option<String>,
}

/// The state of a ServiceImage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImageStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The priority that is being worked on; none when everything is up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_priority: Option<i64>,
    /// Since when that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_priority_since: Option<MicroTime>,
    /// Up to date of all, like 120/200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Since when it has been under way, or up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<MicroTime>,
    /// Each tier, highest priority first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["upgradeTier"]))]
    pub tier_status: Vec<TierStatus>,
    /// The operator process that acts on this resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorClaim>,
    /// The resources whose write may be on its way. Written before they are, so that a successor touches them first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub batch: Vec<Reserved>,
    /// Resources that can't be given their image, the first twenty, with what the API server says. Each is that resource's failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedResource>,
    /// Where every gate stands whose word counts now. What is of one tier has `@` and the tier in its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateStatus>,
    /// The hooks before these images have let them begin.
    #[serde(skip_serializing_if = "is_false")]
    pub hooks_passed: bool,
    /// Since when resources that serve have been changed; none once all are up to date and the hooks after have said yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<MicroTime>,
    /// The Jobs that are being made: hooks'.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<Intent>,
    /// The requests that were handled.
    #[serde(skip_serializing_if = "FleetRequests::is_empty")]
    pub requests: FleetRequests,
    /// When `requests.retry` was heard last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried_at: Option<MicroTime>,
    /// Complete and InProgress; and Ready, Reconciling and Stalled, as kstatus reads them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

impl FleetRequests {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A resource whose write may be on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reserved {
    /// Its namespace; none where its kind has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which of that name.
    pub uid: String,
}

/// A resource that can't be given its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedResource {
    /// Its namespace; none where its kind has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it should have got.
    pub image: String,
    /// What the API server says.
    pub message: String,
}

/// How far a tier is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TierStatus {
    /// Which.
    #[serde(default)]
    pub upgrade_tier: String,
    /// The image that its resources shall have.
    #[serde(default)]
    pub image: String,
    /// What a resource without an image gets: the old one until the tier is up to date.
    #[serde(default)]
    pub new_deployment_image: String,
    /// Resources that have served and are ours to change.
    #[serde(default)]
    pub resources: i64,
    /// Those of them that are up to date.
    #[serde(default)]
    pub updated: i64,
    /// Those that are on their way.
    #[serde(default)]
    pub in_flight: i64,
    /// Those that failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i64,
    /// Those that failed, and whose failure does not halt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ignored: i64,
    /// Resources whose image a person chose.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub manual: i64,
    /// Resources that another ServiceImage has, which is older: they are left to it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub taken: i64,
    /// Resources that have never served.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub new: i64,
    /// When its turn began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<MicroTime>,
    /// How many shares that go first are done.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub canary_steps_done: i64,
    /// Since when the share that goes first has been up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_healthy_since: Option<MicroTime>,
    /// Waiting for `requests.approve`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub awaits_approval: bool,
    /// Its image was approved.
    #[serde(default, skip_serializing_if = "is_false")]
    pub approved: bool,
    /// Complete and InProgress.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
