//! The storage: every version of every object under one revision counter, and who waits for more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use super::admission::{Policies, Webhooks};
use super::key::Key;
use super::newest::{Newest, Revisions};
use super::object;
use super::process_log::ProcessLogs;
use super::resource::{BUILT_IN, Resource};
use crate::clock::Clock;
use crate::journal::{Change, Event, Journal, Verb};

/// Where counting starts: a client that takes revisions for small numbers, or 1 for the first, is wrong from the start.
const FIRST_REVISION: u64 = 100;

/// Who writes when a snapshot of etcd is restored.
const RESTORE: &str = "etcd-restore";

/// One write as watches see it.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Value>>,
    /// None for a deletion.
    pub(crate) after: Option<Arc<Value>>,
}

/// An object at one revision; none where it was deleted.
type Past = (u64, Option<Arc<Value>>);

/// All objects of one resource.
#[derive(Debug)]
pub(crate) struct Table {
    live: BTreeMap<Key, Arc<Value>>,
    past: BTreeMap<Key, Vec<Past>>,
    log: VecDeque<Logged>,
    /// The newest revision of which the log has forgotten a write.
    trimmed: u64,
    newest: Newest,
}

impl Table {
    fn new() -> Self {
        Self { live: BTreeMap::new(), past: BTreeMap::new(), log: VecDeque::new(), trimmed: 0, newest: Newest::new(0) }
    }

    /// Writes after this revision; none when some of them are forgotten.
    pub(crate) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Logged>> {
        (revision >= self.trimmed).then(|| {
            let start = self.log.partition_point(|entry| entry.revision <= revision);
            self.log.range(start..)
        })
    }

    /// Wakes at every write to this resource.
    pub(crate) fn subscribe(&self) -> Revisions {
        self.newest.subscribe()
    }
}

/// An open watch.
#[derive(Debug)]
struct Open {
    user: String,
    storage: String,
    /// Dropping this ends the stream. Sending something makes it stand still.
    alive: oneshot::Sender<()>,
}

/// Everything that the server knows.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) clock: Clock,
    journal: Journal,
    revision: u64,
    compacted: u64,
    /// What the request that is being answered is warned of, whether it succeeds or not.
    pub(crate) warned: Vec<String>,
    /// Feeds uids, generated names and service addresses.
    counter: u64,
    tables: BTreeMap<String, Table>,
    resources: BTreeMap<String, Arc<Resource>>,
    newest: Newest,
    watches: Vec<Open>,
    /// What kubelets would show of their processes.
    pub(crate) logs: ProcessLogs,
    /// What may not be changed of which objects.
    pub(crate) policies: Policies,
    pub(crate) webhooks: Webhooks,
    /// Resources that can't be listed or watched now, as where their conversion webhook is away.
    unlistable: BTreeSet<String>,
}

