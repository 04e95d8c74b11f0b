//! A way to the API server on which writes can be held back: what a client sent between its last look and a take-over, and what
//! arrives after it; or the answer to one.

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
    closed: watch::Sender<Closed>,
    held: AtomicUsize,
}

/// What is held back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// Nothing.
    No,
    /// Writes whose paths contain this, before they reach the server.
    Writes(&'static str),
    /// The next one of them.
    Next(&'static str, Half),
    /// That one, and no other.
    Taken,
}

/// Which half of a request is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The server hears of it late.
    Request,
    /// The server has done it, and the client does not hear of that.
    Answer,
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
            Gate { client: Client::try_from(config)?, closed: watch::channel(Closed::No).0, held: AtomicUsize::new(0) };
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
        self.gate.closed.send_replace(Closed::Writes(part));
    }

    /// From now on the next write whose path contains this is held back, and no other.
    pub fn hold_next(&self, part: &'static str, half: Half) {
        self.gate.held.store(0, Ordering::Release);
        self.gate.closed.send_replace(Closed::Next(part, half));
    }

    /// How many writes are held back.
    pub fn held(&self) -> usize {
        self.gate.held.load(Ordering::Acquire)
    }

    /// Lets everything through.
    pub fn release(&self) {
        self.gate.closed.send_replace(Closed::No);
    }
}

impl Gate {
    /// Whether a write is held back, and which half of it.
    fn take(&self, path: &str) -> Option<Half> {
        let mut half = None;
        self.closed.send_if_modified(|closed| match *closed {
            Closed::Writes(part) if path.contains(part) => {
                half = Some(Half::Request);
                false
            }
            Closed::Next(part, which) if path.contains(part) => {
                half = Some(which);
                *closed = Closed::Taken;
                true
            }
            Closed::No | Closed::Writes(_) | Closed::Next(..) | Closed::Taken => false,
        });
        half
    }

    /// Until everything is let through.
    async fn wait(&self) -> Result<()> {
        self.held.fetch_add(1, Ordering::AcqRel);
        self.closed.subscribe().wait_for(|closed| *closed == Closed::No).await?;
        Ok(())
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
    let half = is_write.then(|| gate.take(parts.uri.path())).flatten();
    if half == Some(Half::Request) {
        gate.wait().await?;
    }
    let mut onward = Request::builder().method(parts.method).uri(parts.uri);
    for (name, value) in &parts.headers {
        if [AUTHORIZATION.as_str(), "content-type", "accept", "user-agent"].contains(&name.as_str()) {
            onward = onward.header(name, value);
        }
    }
    let answer = gate.client.send(onward.body(kube::client::Body::from(body))?).await.context("the API server")?;
    if half == Some(Half::Answer) {
        gate.wait().await?;
    }
    Ok(answer.map(Body::new))
}
