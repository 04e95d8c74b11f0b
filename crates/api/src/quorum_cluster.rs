//! `QuorumCluster`: a StatefulSet that already exists, the quorum system in it, and the version it shall run.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::{
    Order,
    approval::Mode,
    gate::When,
    strategy::known::want::{OnDeadline, Trigger},
};

use crate::{schema::one_of, status::QuorumClusterStatus};

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

/// The systems that Windlass can talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
pub enum SystemType {
    /// TiKV's Placement Driver.
    Pd,
    /// etcd, through the JSON gateway on its client port.
    Etcd,
    /// OpenBao with Raft storage.
    OpenBao,
    /// Vault with Raft storage.
    Vault,
    /// Any other with HTTP endpoints, as `http` describes it.
    Http,
}

impl SystemType {
    /// The name in the custom resource.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The quorum system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(self.type == 'Http') == has(self.http)").message("set http for the type Http, and for no other").field_path(".http"))]
#[x_kube(validation = Rule::new("self.type != 'Http' || !has(self.auth) || has(self.auth.tokenSecret)").message("the type Http takes a token from tokenSecret alone").field_path(".auth"))]
#[x_kube(validation = Rule::new("self.type != 'Pd' || !has(self.auth)").message("the type Pd takes none").field_path(".auth"))]
#[x_kube(validation = Rule::new("self.type != 'Etcd' || !has(self.auth) || has(self.auth.passwordSecret)").message("the type Etcd takes a user from passwordSecret alone").field_path(".auth"))]
#[x_kube(validation = Rule::new("!(self.type in ['OpenBao', 'Vault']) || !has(self.auth) || !has(self.auth.passwordSecret)").message("the types OpenBao and Vault take tokenSecret, kubernetes or jwt").field_path(".auth"))]
#[x_kube(validation = Rule::new("!has(self.auth) || has(self.tls) || (has(self.auth.allowPlaintext) && self.auth.allowPlaintext)").message("without tls, whoever can listen to the network has the token: set tls, or auth.allowPlaintext to accept that").field_path(".auth"))]
pub struct System {
    /// The type of the system.
    #[serde(rename = "type")]
    pub type_: SystemType,
    /// Where each member's HTTP API listens: PD's and etcd's client port; for OpenBao and Vault, set 8200.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Connect with TLS. If unset, plain HTTP is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// How to authenticate. OpenBao and Vault list their members and step down only for a valid token. etcd needs a user if authentication is
    /// enabled. With type Http, the token in `tokenSecret` is sent with every request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// How to query and control a system of type Http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
}

fn default_port() -> i32 {
    2379
}

/// TLS to the members. The pod's address is dialled, and its certificate must be valid for the pod's DNS name, or for `serverName`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.caSecret) != has(self.caConfigMap)").message("set exactly one of caSecret and caConfigMap"))]
pub struct Tls {
    /// A Secret in this namespace with the certificate authority as `ca.crt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub ca_secret: Option<String>,
    /// A ConfigMap in this namespace with the certificate authority as `ca.crt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub ca_config_map: Option<String>,
    /// A Secret in this namespace of type kubernetes.io/tls (`tls.crt`, `tls.key`) that the members accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub client_secret: Option<String>,
    /// The name that a member's certificate must carry, where that is not `POD.SERVICE.NAMESPACE.svc`; `{pod}` stands for the pod's name, as
    /// in `{pod}.etcd.example`. A name without it is the same for all, as in a certificate that they share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = SERVER_NAME))]
    pub server_name: Option<String>,
}

/// A DNS name in which `{pod}` may stand. No wildcard: what is verified is one name.
const SERVER_NAME: &str = r"^([a-z0-9]|\{pod\})(([a-z0-9-]|\{pod\})*([a-z0-9]|\{pod\}))?(\.([a-z0-9]|\{pod\})(([a-z0-9-]|\{pod\})*([a-z0-9]|\{pod\}))?)*$";

impl Tls {
    /// The name that this pod's certificate must carry; `dns` is the pod's own.
    pub fn name_of(&self, pod: &str, dns: &str) -> String {
        self.server_name.as_ref().map_or_else(|| dns.to_owned(), |template| template.replace("{pod}", pod))
    }
}

/// How Windlass gets a token: exactly one of these. Its policy in OpenBao or Vault must allow `read` on `sys/storage/raft/configuration` and
/// `sys/storage/raft/autopilot/state`, and `update` with `sudo` on `sys/step-down`; for snapshots, `read` on
/// `sys/storage/raft/snapshot`; and nothing else. A user of etcd must have the role `root`: etcd hands over and gives snapshots to nobody else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.tokenSecret), has(self.passwordSecret), has(self.kubernetes), has(self.jwt)].filter(given, given).size() == 1").message("set exactly one of tokenSecret, passwordSecret, kubernetes and jwt"))]
pub struct Auth {
    /// A Secret in this namespace with the token as `token`. Whoever renews it writes it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub token_secret: Option<String>,
    /// A Secret in this namespace with a user of etcd as `username` and `password`, as those of type kubernetes.io/basic-auth have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub password_secret: Option<String>,
    /// Log in with a ServiceAccount token of the operator at an auth method of type `kubernetes`. `windlass/NAMESPACE/NAME` of this resource is
    /// the only audience of the token, so the role must have it as its `audience`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<LogIn>,
    /// Log in with a ServiceAccount token of the operator at an auth method of type `jwt`. `windlass/NAMESPACE/NAME` of this resource is the only
    /// audience of the token, so the role must have it in its `bound_audiences`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt: Option<LogIn>,
    /// Send the token without TLS. Anyone who can read the network traffic can then read the token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_plaintext: bool,
}

/// The auth method and role to log in with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogIn {
    /// The role to log in as.
    #[schemars(length(min = 1, max = 253))]
    pub role: String,
    /// The path at which the auth method is mounted. Defaults to `kubernetes` or `jwt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub mount: Option<String>,
    /// The OpenBao or Vault namespace of the auth method. Defaults to the root namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,
}

