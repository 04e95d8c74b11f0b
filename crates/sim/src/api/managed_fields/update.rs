//! Writes that are not applies: who changes a field manages it from then on, and nobody else does.

use serde_json::Value;

use super::super::fields::{Comparison, FieldSet};
use super::super::object;
use super::entries::{Entry, Id, Operation, Source, decode};
use super::{Writing, reset, set_managed};

/// More entries of updates than this, and the oldest become one.
const MOST_UPDATES: usize = 10;
const OLDEST_UPDATES: &str = "ancient-changes";

/// Sets the object's `managedFields` after a write of it. A new object had nothing before.
pub(crate) fn update(writing: &Writing<'_>, before: Option<&Value>, object: &mut Value) {
    let sent = object::meta_mut(object).remove("managedFields");
    let live = before.and_then(|before| object::meta(before, "managedFields"));
    let chosen = match &sent {
        // A part of an object has no say in this.
        Some(sent) if writing.part == reset::Subresource::None && Some(sent) != live => from_request(sent),
        Some(_) | None => None,
    };
    let untouched = chosen.is_none();
    let entries = || chosen.clone().unwrap_or_else(|| decode(live, Source::Store).unwrap_or_default());
    let known = before.is_some_and(|before| !object::meta_text(before, "uid").is_empty());
    if known && (if untouched { live.is_none() } else { entries().is_empty() }) {
        // Nobody kept account of it so far, and half an account would be wrong.
        return;
    }
    let nothing;
    let old = match before {
        Some(before) => before,
        None => {
            nothing = writing.nothing();
            &nothing
        }
    };
    let Some(Ok(comparison)) = writing.compare(&writing.api_version, old, object) else { return };
    if comparison.is_empty() && untouched {
        object::put(object::meta_mut(object), "managedFields", live);
        return;
    }
    let entries = changed(writing, entries(), old, object, &comparison);
    set_managed(object, entries);
}

/// What the writer asks the entries to be; none where it says nothing about them that can be understood.
fn from_request(sent: &Value) -> Option<Vec<Entry>> {
    if is_reset(sent) {
        return Some(Vec::new());
    }
    decode(Some(sent), Source::Request).filter(|entries| !entries.is_empty())
}

/// An empty list, or a list of one empty entry, asks to forget all managers.
fn is_reset(sent: &Value) -> bool {
    match sent.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => {
            only.as_object().is_some_and(|entry| entry.values().all(|value| value == "" || value.is_null()))
        }
        Some(_) | None => false,
    }
}

/// The entries after a change of the object.
pub(super) fn changed(
    writing: &Writing<'_>,
    mut entries: Vec<Entry>,
    before: &Value,
    after: &Value,
    comparison: &Comparison,
) -> Vec<Entry> {
    entries.retain_mut(|entry| {
        let other;
        let seen = if entry.api_version == writing.api_version {
            comparison
        } else {
            // A version that there no longer is can't be held to account.
            let Some(Ok(found)) = writing.compare(&entry.api_version, before, after) else { return false };
            other = found;
            &other
        };
        for gone in [&seen.modified, &seen.added, &seen.removed] {
            entry.fields.subtract(gone);
        }
        !entry.fields.is_empty()
    });
    let mut own = comparison.modified.clone();
    own.unite(&comparison.added);
    own.subtract(&reset::NEVER_OWNED);
    if !own.is_empty() {
        add(&mut entries, writing, own);
    }
    cap(entries)
}

fn add(entries: &mut Vec<Entry>, writing: &Writing<'_>, fields: FieldSet) {
    let id = writing.id(Operation::Update);
    if let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) {
        entry.fields.unite(&fields);
        entry.time = Some(writing.now);
    } else {
        entries.push(Entry { id, api_version: writing.api_version.clone(), time: Some(writing.now), fields });
    }
}

/// Puts the oldest updates together where there are too many, one bucket per version.
fn cap(mut entries: Vec<Entry>) -> Vec<Entry> {
    let is_update = |entry: &Entry| entry.id.operation == Operation::Update;
    let mut count = entries.iter().filter(|entry| is_update(entry)).count();
    if count <= MOST_UPDATES {
        return entries;
    }
    let seconds = |entry: &Entry| entry.time.map_or(0, jiff::Timestamp::as_second);
    let mut oldest: Vec<Entry> = entries.iter().filter(|entry| is_update(entry)).cloned().collect();
    oldest.sort_by_cached_key(|entry| (seconds(entry), entry.id.sorted_by()));
    let mut first_of: Vec<(String, Id)> = Vec::new();
    for entry in oldest {
        if count <= MOST_UPDATES {
            break;
        }
        let first = first_of.iter().find(|(version, _)| *version == entry.api_version).map(|(_, id)| id.clone());
        let Some(first) = first else {
            first_of.push((entry.api_version.clone(), entry.id));
            continue;
        };
        let bucket = Id::new(OLDEST_UPDATES, Operation::Update, &entry.api_version, "");
        if !entries.iter().any(|one| one.id == bucket)
            && let Some(one) = entries.iter_mut().find(|one| one.id == first)
        {
            one.id = bucket.clone();
        }
        entries.retain(|one| one.id != entry.id || one.id == bucket);
        if let Some(one) = entries.iter_mut().find(|one| one.id == bucket) {
            one.fields.unite(&entry.fields);
            one.time = entry.time;
        }
        count -= 1;
    }
    entries
}
