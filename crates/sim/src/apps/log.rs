//! The length of a quorum's replicated log. Nothing ticks: it is computed when asked for.

use std::time::Duration;

/// Entries that a quorum writes each second while it has a leader.
const ENTRIES_PER_SECOND: u64 = 20;

pub(super) struct Log {
    /// The length when it last began to grow or to stand still.
    entries: u64,
    growing_since: Option<Duration>,
}

impl Log {
    /// A log of this length that stands still.
    pub fn new(entries: u64) -> Self {
        Self { entries, growing_since: None }
    }

    pub fn length(&self, now: Duration) -> u64 {
        let grown = self.growing_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let millis = u64::try_from(grown.as_millis()).unwrap_or(u64::MAX);
        self.entries.saturating_add(millis.saturating_mul(ENTRIES_PER_SECOND) / 1000)
    }

    /// It grows from now on.
    pub fn grow(&mut self, now: Duration) {
        self.entries = self.length(now);
        self.growing_since = Some(now);
    }

    /// It stands still from now on.
    pub fn stop(&mut self, now: Duration) {
        self.entries = self.length(now);
        self.growing_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_grows_from_where_it_stood_still() {
        let mut log = Log::new(8);
        assert_eq!(log.length(Duration::from_mins(1)), 8);
        log.grow(Duration::from_mins(1));
        assert_eq!(log.length(Duration::from_secs(65)), 108);
        log.stop(Duration::from_secs(65));
        assert_eq!(log.length(Duration::from_hours(1)), 108);
    }
}
