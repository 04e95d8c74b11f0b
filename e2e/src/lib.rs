//! Tests on a real cluster.
//!
//! `cluster` builds and runs a real Kubernetes on this machine; `conformance` holds the embedded cluster to it. `load` and
//! `witness` watch an upgrade from outside: what clients see, and who led when which pod was ended; `scenario` is what they watch.

pub mod applications;
pub mod audit;
pub mod client;
pub mod cluster;
pub mod conformance;
pub mod hold;
pub mod image;
pub mod kubectl;
pub mod ledger;
pub mod load;
pub mod operator_image;
pub mod scenario;
pub mod witness;

/// A line of progress. Standard output is for results.
#[expect(clippy::print_stderr, reason = "progress is for a person to see")]
pub fn say(line: &str) {
    eprintln!("  {line}");
}
