//! The Kubernetes clients: the one that Windlass writes with, and one that can't write.
//!
//! kube retries every verb by default, for minutes: a write sent while leading would land long after leadership was lost. Here
//! nothing is retried, and every write tells the API server how long it may work on it.

use std::{io, time::Duration};

use http::{Method, Request, Uri};
use kube::{Client, Config, client::Body, client::ClientBuilder};
use tower::filter::FilterLayer;

/// A client that retries nothing and bounds every write.
pub fn connect(mut config: Config, longest_write: Duration) -> kube::Result<Client> {
    config.default_retry = false;
    // A watch is silent for minutes at most (bookmarks come every minute); anything else answers sooner.
    config.read_timeout = Some(Duration::from_mins(5));
    let bound = move |request: Request<Body>| with_time_out(request, longest_write);
    Ok(ClientBuilder::try_from(config)?.with_layer(&tower::util::MapRequestLayer::new(bound)).build())
}

/// A client for looking only: whatever would write is refused before it is sent. A token to log in with changes nothing.
pub fn read_only(mut config: Config) -> kube::Result<Client> {
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?.with_layer(&FilterLayer::new(only_reads)).build())
}

/// The request, if it reads.
fn only_reads(request: Request<Body>) -> Result<Request<Body>, io::Error> {
    if writes(&request) && !asks_for_a_token(&request) {
        let what = format!("{} {}", request.method(), request.uri().path());
        return Err(io::Error::other(format!("{what} would write, and only reading is allowed here")));
    }
    Ok(request)
}

fn writes(request: &Request<Body>) -> bool {
    !matches!(*request.method(), Method::GET | Method::HEAD)
}

fn asks_for_a_token(request: &Request<Body>) -> bool {
    let path: Vec<&str> = request.uri().path().trim_start_matches('/').split('/').collect();
    let asks = matches!(path.as_slice(), ["api", "v1", "namespaces", _, "serviceaccounts", _, "token"]);
    asks && *request.method() == Method::POST
}

/// The same request, with `timeout=` if it writes: what the server has not done by then it gives up.
pub fn with_time_out(request: Request<Body>, longest: Duration) -> Request<Body> {
    if !writes(&request) {
        return request;
    }
    let (mut parts, body) = request.into_parts();
    let joint = if parts.uri.query().is_some_and(|query| !query.is_empty()) { "&" } else { "?" };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).trim_end_matches('?');
    let bounded = format!("{path}{joint}timeout={}s", longest.as_secs());
    let mut pieces = parts.uri.clone().into_parts();
    if let Ok(path) = bounded.parse() {
        pieces.path_and_query = Some(path);
        if let Ok(uri) = Uri::from_parts(pieces) {
            parts.uri = uri;
        }
    }
    Request::from_parts(parts, body)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Request;
    use kube::client::Body;

    use super::{only_reads, with_time_out};

    fn uri(method: &str, uri: &str) -> String {
        let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
        with_time_out(request, Duration::from_secs(10)).uri().to_string()
    }

    #[test]
    fn writes_carry_a_time_out_and_reads_do_not() {
        assert_eq!(uri("PATCH", "/apis/apps/v1/statefulsets/pd?"), "/apis/apps/v1/statefulsets/pd?timeout=10s");
        assert_eq!(uri("POST", "/api/v1/pods?fieldManager=w"), "/api/v1/pods?fieldManager=w&timeout=10s");
        assert_eq!(uri("DELETE", "https://host:6443/api/v1/pods/a"), "https://host:6443/api/v1/pods/a?timeout=10s");
        assert_eq!(uri("GET", "/api/v1/pods?watch=1"), "/api/v1/pods?watch=1");
    }

    #[test]
    fn a_client_for_looking_sends_no_write() {
        let sent = |method: &str| {
            let request = Request::builder().method(method).uri("/api/v1/pods/a").body(Body::empty()).unwrap();
            only_reads(request).is_ok()
        };
        assert!(sent("GET") && sent("HEAD"));
        assert_eq!(["POST", "PUT", "PATCH", "DELETE"].map(sent), [false; 4]);
    }
}
