//! Requests to the API for any kind of object, by address: what the garbage collector, the namespace controller and a drain
//! need. They go through a client, outside of the world's lock.

use http::{Method, Request, header::CONTENT_TYPE};
use serde_json::Value;

use super::queue::Event;
use super::state::State;
use crate::api::Api;

/// One request.
pub(crate) struct Call {
    pub user: &'static str,
    pub method: Method,
    pub path: String,
    pub body: Value,
    /// What to do when the API says "too many requests".
    pub if_refused: Option<(std::time::Duration, Event)>,
}

impl Call {
    /// Sends it; answers with the status code (0 where there was none).
    pub async fn send(&self, api: &Api) -> u16 {
        let kind = if self.method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(CONTENT_TYPE, kind)
            .body(self.body.to_string().into_bytes());
        let Ok(request) = request else { return 0 };
        match api.client(self.user).request_text(request).await {
            Ok(_) => 200,
            Err(kube::Error::Api(status)) => status.code,
            Err(_) => 0,
        }
    }
}

/// An object's address.
pub(super) fn path_of(api_version: &str, resource: &str, namespace: &str, name: &str) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let plural = resource.split('.').next().unwrap_or_default();
    if namespace.is_empty() {
        format!("/{root}/{api_version}/{plural}/{name}")
    } else {
        format!("/{root}/{api_version}/namespaces/{namespace}/{plural}/{name}")
    }
}

impl State {
    /// Takes the outcome of a call.
    pub fn called(&mut self, call: Call, code: u16) {
        if code == 429
            && let Some((at, again)) = call.if_refused
        {
            self.queue.push(at, again);
        }
    }
}
