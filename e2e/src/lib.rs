//! Tests on a real cluster.
//!
//! `cluster` builds and runs a real Kubernetes on this machine; `conformance` holds the embedded cluster to it.

pub mod applications;
pub mod cluster;
pub mod conformance;
pub mod image;
pub mod operator_image;

/// A line of progress. Standard output is for results.
#[expect(clippy::print_stderr, reason = "progress is for a person to see")]
pub fn say(line: &str) {
    eprintln!("  {line}");
}
