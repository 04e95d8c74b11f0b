//! The length of a quorum's replicated log. Nothing ticks: it is computed when asked for.

use std::time::Duration;

/// Entries that a quorum writes each second while it has a leader, unless it is busy.
const ENTRIES_PER_SECOND: u64 = 20;
/// What is younger has not come to the followers of a busy quorum yet.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

pub(super) struct Log {
    /// The length when it last began to grow or to stand still.
    entries: u64,
    growing_since: Option<Duration>,
    per_second: u64,
}

impl Log {
    /// A log of this length that stands still.
    pub fn new(entries: u64) -> Self {
        Self { entries, growing_since: None, per_second: ENTRIES_PER_SECOND }
    }

    pub fn length(&self, now: Duration) -> u64 {
        let grown = self.growing_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let millis = u64::try_from(grown.as_millis()).unwrap_or(u64::MAX);
        self.entries.saturating_add(millis.saturating_mul(self.per_second) / 1000)
    }

    /// As much of it as has come to a follower that misses nothing.
    pub fn heard(&self, now: Duration) -> u64 {
        let busy = self.per_second > ENTRIES_PER_SECOND;
        self.length(if busy { now.saturating_sub(ON_ITS_WAY) } else { now })
    }

    /// So many entries are written each second from now on.
    pub fn pace(&mut self, now: Duration, per_second: u64) {
        self.entries = self.length(now);
        self.growing_since = self.growing_since.map(|_| now);
        self.per_second = per_second;
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

    #[test]
    fn a_busy_log_grows_fast_and_its_followers_trail() {
        let mut log = Log::new(8);
        log.grow(Duration::ZERO);
        log.pace(Duration::from_secs(5), 2000);
        assert_eq!((log.length(Duration::from_secs(6)), log.heard(Duration::from_secs(6))), (2108, 1908));
    }
}
