//! Watches: what happened since a revision, then what happens.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::error::{self, Answer};
use super::form::{Form, Subject};
use super::list_options;
use super::object;
use super::query::Query;
use super::read::{self, Selection, parse_revision};
use super::store::{Logged, Store};
use crate::clock::Clock;

/// How often a watch that asked for bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// A last bookmark comes this long before the server ends a watch.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// How long a watch lives that named no time of its own. A real server draws it between 30 and 60 minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);

/// A watch's events as lines of JSON. The end of the stream is the end of the watch.
pub struct WatchStream(Pin<Box<dyn Stream<Item = Bytes> + Send>>);

impl std::fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatchStream")
    }
}

impl Stream for WatchStream {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.as_mut().poll_next(cx)
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    object: &'a Value,
}

fn line(kind: &str, object: &Value) -> Bytes {
    let mut bytes = serde_json::to_vec(&Line { kind, object }).unwrap_or_default();
    bytes.push(b'\n');
    Bytes::from(bytes)
}

/// What one watch is told, and how.
struct Watcher {
    selection: Selection,
    form: Form,
    clock: Clock,
    /// Nothing was told yet.
    first: bool,
}

impl Watcher {
    fn line(&mut self, kind: &str, shown: Arc<Value>) -> Bytes {
        let Some(version) = self.selection.resource.version(&self.selection.version) else { return line(kind, &shown) };
        let subject = Subject { resource: &self.selection.resource, version, now: self.clock.now() };
        let first = std::mem::take(&mut self.first);
        line(kind, &self.form.event(subject, shown, first))
    }
}

