//! Our own writes that nobody answered: they may still happen, within this very term (H1).
//!
//! What becomes of one is not known until the API server has had all the time that it takes for a write. Then what it may have reached is
//! touched, so that it misses if it still comes, and only then anything else is decided. A process that dies meanwhile forgets this, and
//! its successor does the same at its take-over.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

/// When each may be settled, by the StatefulSet that it was about, as `NAMESPACE/NAME`.
#[derive(Debug, Default)]
pub struct Unanswered(Mutex<BTreeMap<String, Instant>>);

impl Unanswered {
    /// One was not answered.
    pub fn note(&self, set: &str, over: Instant) {
        self.map().insert(set.to_owned(), over);
    }

    /// When none about this StatefulSet can still be worked on; none if all were answered.
    pub fn over(&self, set: &str) -> Option<Instant> {
        self.map().get(set).copied()
    }

    /// What they may have reached was touched.
    pub fn settled(&self, set: &str) {
        self.map().remove(set);
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
