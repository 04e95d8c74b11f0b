//! Server-side apply: the object becomes what the manager says, as far as it says something, and loses what the manager
//! said before and nobody else does.

use serde_json::Value;

use super::super::error::{self, Answer};
use super::super::fields::{self, FieldSet, fields_of, merge, remove, validate};
use super::super::object;
use super::super::types::TypeRef;
use super::conflict::Conflicts;
use super::entries::{Entry, Operation, Source, decode};
use super::{Writing, last_applied, reset, set_managed, update};

/// The manager of what was there before anybody kept account.
const BEFORE: &str = "before-first-apply";

/// Why an apply didn't come about.
#[derive(Debug)]
pub(super) enum Refusal {
    Conflicts(Conflicts),
    Other(Box<kube::core::Status>),
}

/// The object after the apply of a configuration, with its `managedFields`. Without `live` it is to be made.
pub(crate) fn apply(writing: &Writing<'_>, live: Option<&Value>, config: &Value, force: bool) -> Answer<Value> {
    check_kind(writing, config)?;
    let object = match applied(writing, live, config, force) {
        Ok(object) => object,
        Err(Refusal::Other(status)) => return Err(status),
        Err(Refusal::Conflicts(conflicts)) => {
            let excused = live.and_then(|live| last_applied::excused(writing, live));
            let Some(excused) = excused else { return Err(conflicts.refusal()) };
            if let Some(left) = conflicts.without(&excused) {
                return Err(left.refusal());
            }
            applied(writing, live, config, true).map_err(|refusal| match refusal {
                Refusal::Conflicts(conflicts) => conflicts.refusal(),
                Refusal::Other(status) => status,
            })?
        }
    };
    Ok(last_applied::renewed(writing, object, config))
}

/// The kind as the server writes it in messages.
fn shown_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}

fn check_kind(writing: &Writing<'_>, config: &Value) -> Answer<()> {
    let (api_version, kind) = (object::text(config, &["apiVersion"]), object::text(config, &["kind"]));
    if api_version != writing.api_version || kind != writing.kind {
        return Err(error::bad_request(format!("invalid object type: {}", shown_kind(api_version, kind))));
    }
    Ok(())
}

fn applied(writing: &Writing<'_>, live: Option<&Value>, config: &Value, force: bool) -> Result<Value, Refusal> {
    let nothing = writing.nothing();
    let of = &writing.of;
    let mut entries = live_entries(writing, live);
    if object::at(config, &["metadata"]).is_some_and(|meta| meta.get("managedFields").is_some()) {
        return Err(Refusal::Other(error::bad_request("metadata.managedFields must be nil")));
    }
    let problems = validate(of, config);
    if !problems.is_empty() {
        let place = format!("{}/{}", object::meta_text(config, "namespace"), object::name(config));
        let kind = shown_kind(&writing.api_version, writing.kind);
        let why = fields::describe(&problems);
        let message = format!("failed to create typed patch object ({place}; {kind}): {why}");
        return Err(Refusal::Other(error::unknown(500, &message)));
    }
    let live = live.unwrap_or(&nothing);
    let merged = merge(of, live, config).map_err(|problems| {
        let message = format!("failed to merge config: {}", fields::describe(&problems));
        Refusal::Other(error::unknown(500, &message))
    })?;

    let id = writing.id(Operation::Apply);
    let last = entries.iter().position(|entry| entry.id == id).map(|place| entries.remove(place));
    let mut own = fields_of(of, config);
    own.subtract_with_all_below(writing.reset);
    let time = last.as_ref().and_then(|last| last.time);
    entries.push(Entry { id: id.clone(), api_version: writing.api_version.clone(), time, fields: own });
    let object = match last {
        Some(last) => prune(writing, merged, &entries, &last),
        None => merged,
    };

    settle(writing, &mut entries, live, &object, force)?;
    if let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) {
        entry.fields.subtract(&reset::NEVER_OWNED);
        if object != *live {
            entry.time = Some(writing.now);
        }
    }
    entries.retain(|entry| !entry.fields.is_empty());
    let mut object = object;
    set_managed(&mut object, entries);
    Ok(object)
}

/// The entries so far. Where nobody kept account, all there is belongs to somebody unknown.
fn live_entries(writing: &Writing<'_>, live: Option<&Value>) -> Vec<Entry> {
    let Some(live) = live else { return Vec::new() };
    let entries = decode(object::meta(live, "managedFields"), Source::Store).unwrap_or_default();
    if !entries.is_empty() {
        return entries;
    }
    let before = Writing { manager: BEFORE, ..writing.clone() };
    let nothing = writing.nothing();
    match before.compare(&before.api_version, &nothing, live) {
        Some(Ok(comparison)) => update::changed(&before, Vec::new(), &nothing, live, &comparison),
        Some(Err(_)) | None => Vec::new(),
    }
}

/// Takes from the other managers what the apply changes; where it isn't forced, it must not change anything of theirs.
fn settle(
    writing: &Writing<'_>,
    entries: &mut Vec<Entry>,
    live: &Value,
    object: &Value,
    force: bool,
) -> Result<(), Refusal> {
    let id = writing.id(Operation::Apply);
    let own = &writing.api_version;
    let compare = |api_version: &str| writing.compare(api_version, live, object).and_then(Result::ok);
    let here = compare(own).unwrap_or_default();
    let mut conflicts = Vec::new();
    let mut left = Vec::new();
    for mut entry in std::mem::take(entries) {
        if entry.id == id {
            left.push(entry);
            continue;
        }
        let seen = if entry.api_version == *own {
            here.clone()
        } else {
            let Some(seen) = compare(&entry.api_version) else { continue };
            seen
        };
        let mut changed = seen.modified;
        changed.unite(&seen.added);
        let taken = entry.fields.intersection(&changed);
        entry.fields.subtract(&taken);
        entry.fields.subtract(&seen.removed);
        conflicts.push((entry.id.clone(), taken));
        left.push(entry);
    }
    *entries = left;
    match Conflicts::new(conflicts) {
        Some(conflicts) if !force => Err(Refusal::Conflicts(conflicts)),
        Some(_) | None => Ok(()),
    }
}

/// Removes what the manager applied last time and doesn't any more, unless somebody else manages it.
fn prune(writing: &Writing<'_>, merged: Value, entries: &[Entry], last: &Entry) -> Value {
    let Some(of) = writing.type_in(&last.api_version).filter(|_| !last.fields.is_empty()) else { return merged };
    let before = last.fields.with_named_fields(&of);
    let mut pruned = remove(&of, &merged, &before);
    let mut versions: Vec<&str> = entries.iter().map(|entry| entry.api_version.as_str()).collect();
    versions.sort_by_key(|version| *version != last.api_version);
    versions.dedup();
    for version in versions {
        let Some(of) = writing.type_in(version) else { continue };
        let mut managed = FieldSet::default();
        for entry in entries.iter().filter(|entry| entry.api_version == version) {
            managed.unite(&entry.fields);
        }
        let mut gone = named_fields_of(&of, &merged);
        gone.subtract(&named_fields_of(&of, &pruned));
        gone.subtract(&managed.with_named_fields(&of));
        pruned = remove(&of, &merged, &gone);
    }
    // What went with it but was never this manager's stays.
    let mut gone = named_fields_of(&of, &merged);
    gone.subtract(&named_fields_of(&of, &pruned));
    remove(&of, &merged, &gone.intersection(&before))
}

fn named_fields_of(of: &TypeRef, value: &Value) -> FieldSet {
    fields_of(of, value).with_named_fields(of)
}
