//! The operator on the embedded cluster: the real operator's code, kube's real client, a simulated everything else.
//!
//! [`operator`] puts the operator into a [`Seat`]; the rest are suites that make its life hard: [`crash`] kills and freezes it at
//! every call, [`walk`] lets seeds decide what goes wrong, and [`bugs`] plants mistakes and demands that the other two notice. What is wrong with
//! a run is for the judges in [`judge`] to say.

pub mod accounts;
pub mod bugs;
pub mod crash;
pub mod judge;
pub mod odd;
pub mod pd;
pub mod pool;
pub mod setting;
pub mod stamping;
pub mod trial;
pub mod walk;

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, Uri, uri::PathAndQuery};
use jiff::Timestamp;
use windlass_operator::{Clock, Context, Dial, Settings, dial::TlsMaterial};
use windlass_sim::harness::{self, Seat};
use windlass_systems::transport::{Peer, Transport};

/// A program while it runs.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// The operator, as a program for the harness.
pub fn operator(seat: Seat) -> Running {
    Box::pin(async move {
        let context = context(seat);
        windlass_operator::run(&context, std::future::pending()).await;
    })
}

/// The operator's context in a seat.
pub fn context(seat: Seat) -> Context {
    let Seat { client, dial, clock, identity } = seat;
    let settings = Settings {
        identity,
        lease_namespace: "kube-system".into(),
        executor_image: Some(setting::EXECUTOR.into()),
        allowed_gates: [stamping::NAMESPACE.to_owned()].into(),
        allowed_targets: [stamping::TARGET.to_owned()].into(),
        ..Settings::default()
    };
    Context::new(accounts::with_tokens(client), Arc::new(InProcess(dial)), Arc::new(ClusterClock(clock)), settings)
}

/// The cluster's clock, for the operator.
struct ClusterClock(windlass_sim::clock::Clock);

impl Clock for ClusterClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// Applications are reached without sockets.
#[derive(Clone)]
struct InProcess(harness::Dial);

impl Dial for InProcess {
    fn transport(&self, _: Option<&TlsMaterial>) -> Result<Arc<dyn Transport>, String> {
        Ok(Arc::new(self.clone()))
    }
}

impl Transport for InProcess {
    fn send(&self, peer: &Peer, request: Request<Bytes>) -> BoxFuture<'static, std::io::Result<Response<Bytes>>> {
        let authority = match peer.address {
            std::net::IpAddr::V4(address) => format!("{address}:{}", peer.port),
            std::net::IpAddr::V6(address) => format!("[{address}]:{}", peer.port),
        };
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        let uri = Uri::builder().scheme("http").authority(authority).path_and_query(path).build();
        match uri {
            Ok(uri) => {
                parts.uri = uri;
                (self.0)(Request::from_parts(parts, body))
            }
            Err(error) => Box::pin(async move { Err(std::io::Error::other(error)) }),
        }
    }
}
