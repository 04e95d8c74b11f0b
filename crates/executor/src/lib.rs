//! Work that must not run inside the operator (H6): it takes long, moves much data, or must not end with the operator.
//!
//! `windlass executor TASK` runs in the pod of a Job. Everything that it needs is in its arguments and mounted into its pod; it asks
//! Kubernetes for nothing. It says how it ended in one line of JSON (see [`windlass_api::executor`]), as its termination message and on its
//! standard output, and by its exit code. A task that comes late, or twice, must be harmless.
//!
//! [`snapshot`] takes a snapshot of a quorum; [`store`] puts it where it belongs; [`s3`] speaks to buckets.

pub mod error;
mod measured;
pub mod s3;
pub mod snapshot;
pub mod store;

pub use error::{Class, Error};
