//! One question over plain HTTP, and how sure one can be of what came of it.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

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

/// A client that keeps its connections.
#[derive(Clone)]
pub struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    answer: Duration,
}

impl Http {
    /// A client that waits so long for a connection, and so long for an answer (the connection included).
    pub fn new(connect: Duration, answer: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(connect));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).pool_idle_timeout(Duration::from_secs(5)).build(connector);
        Self { client, answer }
    }

    /// Sends a question. The answer's status and body, whatever the status.
    pub async fn ask(
        &self,
        request: Result<Request<Full<Bytes>>, http::Error>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let request = request.map_err(|error| Failure::NotSent(error.to_string()))?;
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| {
                if error.is_connect() { Failure::NotSent(story(&error)) } else { Failure::Unknown(story(&error)) }
            })?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await;
            Ok((status, body.map_err(|error| Failure::Unknown(error.to_string()))?.to_bytes()))
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
    use super::allowed;

    #[test]
    fn nobody_else_is_called() {
        assert!(allowed(&["10.244.0.7:2379".parse().unwrap(), "127.0.0.1:2379".parse().unwrap()]).is_ok());
        assert!(allowed(&["192.0.2.1:2379".parse().unwrap()]).is_err());
    }
}