/// How a system is asked and told: requests that go to every pod, with expressions in CEL on what it answers. They see `status` (a
/// number), `body` (the parsed JSON), `text`, `headers` (by lower-case name) and `pod` (`name`, `index`, `address`). What can't be asked,
/// can't be evaluated or is of another kind than is said here is unknown, and blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Http {
    /// Yields true where the pod takes part in a working quorum, false where it does not.
    pub health: Question,
    /// Yields who leads, as the pod knows it: its id, or null or an empty text where it knows of nobody. Or, where the system does not tell
    /// that, true where the pod itself leads and false where it does not.
    pub leader: Question,
    /// Yields the version that the pod runs, as a text.
    pub version: Question,
    /// Yields how far the pod's log is applied, as a whole number; null where it does not tell. Without this, a replaced member counts as
    /// caught up when it is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Question>,
    /// Yields what the system calls the pod, where that is not the pod's name: `leader` and `target` are such ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Question>,
    /// Yields the names of the pods that have a vote, as a list. Without this, all pods of the StatefulSet are believed to have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<Question>,
    /// How the leader is told to hand over. Any 2xx is taken for an answer; that leadership moved is read back.
    pub hand_over: HttpHandOver,
    /// The header that carries the token of `auth`. Without this, `Authorization`, as a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub token_header: Option<String>,
}

/// A request, and the expression on its answer. Requests that are the same are sent once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// How it is sent.
    #[serde(default)]
    pub method: QuestionMethod,
    /// Path and query.
    #[schemars(length(min = 1, max = 1024), regex(pattern = "^/"))]
    pub path: String,
    /// Headers by their names. With a body, `Content-Type` is `application/json` unless it is set here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub body: Option<String>,
    /// What the answer means. One that does not look at `status` is asked of a 2xx alone.
    #[schemars(length(min = 1, max = 1024))]
    pub cel: String,
}

/// How a question is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QuestionMethod {
    /// GET.
    #[default]
    #[serde(rename = "GET")]
    Get,
    /// POST, for systems that are asked so. It must change nothing: it is sent in every pass.
    #[serde(rename = "POST")]
    Post,
}

/// How the leader is told to hand over, at its own pod. Where it can be told to whom, `pathCel` or `bodyCel` says so with `target`, the id
/// of the member that shall lead; otherwise whoever is elected is read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.path) != has(self.pathCel)").message("set either path or pathCel"))]
#[x_kube(validation = Rule::new("!has(self.body) || !has(self.bodyCel)").message("set body or bodyCel, not both"))]
pub struct HttpHandOver {
    /// How it is sent.
    #[serde(default)]
    pub method: HandOverMethod,
    /// Path and query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = "^/"))]
    pub path: Option<String>,
    /// Yields path and query, as a text. `target` is percent-encoded in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path_cel: Option<String>,
    /// Headers by their names. With a body, `Content-Type` is `application/json` unless it is set here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub body: Option<String>,
    /// Yields what is sent: a text as it is, everything else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub body_cel: Option<String>,
}

