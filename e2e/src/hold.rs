//! A way to the API server on which writes can be held back: what a client sent between its last look and a take-over, and what
//! arrives after it.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Method, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
};
use kube::{
    Client, Config,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig, NamedAuthInfo},
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// A proxy on loopback.
pub struct Hold {
    /// Where clients connect.
    pub server: String,
    gate: Arc<Gate>,
    task: JoinHandle<()>,
}

struct Gate {
    /// Whom a request is passed on to; it says itself who asks.
    client: Client,
    /// Writes whose paths contain this are held back.
    closed: watch::Sender<Option<&'static str>>,
    held: AtomicUsize,
}

impl Hold {
    /// Listens, and passes everything on to the server of a kubeconfig.
    pub async fn before(kubeconfig: &Path) -> Result<Self> {
        let mut config = Kubeconfig::read_from(kubeconfig)?;
        for user in &mut config.auth_infos {
            *user = NamedAuthInfo { auth_info: Some(AuthInfo::default()), ..user.clone() };
        }
        let mut config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        let gate =
            Gate { client: Client::try_from(config)?, closed: watch::channel(None).0, held: AtomicUsize::new(0) };
        let gate = Arc::new(gate);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = format!("http://{}", listener.local_addr()?);
        let router = Router::new().fallback(pass).with_state(Arc::clone(&gate));
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.ok();
        });
        Ok(Self { server, gate, task })
    }

    /// From now on no write of anything but Leases and Events reaches the server. Reads and watches go on.
    pub fn hold(&self) {
        self.hold_only("");
    }

    /// The same, for writes whose paths contain this.
    pub fn hold_only(&self, part: &'static str) {
        self.gate.closed.send_replace(Some(part));
    }

    /// How many writes are held back.
    pub fn held(&self) -> usize {
        self.gate.held.load(Ordering::Acquire)
    }

    /// Lets everything through.
    pub fn release(&self) {
        self.gate.closed.send_replace(None);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(State(gate): State<Arc<Gate>>, request: Request) -> Response {
    // In a task of its own: what was sent arrives, also when the sender has given up waiting.
    let passed = tokio::spawn(async move { forward(&gate, request).await });
    match passed.await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

async fn forward(gate: &Gate, request: Request) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await?;
    let passes = ["/leases", "/events"].iter().any(|kind| parts.uri.path().contains(kind));
    let is_write = parts.method != Method::GET && !passes;
    let mut closed = gate.closed.subscribe();
    let is_held = closed.borrow().is_some_and(|part| parts.uri.path().contains(part));
    if is_write && is_held {
        gate.held.fetch_add(1, Ordering::AcqRel);
        closed.wait_for(Option::is_none).await?;
    }
    let mut onward = Request::builder().method(parts.method).uri(parts.uri);
    for (name, value) in &parts.headers {
        if [AUTHORIZATION.as_str(), "content-type", "accept", "user-agent"].contains(&name.as_str()) {
            onward = onward.header(name, value);
        }
    }
    let answer = gate.client.send(onward.body(kube::client::Body::from(body))?).await.context("the API server")?;
    Ok(answer.map(Body::new))
}
