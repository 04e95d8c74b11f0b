//! Windlass's custom resources (`windlass.dev/v1alpha1`): their types, the rules that the API server enforces on them, and the way
//! from what a person wrote to what [`windlass_plan`] works with.
//!
//! A field is here when it does something; the others of the design come with what they switch.

pub mod conditions;
pub mod crd;
pub mod executor;
pub mod fleet;
pub mod gates;
pub mod phase;
pub mod quorum_cluster;
pub mod reading;
mod schema;
pub mod service_image;
pub mod status;
pub mod translate;
pub mod word;

pub use quorum_cluster::{QuorumCluster, QuorumClusterSpec};
pub use service_image::{ServiceImage, ServiceImageStatus};
pub use status::QuorumClusterStatus;
pub use word::Word;
