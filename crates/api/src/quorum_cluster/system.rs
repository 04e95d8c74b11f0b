//! The quorum system, and how Windlass connects and authenticates to it.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{quorum_cluster::http::Http, schema::DNS_NAME};

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
