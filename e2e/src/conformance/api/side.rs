//! The two servers behind one door: a request goes in, an answer with all of its bytes or a stream of lines comes out.

use std::path::Path;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use http::{Request, Response, header};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::BoxError;
use windlass_sim::api::Api;
use windlass_sim::clock::Clock;
use windlass_sim::journal::Journal;

use super::deviation::Deviation;

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status code.
    pub code: u16,
    /// The media type of the body.
    pub content_type: String,
    /// The texts of all `Warning` headers.
    pub warnings: Vec<String>,
    /// The `Retry-After` header.
    pub retry_after: Option<String>,
    /// The body: JSON, or a text where it is none.
    pub body: Value,
}

/// A watch, line by line.
pub type Lines = BoxStream<'static, Result<Value, BoxError>>;

/// What a request for a watch led to.
pub enum Opened {
    /// It is open.
    Stream(Lines),
    /// It was refused.
    Refused(Answer),
}

/// One of the two servers.
#[derive(Clone)]
pub enum Side {
    /// The embedded server, and what is made wrong about it on purpose.
    Embedded(Api, Option<Deviation>),
    /// A real one.
    Real(kube::Client),
}

impl Side {
    /// A new embedded server with these definitions.
    pub fn embedded(definitions: &[Value], deviation: Option<Deviation>) -> anyhow::Result<Self> {
        let api = Api::new(Clock::start(), Journal::default());
        for definition in definitions {
            api.create_value("conformance", definition.clone())
                .map_err(|status| anyhow::anyhow!("the embedded server refused a definition: {}", status.message))?;
        }
        Ok(Self::Embedded(api, deviation))
    }

    /// The server that a kubeconfig names.
    pub async fn real(kubeconfig: &Path) -> anyhow::Result<Self> {
        Ok(Self::Real(crate::cluster::client(kubeconfig).await?))
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, request: Request<Bytes>) -> anyhow::Result<Answer> {
        match self {
            Self::Embedded(api, deviation) => {
                let request =
                    deviation.map_or_else(|| request.clone(), |deviation| deviation.of_request(api, &request));
                let response = api.service("conformance").answer(request);
                let answer = read(response.map(BodyExt::boxed_unsync)).await?;
                Ok(deviation.map_or_else(|| answer.clone(), |deviation| deviation.of_answer(&answer)))
            }
            Self::Real(client) => {
                let response = client.send(request.map(kube::client::Body::from)).await?;
                read(response.map(|body| body.map_err(BoxError::from).boxed_unsync())).await
            }
        }
    }

    /// Opens a watch.
    pub async fn open(&self, request: Request<Bytes>) -> anyhow::Result<Opened> {
        let (response, deviation) = match self {
            Self::Embedded(api, deviation) => {
                let request =
                    deviation.map_or_else(|| request.clone(), |deviation| deviation.of_request(api, &request));
                (api.service("conformance").answer(request).map(BodyExt::boxed_unsync), *deviation)
            }
            Self::Real(client) => {
                let response = client.send(request.map(kube::client::Body::from)).await?;
                (response.map(|body| body.map_err(BoxError::from).boxed_unsync()), None)
            }
        };
        if !response.status().is_success() {
            return Ok(Opened::Refused(read(response).await?));
        }
        let lines = lines(response.into_body());
        Ok(Opened::Stream(match deviation {
            Some(deviation) => deviation.of_lines(lines),
            None => lines,
        }))
    }
}

type AnyBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

async fn read(response: Response<AnyBody>) -> anyhow::Result<Answer> {
    let (parts, body) = response.into_parts();
    let text = |name: header::HeaderName| -> Option<String> {
        parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let warnings = parts.headers.get_all(header::WARNING);
    let warnings = warnings.iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect();
    let bytes = body.collect().await.map_err(|why| anyhow::anyhow!("{why}"))?.to_bytes();
    let body =
        serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Ok(Answer {
        code: parts.status.as_u16(),
        content_type: text(header::CONTENT_TYPE).unwrap_or_default(),
        warnings,
        retry_after: text(header::RETRY_AFTER),
        body,
    })
}

/// Cuts a body into lines of JSON.
fn lines(body: AnyBody) -> Lines {
    let chunks = body.into_data_stream().into_stream();
    let cut = futures::stream::unfold((chunks, Vec::<u8>::new()), |(mut chunks, mut rest)| async move {
        loop {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let parsed = serde_json::from_slice(&line).map_err(BoxError::from);
                return Some((parsed, (chunks, rest)));
            }
            match chunks.next().await? {
                Ok(chunk) => rest.extend_from_slice(&chunk),
                Err(why) => return Some((Err(why), (chunks, rest))),
            }
        }
    });
    cut.boxed()
}
