//! The books of a load: what was written, what was acknowledged, what is lost, and for how long nothing went through. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::client::Stored;

/// A gap between two acknowledgements counts as a stall when it is longer than this. The writes come every few ten milliseconds; a
/// machine that is busy with other things delays some of them by more than that.
pub const STALL_MS: u64 = 250;

/// What came of one write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Outcome {
    /// The store said that it has it.
    Acknowledged {
        /// The revision that the store gave it.
        revision: i64,
    },
    /// It can't have taken effect.
    Failed {
        /// What the client was told.
        why: String,
    },
    /// It may have taken effect or not.
    Unknown {
        /// What the client was told.
        why: String,
    },
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// A key of its own.
    pub key: String,
    /// What was to be in it.
    pub value: String,
    /// When it was first sent, in milliseconds since the load began.
    pub sent_ms: u64,
    /// When its outcome was clear.
    pub ended_ms: u64,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Everything that a load did.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// The writes, as they ended.
    pub writes: Vec<Write>,
    /// Reads that found what they had to find.
    pub reads: u64,
    /// Reads without an answer.
    pub failed_reads: u64,
    /// Reads that did not find what had been acknowledged before they were sent.
    pub wrong_reads: Vec<String>,
    /// Writes that were due and not sent, because too many were under way.
    pub held_back: u64,
    /// How long the load ran.
    pub ran_ms: u64,
}

/// The time in which nothing was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stalls {
    /// The longest gap between two acknowledgements.
    pub longest_ms: u64,
    /// All gaps that are longer than [`STALL_MS`], together.
    pub total_ms: u64,
}

/// An acknowledged write that is not there as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The key.
    pub key: String,
    /// What is wrong with it.
    pub why: String,
}

impl Ledger {
    /// How many writes were acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.writes.iter().filter(|write| matches!(write.outcome, Outcome::Acknowledged { .. })).count()
    }

    /// The keys of these writes.
    pub fn acknowledged_keys(&self) -> Vec<&str> {
        let acknowledged = self.writes.iter().filter(|write| matches!(write.outcome, Outcome::Acknowledged { .. }));
        acknowledged.map(|write| write.key.as_str()).collect()
    }

    /// How many can't have taken effect.
    pub fn failed(&self) -> usize {
        self.writes.iter().filter(|write| matches!(write.outcome, Outcome::Failed { .. })).count()
    }

    /// How many may have taken effect or not.
    pub fn unknown(&self) -> usize {
        self.writes.iter().filter(|write| matches!(write.outcome, Outcome::Unknown { .. })).count()
    }

    /// How long nothing was acknowledged; from the begin of the load to its end.
    pub fn stalls(&self) -> Stalls {
        let acknowledged = self.writes.iter().filter(|write| matches!(write.outcome, Outcome::Acknowledged { .. }));
        let mut moments: Vec<u64> = acknowledged.map(|write| write.ended_ms).collect();
        moments.sort_unstable();
        moments.push(self.ran_ms);
        let mut last = 0;
        let mut stalls = Stalls::default();
        for moment in moments {
            let gap = moment.saturating_sub(last);
            stalls.longest_ms = stalls.longest_ms.max(gap);
            if gap > STALL_MS {
                stalls.total_ms += gap;
            }
            last = moment.max(last);
        }
        stalls
    }

    /// The acknowledged writes that the store does not have with their value and revision. A revision that differs means that the
    /// history in which the write was acknowledged is not the history that the store has.
    pub fn lost(&self, store: &BTreeMap<String, Stored>) -> Vec<Lost> {
        let mut lost = Vec::new();
        for write in &self.writes {
            let Outcome::Acknowledged { revision } = write.outcome else { continue };
            let why = match store.get(&write.key) {
                None => "it is not there".to_owned(),
                Some(found) if found.value != write.value => {
                    format!("it holds {:?} instead of {:?}", found.value, write.value)
                }
                Some(found) if found.revision != revision => {
                    format!("it has revision {} instead of {revision}", found.revision)
                }
                Some(_) => continue,
            };
            lost.push(Lost { key: write.key.clone(), why });
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Ledger, Outcome, Stalls, Write};
    use crate::client::Stored;

    fn write(number: u64, outcome: Outcome) -> Write {
        let (key, value) = (format!("k{number}"), format!("v{number}"));
        Write { key, value, sent_ms: number * 100, ended_ms: number * 100 + 5, outcome }
    }

    fn acknowledged(number: u64) -> Write {
        write(number, Outcome::Acknowledged { revision: i64::try_from(number).unwrap() })
    }

    fn store(writes: &[Write]) -> BTreeMap<String, Stored> {
        let one = |write: &Write| {
            let revision = match write.outcome {
                Outcome::Acknowledged { revision } => revision,
                Outcome::Failed { .. } | Outcome::Unknown { .. } => 99,
            };
            (write.key.clone(), Stored { key: write.key.clone(), value: write.value.clone(), revision })
        };
        writes.iter().map(one).collect()
    }

    #[test]
    fn what_is_there_is_not_lost() {
        let ledger = Ledger { writes: (1..=5).map(acknowledged).collect(), ..Ledger::default() };
        assert_eq!(ledger.lost(&store(&ledger.writes)), []);
        assert_eq!(ledger.acknowledged(), 5);
    }

    #[test]
    fn a_lost_write_is_seen() {
        let ledger = Ledger { writes: (1..=5).map(acknowledged).collect(), ..Ledger::default() };
        let mut store = store(&ledger.writes);
        store.remove("k3");
        assert_eq!(ledger.lost(&store).iter().map(|lost| lost.key.as_str()).collect::<Vec<_>>(), ["k3"]);
    }

    #[test]
    fn a_value_or_a_history_that_differs_is_a_lost_write() {
        let ledger = Ledger { writes: (1..=2).map(acknowledged).collect(), ..Ledger::default() };
        let mut store = store(&ledger.writes);
        store.get_mut("k1").unwrap().value = "other".into();
        store.get_mut("k2").unwrap().revision = 77;
        assert_eq!(ledger.lost(&store).len(), 2);
    }

    #[test]
    fn what_was_never_acknowledged_is_never_lost() {
        let unknown = write(1, Outcome::Unknown { why: "no answer".into() });
        let failed = write(2, Outcome::Failed { why: "no connection".into() });
        let ledger = Ledger { writes: vec![unknown, failed], ..Ledger::default() };
        assert_eq!(ledger.lost(&BTreeMap::new()), []);
        assert_eq!((ledger.acknowledged(), ledger.failed(), ledger.unknown()), (0, 1, 1));
    }

    #[test]
    fn stalls_are_gaps_between_acknowledgements() {
        // Acknowledged at 105, 205, then nothing until 1205, then the load ends at 1305.
        let writes = vec![acknowledged(1), acknowledged(12), acknowledged(2)];
        let ledger = Ledger { writes, ran_ms: 1305, ..Ledger::default() };
        assert_eq!(ledger.stalls(), Stalls { longest_ms: 1000, total_ms: 1000 });
    }

    #[test]
    fn a_load_that_never_got_through_stalled_all_the_time() {
        let failed = write(1, Outcome::Failed { why: "no connection".into() });
        let ledger = Ledger { writes: vec![failed], ran_ms: 4000, ..Ledger::default() };
        assert_eq!(ledger.stalls(), Stalls { longest_ms: 4000, total_ms: 4000 });
    }
}
