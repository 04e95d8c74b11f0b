//! Read your own writes: nothing is decided from an object that is older than what we wrote to it last.
//!
//! Passes read live, so this is a second lock on the same door: it holds when a proxy or an API server's cache answers with the past.
//! resourceVersions compare within one resource type. After an etcd restore they go backwards (H4): what stays older for long
//! is then the new truth, and the memory is dropped instead of waiting for ever.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How long an older answer is taken for a late one before it is taken for a restored one.
const PATIENCE: Duration = Duration::from_secs(30);

/// What we wrote, by object.
#[derive(Debug, Default)]
pub struct OwnWrites(Mutex<BTreeMap<String, Written>>);

#[derive(Clone, Copy, Debug)]
struct Written {
    version: u64,
    doubted_since: Option<Instant>,
}

impl OwnWrites {
    /// Notes what a write of ours made of this object.
    pub fn wrote(&self, object: &str, resource_version: Option<&str>) {
        if let Some(version) = resource_version.and_then(|text| text.parse().ok()) {
            self.map().insert(object.to_owned(), Written { version, doubted_since: None });
        }
    }

    /// Whether this reading of the object shows our last write to it.
    pub fn is_current(&self, object: &str, resource_version: Option<&str>) -> bool {
        let mut map = self.map();
        let Some(written) = map.get_mut(object) else { return true };
        let Some(seen) = resource_version.and_then(|text| text.parse::<u64>().ok()) else { return true };
        if seen >= written.version {
            written.doubted_since = None;
            return true;
        }
        let since = *written.doubted_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE {
            return false;
        }
        map.remove(object);
        true
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<String, Written>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{OwnWrites, PATIENCE};

    #[tokio::test(start_paused = true)]
    async fn an_older_answer_is_refused_until_it_must_be_the_truth() {
        let writes = OwnWrites::default();
        assert!(writes.is_current("statefulsets/db/pd", Some("5")), "nothing was written yet");
        writes.wrote("statefulsets/db/pd", Some("10"));
        assert!(!writes.is_current("statefulsets/db/pd", Some("9")));
        assert!(writes.is_current("statefulsets/db/pd", Some("10")));
        assert!(writes.is_current("statefulsets/db/other", Some("9")), "another object");

        assert!(!writes.is_current("statefulsets/db/pd", Some("9")));
        tokio::time::advance(PATIENCE).await;
        assert!(writes.is_current("statefulsets/db/pd", Some("9")), "etcd was restored");
    }
}
