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
    gates::{Analysis, JobHook, MaintenanceWindow, ObjectCheck, ServiceRef},
    schema::{DNS_LABEL, DURATION, IMAGE},
    status::{OperatorClaim, gates::GateStatus, is_default, jobs::Intent},
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
    /// The image of tiers that set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = IMAGE))]
    pub default_image: Option<String>,
    /// The resources to update.
    #[x_kube(validation = Rule::new("self.group == oldSelf.group && self.kind == oldSelf.kind").message("target.group and target.kind can't change: delete this ServiceImage and create another"))]
    pub target: TargetKind,
    /// The tiers. A resource belongs to the tier that its label `upgrade-tier` names.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["upgradeTier"]))]
    pub tiers: Vec<TierSpec>,
    /// A limit in addition to those of the tiers: how many resources with the same value of a label may be updated at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Conditions that must hold before the next resource in service is changed. status.gates shows the state of each gate.
    #[serde(default)]
    pub gates: FleetGates,
    /// One-time requests. Set a field to a new value to ask again.
    #[serde(default)]
    pub requests: FleetRequests,
    /// Pause: change no resource in service. New resources still get their image.
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
    /// The API group; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253), regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"))]
    pub group: String,
    /// The API version.
    #[schemars(length(max = 63), regex(pattern = r"^v[0-9][a-z0-9]*$"))]
    pub version: String,
    /// The kind.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$"))]
    pub kind: String,
    /// What the API server calls them, in the plural; without it, the kind in small letters and an `s`. It matters where the author's own
    /// rights decide: they are asked for by this name, and another one is not believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub resource: Option<String>,
    /// A label selector for namespaces, in the format of `kubectl -l`. If unset, resources in all namespaces are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub namespace_selector: Option<String>,
    /// A label selector for resources, in the format of `kubectl -l`. If unset, all resources are selected.
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
    /// The value of the label `upgrade-tier`. An empty value takes all resources that belong to no other tier.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub upgrade_tier: String,
    /// The image of this tier. Defaults to `defaultImage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = IMAGE))]
    pub image: Option<String>,
    /// Tiers with a higher priority are updated first. A tier starts when those with a higher priority are up to date.
    #[serde(default)]
    pub priority: i64,
    /// Canary steps: shares of the tier that are updated first. Each must be up to date for its soak time before the next step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub canary: Vec<CanaryStep>,
    /// The largest number or percentage of resources to update at once. If unset, there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([1-9][0-9]?|100)%$"))]
    pub max_in_flight: Option<IntOrString>,
    /// The number or percentage of resources that may fail before the update halts. Resources whose failure halts it anyway are not counted. If
    /// unset, no failure is tolerated during canary steps, and any number afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(0|[1-9][0-9]?|100)%$"))]
    pub max_failures: Option<IntOrString>,
    /// The longest time for a resource to become up to date, like `90s` or `10m`. After that, it counts as failed.
    #[serde(default = "ten_minutes")]
    #[schemars(length(max = 32), regex(pattern = DURATION))]
    pub progress_deadline: String,
    /// Wait for `requests.approve` before the first resource gets a new image.
    #[serde(default)]
    pub approval: bool,
    /// Queries to Prometheus that must give good values before the next resource of this tier is changed and before the tier is complete. The
    /// gate of each is Analysis/NAME@TIER. The Services and Secrets are in `gates.namespace`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub analysis: Vec<Analysis>,
}

fn ten_minutes() -> String {
    "10m".to_owned()
}

/// A canary step of a tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStep {
    /// Percentage of the tier, at least one resource.
    #[schemars(range(min = 1, max = 100))]
    pub percent: u8,
    /// How long the resources of this step must stay up to date before the next step.
    #[serde(default = "no_time")]
    #[schemars(length(max = 32), regex(pattern = DURATION))]
    pub soak: String,
}

fn no_time() -> String {
    "0s".to_owned()
}

/// A limit for resources with the same value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The label. Resources without the label are not limited.
    #[schemars(length(min = 1, max = 317))]
    pub label: String,
    /// The largest number of resources to update at once.
    #[schemars(range(min = 1))]
    pub max_in_flight: u32,
}

/// Conditions that must hold before the next resource in service is changed. New resources get their image regardless.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.__namespace__) || !((has(self.checks) && self.checks.size() > 0) || (has(self.analysis) && self.analysis.size() > 0) || (has(self.hooks) && self.hooks.size() > 0))").message("checks, analysis and hooks ask somewhere: set namespace").field_path(".namespace"))]
pub struct FleetGates {
    /// Where checks, analysis and hooks find their objects, Services, Secrets and CronJobs. It must have been allowed when the operator was
    /// started (`--allow-gates-in NAMESPACE`): whoever may write ServiceImages need not be allowed to look there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub namespace: Option<String>,
    /// Maintenance windows. Resources are changed only while a window is open; without windows, at any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub windows: Vec<MaintenanceWindow>,
    /// Checks of objects in `namespace`. The gate of each is Check/NAME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub checks: Vec<ObjectCheck>,
    /// Queries to Prometheus that must give good values, for all tiers. The gate of each is Analysis/NAME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub analysis: Vec<Analysis>,
    /// Webhooks to call, or Jobs to run, before and after an upgrade. The gate of each is Hook/NAME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub hooks: Vec<FleetHook>,
    /// Gates to ignore for a limited time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["gate"]))]
    pub overrides: Vec<FleetOverride>,
}

