//! PD: the etcd inside it takes the load, and holds the key that says who leads PD.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{
    Status,
    etcd::{Gateway, encode, number},
    http::{Failure, Http},
};

/// A client of PD and of the etcd inside it, on the same port.
#[derive(Clone)]
pub struct Pd {
    /// The etcd inside it.
    pub etcd: Gateway,
    http: Http,
    cluster: Arc<OnceCell<u64>>,
}

impl Pd {
    /// A client that waits so long for a connection, and so long for an answer (the connection included).
    pub fn new(connect: Duration, answer: Duration) -> Self {
        Self { etcd: Gateway::new(connect, answer), http: Http::new(connect, answer), cluster: Arc::default() }
    }

    /// Who leads PD, by the key that its leader holds, as this member has it. The revision that created the key is the term: no two
    /// leaders share one. Its own state in Raft comes first, since a member that is cut off keeps the key.
    pub async fn status(&self, member: SocketAddr) -> Result<Status, Failure> {
        let own = self.etcd.status(member).await?;
        if own.leader == 0 {
            return Ok(Status { term: 0, ..own });
        }
        let cluster = self.cluster.get_or_try_init(|| self.cluster(member)).await?;
        let question = json!({"key": encode(&format!("/pd/{cluster}/leader")), "serializable": true});
        let answer = self.etcd.call(member, "/v3/kv/range", &question).await?;
        // Without the key nobody leads PD, though somebody leads its etcd.
        let Some(key) = answer["kvs"].get(0) else { return Ok(Status { leader: 0, term: 0, ..own }) };
        let value = BASE64_STANDARD.decode(key["value"].as_str().unwrap_or_default()).ok();
        let leader = value.as_deref().and_then(leader);
        let leader = leader.ok_or_else(|| Failure::Unknown("the leader's key can't be read".into()))?;
        Ok(Status { member: own.member, leader, term: number(&key["create_revision"])? })
    }

    async fn cluster(&self, member: SocketAddr) -> Result<u64, Failure> {
        let members = self.members(member).await?;
        members["header"]["cluster_id"].as_u64().ok_or_else(|| Failure::Unknown("the cluster has no ID".into()))
    }

    /// The version that this member wrote down when it started: another's answer to the same question may be passed on.
    pub async fn version(&self, member: SocketAddr) -> Result<String, Failure> {
        let own = self.etcd.status(member).await?.member;
        let members = self.members(member).await?;
        let listed = members["members"].as_array().map(Vec::as_slice).unwrap_or_default();
        let version = listed.iter().find(|listed| listed["member_id"] == own).map(|listed| &listed["binary_version"]);
        let version = version.and_then(Value::as_str).map(|version| version.trim_start_matches('v').to_owned());
        version.ok_or_else(|| Failure::Unknown("the member is not listed".into()))
    }

    async fn members(&self, member: SocketAddr) -> Result<Value, Failure> {
        self.call(Method::GET, member, "/pd/api/v1/members", &Value::Null).await
    }

    /// Asks the leader to hand over to the member of this name.
    pub async fn move_leader(&self, leader: SocketAddr, to: &str) -> Result<(), Failure> {
        self.call(Method::POST, leader, &format!("/pd/api/v1/leader/transfer/{to}"), &Value::Null).await.map(drop)
    }

    /// Says how much a member shall be preferred as the leader.
    pub async fn set_priority(&self, member: SocketAddr, name: &str, priority: i32) -> Result<(), Failure> {
        let priority = json!({"leader-priority": priority});
        self.call(Method::POST, member, &format!("/pd/api/v1/members/name/{name}"), &priority).await.map(drop)
    }

    async fn call(&self, method: Method, member: SocketAddr, path: &str, question: &Value) -> Result<Value, Failure> {
        let body = if question.is_null() { Bytes::new() } else { question.to_string().into() };
        let request = Request::builder().method(method).uri(format!("http://{member}{path}")).body(Full::new(body));
        let (status, body) = self.http.ask(request).await?;
        if !status.is_success() {
            return Err(Failure::Unknown(format!("{status}: {}", String::from_utf8_lossy(&body).trim())));
        }
        serde_json::from_slice(&body).map_err(|error| Failure::Unknown(format!("{status}, and no JSON: {error}")))
    }
}

/// The member's ID in what the leader's key holds: a protocol buffer whose first field is the name and whose second is the ID.
fn leader(value: &[u8]) -> Option<u64> {
    let [0x0a, length, rest @ ..] = value else { return None };
    let [0x10, rest @ ..] = rest.get(usize::from(*length)..)? else { return None };
    let mut id = 0;
    for (index, byte) in rest.iter().take(10).enumerate() {
        id |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(index).ok()?)?;
        if byte & 0x80 == 0 {
            return Some(id);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::leader;

    #[test]
    fn the_leaders_key_names_it() {
        let named = |id: &[u8]| [b"\x0a\x04pd-1\x10", id, b"\x1a\x03url"].concat();
        assert_eq!(leader(&named(&[0x96, 0x01])), Some(150));
        assert_eq!(leader(&named(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01])), Some(u64::MAX));
        assert_eq!(leader(b"\x0a\x04pd-1"), None);
        assert_eq!(leader(b""), None);
    }
}
