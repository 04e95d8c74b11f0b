//! Where a request goes and how it gets there; the seam between adapters and the network.
//!
//! Implemented by [`crate::network::Network`] for production and by the embedded cluster for tests. A transport carries
//! one request to one pod and brings back what that pod said. It must never retry, follow a redirect, or pick another
//! pod: each of these would turn an answer of one pod into an answer of another.

use std::{fmt, io, net::IpAddr};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream, stream::BoxStream};
use http::{Request, Response};

/// The longest answer that is read. A list of members takes a few kilobytes; an answer past this is not one we
/// understand, and reading on would let one pod fill the operator's memory.
pub const ANSWER_LIMIT: usize = 1024 * 1024;

/// Where a request goes: a pod's address is dialled, the pod's DNS name is verified.
///
/// The address is taken from the pod object, so the request reaches the pod that was looked at, whatever DNS says at
/// this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The pod's name, for people.
    pub pod: String,
    /// The pod's address, which is dialled.
    pub address: IpAddr,
    /// The port of the application.
    pub port: u16,
    /// The name that the pod's certificate must carry; also sent as `Host`.
    pub server_name: String,
    /// Whether the application speaks TLS on that port.
    pub tls: bool,
}

/// Carries one request to one pod.
pub trait Transport: Send + Sync {
    /// Sends `request`, whose URI is path and query only, to `peer`.
    ///
    /// Dropping the future gives the request up. Errors that an [`io::ErrorKind`] can't express are a [`Fault`] inside
    /// the [`io::Error`].
    fn send(&self, peer: &Peer, request: Request<Bytes>) -> BoxFuture<'static, io::Result<Response<Bytes>>>;

    /// The same for an answer that may be long: it is brought back as it comes, and dropping it gives the rest up.
    ///
    /// Without anything better, the whole answer in one piece, with [`ANSWER_LIMIT`].
    fn stream(&self, peer: &Peer, request: Request<Bytes>) -> BoxFuture<'static, io::Result<Response<Streamed>>> {
        let answer = self.send(peer, request);
        async move { Ok(answer.await?.map(|body| stream::once(async { Ok(body) }).boxed())) }.boxed()
    }
}

/// An answer that comes in pieces.
pub type Streamed = BoxStream<'static, io::Result<Bytes>>;

/// What goes wrong on the way and has no [`io::ErrorKind`]; travels inside an [`io::Error`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The two sides could not agree that they are who they say: the text tells which check failed.
    Untrusted(String),
    /// The answer was longer than [`ANSWER_LIMIT`].
    TooLarge,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted(check) => write!(f, "TLS failed: {check}"),
            Self::TooLarge => write!(f, "the answer is longer than {ANSWER_LIMIT} bytes"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        Self::other(fault)
    }
}
