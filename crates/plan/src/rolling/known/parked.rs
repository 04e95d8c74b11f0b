//! The partition that is ours at rest.

use jiff::Timestamp;

use crate::bug::{self, Bug};

/// The partition that we set while no upgrade was under way: `replicas`, or 0 on the way from OnDelete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// What was written last, or is about to be.
    pub partition: u32,
    /// What was ours before that, until the write was seen.
    pub before: Option<u32>,
    /// The switch of a set that is OnDelete, until it was seen to stand.
    pub switched: Option<Switched>,
}

/// A set that is OnDelete was to be switched to RollingUpdate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched {
    /// When that was written last, or was about to be.
    pub at: Timestamp,
    /// How often in a row.
    pub times: u32,
}

impl Parked {
    /// At this partition, as seen.
    pub fn at(partition: u32) -> Self {
        Self { partition, before: None, switched: None }
    }

    /// Whether a partition is one that we wrote.
    pub(crate) fn accounts_for(self, partition: u32) -> bool {
        partition == self.partition || (self.before == Some(partition) && !bug::active(Bug::LostParkingForgotten))
    }
}
