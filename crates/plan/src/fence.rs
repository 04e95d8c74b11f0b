//! Taking over from a predecessor whose writes may still be on their way (H1, H3).

use std::{fmt, time::Duration};

use jiff::Timestamp;

use crate::bug::{self, Bug};

/// One process's claim to act; never the same for two processes, nor for two terms of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity(String);

impl Identity {
    /// An ID from its text.
    pub fn new(identity: impl Into<String>) -> Self {
        Self(identity.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who acts on a custom resource, as recorded there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Whose turn it is.
    pub identity: Identity,
    /// Grows by one per take-over.
    pub term: u64,
    /// When it was claimed.
    pub since: Timestamp,
    /// Everything that the predecessor may still be writing was touched, so that its writes miss.
    pub predecessor_done: bool,
}

/// What a custom resource says about who acts on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Nobody has ever acted on it: an act is preceded by a claim.
    Nobody,
    /// Somebody has, and who can't be read.
    Unreadable,
    /// This one.
    By(Operator),
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
    Take(Operator),
    /// Writes that the API server had already accepted from the predecessor may take until then.
    WaitUntil(Timestamp),
    /// Touch what the predecessor may still be writing, then record that.
    Touch(Operator),
}

/// Where we stand. `longest_write` is the longest that the API server works on one write (`?timeout=`).
pub fn claim(recorded: &Recorded, me: &Identity, longest_write: Duration, now: Timestamp) -> Claim {
    let recorded = match recorded {
        Recorded::By(operator) => operator,
        // Nothing can be on its way.
        Recorded::Nobody => {
            return Claim::Take(Operator { identity: me.clone(), term: 1, since: now, predecessor_done: true });
        }
        // Whoever it was may still be writing. The count of take-overs is lost with it.
        Recorded::Unreadable => {
            let predecessor_done = bug::active(Bug::UnreadableIsSettled);
            return Claim::Take(Operator { identity: me.clone(), term: 1, since: now, predecessor_done });
        }
    };
    match recorded {
        // Two that hold different leases by mistake would claim it from each other as fast as they can: a fresh claim is left alone
        // for a while, so that neither acts and people see why.
        other if other.identity != *me && other.since <= now && now < after(other, longest_write) => {
            Claim::WaitUntil(after(other, longest_write))
        }
        other if other.identity != *me => {
            let term = other.term.saturating_add(1);
            Claim::Take(Operator {
                identity: me.clone(),
                term,
                since: now,
                predecessor_done: bug::active(Bug::NoTouchAtTakeOver),
            })
        }
        ours if ours.predecessor_done => Claim::Held,
        ours => {
            let over = after(ours, longest_write);
            if now < over {
                Claim::WaitUntil(over)
            } else {
                Claim::Touch(Operator { predecessor_done: true, ..ours.clone() })
            }
        }
    }
}

fn after(operator: &Operator, pause: Duration) -> Timestamp {
    operator.since.saturating_add(pause).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::{Claim, Identity, Operator, Recorded, claim};

    const WRITE: Duration = Duration::from_secs(10);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_take_over_claims_then_waits_then_touches_then_acts() {
        let (old, new) = (Identity::new("a"), Identity::new("b"));
        let Claim::Take(first) = claim(&Recorded::Nobody, &old, WRITE, at(0)) else { panic!("not taken") };
        assert_eq!((first.term, first.predecessor_done), (1, true));
        assert_eq!(claim(&Recorded::By(first.clone()), &old, WRITE, at(1)), Claim::Held);

        let Claim::Take(second) = claim(&Recorded::By(first.clone()), &new, WRITE, at(100)) else {
            panic!("not taken")
        };
        assert_eq!((second.term, second.predecessor_done), (2, false));
        assert_eq!(claim(&Recorded::By(second.clone()), &new, WRITE, at(109)), Claim::WaitUntil(at(110)));
        let Claim::Touch(third) = claim(&Recorded::By(second.clone()), &new, WRITE, at(110)) else {
            panic!("not touched")
        };
        assert_eq!(third, Operator { predecessor_done: true, ..second.clone() });
        assert_eq!(claim(&Recorded::By(third.clone()), &new, WRITE, at(111)), Claim::Held);
    }

    #[test]
    fn a_fresh_claim_of_another_is_left_alone_for_a_while() {
        let recorded = Operator { identity: Identity::new("b"), term: 7, since: at(50), predecessor_done: true };
        let me = Identity::new("a");
        assert_eq!(claim(&Recorded::By(recorded.clone()), &me, WRITE, at(51)), Claim::WaitUntil(at(60)));
        assert!(matches!(claim(&Recorded::By(recorded.clone()), &me, WRITE, at(60)), Claim::Take(_)));
        assert!(
            matches!(claim(&Recorded::By(recorded.clone()), &me, WRITE, at(49)), Claim::Take(_)),
            "a clock that is ahead holds nobody up"
        );
    }

    #[test]
    fn who_acted_and_cannot_be_read_may_still_be_writing() {
        let me = Identity::new("a");
        let Claim::Take(mine) = claim(&Recorded::Unreadable, &me, WRITE, at(50)) else { panic!("not taken") };
        assert!(!mine.predecessor_done, "what it may be writing is touched first");
        assert_eq!(claim(&Recorded::By(mine), &me, WRITE, at(51)), Claim::WaitUntil(at(60)));
    }

    #[test]
    fn the_old_leader_that_comes_back_starts_over() {
        let recorded = Operator { identity: Identity::new("b"), term: 7, since: at(0), predecessor_done: true };
        let Claim::Take(again) = claim(&Recorded::By(recorded.clone()), &Identity::new("a"), WRITE, at(50)) else {
            panic!("not taken")
        };
        assert_eq!((again.term, again.predecessor_done), (8, false));
    }
}