impl Store {
    pub(crate) fn new(clock: Clock, journal: Journal) -> Self {
        Self {
            clock,
            journal,
            revision: FIRST_REVISION,
            compacted: 0,
            warned: Vec::new(),
            counter: 0,
            tables: BUILT_IN.iter().map(|resource| (resource.storage.clone(), Table::new())).collect(),
            resources: BUILT_IN.iter().map(|resource| (resource.id.clone(), Arc::clone(resource))).collect(),
            newest: Newest::new(FIRST_REVISION),
            watches: Vec::new(),
            logs: ProcessLogs::default(),
            policies: Policies::default(),
            webhooks: Webhooks::default(),
            unlistable: BTreeSet::new(),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(crate) fn subscribe(&self) -> Revisions {
        self.newest.subscribe()
    }

    /// The next number of a sequence that no two callers share.
    pub(crate) fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub(crate) fn new_uid(&mut self) -> String {
        let count = self.count();
        format!("5eed0000-0000-4000-8000-{count:012x}")
    }

    // Resources.

    pub(crate) fn resource(&self, id: &str) -> Option<&Arc<Resource>> {
        self.resources.get(id)
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    pub(crate) fn resource_of(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        self.resources.get(&Resource::id_of(group, plural)).cloned()
    }

    pub(crate) fn resource_of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        let found = self
            .resources
            .values()
            .find(|resource| resource.group == group && resource.kind == kind && resource.version(version).is_some());
        found.cloned()
    }

    pub(crate) fn register(&mut self, resource: Resource) {
        self.tables.entry(resource.storage.clone()).or_insert_with(Table::new);
        self.resources.insert(resource.id.clone(), Arc::new(resource));
    }

    /// Forgets a custom resource; its objects must be gone. Their history stays for watches that are behind.
    pub(crate) fn unregister(&mut self, id: &str) {
        self.resources.remove(id);
        self.watches.retain(|open| open.storage != id);
    }

    // Reading.

    pub(crate) fn table(&self, storage: &str) -> Option<&Table> {
        self.tables.get(storage)
    }

    pub(crate) fn get(&self, storage: &str, key: &Key) -> Option<&Arc<Value>> {
        self.tables.get(storage)?.live.get(key)
    }

    pub(crate) fn get_at(&self, storage: &str, key: &Key, revision: u64) -> Option<&Arc<Value>> {
        if revision >= self.revision {
            return self.get(storage, key);
        }
        state_at(self.tables.get(storage)?.past.get(key)?, revision)
    }

    /// The objects of a namespace (of all where it is empty) in order, as of now.
    pub(crate) fn list(&self, storage: &str, namespace: &str) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.tables.get(storage).into_iter().flat_map(move |table| table.live.range(Key::range(namespace)))
    }

    /// The same as of an older revision, from a key on.
    pub(crate) fn list_at<'a>(
        &'a self,
        storage: &str,
        namespace: &str,
        revision: u64,
        from: Option<Key>,
    ) -> Box<dyn Iterator<Item = (&'a Key, &'a Arc<Value>)> + 'a> {
        let Some(table) = self.tables.get(storage) else { return Box::new(std::iter::empty()) };
        let (low, high) = Key::range(namespace);
        let low = match (from, low) {
            (Some(from), Bound::Included(low)) if from < low => Bound::Included(low),
            (Some(from), Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded) => Bound::Included(from),
            (None, low) => low,
        };
        if let (Bound::Included(low), Bound::Excluded(high)) = (&low, &high)
            && low >= high
        {
            return Box::new(std::iter::empty());
        }
        if revision >= self.revision {
            return Box::new(table.live.range((low, high)));
        }
        Box::new(table.past.range((low, high)).filter_map(move |(key, past)| Some((key, state_at(past, revision)?))))
    }

    // Writing.

    /// Stores the object under a new revision. An object that equals what is stored is not written again.
    pub(crate) fn put(&mut self, user: &str, resource: &Resource, key: &Key, mut object: Value) -> Arc<Value> {
        let before = self.get(&resource.storage, key).cloned();
        if let Some(before) = &before {
            object::set_revision(&mut object, object::revision(before));
            if **before == object {
                return Arc::clone(before);
            }
        }
        object::set_revision(&mut object, self.revision + 1);
        let after = Arc::new(object);
        let verb = if before.is_some() { Verb::Update } else { Verb::Create };
        self.append(user, resource, key, verb, before, &after);
        after
    }

    /// Removes the object; its last state carries the revision of the deletion.
    pub(crate) fn remove(&mut self, user: &str, resource: &Resource, key: &Key) -> Option<Arc<Value>> {
        let before = self.get(&resource.storage, key)?;
        let last = (**before).clone();
        Some(self.remove_as(user, resource, key, last))
    }

    /// Removes the object in a state that was never stored.
    pub(crate) fn remove_as(&mut self, user: &str, resource: &Resource, key: &Key, mut last: Value) -> Arc<Value> {
        let before = self.get(&resource.storage, key).cloned();
        object::set_revision(&mut last, self.revision + 1);
        let last = Arc::new(last);
        self.append(user, resource, key, Verb::Delete, before, &last);
        last
    }

    fn append(
        &mut self,
        user: &str,
        resource: &Resource,
        key: &Key,
        verb: Verb,
        before: Option<Arc<Value>>,
        after: &Arc<Value>,
    ) {
        self.revision += 1;
        let revision = self.revision;
        let table = self.tables.entry(resource.storage.clone()).or_insert_with(Table::new);
        let state = match verb {
            Verb::Create | Verb::Update => {
                table.live.insert(key.clone(), Arc::clone(after));
                Some(Arc::clone(after))
            }
            Verb::Delete => {
                table.live.remove(key);
                None
            }
        };
        table.past.entry(key.clone()).or_default().push((revision, state.clone()));
        // A deletion's event shows the last state under the deletion's revision.
        let shown = if state.is_none() { Some(Arc::clone(after)) } else { before.clone() };
        table.log.push_back(Logged { revision, key: key.clone(), before: shown, after: state });
        table.newest.announce(revision);
        self.newest.announce(revision);
        self.journal.push(
            self.clock.now(),
            Event::Write(Change {
                revision,
                user: user.to_owned(),
                verb,
                resource: resource.storage.clone(),
                namespace: key.namespace().to_owned(),
                name: key.name().to_owned(),
                before,
                after: Some(Arc::clone(after)),
            }),
        );
    }

    /// Forgets what was before this revision.
    pub(crate) fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        if revision <= self.compacted {
            return;
        }
        self.compacted = revision;
        for table in self.tables.values_mut() {
            while let Some(first) = table.log.pop_front_if(|entry| entry.revision <= revision) {
                table.trimmed = first.revision;
            }
            table.past.retain(|_, past| {
                let keep = past.partition_point(|(at, _)| *at <= revision).saturating_sub(1);
                past.drain(..keep);
                !matches!(past.as_slice(), [(at, None)] if *at <= revision)
            });
        }
    }

    /// Everything is as it was at this revision, and counting goes on from there: etcd was restored from a snapshot. Watches end, as the
    /// server is started again with it. Kinds stay as they are.
    pub(crate) fn restore(&mut self, revision: u64) {
        let revision = revision.max(self.compacted).min(self.revision);
        let storages: Vec<String> = self.tables.keys().cloned().collect();
        for storage in storages {
            let Some(table) = self.tables.get_mut(&storage) else { continue };
            let mut changes = Vec::new();
            for (key, past) in &mut table.past {
                past.truncate(past.partition_point(|(at, _)| *at <= revision));
                let (before, after) = (table.live.get(key).cloned(), state_at(past, revision).cloned());
                if before != after {
                    changes.push((key.clone(), before, after));
                }
            }
            table.log.clear();
            table.trimmed = revision;
            for (key, before, after) in changes {
                let verb = match (&before, &after) {
                    (Some(_), Some(_)) => Verb::Update,
                    (None, _) => Verb::Create,
                    (Some(_), None) => Verb::Delete,
                };
                match &after {
                    Some(after) => table.live.insert(key.clone(), Arc::clone(after)),
                    None => table.live.remove(&key),
                };
                let change = Change {
                    revision,
                    user: RESTORE.to_owned(),
                    verb,
                    resource: storage.clone(),
                    namespace: key.namespace().to_owned(),
                    name: key.name().to_owned(),
                    after: after.or_else(|| before.clone()),
                    before,
                };
                self.journal.push(self.clock.now(), Event::Write(change));
            }
            table.newest.announce(revision);
        }
        (self.revision, self.compacted) = (revision, revision);
        self.watches.clear();
        self.newest.announce(revision);
    }

    // Watches.

    /// Whether this resource can't be listed or watched now.
    pub(crate) fn is_unlistable(&self, id: &str) -> bool {
        self.unlistable.contains(id)
    }

    pub(crate) fn set_unlistable(&mut self, id: &str, unlistable: bool) {
        if unlistable {
            self.unlistable.insert(id.to_owned());
        } else {
            self.unlistable.remove(id);
        }
    }

    /// Those who are told of open watches hear nothing of them any more, not even their end.
    pub(crate) fn still_watches(&mut self, whose: &str) {
        let (still, going) =
            std::mem::take(&mut self.watches).into_iter().partition(|open| open.user.starts_with(whose));
        self.watches = going;
        let still: Vec<Open> = still;
        for open in still {
            // Who has left already is told nothing, either.
            let _gone = open.alive.send(());
        }
    }

    /// Enters a watch in the books; the stream ends when the receiver fires.
    pub(crate) fn open_watch(&mut self, user: &str, storage: &str) -> oneshot::Receiver<()> {
        self.watches.retain(|open| !open.alive.is_closed());
        let (alive, ended) = oneshot::channel();
        self.watches.push(Open { user: user.to_owned(), storage: storage.to_owned(), alive });
        ended
    }

    pub(crate) fn drop_watches(&mut self, user: Option<&str>) {
        self.watches.retain(|open| user.is_some_and(|user| open.user != user));
    }
}

