//! What the gates of both kinds of resource are made of: windows, and what is asked elsewhere.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{DNS_LABEL, DNS_NAME, DURATION};

/// A recurring maintenance window. Windows that overlap or touch count as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// When the window opens, in cron format: minute, hour, day of the month, month, day of the week. `0 2 * * sat` is Saturday at 02:00. If a
    /// clock change skips that time, the window opens at the change; if the time occurs twice, it opens the first time.
    #[schemars(length(max = 100), regex(pattern = r"^\s*([0-9A-Za-z*,/-]+\s+){4}[0-9A-Za-z*,/-]+\s*$"))]
    pub schedule: String,
    /// How long the window stays open, like `4h`.
    #[schemars(length(max = 32), regex(pattern = DURATION))]
    #[x_kube(validation = Rule::new("self.matches('[1-9]')").message("a window that lasts no time never opens"))]
    pub duration: String,
    /// The time zone of the schedule: a name in the IANA database, like `Europe/Berlin`.
    #[serde(default = "utc")]
    #[schemars(length(max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9_+/-]*$"))]
    pub time_zone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// A condition on objects that must hold before each member is replaced or hands over leadership. If the objects can't be read, or the expression
/// does not yield true or false, the gate holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCheck {
    /// Name of this check; its gate is Check/NAME.
    #[schemars(length(max = 63), regex(pattern = DNS_LABEL))]
    pub name: String,
    /// The objects to check. Windlass needs permission to get and list them.
    pub objects: Objects,
    /// A CEL expression that yields true if the upgrade may continue. `objects` is the list of objects, ordered by name, without managedFields;
    /// an object that does not exist is not in the list. Test fields that may be missing with `has()`: a missing field is an error, and the gate
    /// holds.
    #[schemars(length(min = 1, max = 1024))]
    pub cel: String,
}

/// A selection of objects in this namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(self.apiVersion == 'v1' && self.kind == 'Secret')").message("Secrets are not looked at").field_path(".kind"))]
#[x_kube(validation = Rule::new("!has(self.name) || !has(self.labelSelector)").message("set name or labelSelector, not both"))]
pub struct Objects {
    /// The API group and version, for example `batch/v1`.
    #[schemars(length(max = 253), regex(pattern = r"^([a-z0-9.-]+/)?v[0-9][a-z0-9]*$"))]
    pub api_version: String,
    /// The kind, for example `Job`.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$"))]
    pub kind: String,
    /// The name of a single object. If unset, `labelSelector` selects the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9:._-]*$"))]
    pub name: Option<String>,
    /// A label selector in the format of `kubectl -l`. If unset, all objects are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub label_selector: Option<String>,
}

/// A Prometheus query that must give good values before each member is replaced or hands over leadership. If there is no value, the gate holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// Name of this analysis; its gate is Analysis/NAME, or Analysis/NAME@TIER where a tier has it.
    #[schemars(length(max = 63), regex(pattern = DNS_LABEL))]
    pub name: String,
    /// The Service of Prometheus.
    pub prometheus: ServiceRef,
    /// The query, in PromQL. An empty result counts as no value.
    #[schemars(length(min = 1, max = 4096))]
    pub query: String,
    /// A CEL expression that yields true if a value is good. It is evaluated for every series in the result, with `value`, a number, and
    /// `labels`.
    #[schemars(length(min = 1, max = 1024))]
    pub cel: String,
    /// The number of consecutive bad results after which the gate holds. The next good result opens it again. After a restart of the operator,
    /// the first bad result is enough.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub consecutive_failures: u32,
    /// Time between queries, like `30s`.
    #[serde(default = "half_a_minute")]
    #[schemars(regex(pattern = DURATION))]
    pub interval: String,
}

fn one() -> u32 {
    1
}

fn half_a_minute() -> String {
    "30s".into()
}

/// A Service, called at its cluster IP. Services in other namespaces must be allowed by the operator's flag `--allow-service NAMESPACE/NAME`, for
/// webhooks `NAMESPACE/NAME:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRef {
    /// Its name.
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub name: String,
    /// The namespace of the Service. Defaults to this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub namespace: Option<String>,
    /// The port of the Service.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The URL path. For Prometheus, the part before `/api/v1`.
    #[serde(default)]
    #[schemars(length(max = 1024), regex(pattern = r"^(/[A-Za-z0-9._~/-]*)?$"))]
    pub path: String,
    /// A Secret in this namespace with a CA certificate as `ca.crt`, to connect with TLS. The certificate of the Service must be valid for
    /// `NAME.NAMESPACE.svc`. If unset, plain HTTP is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub ca_secret: Option<String>,
}

/// A Job created from a CronJob, like `kubectl create job --from=cronjob/NAME` does. The CronJob may be suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobHook {
    /// The name of a CronJob in this namespace.
    #[schemars(length(min = 1, max = 52), regex(pattern = DNS_NAME))]
    pub cron_job: String,
}
