//! Who manages an object's replicas, seen through its scale.
//!
//! To those who write it, the scale is an object with one field, `spec.replicas`. Its entries are those of the object that
//! have the replicas, turned; what a write makes of them is turned back. On the way the entries of updates lose their
//! times: a real server looks for them under the scale's version and doesn't find them.

use serde_json::Value;

use super::super::fields::FieldSet;
use super::super::types::SCALE;
use super::entries::{Entry, Id, Operation, Source, decode, encode};

fn path_of(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| format!("f:{key}")).collect()
}

/// The entries of the scale: `replicas` is where the object has its replicas.
pub(crate) fn to_scale(parent: Option<&Value>, replicas: &[&str]) -> Option<Value> {
    let path = path_of(replicas);
    let entries = decode(parent, Source::Store).unwrap_or_default();
    let with_replicas = entries.into_iter().filter(|entry| entry.fields.has(&path));
    let turned = with_replicas.map(|entry| Entry {
        id: Id::new(&entry.id.manager, entry.id.operation, SCALE.0, &entry.id.subresource),
        api_version: SCALE.0.to_owned(),
        time: entry.time,
        fields: FieldSet::of_names(&[&["spec", "replicas"]]),
    });
    encode(turned.collect())
}

/// The entries of the object, of this version, after a write of its scale.
pub(crate) fn to_parent(
    parent: Option<&Value>,
    scale: Option<&Value>,
    replicas: &[&str],
    api_version: &str,
) -> Option<Value> {
    let path = path_of(replicas);
    let only_replicas = FieldSet::of_names(&[replicas]);
    let mut left = decode(scale, Source::Store).unwrap_or_default();
    let mut entries = decode(parent, Source::Store).unwrap_or_default();
    let mut times: Vec<(Id, Option<jiff::Timestamp>)> = Vec::new();
    entries.retain_mut(|entry| {
        times.push((entry.id.clone(), entry.time));
        if !entry.fields.has(&path) {
            return true;
        }
        if let Some(place) = left.iter().position(|one| one.id == entry.id) {
            left.remove(place);
        } else {
            entry.fields.subtract(&only_replicas);
        }
        !entry.fields.is_empty()
    });
    let path_in_scale = path_of(&["spec", "replicas"]);
    for entry in left.into_iter().filter(|entry| entry.fields.has(&path_in_scale)) {
        let time = times.iter().find(|(id, _)| *id == entry.id).and_then(|(_, time)| *time);
        let id = match entry.id.operation {
            Operation::Apply => entry.id,
            Operation::Update => Id { api_version: api_version.to_owned(), ..entry.id },
        };
        entries.push(Entry { id, api_version: api_version.to_owned(), time, fields: only_replicas.clone() });
    }
    encode(entries)
}
