//! etcd's JSON gateway, as far as etcd and PD, which has an etcd inside, share it.
//!
//! Protobuf's JSON leaves out what is zero or false and writes 64-bit numbers as strings. Only what is used is declared, and these
//! types must never leave the adapters.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use serde::{Deserialize, Deserializer, de};

use crate::secret::Secret;

/// Asks a member for its own state.
pub(crate) const STATUS: &str = "/v3/maintenance/status";

/// A request to the gateway, all of which are POST.
pub(crate) fn post(path: &'static str, body: impl Into<Bytes>) -> Request<Bytes> {
    let mut request = Request::new(body.into());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(path);
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request
}

/// The same in the name of whoever has the token. etcd takes it bare; only from 3.6 on it takes `Bearer` before it as well.
pub(crate) fn signed(mut request: Request<Bytes>, token: Option<&Secret>) -> Request<Bytes> {
    if let Some(token) = token {
        request.headers_mut().insert(header::AUTHORIZATION, token.header());
    }
    request
}

/// `POST /v3/maintenance/status`.
#[derive(Debug, Deserialize)]
pub(crate) struct Status {
    pub header: Header,
    /// Of the process that answers.
    #[serde(default)]
    pub version: String,
    #[serde(default, rename = "leader", deserialize_with = "wide")]
    leader_id: u64,
    /// A member that has committed nothing leaves this out. It is required all the same: where nothing is told, nothing
    /// is known.
    #[serde(rename = "raftIndex", deserialize_with = "wide")]
    pub index: u64,
    #[serde(rename = "raftAppliedIndex", deserialize_with = "wide")]
    pub applied: u64,
    #[serde(default, rename = "raftTerm", deserialize_with = "wide")]
    raft_term: u64,
    #[serde(default, rename = "isLearner")]
    pub is_learner: bool,
    /// That there is no leader, and every alarm of the cluster.
    #[serde(default)]
    pub errors: Vec<String>,
    /// Since 3.6.
    #[serde(default, rename = "downgradeInfo")]
    pub downgrade: Downgrade,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    #[serde(deserialize_with = "wide")]
    pub member_id: u64,
}

/// Whether the cluster was told to go back to an older minor release.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Downgrade {
    #[serde(default)]
    enabled: bool,
    #[serde(default, rename = "targetVersion")]
    target: String,
}

impl Downgrade {
    /// Where to; none where nobody asked for it.
    pub fn target(self) -> Option<String> {
        self.enabled.then_some(self.target)
    }
}

impl Status {
    /// The member that it follows; none while there is no leader.
    pub fn leader(&self) -> Option<u64> {
        (self.leader_id != 0).then_some(self.leader_id)
    }

    /// Raft's term, as it knows it; none where it does not tell.
    pub fn term(&self) -> Option<u64> {
        (self.raft_term != 0).then_some(self.raft_term)
    }
}

/// The host of a URL, without the brackets that an IPv6 address has there.
pub(crate) fn host(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let host = url.host()?;
    Some(host.trim_start_matches('[').trim_end_matches(']').to_owned())
}

/// A 64-bit number in a string, because many readers lose the last digits otherwise. Plain numbers are taken too.
pub(crate) fn wide<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Wide<'a> {
        Number(u64),
        Text(#[serde(borrow)] Cow<'a, str>),
    }
    match Wide::deserialize(deserializer)? {
        Wide::Number(number) => Ok(number),
        Wide::Text(text) => text.parse().map_err(|_| de::Error::custom("a 64-bit number was expected")),
    }
}
