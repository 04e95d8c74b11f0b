//! Tests on a real cluster.
//!
//! `cluster` builds and runs a real Kubernetes on this machine; `conformance` holds the embedded cluster to it.

#![allow(clippy::print_stdout, reason = "what these programs are for is to print")]

pub mod conformance;