impl HttpHandOver {
    /// Whether it says who shall lead next.
    pub fn names_target(&self) -> bool {
        self.path_cel.is_some() || self.body_cel.is_some()
    }
}

/// How a hand-over is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HandOverMethod {
    /// POST.
    #[default]
    #[serde(rename = "POST")]
    Post,
    /// PUT.
    #[serde(rename = "PUT")]
    Put,
    /// GET, for systems that are told so.
    #[serde(rename = "GET")]
    Get,
}

/// How members are updated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// How members are updated.
    #[serde(rename = "type", default)]
    pub type_: StrategyType,
    /// Settings for type RollingUpdate.
    #[serde(default)]
    pub rolling_update: RollingUpdate,
}

/// How members are updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::EnumIter)]
pub enum StrategyType {
    /// Replace the pods of the StatefulSet one at a time.
    #[default]
    RollingUpdate,
}

/// Settings for type RollingUpdate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// Order of replacement. Defaults to LeaderLast if the update strategy of the StatefulSet is OnDelete, otherwise to ReverseOrdinal. The
    /// update strategy that the order needs is set when the next upgrade starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "one_of::<Order>", extend("nullable" = true))]
    pub order: Option<Order>,
}

/// Limits of one upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeLimits {
    /// The longest time that each stage of a member's replacement may take.
    #[serde(default)]
    pub deadlines: Deadlines,
    /// The image of executor Jobs: an image of Windlass. Defaults to the one in the operator's configuration. Other images must be allowed by
    /// the operator's flag `--allow-executor-image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = IMAGE))]
    pub executor_image: Option<String>,
    /// The largest number of log entries that a member may be behind the leader and still count as caught up.
    #[serde(default = "default_lag")]
    #[schemars(range(min = 0))]
    pub max_lag_entries: i64,
    /// How long a replaced member must stay ready, healthy and caught up before the next one is replaced, and before leadership may be handed to it. If it
    /// fails in that time, the time starts again. In the format of a deadline.
    #[serde(default = "no_time")]
    #[schemars(regex(pattern = DURATION))]
    pub soak: String,
    /// Pull the new image on every node that runs a member before anything is written, and go on only when all nodes have it. A Job for each
    /// node does it, with the pull secrets and the ServiceAccount of the StatefulSet; this needs the role `windlass-jobs` in this namespace. The
    /// gate ImagePulled shows the progress.
    #[serde(default)]
    pub pre_pull: bool,
    /// Show the last line of a container's log, and its termination message, in the status while a replaced member does not become healthy.
    /// Everyone who may read this resource can then read it, and logs can contain secrets. If false, messages only tell how to read the log.
    /// Needs the role `windlass-logs` in this namespace; a log that can't be read delays nothing.
    #[serde(default)]
    pub show_logs: bool,
}

fn no_time() -> String {
    "0s".to_owned()
}

fn default_lag() -> i64 {
    100
}

impl Default for UpgradeLimits {
    fn default() -> Self {
        Self {
            deadlines: Deadlines::default(),
            executor_image: None,
            max_lag_entries: default_lag(),
            soak: no_time(),
            pre_pull: false,
            show_logs: false,
        }
    }
}

/// Deadlines, in the format `90s`, `5m` or `1h30m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Deadlines {
    /// From the request to hand over until another member leads. After that, the request is repeated.
    #[schemars(regex(pattern = DURATION))]
    pub handover: String,
    /// From the start of the replacement until the new pod is Ready.
    #[schemars(regex(pattern = DURATION))]
    pub ready: String,
    /// From the pod being Ready until the member is healthy.
    #[schemars(regex(pattern = DURATION))]
    pub health: String,
    /// From the member being healthy until it has caught up with the leader.
    #[schemars(regex(pattern = DURATION))]
    pub sync: String,
    /// With `prePull`, the time for a node to pull the new image. After that, Windlass keeps trying for an hour and reports that it needs
    /// attention.
    #[schemars(regex(pattern = DURATION))]
    pub pull: String,
}

/// What a duration looks like.
pub(crate) const DURATION: &str = r"^([0-9]+(h|m|s|ms))+$";

impl Default for Deadlines {
    fn default() -> Self {
        Self { handover: "30s".into(), ready: "5m".into(), health: "2m".into(), sync: "2m".into(), pull: "10m".into() }
    }
}

