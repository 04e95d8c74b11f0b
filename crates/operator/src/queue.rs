//! What to look at next: one entry per resource, ordered by when it is due, then by name. No hash order, no jitter: a seed replays.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kube::ResourceExt;
use tokio::time::Instant;
use windlass_api::QuorumCluster;

/// One custom resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// A resource's key.
    pub fn of(resource: &QuorumCluster) -> Self {
        Self { namespace: resource.namespace().unwrap_or_default(), name: resource.name_any() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Resources that wait to be looked at. One that is being looked at is not given out a second time; a wake-up meanwhile is kept.
#[derive(Debug)]
pub struct Queue {
    /// So many of one namespace are looked at at a time.
    share: usize,
    due: BTreeMap<Key, Instant>,
    running: BTreeSet<Key>,
    /// Not before then: what failed is not tried again because of the noise that the failure made.
    resting: BTreeMap<Key, Instant>,
}

impl Queue {
    /// One that gives out so many of a namespace at a time: whoever makes theirs slow to look at holds up nobody else.
    pub fn sharing(share: usize) -> Self {
        Self { share, due: BTreeMap::new(), running: BTreeSet::new(), resting: BTreeMap::new() }
    }

    /// Look at this one at the latest then.
    pub fn wake(&mut self, key: Key, at: Instant) {
        let at = self.resting.get(&key).map_or(at, |rest| at.max(*rest));
        self.due.entry(key).and_modify(|due| *due = (*due).min(at)).or_insert(at);
    }

    /// When the next one is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting().map(|(_, due)| *due).min()
    }

    /// Takes the one that has been due for longest.
    pub fn take(&mut self, now: Instant) -> Option<Key> {
        let (key, _) =
            self.waiting().filter(|(_, due)| **due <= now).min_by_key(|(key, due)| (**due, (*key).clone()))?;
        let key = key.clone();
        self.due.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// The look at this one failed; look again then, and not before, whatever wakes it.
    pub fn rest(&mut self, key: &Key, until: Instant) {
        self.running.remove(key);
        self.resting.insert(key.clone(), until);
        self.due.insert(key.clone(), until);
    }

    /// This one was looked at; look again then, or when something wakes it, if it is still there.
    pub fn finish(&mut self, key: &Key, again: Option<Instant>) {
        self.running.remove(key);
        self.resting.remove(key);
        if let Some(at) = again {
            self.wake(key.clone(), at);
        }
    }

    fn waiting(&self) -> impl Iterator<Item = (&Key, &Instant)> {
        self.due.iter().filter(|(key, _)| !self.running.contains(*key) && self.has_room(&key.namespace))
    }

    fn has_room(&self, namespace: &str) -> bool {
        self.running.iter().filter(|key| key.namespace == namespace).count() < self.share
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{Key, Queue};

    fn key(name: &str) -> Key {
        Key { namespace: "db".into(), name: name.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn one_namespace_leaves_room_for_the_others() {
        let (now, mut queue) = (Instant::now(), Queue::sharing(2));
        let other = Key { namespace: "web".into(), name: "z".into() };
        for one in [key("a"), key("b"), key("c"), other.clone()] {
            queue.wake(one, now);
        }
        let taken: Vec<Option<Key>> = (0..4).map(|_| queue.take(now)).collect();
        assert_eq!(taken, [Some(key("a")), Some(key("b")), Some(other), None]);
        assert_eq!(queue.next_due(), None, "there is nothing to wake up for until one of them ends");
        queue.finish(&key("b"), None);
        assert_eq!(queue.take(now), Some(key("c")));
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_due_comes_first_and_ties_go_by_name() {
        let (now, mut queue) = (Instant::now(), Queue::sharing(16));
        queue.wake(key("b"), now);
        queue.wake(key("a"), now);
        queue.wake(key("c"), now + Duration::from_secs(1));
        assert_eq!(queue.take(now), Some(key("a")));
        assert_eq!(queue.take(now), Some(key("b")));
        assert_eq!(queue.take(now), None);
        assert_eq!(queue.next_due(), Some(now + Duration::from_secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_rests_whatever_wakes_it() {
        let (now, mut queue) = (Instant::now(), Queue::sharing(16));
        let later = now + Duration::from_secs(15);
        queue.wake(key("a"), now);
        queue.take(now);
        queue.wake(key("a"), now);
        queue.rest(&key("a"), later);
        queue.wake(key("a"), now);
        assert_eq!(queue.next_due(), Some(later));
        assert_eq!(queue.take(later), Some(key("a")));
        queue.finish(&key("a"), None);
        queue.wake(key("a"), now);
        assert_eq!(queue.next_due(), Some(now), "all is well again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_up_during_a_pass_is_kept_and_not_given_out_twice() {
        let (now, mut queue) = (Instant::now(), Queue::sharing(16));
        queue.wake(key("a"), now);
        assert_eq!(queue.take(now), Some(key("a")));
        queue.wake(key("a"), now);
        assert_eq!((queue.take(now), queue.next_due()), (None, None));
        queue.finish(&key("a"), Some(now + Duration::from_secs(30)));
        assert_eq!(queue.take(now), Some(key("a")), "the earlier of the two");
    }
}
