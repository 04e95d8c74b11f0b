//! What became of the new image on the nodes.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// What became of the image on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Nobody was asked to pull it there, or so long ago that nothing is left of it.
    Missing,
    /// It is being pulled, or tried.
    Running {
        /// Since when.
        since: Timestamp,
        /// What the registry or the node says against it, where the last try failed.
        trouble: Option<String>,
    },
    /// It is there.
    Done,
    /// It could not be pulled, and is not tried any more.
    Failed(String),
}

/// What became of one image on the nodes under the members that don't run it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulls {
    /// Which image.
    pub image: String,
    /// By node.
    pub nodes: BTreeMap<String, Pull>,
}
