//! `QuorumCluster`: a StatefulSet that already exists, the quorum system in it, and the version it shall run.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_plan::{approval::Mode, gate::When};

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
    /// What makes an upgrade begin.
    #[serde(default)]
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
    /// How members are brought to the new version.
    #[serde(default)]
    pub update_strategy: UpdateStrategy,
    /// Limits of one upgrade.
    #[serde(default)]
    pub upgrade: UpgradeLimits,
    /// What must be so before anything is written for a new version, and again before each member is taken down or hands over, beyond what the
    /// quorum needs. status.gates shows where each stands.
    #[serde(default)]
    pub gates: Gates,
    /// What is stored before an upgrade begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// What is allowed that is refused otherwise.
    #[serde(default)]
    pub policy: Policy,
    /// What is done when a stage takes longer than its deadline.
    #[serde(default)]
    pub on_deadline: OnDeadline,
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

/// What makes an upgrade begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Trigger {
    /// Another `version` or `image` here. Windlass writes the StatefulSet's template.
    #[default]
    Version,
    /// Another template in the StatefulSet, written by Helm or Git. Windlass only replaces the pods, and never writes the template. The
    /// StatefulSet's update strategy must be OnDelete there, also while nothing changes.
    Template,
}

impl From<Trigger> for windlass_plan::strategy::known::want::Trigger {
    fn from(trigger: Trigger) -> Self {
        match trigger {
            Trigger::Version => Self::Version,
            Trigger::Template => Self::Template,
        }
    }
}

/// What is done when a stage takes longer than its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnDeadline {
    /// Everything stays as it is, and a person is called.
    #[default]
    Hold,
    /// All members return to the version that the upgrade started from, unless a member of the new version has been leader, and a person is
    /// called. The same target is not tried again until `requests.retry` has a new value.
    RollBack,
}

impl From<OnDeadline> for windlass_plan::strategy::known::want::OnDeadline {
    fn from(written: OnDeadline) -> Self {
        match written {
            OnDeadline::Hold => Self::Hold,
            OnDeadline::RollBack => Self::RollBack,
        }
    }
}

/// Where the members live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// The StatefulSet's name, in this resource's namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub stateful_set: String,
    /// The container whose image is the system's.
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub container: String,
    /// Init containers whose image is the system's, too: whenever the container's image is written, so is theirs. With trigger Version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)))]
    pub init_containers: Vec<String>,
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
    /// Any other with HTTP endpoints, as `http` describes it.
    Http,
}

impl SystemType {
    /// The name in the custom resource.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pd => "Pd",
            Self::Etcd => "Etcd",
            Self::OpenBao => "OpenBao",
            Self::Vault => "Vault",
            Self::Http => "Http",
        }
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
    /// Who asks: OpenBao and Vault tell who their members are, and step down, only for a token. etcd wants a user where its authentication
    /// is enabled. With the type Http, the token of `tokenSecret` is sent with every request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// How a system of the type Http is asked and told.
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
    /// Log in with a token of the operator's ServiceAccount at an auth method of type `kubernetes`. The token is for the audience
    /// `windlass/NAMESPACE/NAME` of this resource alone, so the role must name that as its `audience`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<LogIn>,
    /// Log in with a token of the operator's ServiceAccount at an auth method of type `jwt`. The token is for the audience
    /// `windlass/NAMESPACE/NAME` of this resource alone, so the role must name that in its `bound_audiences`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt: Option<LogIn>,
    /// Send the token although there is no `tls`: whoever can listen to the network has it then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_plaintext: bool,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::EnumIter)]
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
    /// What executor Jobs run: an image of Windlass. Without it, the one that the operator was told. Another one must have been allowed when
    /// the operator was started (`--allow-executor-image`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = IMAGE))]
    pub executor_image: Option<String>,
    /// A replaced member counts as caught up when it is at most so many log entries behind the leader.
    #[serde(default = "default_lag")]
    #[schemars(range(min = 0))]
    pub max_lag_entries: i64,
    /// How long a replaced member must have been ready, healthy and caught up at every look before the next one goes, and before it may
    /// be handed leadership. One that is not, even for a moment, begins anew. Written like a deadline.
    #[serde(default = "no_time")]
    #[schemars(regex(pattern = DURATION))]
    pub soak: String,
    /// Pull the new image on every node that holds a member before anything is written and before any of them stops, and go on only when it
    /// is there. Jobs do it, one on each node, with the StatefulSet's own pull secrets and ServiceAccount; they need the role
    /// `windlass-jobs` in this namespace. The gate ImagePulled shows where it stands.
    #[serde(default)]
    pub pre_pull: bool,
    /// Show the last line of a container's log, and its termination message, in the status while a replaced member does not come up. Whoever
    /// may read this resource reads it then, and logs hold what nobody meant to show: without it, messages only say how to read the log. Needs the role `windlass-logs`
    /// in this namespace; a log that can't be read holds nothing up.
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

