//! A person's own endpoint that says whether to go on.
//!
//! It is asked again and again until it says yes, so it must bear that. It must never be believed for more than it says: a success is
//! yes, 409 Conflict is no, and everything else is no answer.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use serde_json::Value;

use crate::{
    call::{CallError, Failure, call},
    transport::{Peer, Transport},
};

/// What it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Go on.
    Yes,
    /// Not now, in its words.
    No(String),
}

/// Tells it what is about to happen, and asks.
pub async fn ask(
    transport: &dyn Transport,
    peer: &Peer,
    path: &str,
    about: &Value,
    limit: Duration,
) -> Result<Said, CallError> {
    let mut request = Request::new(Bytes::from(about.to_string()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().unwrap_or_default();
    request.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    let reply = call(transport, peer, request, limit).await?;
    if reply.status() != StatusCode::CONFLICT {
        return reply.success().map(|_| Said::Yes);
    }
    let refused = reply.refused();
    let words = if let Failure::Status { text, .. } = refused.failure() { text.as_str() } else { "" };
    Ok(Said::No(if words.is_empty() { "it says no".to_owned() } else { words.to_owned() }))
}
