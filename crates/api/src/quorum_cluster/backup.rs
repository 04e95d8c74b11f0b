//! The backup that is stored before an upgrade starts.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{DNS_NAME, DURATION};

/// The backup that is stored before an upgrade starts. It is made by a Job that has no permissions in Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// Take a snapshot of the data before every upgrade, and start the upgrade only when the snapshot is stored. For etcd, OpenBao and Vault.
    #[serde(default)]
    pub pre_upgrade_snapshot: bool,
    /// Where snapshots are stored.
    pub destination: Destination,
    /// The longest time for taking and storing a snapshot, like `90s`, `5m` or `1h30m`.
    #[serde(default = "default_backup_deadline")]
    #[schemars(regex(pattern = DURATION))]
    pub deadline: String,
    /// The ServiceAccount of the Job's pod. It needs no permissions. Its token is mounted only if `system.auth` is a login with a ServiceAccount
    /// token; the role must then allow this ServiceAccount.
    #[serde(default = "default_service_account")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub service_account_name: String,
}

fn default_backup_deadline() -> String {
    "10m".into()
}

fn default_service_account() -> String {
    "windlass-executor".into()
}

/// Where snapshots are stored. Set exactly one field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.volume) != has(self.s3)").message("set exactly one of volume and s3"))]
pub struct Destination {
    /// A directory on a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// An S3 bucket, or one of a compatible service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Destination>,
}

/// A directory on a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeDestination {
    /// The name of a PersistentVolumeClaim in this namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub claim_name: String,
    /// The directory on the volume. It is created if it does not exist. Defaults to the root of the volume.
    #[serde(default)]
    #[schemars(regex(pattern = r"^([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$"), length(max = 512))]
    pub path: String,
}

/// A location in an S3 bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Destination {
    /// The URL of the service, like `https://s3.eu-central-1.amazonaws.com`.
    #[schemars(regex(pattern = r"^https?://[A-Za-z0-9.-]+(:[0-9]+)?/?$"), length(max = 512))]
    pub endpoint: String,
    /// The name of the bucket. It is sent as the first part of the URL path.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"))]
    pub bucket: String,
    /// A prefix for the names of objects.
    #[serde(default)]
    #[schemars(regex(pattern = r"^([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$"), length(max = 512))]
    pub prefix: String,
    /// The region used to sign requests.
    #[serde(default = "default_region")]
    #[schemars(regex(pattern = r"^[a-z0-9-]{1,64}$"))]
    pub region: String,
    /// A Secret in this namespace with `accessKeyId` and `secretAccessKey`. The key must be allowed to put objects and to abort multipart uploads
    /// under the prefix, and needs nothing else.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub credentials_secret: String,
    /// A Secret in this namespace with the CA certificate of the service as `ca.crt`. If unset, public certificate authorities are trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub ca_secret: Option<String>,
}

fn default_region() -> String {
    "us-east-1".into()
}
