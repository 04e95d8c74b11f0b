//! The partition that is ours at rest.

use crate::bug::{self, Bug};

/// The partition that we set while no upgrade was under way: `replicas`, or 0 on the way from OnDelete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// What was written last, or is about to be.
    pub partition: u32,
    /// What was ours before that, until the write was seen.
    pub before: Option<u32>,
    /// How often in a row a set that is OnDelete was switched, without anybody having seen that stand.
    pub switches: u32,
}

impl Parked {
    /// At this partition, as seen.
    pub fn at(partition: u32) -> Self {
        Self { partition, before: None, switches: 0 }
    }

    /// Whether a partition is one that we wrote.
    pub(crate) fn accounts_for(self, partition: u32) -> bool {
        partition == self.partition || (self.before == Some(partition) && !bug::active(Bug::LostParkingForgotten))
    }
}
