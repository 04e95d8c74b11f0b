//! The cluster's clock: an epoch, usually a fixed one, plus tokio's (usually paused) time.
//!
//! Everything in this crate that needs the time asks here, so a paused runtime makes the whole cluster virtual.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Where every simulated cluster's time begins: 2026-01-01T00:00:00Z.
pub const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The time in one embedded cluster.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    epoch: Timestamp,
}

impl Clock {
    /// A clock that reads [`EPOCH`] now. Must be called inside a tokio runtime with time enabled.
    pub fn start() -> Self {
        Self::start_at(EPOCH)
    }

    /// A clock that reads this now, for a cluster that a person looks at.
    pub fn start_at(epoch: Timestamp) -> Self {
        Self { start: Instant::now(), epoch }
    }

    /// Cluster time.
    pub fn now(&self) -> Timestamp {
        self.epoch.saturating_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// When the cluster began.
    pub fn epoch(&self) -> Timestamp {
        self.epoch
    }

    /// How long the cluster has existed.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The runtime's instant at which the cluster has existed for `elapsed`.
    pub fn instant(&self, elapsed: Duration) -> Instant {
        self.start + elapsed
    }
}
