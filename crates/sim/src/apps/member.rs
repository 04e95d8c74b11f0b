//! One member of a simulated quorum: its identity, which outlives its process, and how far it has applied the log.

use std::time::Duration;

pub(super) struct Member {
    pub id: u64,
    /// How much it wants to lead; PD alone knows such a thing.
    pub priority: i64,
    /// Of the process that runs or ran last; empty before the first.
    pub version: String,
    pub running: bool,
    pub hung: bool,
    /// The position from which it catches up.
    behind_at: u64,
    catching_up_since: Duration,
    caught_up_at: Duration,
}

impl Member {
    pub fn new(id: u64) -> Self {
        Self {
            id,
            priority: 0,
            version: String::new(),
            running: false,
            hung: false,
            behind_at: 0,
            catching_up_since: Duration::ZERO,
            caught_up_at: Duration::ZERO,
        }
    }

    /// True when its process runs and isn't stuck.
    pub fn serves(&self) -> bool {
        self.running && !self.hung
    }

    /// How far it has applied a log of this length.
    pub fn applied(&self, now: Duration, length: u64) -> u64 {
        if !self.serves() {
            return self.behind_at;
        }
        if now >= self.caught_up_at {
            return length;
        }
        let whole = self.caught_up_at.saturating_sub(self.catching_up_since).as_millis().max(1);
        let done = now.saturating_sub(self.catching_up_since).as_millis();
        let missing = u128::from(length.saturating_sub(self.behind_at));
        self.behind_at + u64::try_from(missing * done / whole).unwrap_or(0)
    }

    /// It hears nothing more from now on. To be called while it still serves.
    pub fn falls_behind(&mut self, now: Duration, length: u64) {
        self.behind_at = self.applied(now, length);
    }

    /// It hears again from now on and has all after a while; a member that missed nothing has it at once.
    pub fn catches_up(&mut self, now: Duration, length: u64, takes: Duration) {
        self.catching_up_since = now;
        self.caught_up_at = if self.behind_at >= length { now } else { now + takes };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_was_away_lags_and_then_has_everything() {
        let mut member = Member::new(1);
        member.running = true;
        member.falls_behind(Duration::from_secs(10), 100);
        member.running = false;
        assert_eq!(member.applied(Duration::from_mins(1), 900), 100);
        member.running = true;
        member.catches_up(Duration::from_mins(1), 900, Duration::from_secs(4));
        assert_eq!(member.applied(Duration::from_secs(62), 900), 500);
        assert_eq!(member.applied(Duration::from_secs(64), 980), 980);
    }
}
