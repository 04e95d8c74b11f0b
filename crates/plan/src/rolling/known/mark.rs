//! Where the leader was at one moment, for a member that was behind it.

use std::time::Duration;

use jiff::Timestamp;

/// For so long counts what was reached: a few looks, and the echoes that they wait for.
const COUNTS: Duration = Duration::from_secs(30);

/// Where the leader was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its position.
    pub index: u64,
    /// When that was.
    pub since: Timestamp,
    /// When the member was last seen to have reached a mark, as long as that counts.
    pub reached: Option<Timestamp>,
}

impl Mark {
    /// The same, without what was reached too long ago.
    pub(crate) fn aged(self, now: Timestamp) -> Self {
        let counts = |reached: &Timestamp| *reached <= now && now.duration_since(*reached).unsigned_abs() < COUNTS;
        Self { reached: self.reached.filter(counts), ..self }
    }
}