/// What must be so before a member is taken down or hands over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gates {
    /// Maintenance windows. Members are replaced and leadership is handed over only while a window is open; without windows, at any time. Once
    /// one member has been timed, the next is started only if it is expected to finish before the window closes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub windows: Vec<MaintenanceWindow>,
    /// What must be approved by a person.
    #[serde(default)]
    pub approval: Approval,
    /// Checks of objects in this namespace. The gate of each is Check/NAME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub checks: Vec<ObjectCheck>,
    /// Queries to Prometheus that must give good values. The gate of each is Analysis/NAME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub analysis: Vec<Analysis>,
    /// Webhooks to call, or Jobs to run, before and after an upgrade. The gate of each is Hook/NAME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub hooks: Vec<Hook>,
    /// Gates to ignore for a limited time. Gates that protect the quorum, its leader or the writes of Windlass can't be ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["gate"]))]
    pub overrides: Vec<Override>,
}

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

/// What must be approved by a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// When to wait for `requests.approve`.
    #[serde(default)]
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

/// What a gate may be called.
pub(crate) const GATE_NAME: &str = DNS_LABEL;

/// What containers, Services and namespaces may be called.
pub(crate) const DNS_LABEL: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// What most other objects may be called. It becomes part of a request's path, and must not be able to lead anywhere else.
pub(crate) const DNS_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// What looks like a reference to an image; `windlass_images` has the last word.
pub(crate) const IMAGE: &str = r"^(([A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+([+._-][a-z0-9]+)*:[A-Za-z0-9=_-]+)?$";

/// A condition on objects that must hold before each member is replaced or hands over leadership. If the objects can't be read, or the expression
/// does not yield true or false, the gate holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCheck {
    /// Name of this check; its gate is Check/NAME.
    #[schemars(length(max = 63), regex(pattern = GATE_NAME))]
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
    #[schemars(length(max = 63), regex(pattern = GATE_NAME))]
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

/// A webhook to call or a Job to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.webhook) != has(self.job)").message("set either webhook or job"))]
#[x_kube(validation = Rule::new("!has(self.job) || self.when != 'BeforeEachMember'").message("a Job runs once: BeforeUpgrade or AfterUpgrade").field_path(".when"))]
pub struct Hook {
    /// Name of this hook; its gate is Hook/NAME.
    #[schemars(length(max = 63), regex(pattern = GATE_NAME))]
    pub name: String,
    /// When the hook is called.
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

/// A Job created from a CronJob, like `kubectl create job --from=cronjob/NAME` does. The CronJob may be suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobHook {
    /// The name of a CronJob in this namespace.
    #[schemars(length(min = 1, max = 52), regex(pattern = DNS_NAME))]
    pub cron_job: String,
}

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

/// Exceptions to what Windlass refuses by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Allow an older version. Make sure that it can read the data of the newer one.
    #[serde(default)]
    pub allow_downgrade: bool,
    /// Allow upgrades with one or two members, which lose their quorum while a member is replaced.
    #[serde(default)]
    pub accept_downtime: bool,
    /// Allow permanent members without a vote: learners of etcd, and non-voters of OpenBao and Vault, in pods outside this StatefulSet. They do
    /// not count in the quorum, never become leader and are not upgraded. If false, an upgrade waits until they are promoted or removed.
    #[serde(default)]
    pub accept_non_voters: bool,
    /// Field managers that may keep owning the image, the update strategy or the replicas of the StatefulSet, named as in
    /// metadata.managedFields (for example argocd-controller), or KIND/NAME of a controlling owner. List one only after you configured it to leave
    /// those fields alone. This only lets an upgrade start: if the manager still changes a field, the upgrade stops with FieldOwned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub accept_owners: Vec<String>,
}

/// One-time requests. Set a field to a new value to ask again; status.requests shows the values that were handled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// Finish a rollout that was half done when this StatefulSet was adopted; try again what failed and waits for a person; continue after
    /// somebody else changed the StatefulSet (FieldOwned, TemplateChanged).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub resume: Option<String>,
    /// Approve the step in status.approval.asked. Later steps are not approved by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub approve: Option<String>,
    /// Stop the upgrade: no further member is replaced until `retry`, `rollback` or a new target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub abort: Option<String>,
    /// Roll back the current upgrade to the version that it started from, and stay there until `retry` or a new target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub rollback: Option<String>,
    /// Retry an upgrade that was stopped, was rolled back or missed a deadline. All deadlines start again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub retry: Option<String>,
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
