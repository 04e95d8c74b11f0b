//! Jobs: those that are being made, for either kind of resource, and the snapshots that some of them take.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Job that is being made. Written before it is asked for, so that a successor makes it first, and a late request misses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Intent {
    /// It takes a snapshot: the attempt that `status.snapshot` tells of.
    Snapshot {
        /// Its number.
        attempt: i32,
    },
    /// It is a hook's.
    Hook {
        /// The gate that waits for it.
        gate: String,
        /// Its name, which says on which occasion.
        job: String,
    },
    /// It has a node pull an image.
    Pull {
        /// Which image.
        image: String,
        /// On which node.
        node: String,
    },
}

/// A try to take a snapshot, written before its Job is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotAttempt {
    /// Grows by one, and never comes again.
    pub attempt: i32,
    /// The version of the upgrade that it is for.
    pub target_version: String,
    /// The image of the target version.
    pub target_image: String,
    /// When it was asked for.
    pub since: MicroTime,
    /// The Job that takes it.
    pub job: String,
    /// Whether an upgrade has started with this snapshot. If unset, it counts as used, and a new snapshot is taken.
    #[serde(default = "used")]
    pub used: bool,
}

fn used() -> bool {
    true
}

/// A snapshot that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The size in bytes.
    pub size: i64,
    /// The SHA-256 checksum, in hexadecimal.
    pub checksum: String,
    /// Where it is stored.
    pub location: String,
}
