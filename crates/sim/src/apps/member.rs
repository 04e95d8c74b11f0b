//! One member of a simulated quorum: its identity, which outlives its process, what becomes of the process, and how far it has
//! applied the log.

use std::time::Duration;

pub(super) struct Member {
    pub id: u64,
    /// How much it wants to lead; PD alone knows such a thing.
    pub priority: i64,
    /// Of the process that runs or ran last; empty before the first.
    pub version: String,
    running: bool,
    hung: bool,
    /// It serves and hears nothing of the log.
    starved: bool,
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
            starved: false,
            behind_at: 0,
            catching_up_since: Duration::ZERO,
            caught_up_at: Duration::ZERO,
        }
    }

    /// True when its process runs, stuck or not.
    pub fn runs(&self) -> bool {
        self.running
    }

    /// True when its process runs and isn't stuck.
    pub fn serves(&self) -> bool {
        self.running && !self.hung
    }

    /// True when its process runs and is stuck.
    pub fn hangs(&self) -> bool {
        self.hung
    }

    /// A process begins to serve, and has a log of this length after a while.
    pub fn starts(&mut self, now: Duration, version: &str, length: u64, takes: Duration) {
        version.clone_into(&mut self.version);
        self.running = true;
        self.hung = false;
        self.catches_up(now, length, takes);
    }

    /// Its process is gone.
    pub fn stops(&mut self, now: Duration, length: u64) {
        self.falls_behind(now, length);
        self.running = false;
        self.hung = false;
    }

    /// Its process stands still, or goes on and has a log of this length after a while.
    pub fn hang(&mut self, now: Duration, hung: bool, length: u64, takes: Duration) {
        if !self.running || self.hung == hung {
            return;
        }
        if hung {
            self.falls_behind(now, length);
        } else {
            self.catches_up(now, length, takes);
        }
        self.hung = hung;
    }

    /// It hears nothing of the log from now on, also after it was started anew; or it hears again and has all after a while.
    pub fn starve(&mut self, now: Duration, starved: bool, length: u64, takes: Duration) {
        if self.starved == starved {
            return;
        }
        if starved {
            self.falls_behind(now, length);
        } else {
            self.catches_up(now, length, takes);
        }
        self.starved = starved;
    }

    /// How far it has applied a log of this length.
    pub fn applied(&self, now: Duration, length: u64) -> u64 {
        if !self.serves() || self.starved {
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
    fn falls_behind(&mut self, now: Duration, length: u64) {
        self.behind_at = self.applied(now, length);
    }

    /// It hears again from now on and has all after a while; a member that missed nothing has it at once.
    fn catches_up(&mut self, now: Duration, length: u64, takes: Duration) {
        self.catching_up_since = now;
        self.caught_up_at = if self.behind_at >= length { now } else { now + takes };
    }
}

/// Who may win a vote among these: those who have the whole log; where nobody who serves has it, any who serves.
pub(super) fn candidates<'a>(
    voters: impl Iterator<Item = (&'a String, &'a Member)>,
    now: Duration,
    length: u64,
) -> Vec<String> {
    let serving: Vec<_> = voters.filter(|(_, member)| member.serves()).collect();
    let whole = |(_, member): &&(&String, &Member)| member.applied(now, length) >= length;
    let name = |(name, _): &(&String, &Member)| (*name).clone();
    let current: Vec<String> = serving.iter().filter(whole).map(name).collect();
    if current.is_empty() { serving.iter().map(name).collect() } else { current }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_was_away_lags_and_then_has_everything() {
        let mut member = Member::new(1);
        member.starts(Duration::ZERO, "v1", 0, Duration::ZERO);
        member.stops(Duration::from_secs(10), 100);
        assert_eq!(member.applied(Duration::from_mins(1), 900), 100);
        member.starts(Duration::from_mins(1), "v2", 900, Duration::from_secs(4));
        assert_eq!(member.applied(Duration::from_secs(62), 900), 500);
        assert_eq!(member.applied(Duration::from_secs(64), 980), 980);
        member.hang(Duration::from_secs(65), true, 1000, Duration::ZERO);
        assert_eq!((member.serves(), member.applied(Duration::from_secs(66), 1020)), (false, 1000));
        member.hang(Duration::from_secs(67), false, 1040, Duration::from_secs(2));
        assert_eq!(member.applied(Duration::from_secs(68), 1040), 1020);
    }

    #[test]
    fn a_member_that_is_starved_stays_where_it_was() {
        let mut member = Member::new(1);
        member.starts(Duration::ZERO, "v1", 0, Duration::ZERO);
        member.starve(Duration::from_secs(10), true, 100, Duration::ZERO);
        member.stops(Duration::from_secs(20), 300);
        member.starts(Duration::from_secs(30), "v2", 500, Duration::ZERO);
        assert_eq!((member.serves(), member.applied(Duration::from_mins(1), 900)), (true, 100));
        member.starve(Duration::from_mins(1), false, 900, Duration::from_secs(4));
        assert_eq!(member.applied(Duration::from_secs(64), 980), 980);
    }

    #[test]
    fn whoever_has_the_whole_log_comes_before_whoever_lags() {
        let (mut ahead, mut behind) = (Member::new(1), Member::new(2));
        ahead.starts(Duration::ZERO, "v1", 0, Duration::ZERO);
        behind.starts(Duration::ZERO, "v1", 500, Duration::from_secs(9));
        let members = std::collections::BTreeMap::from([("a".to_owned(), ahead), ("b".to_owned(), behind)]);
        let at = |seconds| candidates(members.iter(), Duration::from_secs(seconds), 500);
        assert_eq!((at(1), at(10)), (vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()]));
        let lagging = members.iter().filter(|(name, _)| *name == "b");
        assert_eq!(candidates(lagging, Duration::from_secs(1), 500), ["b"]);
    }
}
