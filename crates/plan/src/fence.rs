//! Taking over from a predecessor whose writes may still be on their way (H1, H3).

use std::{fmt, time::Duration};

use jiff::Timestamp;

use crate::bug::{self, Bug};

/// One process's claim to act; never the same for two processes, nor for two terms of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ElectionId(String);

impl ElectionId {
    /// An ID from its text.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ElectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who acts on a custom resource, as recorded there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    /// Whose turn it is.
    pub id: ElectionId,
    /// Grows by one per take-over.
    pub epoch: u64,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// Everything that the predecessor may still be writing was touched, so that its writes miss.
    pub settled: bool,
}

/// What a custom resource says about who acts on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Nobody has ever acted on it: an act is preceded by a claim.
    Nobody,
    /// Somebody has, and who can't be read.
    Unreadable,
    /// This one.
    By(Election),
}

impl Recorded {
    /// Whether anybody has acted on it.
    pub fn is_somebody(&self) -> bool {
        *self != Self::Nobody
    }
}

/// What to do about the claim before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is ours: act.
    Held,
    /// Write our own ID by compare-and-swap.
    Take(Election),
    /// Writes that the API server had already accepted from the predecessor may take until then.
    WaitUntil(Timestamp),
    /// Touch what the predecessor may still be writing, then record that.
    Touch(Election),
}

/// Where we stand. `longest_write` is the longest that the API server works on one write (`?timeout=`).
pub fn claim(recorded: &Recorded, me: &ElectionId, longest_write: Duration, now: Timestamp) -> Claim {
    let recorded = match recorded {
        Recorded::By(election) => election,
        // Nothing can be on its way.
        Recorded::Nobody => return Claim::Take(Election { id: me.clone(), epoch: 1, claimed_at: now, settled: true }),
        // Whoever it was may still be writing. The count of take-overs is lost with it.
        Recorded::Unreadable => {
            let settled = bug::active(Bug::UnreadableIsSettled);
            return Claim::Take(Election { id: me.clone(), epoch: 1, claimed_at: now, settled });
        }
    };
    match recorded {
        // Two that hold different leases by mistake would claim it from each other as fast as they can: a fresh claim is left alone
        // for a while, so that neither acts and people see why.
        other if other.id != *me && other.claimed_at <= now && now < after(other, longest_write) => {
            Claim::WaitUntil(after(other, longest_write))
        }
        other if other.id != *me => {
            let epoch = other.epoch.saturating_add(1);
            Claim::Take(Election {
                id: me.clone(),
                epoch,
                claimed_at: now,
                settled: bug::active(Bug::NoTouchAtTakeOver),
            })
        }
        ours if ours.settled => Claim::Held,
        ours => {
            let over = after(ours, longest_write);
            if now < over { Claim::WaitUntil(over) } else { Claim::Touch(Election { settled: true, ..ours.clone() }) }
        }
    }
}

fn after(election: &Election, pause: Duration) -> Timestamp {
    election.claimed_at.saturating_add(pause).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::{Claim, Election, ElectionId, Recorded, claim};

    const WRITE: Duration = Duration::from_secs(10);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_take_over_claims_then_waits_then_touches_then_acts() {
        let (old, new) = (ElectionId::new("a"), ElectionId::new("b"));
        let Claim::Take(first) = claim(&Recorded::Nobody, &old, WRITE, at(0)) else { panic!("not taken") };
        assert_eq!((first.epoch, first.settled), (1, true));
        assert_eq!(claim(&Recorded::By(first.clone()), &old, WRITE, at(1)), Claim::Held);

        let Claim::Take(second) = claim(&Recorded::By(first.clone()), &new, WRITE, at(100)) else {
            panic!("not taken")
        };
        assert_eq!((second.epoch, second.settled), (2, false));
        assert_eq!(claim(&Recorded::By(second.clone()), &new, WRITE, at(109)), Claim::WaitUntil(at(110)));
        let Claim::Touch(third) = claim(&Recorded::By(second.clone()), &new, WRITE, at(110)) else {
            panic!("not touched")
        };
        assert_eq!(third, Election { settled: true, ..second.clone() });
        assert_eq!(claim(&Recorded::By(third.clone()), &new, WRITE, at(111)), Claim::Held);
    }

    #[test]
    fn a_fresh_claim_of_another_is_left_alone_for_a_while() {
        let recorded = Election { id: ElectionId::new("b"), epoch: 7, claimed_at: at(50), settled: true };
        let me = ElectionId::new("a");
        assert_eq!(claim(&Recorded::By(recorded.clone()), &me, WRITE, at(51)), Claim::WaitUntil(at(60)));
        assert!(matches!(claim(&Recorded::By(recorded.clone()), &me, WRITE, at(60)), Claim::Take(_)));
        assert!(
            matches!(claim(&Recorded::By(recorded.clone()), &me, WRITE, at(49)), Claim::Take(_)),
            "a clock that is ahead holds nobody up"
        );
    }

    #[test]
    fn who_acted_and_cannot_be_read_may_still_be_writing() {
        let me = ElectionId::new("a");
        let Claim::Take(mine) = claim(&Recorded::Unreadable, &me, WRITE, at(50)) else { panic!("not taken") };
        assert!(!mine.settled, "what it may be writing is touched first");
        assert_eq!(claim(&Recorded::By(mine), &me, WRITE, at(51)), Claim::WaitUntil(at(60)));
    }

    #[test]
    fn the_old_leader_that_comes_back_starts_over() {
        let recorded = Election { id: ElectionId::new("b"), epoch: 7, claimed_at: at(0), settled: true };
        let Claim::Take(again) = claim(&Recorded::By(recorded.clone()), &ElectionId::new("a"), WRITE, at(50)) else {
            panic!("not taken")
        };
        assert_eq!((again.epoch, again.settled), (8, false));
    }
}
