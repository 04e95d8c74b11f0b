//! [`PD`]'s setting in short words: the scenarios that need the operator and not a particular system play here.

use serde_json::Value;
use windlass_sim::scenario::{Action, Place, Subject};

use crate::setting::PD;
pub use crate::setting::after;

/// Where the cluster lives.
pub const NAMESPACE: &str = PD.namespace;
/// The StatefulSet's and the QuorumCluster's name.
pub const NAME: &str = PD.name;

/// See [`crate::setting::Setting::objects`].
pub fn objects(members: u32, from: &str, to: &str) -> Vec<Value> {
    PD.objects(members, from, to)
}

/// See [`crate::setting::Setting::quorum_cluster`].
pub fn quorum_cluster(name: &str, version: &str) -> Value {
    PD.quorum_cluster(name, version)
}

/// The QuorumCluster.
pub fn subject() -> Subject {
    PD.subject()
}

/// The StatefulSet.
pub fn workload() -> Subject {
    PD.workload()
}

/// One of its pods.
pub fn pod(ordinal: u32) -> Place {
    PD.pod(ordinal)
}

/// A change of the QuorumCluster's spec.
pub fn spec(patch: Value) -> Action {
    PD.spec(patch)
}