fn state_at(past: &[Past], revision: u64) -> Option<&Arc<Value>> {
    let after = past.partition_point(|(at, _)| *at <= revision);
    past[..after].last()?.1.as_ref()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(store: &Store) -> Arc<Resource> {
        Arc::clone(store.resource("configmaps").unwrap())
    }

    fn object(data: &str) -> Value {
        json!({"metadata": {"name": "a", "namespace": "x"}, "data": {"k": data}})
    }

    #[tokio::test(start_paused = true)]
    async fn every_write_takes_one_number_of_the_whole_store_and_an_equal_one_takes_none() {
        let journal = Journal::default();
        let mut store = Store::new(Clock::start(), journal.clone());
        let (maps, key, other) = (map(&store), Key::new("x", "a"), Key::new("y", "a"));
        let first = store.put("me", &maps, &key, object("1"));
        let second = store.put("me", &maps, &other, object("1"));
        let same = store.put("me", &maps, &key, object("1"));
        assert_eq!(object::revision(&second), object::revision(&first) + 1);
        assert!(Arc::ptr_eq(&first, &same));
        assert_eq!(store.revision(), object::revision(&second));
        assert_eq!(journal.entries().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_past_can_be_read_until_it_is_compacted() {
        let mut store = Store::new(Clock::start(), Journal::default());
        let (maps, key) = (map(&store), Key::new("x", "a"));
        let first = object::revision(&store.put("me", &maps, &key, object("1")));
        let second = object::revision(&store.put("me", &maps, &key, object("2")));
        store.remove("me", &maps, &key).unwrap();
        assert!(store.get("configmaps", &key).is_none());
        assert_eq!(store.get_at("configmaps", &key, first).unwrap()["data"]["k"], "1");
        assert_eq!(store.list_at("configmaps", "x", second, None).count(), 1);
        assert_eq!(store.table("configmaps").unwrap().since(first).unwrap().count(), 2);
        store.compact(store.revision());
        assert!(store.table("configmaps").unwrap().since(first).is_none());
        assert_eq!(store.table("configmaps").unwrap().since(store.revision()).unwrap().count(), 0);
    }
}
