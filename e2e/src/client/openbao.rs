//! OpenBao: a load on a key-value engine, and who leads as each pod says.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    Status, Stored,
    http::{Failure, Http},
};

/// Standbys answer reads themselves since 2.5, from what they have applied. One that has just started is late until the leader finds
/// it again, which takes seconds: it had tried in vain while the pod was gone, and tries ever less often.
const LATE: Duration = Duration::from_secs(10);
/// How many keys are read at once.
const AT_ONCE: usize = 16;

/// A client of OpenBao.
#[derive(Clone)]
pub struct OpenBao {
    http: Http,
    token: Option<String>,
}

impl OpenBao {
    /// A client that waits so long for a connection, and so long for an answer (the connection included).
    pub fn new(connect: Duration, answer: Duration, token: Option<String>) -> Self {
        Self { http: Http::new(connect, answer), token }
    }

    /// Writes a key; its first part is where the engine is mounted. A standby passes it on.
    pub async fn put(&self, member: SocketAddr, key: &str, value: &str) -> Result<i64, Failure> {
        self.call(Method::PUT, member, &format!("/v1/{key}"), &json!({"value": value})).await.map(|_| 0)
    }

    /// Reads a key. What is not there yet is waited for.
    pub async fn get(&self, member: SocketAddr, key: &str) -> Result<Option<Stored>, Failure> {
        let patience = Instant::now() + LATE;
        loop {
            let request = self.request(Method::GET, member, &format!("/v1/{key}"), &Value::Null);
            let (status, body) = self.http.ask(request).await?;
            if status != StatusCode::NOT_FOUND {
                let value = read(status, &body)?["data"]["value"].as_str().unwrap_or_default().to_owned();
                return Ok(Some(Stored { key: key.to_owned(), value, revision: 0 }));
            }
            if Instant::now() > patience {
                return Ok(None);
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// These keys as this pod answers for them.
    pub async fn held(&self, member: SocketAddr, keys: &[&str]) -> Result<BTreeMap<String, Stored>, Failure> {
        let reads = stream::iter(keys).map(|key| self.get(member, key)).buffer_unordered(AT_ONCE);
        let found: Vec<Option<Stored>> = reads.try_collect().await?;
        Ok(found.into_iter().flatten().map(|stored| (stored.key.clone(), stored)).collect())
    }

    /// What the pod says of itself. The term is when it became active, and only the pod that is active tells it. IDs are ordinals,
    /// from 1.
    pub async fn status(&self, pod: &str, member: SocketAddr) -> Result<Status, Failure> {
        let (health, leader) = futures::try_join!(self.health(member), async {
            self.call(Method::GET, member, "/v1/sys/leader", &Value::Null).await
        })?;
        if health["sealed"] != false {
            return Err(Failure::Refused("it is sealed".into()));
        }
        Ok(Status {
            member: id(pod).ok_or_else(|| Failure::Unknown(format!("{pod} has no ordinal")))?,
            // https://openbao-1.openbao-internal:8201
            leader: leader["leader_cluster_address"]
                .as_str()
                .and_then(|address| address.split_once("://"))
                .and_then(|(_, host)| id(host.split(['.', ':']).next()?))
                .unwrap_or_default(),
            term: if leader["is_self"] == true { since(&leader["active_time"])? } else { 0 },
        })
    }

    /// The version of the program that the pod runs.
    pub async fn version(&self, member: SocketAddr) -> Result<String, Failure> {
        Ok(self.health(member).await?["version"].as_str().unwrap_or_default().to_owned())
    }

    /// Asks this pod, and nobody else, to stop leading.
    pub async fn step_down(&self, leader: SocketAddr) -> Result<(), Failure> {
        self.call(Method::PUT, leader, "/v1/sys/step-down", &Value::Null).await.map(drop)
    }

    async fn health(&self, member: SocketAddr) -> Result<Value, Failure> {
        // The status tells nothing that the body does not.
        let (_, body) = self.http.ask(self.request(Method::GET, member, "/v1/sys/health", &Value::Null)).await?;
        serde_json::from_slice(&body).map_err(|error| Failure::Unknown(format!("no JSON: {error}")))
    }

    /// Asks and reads the answer; nothing for an answer without a body.
    pub async fn call(
        &self,
        method: Method,
        member: SocketAddr,
        path: &str,
        question: &Value,
    ) -> Result<Value, Failure> {
        let (status, body) = self.http.ask(self.request(method, member, path, question)).await?;
        read(status, &body)
    }

    fn request(
        &self,
        method: Method,
        member: SocketAddr,
        path: &str,
        question: &Value,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let body = if question.is_null() { Bytes::new() } else { question.to_string().into() };
        let mut request = Request::builder().method(method).uri(format!("http://{member}{path}"));
        if path == "/v1/sys/step-down" {
            request = request.header("x-vault-no-request-forwarding", "1");
        }
        if let Some(token) = &self.token {
            request = request.header("x-vault-token", token);
        }
        request.body(Full::new(body))
    }
}

/// What an answer means. A pod that is sealed or a standby that knows of no leader did nothing, and neither did one that points to
/// another or calls the request wrong.
fn read(status: StatusCode, body: &Bytes) -> Result<Value, Failure> {
    if status.is_success() {
        return if body.is_empty() {
            Ok(Value::Null)
        } else {
            serde_json::from_slice(body).map_err(|error| Failure::Unknown(format!("{status}, and no JSON: {error}")))
        };
    }
    let story = format!("{status}: {}", String::from_utf8_lossy(body).trim());
    let nothing_happened = status.is_redirection()
        || status.is_client_error()
        || status == StatusCode::SERVICE_UNAVAILABLE && story.contains("is sealed")
        || story.contains("active cluster node not found");
    Err(if nothing_happened { Failure::Refused(story) } else { Failure::Unknown(story) })
}

fn id(pod: &str) -> Option<u64> {
    pod.rsplit_once('-')?.1.parse::<u64>().ok()?.checked_add(1)
}

fn since(time: &Value) -> Result<u64, Failure> {
    let time = time.as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let nanoseconds = time.and_then(|time| u64::try_from(time.as_nanosecond()).ok());
    nanoseconds.ok_or_else(|| Failure::Unknown("since when it leads can't be read".into()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::StatusCode;

    use super::{Failure, id, read};

    #[test]
    fn only_a_clear_no_means_that_nothing_happened() {
        let refused = |status: u16, body: &'static str| {
            let read = read(StatusCode::from_u16(status).unwrap(), &Bytes::from_static(body.as_bytes()));
            matches!(read, Err(Failure::Refused(_)))
        };
        assert!(refused(503, r#"{"errors":["Vault is sealed"]}"#));
        assert!(refused(500, r#"{"errors":["local node not active but active cluster node not found"]}"#));
        assert!(refused(403, r#"{"errors":["permission denied"]}"#));
        assert!(!refused(500, r#"{"errors":["node is not the leader"]}"#));
        assert!(!refused(503, ""));
    }

    #[test]
    fn pods_are_told_apart_by_their_ordinals() {
        assert_eq!((id("openbao-0"), id("openbao-12"), id("openbao")), (Some(1), Some(13), None));
    }
}
