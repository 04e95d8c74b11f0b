//! What gates said last, so that they are not asked at every look. Lost when the operator ends, which makes nothing pass that held.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;
use windlass_plan::gate::Outcome;
use windlass_systems::condition::Condition;

use super::{Answer, Asker};

/// So many conditions are kept as they were read; then all are read again.
const MOST: usize = 512;
/// Where there are so many answers, those of long ago are forgotten.
const LONG: Duration = Duration::from_hours(24);

/// The memory of all resources.
#[derive(Default)]
pub struct Memory(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// By the resource's uid and the gate's name.
    said: BTreeMap<(String, String), Said>,
    conditions: BTreeMap<String, Result<Condition, String>>,
}

/// What a gate said.
#[derive(Clone, Debug)]
pub(super) struct Said {
    occasion: String,
    at: Instant,
    /// The same by the clock on the wall.
    time: Timestamp,
    pub outcome: Outcome,
    /// How many in a row were bad up to this one.
    pub failures: u32,
}

impl Memory {
    /// What the gate said on this occasion.
    pub(super) fn last(&self, asker: &Asker, gate: &str) -> Option<Said> {
        let said = self.kept().said.get(&key(asker, gate)).cloned();
        said.filter(|said| said.occasion == asker.occasion)
    }

    /// What it said within this time, and not before the other.
    pub(super) fn recent(
        &self,
        asker: &Asker,
        gate: &str,
        within: Duration,
        not_before: Option<Instant>,
    ) -> Option<Answer> {
        let counts = |said: &Said| said.at.elapsed() < within && not_before.is_none_or(|first| first <= said.at);
        self.last(asker, gate).filter(counts).map(|said| Answer::at(said.time, said.outcome))
    }

    /// Keeps what it says now.
    pub(super) fn keep(&self, asker: &Asker, gate: &str, time: Timestamp, outcome: Outcome, failures: u32) -> Answer {
        let (occasion, at) = (asker.occasion.clone(), Instant::now());
        let said = Said { occasion, at, time, outcome: outcome.clone(), failures };
        let mut kept = self.kept();
        if kept.said.len() >= MOST {
            // Of resources that are gone, most of them.
            kept.said.retain(|_, said| said.at.elapsed() < LONG);
        }
        kept.said.insert(key(asker, gate), said);
        Answer::at(time, outcome)
    }

    /// Nothing is wanted of this resource.
    pub fn forget(&self, asker: &Asker) {
        self.kept().said.retain(|(of, _), _| *of != asker.maker.uid);
    }

    /// The condition of this text, read once.
    pub(super) fn condition(&self, text: &str, names: &[&str]) -> Result<Condition, String> {
        let key = format!("{} {text}", names.join(","));
        if let Some(condition) = self.kept().conditions.get(&key) {
            return condition.clone();
        }
        let condition = Condition::read(text, names);
        let mut kept = self.kept();
        if kept.conditions.len() >= MOST {
            kept.conditions.clear();
        }
        kept.conditions.insert(key, condition.clone());
        condition
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(asker: &Asker, gate: &str) -> (String, String) {
    (asker.maker.uid.clone(), gate.to_owned())
}
