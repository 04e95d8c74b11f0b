//! When a watch that broke off begins again.

use std::time::Duration;

use kube::runtime::utils::Backoff;

/// Doubling, without jitter: one operator per cluster has no herd to spread, and a seed must replay.
#[derive(Clone, Debug, Default)]
pub struct Steady(u32);

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let delay = Duration::from_millis(500) * 2_u32.saturating_pow(self.0.min(6));
        self.0 = self.0.saturating_add(1);
        Some(delay)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {
        self.0 = 0;
    }
}