fn bookmark(watcher: &mut Watcher, revision: u64, ends_initial_events: bool) -> Bytes {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if ends_initial_events {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let resource = &watcher.selection.resource;
    let api_version = resource.api_version(&watcher.selection.version);
    let shown = json!({"kind": resource.kind, "apiVersion": api_version, "metadata": metadata});
    watcher.line("BOOKMARK", Arc::new(shown))
}

/// What this watch is told of one write.
fn translate(watcher: &mut Watcher, logged: &Logged) -> Option<Bytes> {
    let selection = &watcher.selection;
    let inside = selection.namespace.is_empty() || logged.key.namespace() == selection.namespace;
    if !inside {
        return None;
    }
    let before = logged.before.as_ref().filter(|before| selection.selects(before));
    let Some(after) = &logged.after else {
        let last = selection.view(before?);
        return Some(watcher.line("DELETED", last));
    };
    let (kind, shown) = match (before, selection.selects(after)) {
        (None, true) => ("ADDED", selection.view(after)),
        (Some(_), true) => ("MODIFIED", selection.view(after)),
        (Some(before), false) => {
            // It left the selection: shown as it last was inside, under the revision of the write that moved it.
            let mut last = (*selection.view(before)).clone();
            object::set_revision(&mut last, logged.revision);
            ("DELETED", Arc::new(last))
        }
        (None, false) => return None,
    };
    Some(watcher.line(kind, shown))
}

/// What a new watch begins with.
struct Beginning {
    lines: Vec<Bytes>,
    /// The last revision that the watch has been told of.
    seen: u64,
}

fn begin(store: &Store, watcher: &mut Watcher, query: &Query) -> Answer<Result<Beginning, Bytes>> {
    list_options::check(query)?;
    read::listable(store, &watcher.selection)?;
    // The server takes a revision that is none for its own fault.
    let asked = parse_revision(&query.revision)
        .map_err(|status| error::unknown(500, status.message.trim_start_matches("invalid resource version: ")))?;
    let now = store.revision();
    let initial = list_options::begins_with_everything(query);
    if initial && asked.is_some_and(|asked| asked > now) {
        let status = error::too_large_revision(asked.unwrap_or(0), now);
        return Ok(Err(line("ERROR", &error::to_value(&status))));
    }
    if initial {
        let selection = &watcher.selection;
        let found = store.list(&selection.resource.storage, &selection.namespace);
        let selected = found.filter(|(_, stored)| selection.selects(stored));
        let shown: Vec<Arc<Value>> = selected.map(|(_, stored)| selection.view(stored)).collect();
        let mut lines: Vec<Bytes> = shown.into_iter().map(|object| watcher.line("ADDED", object)).collect();
        if query.bookmarks {
            lines.push(bookmark(watcher, now, true));
        }
        return Ok(Ok(Beginning { lines, seen: now }));
    }
    let from = asked.unwrap_or(now);
    if from < store.compacted() {
        let message = format!("too old resource version: {from} ({})", store.compacted());
        return Ok(Err(line("ERROR", &error::to_value(&error::expired(message, None)))));
    }
    Ok(Ok(Beginning { lines: Vec::new(), seen: from }))
}

/// Everything that happened since, as lines, and whether the watch can go on.
fn catch_up(store: &Store, watcher: &mut Watcher, seen: &mut u64) -> (Vec<Bytes>, bool) {
    let Some(table) = store.table(&watcher.selection.resource.storage) else { return (Vec::new(), false) };
    let Some(since) = table.since(*seen) else {
        let message = format!("too old resource version: {seen} ({})", store.compacted());
        return (vec![line("ERROR", &error::to_value(&error::expired(message, None)))], false);
    };
    let mut lines = Vec::new();
    for logged in since {
        lines.extend(translate(watcher, logged));
        *seen = logged.revision;
    }
    (lines, true)
}

/// Opens a watch.
pub(crate) fn open(
    shared: &Arc<Mutex<Store>>,
    store: &mut Store,
    user: &str,
    selection: Selection,
    query: &Query,
    form: Form,
) -> Answer<WatchStream> {
    let mut watcher = Watcher { selection, form, clock: store.clock, first: true };
    let beginning = match begin(store, &mut watcher, query)? {
        Ok(beginning) => beginning,
        Err(error) => return Ok(WatchStream(Box::pin(futures::stream::once(std::future::ready(error))))),
    };
    let resource = Arc::clone(&watcher.selection.resource);
    let Some(table) = store.table(&resource.storage) else {
        return Err(error::not_found(resource.named(), ""));
    };
    let mut newest = table.subscribe();
    let mut ended = store.open_watch(user, &resource.storage);
    let shared = Arc::clone(shared);
    let timeout = query.timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let bookmarks = query.bookmarks;
    let stream = async_stream::stream! {
        let start = Instant::now();
        let end = start + timeout;
        let last_bookmark = end.checked_sub(BOOKMARK_BEFORE_END).filter(|at| *at > start);
        let mut next_bookmark = start + BOOKMARK_EVERY;
        let mut said_goodbye = false;
        let mut seen = beginning.seen;
        for line in beginning.lines {
            yield line;
        }
        loop {
            newest.see();
            let (lines, goes_on) = {
                let store = shared.lock().unwrap_or_else(PoisonError::into_inner);
                catch_up(&store, &mut watcher, &mut seen)
            };
            for line in lines {
                yield line;
            }
            if !goes_on {
                break;
            }
            let goodbye = last_bookmark.filter(|_| !said_goodbye).unwrap_or(end);
            let bookmark_at = if bookmarks { next_bookmark.min(goodbye) } else { end };
            tokio::select! {
                biased;
                end = &mut ended => match end {
                    Ok(()) => std::future::pending().await,
                    Err(_) => break,
                },
                changed = newest.changed() => if changed.is_err() { break },
                () = tokio::time::sleep_until(end) => break,
                () = tokio::time::sleep_until(bookmark_at) => {
                    let now = Instant::now();
                    said_goodbye |= now >= goodbye;
                    next_bookmark = now + BOOKMARK_EVERY;
                    // Whatever came in the meantime is told first, else the bookmark would promise too much.
                    let (lines, goes_on, revision) = {
                        let store = shared.lock().unwrap_or_else(PoisonError::into_inner);
                        let (lines, goes_on) = catch_up(&store, &mut watcher, &mut seen);
                        (lines, goes_on, store.revision())
                    };
                    for line in lines {
                        yield line;
                    }
                    if !goes_on {
                        break;
                    }
                    seen = seen.max(revision);
                    yield bookmark(&mut watcher, revision, false);
                }
            }
        }
    };
    Ok(WatchStream(Box::pin(stream)))
}