/// Deadlines, written like `90s`, `5m` or `1h30m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Deadlines {
    /// From asking the leader to hand over until leadership is seen elsewhere; then it is asked again.
    #[schemars(regex(pattern = DURATION))]
    pub handover: String,
    /// From permitting the replacement until the new pod is Ready.
    #[schemars(regex(pattern = DURATION))]
    pub ready: String,
    /// From Ready until the member is healthy.
    #[schemars(regex(pattern = DURATION))]
    pub health: String,
    /// From healthy until the member has caught up.
    #[schemars(regex(pattern = DURATION))]
    pub sync: String,
    /// From asking a node to pull the new image until it is there, with `prePull`. Later it is still tried for an hour, and a person is
    /// called.
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
    /// Members are only taken down, and leadership is only handed over, while one of these is open; without any, at all times. After the
    /// first member was measured, the next one is only begun if it is expected to be done before its window closes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub windows: Vec<MaintenanceWindow>,
    /// What a person approves first.
    #[serde(default)]
    pub approval: Approval,
    /// What must be so of objects in this namespace. The gate of each is called `Check/` and its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub checks: Vec<ObjectCheck>,
    /// What Prometheus must measure. The gate of each is called `Analysis/` and its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub analysis: Vec<Analysis>,
    /// Whom to ask, or what to run, before and after. The gate of each is called `Hook/` and its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub hooks: Vec<Hook>,
    /// Gates to set aside for a while. What guards the quorum, its leader or Windlass' own writes can't be set aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["gate"]))]
    pub overrides: Vec<Override>,
}

/// A time that recurs. Windows that overlap or touch are one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// When it opens: minute, hour, day of the month, month, day of the week, as cron writes them. `0 2 * * sat` is Saturdays at two. A time
    /// that a change of the clock skips opens at that change; one that comes twice opens the first time.
    #[schemars(length(max = 100), regex(pattern = r"^\s*([0-9A-Za-z*,/-]+\s+){4}[0-9A-Za-z*,/-]+\s*$"))]
    pub schedule: String,
    /// How long it is open, written like a deadline: `4h`.
    #[schemars(length(max = 32), regex(pattern = DURATION))]
    #[x_kube(validation = Rule::new("self.matches('[1-9]')").message("a window that lasts no time never opens"))]
    pub duration: String,
    /// The time zone of the schedule, by its name in the IANA database, like `Europe/Berlin`.
    #[serde(default = "utc")]
    #[schemars(length(max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9_+/-]*$"))]
    pub time_zone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// What a person approves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Before what it waits for `requests.approve`.
    #[serde(default)]
    pub mode: ApprovalMode,
}

/// Before what a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApprovalMode {
    /// Before nothing.
    #[default]
    None,
    /// Before anything is written or replaced for a target, a revert included.
    BeforeUpgrade,
    /// Before each time that leadership is asked to move. Members that don't lead are replaced unasked.
    BeforeEachHandOver,
}

impl From<ApprovalMode> for Mode {
    fn from(mode: ApprovalMode) -> Self {
        match mode {
            ApprovalMode::None => Self::None,
            ApprovalMode::BeforeUpgrade => Self::BeforeUpgrade,
            ApprovalMode::BeforeEachHandOver => Self::BeforeEachHandOver,
        }
    }
}

/// One gate that is set aside for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// Which, by its name in status.gates.
    #[schemars(regex(pattern = OVERRIDABLE), length(max = 80))]
    pub gate: String,
    /// Until when. Afterwards it counts again.
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

/// Something that must be so of objects before every member that is taken down or hands over. What can't be read, or does not come to
/// true or false, blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCheck {
    /// How people call it.
    #[schemars(length(max = 63), regex(pattern = GATE_NAME))]
    pub name: String,
    /// Which objects. Windlass must be allowed to get and list them.
    pub objects: Objects,
    /// Yields true where it may go on. `objects` is the list of them, without managedFields, in the order of their names; one that is named
    /// and does not exist is not in it. A field that is not there is no answer: ask for it with `has()`.
    #[schemars(length(min = 1, max = 1024))]
    pub cel: String,
}

/// Objects in this namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(self.apiVersion == 'v1' && self.kind == 'Secret')").message("Secrets are not looked at").field_path(".kind"))]
#[x_kube(validation = Rule::new("!has(self.name) || !has(self.labelSelector)").message("set name or labelSelector, not both"))]
pub struct Objects {
    /// Group and version, like `batch/v1`.
    #[schemars(length(max = 253), regex(pattern = r"^([a-z0-9.-]+/)?v[0-9][a-z0-9]*$"))]
    pub api_version: String,
    /// The kind, like `Job`.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$"))]
    pub kind: String,
    /// The one of this name; without it, all that `labelSelector` selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9:._-]*$"))]
    pub name: Option<String>,
    /// Those with these labels, as kubectl's `-l` writes them; all of them without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub label_selector: Option<String>,
}

