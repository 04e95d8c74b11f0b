//! How a system of type Http is asked and told.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
#[serde(rename_all = "UPPERCASE")]
pub enum QuestionMethod {
    /// GET.
    #[default]
    Get,
    /// POST, for systems that are asked so. It must change nothing: it is sent in every pass.
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
#[serde(rename_all = "UPPERCASE")]
pub enum HandOverMethod {
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
    /// GET, for systems that are told so.
    Get,
}
