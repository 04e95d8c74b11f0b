//! etcd through its JSON gateway, as a client sees it: what was asked, and how sure one can be of what came of it.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Method, Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

/// The largest answer that is read: a page of a few hundred small keys is far below it.
const LARGEST_ANSWER: usize = 8 << 20;

/// Why a call did not come back with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection: nothing was sent, nothing can have happened.
    NotSent(String),
    /// The member said no, and that nothing happened.
    Refused(String),
    /// It was sent. Whether it took effect is not known.
    Unknown(String),
}

/// A key as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name.
    pub key: String,
    /// What is in it.
    pub value: String,
    /// The revision of its last change.
    pub revision: i64,
}

/// What a member says of itself and of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its own ID.
    pub member: u64,
    /// Whom it takes for the leader; 0 for nobody.
    pub leader: u64,
    /// The term that it is in.
    pub term: u64,
}

/// A client of the JSON gateway.
#[derive(Clone)]
pub struct Gateway {
    client: Client<HttpConnector, Full<Bytes>>,
    answer: Duration,
}

impl Gateway {
    /// A client that waits so long for a connection, and so long for an answer (the connection included).
    pub fn new(connect: Duration, answer: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(connect));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).pool_idle_timeout(Duration::from_secs(5)).build(connector);
        Self { client, answer }
    }

    /// Writes a key. The revision that the write has.
    pub async fn put(&self, member: SocketAddr, key: &str, value: &str) -> Result<i64, Failure> {
        let answer = self.call(member, "/v3/kv/put", &json!({"key": encode(key), "value": encode(value)})).await?;
        number(&answer["header"]["revision"])
    }

    /// Reads one key. A linearizable read: not older than anything that was acknowledged before.
    pub async fn get(&self, member: SocketAddr, key: &str) -> Result<Option<Stored>, Failure> {
        let answer = self.call(member, "/v3/kv/range", &json!({"key": encode(key)})).await?;
        Ok(stored(&answer)?.pop())
    }

    /// One page of the keys from `from` (included) to `end` (excluded). With `serializable`, as this member has them by itself.
    pub async fn page(
        &self,
        member: SocketAddr,
        from: &str,
        end: &str,
        serializable: bool,
    ) -> Result<Vec<Stored>, Failure> {
        let question =
            json!({"key": encode(from), "range_end": encode(end), "limit": 1000, "serializable": serializable});
        stored(&self.call(member, "/v3/kv/range", &question).await?)
    }

    /// What the member says of itself, without asking the others.
    pub async fn status(&self, member: SocketAddr) -> Result<Status, Failure> {
        let answer = self.call(member, "/v3/maintenance/status", &json!({})).await?;
        Ok(Status {
            member: number(&answer["header"]["member_id"])?,
            // A number that is zero is left out.
            leader: if answer["leader"].is_null() { 0 } else { number(&answer["leader"])? },
            term: if answer["raftTerm"].is_null() { 0 } else { number(&answer["raftTerm"])? },
        })
    }

    /// The version of the program that the member runs.
    pub async fn version(&self, member: SocketAddr) -> Result<String, Failure> {
        let answer = self.call(member, "/v3/maintenance/status", &json!({})).await?;
        Ok(answer["version"].as_str().unwrap_or_default().to_owned())
    }

    /// Asks the leader to hand over to the member with this ID.
    pub async fn move_leader(&self, leader: SocketAddr, to: u64) -> Result<(), Failure> {
        self.call(leader, "/v3/maintenance/transfer-leadership", &json!({"targetID": to.to_string()})).await.map(|_| ())
    }

    async fn call(&self, member: SocketAddr, path: &str, question: &Value) -> Result<Value, Failure> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{member}{path}"))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(question.to_string()))
            .map_err(|error| Failure::NotSent(error.to_string()))?;
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| {
                if error.is_connect() { Failure::NotSent(story(&error)) } else { Failure::Unknown(story(&error)) }
            })?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await;
            let body = body.map_err(|error| Failure::Unknown(error.to_string()))?.to_bytes();
            let body: Value = serde_json::from_slice(&body)
                .map_err(|error| Failure::Unknown(format!("{status}, and no JSON: {error}")))?;
            if status.is_success() { Ok(body) } else { Err(refusal(&body)) }
        };
        tokio::time::timeout(self.answer, exchange)
            .await
            .unwrap_or_else(|_| Err(Failure::Unknown(format!("no answer in {} ms", self.answer.as_millis()))))
    }
}

/// Only loopback and private addresses are ever called: pods and local processes.
pub fn allowed(addresses: &[SocketAddr]) -> Result<()> {
    for address in addresses {
        let near = match address.ip() {
            std::net::IpAddr::V4(ip) => ip.is_loopback() || ip.is_private(),
            std::net::IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
        };
        ensure!(near, "{address} is neither a pod's nor this machine's address");
    }
    Ok(())
}

/// What Raft says of a proposal that it did not take, for example while leadership is being handed over.
const DROPPED: &str = "raft proposal dropped";

/// What an error that etcd answered with means. Only for these codes nothing can have happened: the request was malformed (3), not
/// allowed (7, 16), or turned away before it was proposed (8). After any other the proposal may still be committed, unless Raft itself
/// says that it was none.
fn refusal(body: &Value) -> Failure {
    let message = body["message"].as_str().or_else(|| body["error"].as_str()).unwrap_or("no message").to_owned();
    match body["code"].as_i64() {
        Some(3 | 7 | 8 | 16) => Failure::Refused(message),
        Some(_) if message == DROPPED => Failure::Refused(message),
        Some(_) | None => Failure::Unknown(message),
    }
}

fn stored(answer: &Value) -> Result<Vec<Stored>, Failure> {
    let pairs = answer["kvs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |pair: &Value| {
        Ok(Stored {
            key: decode(&pair["key"])?,
            value: decode(&pair["value"])?,
            revision: number(&pair["mod_revision"])?,
        })
    };
    pairs.iter().map(one).collect()
}

fn encode(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

fn decode(text: &Value) -> Result<String, Failure> {
    let bytes = BASE64_STANDARD.decode(text.as_str().unwrap_or_default());
    let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| Failure::Unknown("a key or value can't be read".into()))
}

/// 64-bit numbers are strings in this JSON.
fn number<N: std::str::FromStr>(value: &Value) -> Result<N, Failure> {
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| Failure::Unknown(format!("a number was expected, not {value}")))
}

fn story(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Failure, allowed, refusal};

    #[test]
    fn only_a_clear_no_means_that_nothing_happened() {
        let refused = |code: i64| matches!(refusal(&json!({"code": code, "message": "no"})), Failure::Refused(_));
        assert!(refused(3) && refused(8));
        // Unavailable: "etcdserver: leader changed" comes after the proposal was made.
        assert!(!refused(14) && !refused(4) && !refused(2));
    }

    #[test]
    fn nobody_else_is_called() {
        assert!(allowed(&["10.244.0.7:2379".parse().unwrap(), "127.0.0.1:2379".parse().unwrap()]).is_ok());
        assert!(allowed(&["192.0.2.1:2379".parse().unwrap()]).is_err());
    }
}