/// Something that Prometheus must measure before every member that is taken down or hands over. What can't be measured blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// How people call it.
    #[schemars(length(max = 63), regex(pattern = GATE_NAME))]
    pub name: String,
    /// Where Prometheus is.
    pub prometheus: ServiceRef,
    /// The query, in PromQL. One that yields nothing is no measurement.
    #[schemars(length(min = 1, max = 4096))]
    pub query: String,
    /// Yields true where a value is good: of every series that the query yields. It sees `value`, a number, and `labels`.
    #[schemars(length(min = 1, max = 1024))]
    pub cel: String,
    /// It holds when so many measurements in a row were bad, and passes with the next good one. An operator that has just started knows of
    /// none before, and holds at the first.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub consecutive_failures: u32,
    /// How often it is measured, written like a deadline.
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

/// A Service, dialled at its cluster address. One in another namespace must have been allowed when the operator was started
/// (`--allow-service NAMESPACE/NAME`, and `NAMESPACE/NAME:PORT` for webhooks): nobody reaches further through Windlass than they can by themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRef {
    /// Its name.
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub name: String,
    /// Its namespace; this one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub namespace: Option<String>,
    /// Its port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The path; of Prometheus, what comes before `/api/v1`.
    #[serde(default)]
    #[schemars(length(max = 1024), regex(pattern = r"^(/[A-Za-z0-9._~/-]*)?$"))]
    pub path: String,
    /// A Secret in this namespace with the certificate authority as `ca.crt`: talk TLS. The certificate must be valid for
    /// `NAME.NAMESPACE.svc`. Without it, plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub ca_secret: Option<String>,
}

/// Whom to ask, or what to run: either `webhook` or `job`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.webhook) != has(self.job)").message("set either webhook or job"))]
#[x_kube(validation = Rule::new("!has(self.job) || self.when != 'BeforeEachMember'").message("a Job runs once: BeforeUpgrade or AfterUpgrade").field_path(".when"))]
pub struct Hook {
    /// How people call it.
    #[schemars(length(max = 63), regex(pattern = GATE_NAME))]
    pub name: String,
    /// Before or after what.
    pub when: HookTime,
    /// A Service that is sent a POST with JSON that says what is about to happen. A 2xx is yes, 409 is no, everything else is no answer. It is
    /// asked again until it says yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<ServiceRef>,
    /// A Job that must complete. It must bear being run again: another edit of this resource, or another target, runs another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobHook>,
}

/// When a hook has its say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HookTime {
    /// Before anything is written or replaced for a target; a target that changes half way is the same upgrade.
    BeforeUpgrade,
    /// Before every member that is taken down or hands over.
    BeforeEachMember,
    /// When every member is replaced and well, before the upgrade is called done. Going back asks nobody.
    AfterUpgrade,
}

impl From<HookTime> for When {
    fn from(time: HookTime) -> Self {
        match time {
            HookTime::BeforeUpgrade => Self::BeforeUpgrade,
            HookTime::BeforeEachMember => Self::BeforeMember,
            HookTime::AfterUpgrade => Self::AfterUpgrade,
        }
    }
}

/// A Job like those of a CronJob, as `kubectl create job --from=cronjob/NAME` makes it. Whoever wrote the CronJob decided what may run; it
/// may be suspended for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobHook {
    /// The CronJob's name, in this namespace.
    #[schemars(length(min = 1, max = 52), regex(pattern = DNS_NAME))]
    pub cron_job: String,
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
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
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
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
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
    /// A Secret in this namespace with `accessKeyId` and `secretAccessKey`; putting objects under the prefix is all that they must allow, and
    /// aborting multipart uploads there, so that nothing is left of one that failed.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
    pub credentials_secret: String,
    /// A Secret in this namespace with the certificate authority of the service as `ca.crt`; without it, those that everybody trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
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
    /// Members without a vote are meant to stay: etcd's learners, OpenBao's and Vault's non-voters, in pods that are not this StatefulSet's.
    /// They count in no quorum, are handed no leadership and are not upgraded. Otherwise an upgrade waits until they are promoted or gone.
    #[serde(default)]
    pub accept_non_voters: bool,
    /// Field managers that may keep owning the image, the update strategy or the replicas of the StatefulSet, named as in
    /// metadata.managedFields (for example argocd-controller), or KIND/NAME of a controlling owner. List one only after you configured it to leave
    /// those fields alone. This only lets an upgrade start: if the manager still changes a field, the upgrade stops with FieldOwned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub accept_owners: Vec<String>,
}

/// Edge-triggered requests: any value that differs from the one handled last (see status.requests) asks again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// Finish a rollout that was half done when this StatefulSet was adopted; try again what failed and waits for a person; continue after
    /// somebody else changed the StatefulSet (FieldOwned, TemplateChanged).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub resume: Option<String>,
    /// Approve what status.approval.asked shows, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub approve: Option<String>,
    /// Stop where it is: no further member is begun, until `retry`, `rollback` or another target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub abort: Option<String>,
    /// Go back to where the upgrade that is under way came from, as if that had been asked for, and stay there until `retry` or another
    /// target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub rollback: Option<String>,
    /// Try again what was stopped, went back or took too long: every clock starts anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub retry: Option<String>,
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
