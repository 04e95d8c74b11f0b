//! The API server's audit log: who deleted which pod, and who wrote what. Never the operator's own word.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One request, once it was answered. Field names are Kubernetes'.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// ResponseComplete for what was answered.
    pub stage: String,
    /// get, list, create, update, patch, delete, deletecollection…
    pub verb: String,
    /// Who asked.
    #[serde(default)]
    pub user: User,
    /// With which program.
    #[serde(default)]
    pub user_agent: String,
    /// About which object.
    #[serde(default)]
    pub object_ref: ObjectRef,
    /// What was sent.
    #[serde(default)]
    pub request_object: Value,
    /// What was answered.
    #[serde(default)]
    pub response_status: ResponseStatus,
    /// When the API server got it.
    pub request_received_timestamp: Timestamp,
    /// When this line was written: for an answered request, when it was answered.
    pub stage_timestamp: Timestamp,
}

/// Who asked.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct User {
    /// The name.
    #[serde(default)]
    pub username: String,
    /// More, such as which token it was.
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Which object.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ObjectRef {
    /// In the plural: pods.
    #[serde(default)]
    pub resource: String,
    /// Where.
    #[serde(default)]
    pub namespace: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// status, eviction, binding…
    #[serde(default)]
    pub subresource: String,
}

/// The answer.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ResponseStatus {
    /// The HTTP status.
    #[serde(default)]
    pub code: u16,
}

impl Request {
    /// The API server did it.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.response_status.code)
    }

    /// It changes something, or would.
    pub fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Which token asked: no two tokens have the same.
    pub fn credential(&self) -> Option<&str> {
        self.user.extra.get("authentication.kubernetes.io/credential-id")?.first().map(String::as_str)
    }

    /// One pod, or the eviction of one, is to go.
    fn ends_a_pod(&self) -> bool {
        self.object_ref.resource == "pods"
            && match (self.verb.as_str(), self.object_ref.subresource.as_str()) {
                ("delete", "") | ("create", "eviction") => true,
                (_, _) => false,
            }
    }
}

/// Somebody had a pod deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// The pod.
    pub pod: String,
    /// When the API server got the request.
    pub at: Timestamp,
    /// The user.
    pub user: String,
    /// The program.
    pub agent: String,
}

/// A place in an audit log: what comes after it is read.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
    from: u64,
}

impl AuditLog {
    /// From now on. A log that is not there yet begins later.
    pub fn from_now(path: &Path) -> Self {
        let from = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        Self { path: path.to_owned(), from }
    }

    fn read(&self) -> Result<impl Iterator<Item = String> + use<>> {
        let mut file = File::open(&self.path).with_context(|| format!("no audit log at {}", self.path.display()))?;
        // A log that is shorter than it was has begun anew.
        let from = if file.metadata()?.len() < self.from { 0 } else { self.from };
        file.seek(SeekFrom::Start(from))?;
        Ok(BufReader::new(file).lines().map_while(Result::ok))
    }

    /// The lines about a namespace, as they are.
    pub fn lines(&self, namespace: &str) -> Result<Vec<String>> {
        let about = format!("\"namespace\":\"{namespace}\"");
        Ok(self.read()?.filter(|line| line.contains(&about)).collect())
    }

    /// All answered requests. A line that is still being written is left out.
    pub fn all(&self) -> Result<Vec<Request>> {
        let parsed = self.read()?.filter_map(|line| serde_json::from_str::<Request>(&line).ok());
        Ok(parsed.filter(|request| request.stage == "ResponseComplete").collect())
    }

    /// The answered requests about a namespace, in the order in which they came. A line that is still being written is left out.
    pub fn requests(&self, namespace: &str) -> Result<Vec<Request>> {
        let lines = self.lines(namespace)?;
        let parsed = lines.iter().filter_map(|line| serde_json::from_str::<Request>(line).ok());
        let mut requests: Vec<Request> = parsed
            .filter(|request| request.stage == "ResponseComplete" && request.object_ref.namespace == namespace)
            .collect();
        requests.sort_by_key(|request| request.request_received_timestamp);
        Ok(requests)
    }
}

/// Who ended which pod: the first request for each of a pod's lives that had it deleted. The kubelet's own deletion at the end of
/// each life ends nothing that was not ended before, unless it is the first one (an eviction by the node).
pub fn endings(requests: &[Request]) -> Vec<Ending> {
    let mut ended = BTreeMap::<&str, bool>::new();
    let mut endings = Vec::new();
    for request in requests.iter().filter(|request| request.succeeded()) {
        let pod = request.object_ref.name.as_str();
        if request.object_ref.resource == "pods"
            && request.verb == "create"
            && request.object_ref.subresource.is_empty()
        {
            ended.insert(pod, false);
        }
        if request.ends_a_pod() && !ended.insert(pod, true).unwrap_or(false) {
            endings.push(Ending {
                pod: pod.to_owned(),
                at: request.request_received_timestamp,
                user: request.user.username.clone(),
                agent: request.user_agent.clone(),
            });
        }
    }
    endings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Request, endings};

    fn request(second: u32, verb: &str, pod: &str, subresource: &str, user: &str, code: u16) -> Request {
        let at = format!("2026-01-01T00:00:{second:02}.000000Z");
        serde_json::from_value(json!({
            "stage": "ResponseComplete", "verb": verb, "user": {"username": user}, "userAgent": "test",
            "objectRef": {"resource": "pods", "namespace": "n", "name": pod, "subresource": subresource},
            "responseStatus": {"code": code}, "requestReceivedTimestamp": at, "stageTimestamp": at,
        }))
        .unwrap()
    }

    fn who(requests: &[Request]) -> Vec<(String, String)> {
        endings(requests).into_iter().map(|ending| (ending.pod, ending.user)).collect()
    }

    #[test]
    fn the_first_to_delete_a_pod_ended_it() {
        let log = [
            request(1, "delete", "etcd-2", "", "controller", 200),
            request(2, "delete", "etcd-2", "", "system:node:a", 200),
            request(3, "create", "etcd-2", "", "controller", 201),
            request(4, "delete", "etcd-2", "", "somebody", 200),
        ];
        let expected = [("etcd-2", "controller"), ("etcd-2", "somebody")];
        assert_eq!(who(&log), expected.map(|(pod, user)| (pod.to_owned(), user.to_owned())));
    }

    #[test]
    fn an_eviction_ends_a_pod_unless_it_is_refused() {
        let log = [
            request(1, "create", "etcd-0", "eviction", "drain", 429),
            request(2, "create", "etcd-1", "eviction", "drain", 201),
        ];
        assert_eq!(who(&log), [("etcd-1".to_owned(), "drain".to_owned())]);
    }

    #[test]
    fn other_writes_end_nothing() {
        let log = [
            request(1, "patch", "etcd-0", "", "windlass", 200),
            request(2, "update", "etcd-0", "status", "system:node:a", 200),
            request(3, "create", "etcd-0", "binding", "scheduler", 201),
        ];
        assert_eq!(who(&log), []);
    }
}
