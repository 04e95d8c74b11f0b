//! etcd through its JSON gateway, as a client sees it: what was asked, and how sure one can be of what came of it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    Method, Request,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::Full;
use serde_json::{Value, json};

use super::{
    Status, Stored,
    http::{Failure, Http},
};

/// The user of these tests, where authentication is enabled.
pub const ROOT: (&str, &str) = ("root", "correct horse battery staple");

/// A client of the JSON gateway. Where it is asked who it is, it logs in as [`ROOT`] and asks again: what was refused for that did not happen.
#[derive(Clone)]
pub struct Gateway {
    http: Http,
    token: Arc<Mutex<Option<String>>>,
}

impl Gateway {
    /// A client that waits so long for a connection, and so long for an answer (the connection included).
    pub fn new(connect: Duration, answer: Duration) -> Self {
        Self { http: Http::new(connect, answer), token: Arc::default() }
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
    async fn page(
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

    /// Everything under a prefix as this member has it.
    pub async fn held(&self, member: SocketAddr, prefix: &str) -> Result<BTreeMap<String, Stored>, Failure> {
        // A linearizable read makes the member catch up before it answers; what it has by itself is then complete.
        self.everything(member, prefix, false).await?;
        self.everything(member, prefix, true).await
    }

    async fn everything(
        &self,
        member: SocketAddr,
        prefix: &str,
        serializable: bool,
    ) -> Result<BTreeMap<String, Stored>, Failure> {
        let (mut from, end) = (format!("{prefix}/"), format!("{prefix}0"));
        let mut all = BTreeMap::new();
        loop {
            let page = self.page(member, &from, &end, serializable).await?;
            let Some(last) = page.last() else { return Ok(all) };
            // The key after the last one.
            from = format!("{}\0", last.key);
            all.extend(page.into_iter().map(|stored| (stored.key.clone(), stored)));
        }
    }

    /// Lets nobody in who is not [`ROOT`].
    pub async fn enable_authentication(&self, member: SocketAddr) -> Result<(), Failure> {
        let (name, password) = ROOT;
        for (path, question) in [
            ("/v3/auth/user/add", json!({"name": name, "password": password})),
            ("/v3/auth/user/grant", json!({"user": name, "role": "root"})),
            ("/v3/auth/enable", json!({})),
        ] {
            self.call(member, path, &question).await?;
        }
        Ok(())
    }

    pub(super) async fn call(&self, member: SocketAddr, path: &str, question: &Value) -> Result<Value, Failure> {
        match self.call_once(member, path, question).await {
            Err(Failure::Refused(why)) if ASKED_WHO.iter().any(|words| why.contains(words)) => {
                let (name, password) = ROOT;
                let login = json!({"name": name, "password": password});
                let answer = self.call_once(member, "/v3/auth/authenticate", &login).await?;
                let token = answer["token"].as_str().map(str::to_owned);
                *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
                self.call_once(member, path, question).await
            }
            answer => answer,
        }
    }

    async fn call_once(&self, member: SocketAddr, path: &str, question: &Value) -> Result<Value, Failure> {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{member}{path}"))
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(Full::from(question.to_string()));
        let (status, body) = self.http.ask(request).await?;
        let body: Value = serde_json::from_slice(&body)
            .map_err(|error| Failure::Unknown(format!("{status}, and no JSON: {error}")))?;
        if status.is_success() { Ok(body) } else { Err(refusal(&body)) }
    }
}

/// How it asks who somebody is.
const ASKED_WHO: [&str; 2] = ["user name is empty", "invalid auth token"];

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

pub(super) fn encode(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

fn decode(text: &Value) -> Result<String, Failure> {
    let bytes = BASE64_STANDARD.decode(text.as_str().unwrap_or_default());
    let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| Failure::Unknown("a key or value can't be read".into()))
}

/// 64-bit numbers are strings in this JSON.
pub(super) fn number<N: std::str::FromStr>(value: &Value) -> Result<N, Failure> {
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| Failure::Unknown(format!("a number was expected, not {value}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Failure, refusal};

    #[test]
    fn only_a_clear_no_means_that_nothing_happened() {
        let refused = |code: i64| matches!(refusal(&json!({"code": code, "message": "no"})), Failure::Refused(_));
        assert!(refused(3) && refused(8));
        // Unavailable: "etcdserver: leader changed" comes after the proposal was made.
        assert!(!refused(14) && !refused(4) && !refused(2));
    }
}
