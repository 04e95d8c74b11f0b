//! The newest revision, and who waits for the next one.
//!
//! Those who wait are woken in the order in which they began to wait. `tokio::sync::watch` spreads them over random places, so that two
//! watches of one moment would be told in another order in every run.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::sync::Notify;

/// Where new revisions are announced. Dropping it ends the wait of all.
#[derive(Debug)]
pub(crate) struct Newest(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    revision: AtomicU64,
    ended: AtomicBool,
    waiting: Notify,
}

impl Newest {
    pub(crate) fn new(revision: u64) -> Self {
        Self(Arc::new(Shared {
            revision: AtomicU64::new(revision),
            ended: AtomicBool::new(false),
            waiting: Notify::new(),
        }))
    }

    pub(crate) fn announce(&self, revision: u64) {
        self.0.revision.store(revision, Ordering::Release);
        self.0.waiting.notify_waiters();
    }

    pub(crate) fn subscribe(&self) -> Revisions {
        Revisions { seen: self.0.revision.load(Ordering::Acquire), shared: Arc::clone(&self.0) }
    }
}

impl Drop for Newest {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        self.0.waiting.notify_waiters();
    }
}

/// One who waits for new revisions.
#[derive(Clone, Debug)]
pub struct Revisions {
    shared: Arc<Shared>,
    seen: u64,
}

/// There will be no more revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;

impl Revisions {
    /// The newest one; from now on only later ones count as news.
    pub fn see(&mut self) -> u64 {
        self.seen = self.shared.revision.load(Ordering::Acquire);
        self.seen
    }

    /// Waits for one that was not seen yet.
    pub async fn changed(&mut self) -> Result<(), Ended> {
        loop {
            let mut news = std::pin::pin!(self.shared.waiting.notified());
            // In the line before anything is looked at, so that nothing is missed.
            news.as_mut().enable();
            let newest = self.shared.revision.load(Ordering::Acquire);
            if newest != self.seen {
                self.seen = newest;
                return Ok(());
            }
            if self.shared.ended.load(Ordering::Acquire) {
                return Err(Ended);
            }
            news.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt, stream::FuturesUnordered};

    use super::*;

    #[tokio::test]
    async fn news_are_told_once_and_in_the_order_of_waiting() {
        let newest = Newest::new(1);
        let mut waiting = FuturesUnordered::new();
        for number in 0..20 {
            let mut revisions = newest.subscribe();
            let mut wait = async move { revisions.changed().await.map(|()| (number, revisions.see())) }.boxed();
            assert!((&mut wait).now_or_never().is_none(), "there is no news yet");
            waiting.push(wait);
        }
        assert!(waiting.next().now_or_never().is_none());
        newest.announce(2);
        let told: Vec<_> = waiting.collect().await;
        assert_eq!(told, (0..20).map(|number| Ok((number, 2))).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn who_waits_hears_of_the_end() {
        let newest = Newest::new(1);
        let mut revisions = newest.subscribe();
        newest.announce(2);
        drop(newest);
        assert_eq!((revisions.changed().await, revisions.changed().await), (Ok(()), Err(Ended)));
    }
}
