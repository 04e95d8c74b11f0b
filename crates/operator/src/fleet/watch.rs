//! A watch that shows signs of life.
//!
//! kube's own watcher takes bookmarks in and tells nobody of them, so that whoever listens to it can't tell a quiet fleet from a connection on
//! which nothing comes any more. This one tells every sign of life. Where there was none for too long it begins again with a list, and so it
//! does where revisions go back (H4).

use std::{fmt::Debug, ops::ControlFlow, pin::pin};

use futures::StreamExt;
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
    runtime::utils::Backoff,
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};
use windlass_plan::bug::{self, Bug};

use crate::{Context, backoff::Steady, error::Error};

/// How many objects a page of a list has.
const PAGE: u32 = 100;

/// What a watch tells.
#[derive(Debug)]
pub enum Told<K> {
    /// A new list begins.
    Begun,
    /// This is in the list.
    Listed(K),
    /// The list is whole, and of this revision.
    Whole(String),
    /// It is like this now.
    Changed(K),
    /// It is gone; this is how it was.
    Gone(K),
    /// A bookmark: there is nothing else to tell.
    Alive,
    /// A new list is older than what was seen before: etcd was restored (H4).
    WentBack,
    /// It can't be listed or watched now. It goes on trying.
    Broke(Error),
}

/// When a watch that was last heard then is not believed any more.
pub fn believed_until(context: &Context, heard: Instant) -> Instant {
    let never = bug::active(Bug::DeadWatchBelieved);
    let bound = if never { context.settings.watch_silence * 1_000 } else { context.settings.watch_silence };
    heard + bound
}

/// What is watched, and what was seen of it.
pub struct Watch<'a, K, T> {
    context: &'a Context,
    what: String,
    api: Api<K>,
    labels: Option<String>,
    tell: T,
    back_off: Steady,
    /// The last sign of life.
    heard: Instant,
    /// The newest revision that was told.
    newest: Option<u64>,
}

impl<'a, K, T> Watch<'a, K, T>
where
    K: Resource + Clone + Debug + DeserializeOwned,
    T: FnMut(Told<K>),
{
    /// A watch of those with these labels, as kubectl's `-l` writes them. `tell` is told of everything.
    pub fn new(context: &'a Context, what: &str, api: Api<K>, labels: Option<&str>, tell: T) -> Self {
        Self {
            context,
            what: what.to_owned(),
            api,
            labels: labels.map(str::to_owned),
            tell,
            back_off: Steady::default(),
            heard: Instant::now(),
            newest: None,
        }
    }

    /// Watches for ever.
    pub async fn run(mut self) {
        loop {
            match self.list().await {
                Ok(revision) => self.follow(revision).await,
                Err(error) => (self.tell)(Told::Broke(error)),
            }
            self.rest().await;
        }
    }

    async fn rest(&mut self) {
        tokio::time::sleep(self.back_off.next().unwrap_or_default()).await;
    }

    /// Lists everything, as it is now. The revision of that.
    async fn list(&mut self) -> Result<String, Error> {
        (self.tell)(Told::Begun);
        let mut params = ListParams { label_selector: self.labels.clone(), limit: Some(PAGE), ..ListParams::default() };
        let deadline = self.context.settings.read_deadline;
        let revision = loop {
            let page = self.context.bounded(deadline, "list", &self.what, self.api.list(&params)).await?;
            for object in page.items {
                (self.tell)(Told::Listed(object));
            }
            match page.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => params.continue_token = Some(next),
                None => break page.metadata.resource_version.unwrap_or_default(),
            }
        };
        self.heard = Instant::now();
        let listed = number(&revision);
        if listed < self.newest {
            (self.tell)(Told::WentBack);
        }
        self.newest = listed;
        (self.tell)(Told::Whole(revision.clone()));
        Ok(revision)
    }

    /// Tells what happens after this revision, until a new list is needed.
    async fn follow(&mut self, mut revision: String) {
        let params = WatchParams { label_selector: self.labels.clone(), ..WatchParams::default() };
        loop {
            let deadline = self.context.settings.read_deadline;
            let opened = self.context.bounded(deadline, "watch", &self.what, self.api.watch(&params, &revision)).await;
            match opened {
                Ok(stream) => {
                    let mut stream = pin!(stream);
                    loop {
                        match timeout_at(believed_until(self.context, self.heard), stream.next()).await {
                            Ok(Some(Ok(event))) => {
                                if self.take(event, &mut revision).is_break() {
                                    return;
                                }
                            }
                            Ok(Some(Err(error))) => {
                                (self.tell)(Told::Broke(Error::kubernetes("watch", &self.what, error)));
                                break;
                            }
                            // The API server ends every watch after some minutes.
                            Ok(None) => break,
                            Err(_) => {
                                tracing::warn!(what = self.what, "nothing was heard of a watch, and it begins again");
                                return;
                            }
                        }
                    }
                }
                Err(error) => {
                    let expired = error.is_expired();
                    (self.tell)(Told::Broke(error));
                    if expired {
                        return;
                    }
                }
            }
            if believed_until(self.context, self.heard) <= Instant::now() {
                return;
            }
            self.rest().await;
        }
    }

    /// Tells of an event; breaks where a new list is needed.
    fn take(&mut self, event: WatchEvent<K>, revision: &mut String) -> ControlFlow<()> {
        let told = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                *revision = object.resource_version().unwrap_or_default();
                Told::Changed(object)
            }
            WatchEvent::Deleted(object) => {
                *revision = object.resource_version().unwrap_or_default();
                Told::Gone(object)
            }
            WatchEvent::Bookmark(bookmark) => {
                *revision = bookmark.metadata.resource_version;
                Told::Alive
            }
            WatchEvent::Error(status) => {
                let expired = status.code == 410;
                let error = kube::Error::Api(status.boxed());
                (self.tell)(Told::Broke(Error::kubernetes("watch", &self.what, error)));
                return if expired { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            }
        };
        // A revision that is less than what was told before says that there is another past: only a list can tell.
        let now = number(revision);
        if now.is_none() || now < self.newest {
            return ControlFlow::Break(());
        }
        (self.heard, self.newest) = (Instant::now(), now);
        self.back_off.reset();
        (self.tell)(told);
        ControlFlow::Continue(())
    }
}

/// A revision as a number: those of one kind can be compared.
fn number(revision: &str) -> Option<u64> {
    revision.parse().ok()
}