/// A gate to ignore for a limited time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetOverride {
    /// The gate's name, as in status.gates. Without `@` and a tier, the gate is ignored in all tiers.
    #[schemars(regex(pattern = OVERRIDABLE), length(max = 140))]
    pub gate: String,
    /// When the override ends.
    pub until: Time,
}

/// The gates that can be set aside.
const OVERRIDABLE: &str = r"^(MaintenanceWindow|(Approval|Analysis/[a-z0-9]([-a-z0-9]*[a-z0-9])?)(@[A-Za-z0-9._-]*)?|(Check|Hook)/[a-z0-9]([-a-z0-9]*[a-z0-9])?)$";

/// A webhook to call or a Job to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.webhook) != has(self.job)").message("set either webhook or job"))]
pub struct FleetHook {
    /// Name of this hook; its gate is Hook/NAME.
    #[schemars(length(max = 63), regex(pattern = DNS_LABEL))]
    pub name: String,
    /// When the hook is called.
    pub when: FleetHookTime,
    /// A Service that receives a POST request with a JSON description of the next step. 2xx means yes, 409 means no, anything else means no
    /// answer. The request is repeated until the answer is yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<ServiceRef>,
    /// A Job that must complete. It must be safe to run more than once: each edit of this resource runs it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobHook>,
}

// Not plan's own: a ServiceImage offers two of its three words, and one that was stored with the third is not read.
/// When a hook of a ServiceImage is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FleetHookTime {
    /// Before the first resource in service gets one of the current images. The hook is called again when an image of any tier changes.
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

/// One-time requests. Set a field to a new value to ask again.
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
    /// The generation of the spec that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The priority of the tiers that are being updated; unset when everything is up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_priority: Option<i64>,
    /// When `currentPriority` last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_priority_since: Option<MicroTime>,
    /// Number of resources that are up to date, of all resources, like 120/200.
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
    /// Resources that can't be given their image, the first twenty, with what the API server says. A resource whose update is refused has failed.
    /// One whose updates are not answered fails after `progressDeadline`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedResource>,
    /// Where every gate stands whose word counts now. What is of one tier has `@` and the tier in its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateStatus>,
    /// Whether the hooks BeforeUpgrade have said yes to the current images.
    #[serde(skip_serializing_if = "is_default")]
    pub hooks_passed: bool,
    /// When the update of resources in service started; unset when all are up to date and the hooks AfterUpgrade have said yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<MicroTime>,
    /// Jobs of hooks that are being created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<Intent>,
    /// The requests that have been handled.
    #[serde(skip_serializing_if = "is_default")]
    pub requests: FleetRequests,
    /// When `requests.retry` was heard last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried_at: Option<MicroTime>,
    /// Complete and InProgress; and Ready, Reconciling and Stalled, as kstatus reads them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
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

/// The progress of a tier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TierStatus {
    /// The value of the label `upgrade-tier`.
    pub upgrade_tier: String,
    /// The image of this tier.
    pub image: String,
    /// What a resource without an image gets: the old one until the tier is up to date.
    pub new_deployment_image: String,
    /// Number of resources that have been in service and may be changed.
    pub resources: i64,
    /// Number of those that are up to date.
    pub updated: i64,
    /// Number of those that are being updated.
    pub in_flight: i64,
    /// Number of those that failed.
    #[serde(skip_serializing_if = "is_default")]
    pub failed: i64,
    /// Number of those that failed without halting the update.
    #[serde(skip_serializing_if = "is_default")]
    pub ignored: i64,
    /// Number of resources whose image was chosen by a person.
    #[serde(skip_serializing_if = "is_default")]
    pub manual: i64,
    /// Number of resources that belong to an older ServiceImage and are left to it.
    #[serde(skip_serializing_if = "is_default")]
    pub taken: i64,
    /// Number of resources that have never been in service.
    #[serde(skip_serializing_if = "is_default")]
    pub new: i64,
    /// When the update of this tier started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<MicroTime>,
    /// Number of canary steps that are done.
    #[serde(skip_serializing_if = "is_default")]
    pub canary_steps_done: i64,
    /// Since when all resources of the current canary step have been up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_healthy_since: Option<MicroTime>,
    /// Whether the tier waits for `requests.approve`.
    #[serde(skip_serializing_if = "is_default")]
    pub awaits_approval: bool,
    /// Whether the image of this tier is approved.
    #[serde(skip_serializing_if = "is_default")]
    pub approved: bool,
    /// Complete and InProgress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
