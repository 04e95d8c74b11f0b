//! What must be so before a member is taken down or hands over.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::{approval::Mode, gate::When};

use crate::{
    gates::{Analysis, JobHook, MaintenanceWindow, ObjectCheck, ServiceRef},
    schema::{DNS_LABEL, one_of},
};

/// What must be so before a member is taken down or hands over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Gates {
    /// Maintenance windows. Members are replaced and leadership is handed over only while a window is open; without windows, at any time. Once
    /// one member has been timed, the next is started only if it is expected to finish before the window closes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub windows: Vec<MaintenanceWindow>,
    /// What must be approved by a person.
    pub approval: Approval,
    /// Checks of objects in this namespace. The gate of each is Check/NAME.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub checks: Vec<ObjectCheck>,
    /// Queries to Prometheus that must give good values. The gate of each is Analysis/NAME.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub analysis: Vec<Analysis>,
    /// Webhooks to call, or Jobs to run, before and after an upgrade. The gate of each is Hook/NAME.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub hooks: Vec<Hook>,
    /// Gates to ignore for a limited time. Gates that protect the quorum, its leader or the writes of Windlass can't be ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["gate"]))]
    pub overrides: Vec<Override>,
}

/// What must be approved by a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Approval {
    /// When to wait for `requests.approve`.
    #[schemars(schema_with = "one_of::<Mode>")]
    pub mode: Mode,
}

/// A gate to ignore for a limited time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// The gate's name, as in status.gates.
    #[schemars(regex(pattern = OVERRIDABLE), length(max = 80))]
    pub gate: String,
    /// When the override ends.
    pub until: Time,
}

/// The gates that can be set aside: a maintenance window is open for long enough; a person approved what comes next; replaced members have
/// been well for long enough; no node under a member is cordoned; the new
/// image is on the nodes; nobody else is at work on the members; and what people named themselves.
pub(crate) const OVERRIDABLE: &str = r"^(MaintenanceWindow|Approval|Soak|NodeDrain|ImagePulled|ConcurrentOperation|(Check|Analysis|Hook)/[a-z0-9]([-a-z0-9]*[a-z0-9])?)$";

/// A webhook to call or a Job to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.webhook) != has(self.job)").message("set either webhook or job"))]
#[x_kube(validation = Rule::new("!has(self.job) || self.when != 'BeforeEachMember'").message("a Job runs once: BeforeUpgrade or AfterUpgrade").field_path(".when"))]
pub struct Hook {
    /// Name of this hook; its gate is Hook/NAME.
    #[schemars(length(max = 63), regex(pattern = DNS_LABEL))]
    pub name: String,
    /// When the hook is called. A hook of BeforeUpgrade is called again if the target changes during an upgrade.
    #[schemars(schema_with = "one_of::<When>")]
    pub when: When,
    /// A Service that receives a POST request with a JSON description of the next step. 2xx means yes, 409 means no, anything else means no
    /// answer. The request is repeated until the answer is yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<ServiceRef>,
    /// A Job that must complete. It must be safe to run more than once: each edit of this resource and each new target runs it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobHook>,
}
