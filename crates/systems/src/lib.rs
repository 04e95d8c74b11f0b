//! Talking to the applications: facts in, verbs out, no decisions.
//!
//! An adapter asks a pod what it knows and carries out one verb when told to. It must never decide whether a step is
//! safe, retry by itself, or fill a gap in an answer with a guess: what was not said is reported as not said, and the
//! planner waits on it.
//!
//! [`transport`] is the seam: production uses [`network::Network`], the embedded cluster brings its own. [`call`] puts
//! a time-out and a readable error on every request. One module per system speaks that system's language.

pub mod call;
pub mod condition;
pub mod escape;
pub mod etcd;
mod expression;
mod gateway;
pub mod http;
pub mod network;
pub mod openbao;
pub mod pd;
pub mod prometheus;
pub mod secret;
pub mod snapshot;
pub mod text;
pub mod transport;
pub mod webhook;

pub use call::{CallError, Class, Failure, Timeouts};
pub use network::{Identity, Network, NetworkError};
pub use secret::{NoSecret, Password, Secret};
pub use transport::{Fault, Peer, Streamed, Transport};
