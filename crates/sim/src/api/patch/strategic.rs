//! Strategic merge patches: lists whose items have a key are merged item by item, and directives say what else is meant.
//!
//! | directive | meaning |
//! |---|---|
//! | `$patch: delete` / `replace` | the map, or the item of a list with this key, goes / is as it is here |
//! | `$deleteFromPrimitiveList/x` | these values go from the list `x` |
//! | `$setElementOrder/x` | the items of the list `x` are in this order |
//! | `$retainKeys` | the map has these keys at most |

use serde_json::{Map, Value};

use super::super::error::{self, Answer};
use super::super::types::{Field, PatchRule, Record, Strategy, TypeRef};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

type Fields = Map<String, Value>;

/// Changes an object of this type.
pub(super) fn apply(of: &TypeRef, object: &mut Value, patch: &Value) -> Answer<()> {
    let (Value::Object(live), Value::Object(patch)) = (std::mem::take(object), patch.clone()) else {
        return Err(error::bad_request("invalid JSON document"));
    };
    *object = Value::Object(merge_maps(Some(of), live, patch)?);
    Ok(())
}

/// A failure that the server has no code for.
fn failed<T>(why: impl AsRef<str>) -> Answer<T> {
    Err(error::unknown(500, why.as_ref()))
}

fn malformed<T>(what: &str) -> Answer<T> {
    Err(error::bad_request(format!("invalid patch format of {what}")))
}

/// The fields of a type; none for a map, whose values have no fields that a patch could tell.
fn record(of: Option<&TypeRef>) -> Option<&Record> {
    of.and_then(|of| of.get().map.as_ref()).filter(|record| !record.fields.is_empty())
}

fn lookup<'a>(of: Option<&'a TypeRef>, key: &str) -> Answer<&'a Field> {
    let Some(record) = record(of) else {
        return failed("merging an object in json but data type is not struct, instead is: map");
    };
    match record.fields.get(key) {
        Some(field) => Ok(field),
        None => failed(format!("unable to find api field in struct for the json field {key:?}")),
    }
}

fn merge_maps(of: Option<&TypeRef>, mut live: Fields, mut patch: Fields) -> Answer<Fields> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Fields::new()),
        Some(other) => {
            let shown = super::super::fields::plain(&Value::Object(patch.clone()));
            let other = super::super::fields::plain(other);
            return failed(format!("unknown patch type: {other} in map: {shown}"));
        }
    }
    retain(&mut live, &mut patch)?;
    set_orders(of, &mut live, &mut patch)?;
    for (key, value) in patch {
        let (key, deletes) = match key.strip_prefix(DELETE) {
            Some(rest) => match rest.strip_prefix('/') {
                Some(list) if !list.contains('/') => (list.to_owned(), true),
                Some(_) | None => return malformed("primitive list"),
            },
            None => (key, false),
        };
        if value.is_null() {
            live.remove(&key);
            continue;
        }
        let Some(old) = live.remove(&key) else {
            if !deletes {
                live.extend(new_value(value).map(|value| (key, value)));
            }
            continue;
        };
        let merged = match (old, value) {
            (Value::Object(old), Value::Object(new)) => {
                let field = lookup(of, &key)?;
                match field.patch.strategy {
                    Strategy::Replace => Some(Value::Object(new)),
                    Strategy::Usual | Strategy::Merge => Some(merge_maps(Some(&field.of), old, new)?.into()),
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                let field = lookup(of, &key)?;
                Some(merge_lists(field, old, new, deletes)?.into())
            }
            (old, _) if deletes => Some(old),
            (_, new) => new_value(new),
        };
        live.extend(merged.map(|value| (key, value)));
    }
    Ok(live)
}

/// A value that takes a free place: without nulls and directives; none where it is a directive itself.
fn new_value(mut value: Value) -> Option<Value> {
    discard_nulls(&mut value);
    without_directives(value)
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(discard_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(list.into_iter().filter_map(without_directives).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => Some(other),
    }
}

fn retain(live: &mut Fields, patch: &mut Fields) -> Answer<()> {
    let Some(keys) = patch.remove(RETAIN) else { return Ok(()) };
    let Value::Array(keys) = keys else { return malformed("retainKeys") };
    let kept = |key: &str| keys.iter().any(|one| one == key);
    let ours = |key: &str| !key.starts_with(DELETE) && !key.starts_with(ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && ours(key) && !kept(key)) {
        return malformed("retainKeys");
    }
    live.retain(|key, _| kept(key));
    Ok(())
}

/// Merges the lists that the patch gives an order for, and takes them out of the patch.
fn set_orders(of: Option<&TypeRef>, live: &mut Fields, patch: &mut Fields) -> Answer<()> {
    let ordered: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER)).cloned().collect();
    for directive in ordered {
        let Some(Value::Array(order)) = patch.remove(&directive) else { return malformed("setElementOrder list") };
        let key = match directive.strip_prefix(ORDER).and_then(|rest| rest.strip_prefix('/')) {
            Some(key) if !key.contains('/') => key.to_owned(),
            Some(_) | None => return malformed("setElementOrder list"),
        };
        let list = |value: Option<&Value>| match value {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list.clone())),
            Some(_) => failed("expected a []interface {}, but received another type"),
        };
        let (old, new) = (list(live.get(&key))?, list(patch.get(&key))?);
        let field = lookup(of, &key)?;
        check_order(&field.patch, new.as_deref().unwrap_or(&[]), &order)?;
        let merged = match (&old, new) {
            (None, None) => continue,
            (Some(old), None) => old.clone(),
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => merge_lists(field, old.clone(), new, false)?,
        };
        let merged = arrange(merged, &order, old.as_deref().unwrap_or(&[]), field.patch.merge_key.as_deref())?;
        patch.remove(&key);
        live.insert(key, Value::Array(merged));
    }
    Ok(())
}

/// An item of a patch must be in the order that goes with it, and in that order.
fn check_order(rule: &PatchRule, patch: &[Value], order: &[Value]) -> Answer<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let key = rule.merge_key.as_deref();
    let mut items = patch.iter().filter(|item| item.get(DIRECTIVE).is_none()).peekable();
    for place in order {
        let Some(item) = items.peek() else { break };
        if identity(item, key)? == identity(place, key)? {
            items.next();
        }
    }
    if items.peek().is_none() {
        return Ok(());
    }
    let shown = |list: &[Value]| super::super::fields::plain(&Value::Array(list.to_vec()));
    failed(format!("The order in patch list:\n{}\n doesn't match {ORDER} list:\n{}\n", shown(patch), shown(order)))
}

/// What tells an item apart: its key, or itself.
fn identity<'a>(item: &'a Value, key: Option<&str>) -> Answer<&'a Value> {
    let Some(key) = key else { return Ok(item) };
    match item.get(key) {
        Some(value) => Ok(value),
        None => {
            let shown = super::super::fields::plain(item);
            failed(format!("map: {shown} does not contain declared merge key: {key}"))
        }
    }
}

fn merge_lists(field: &Field, live: Vec<Value>, patch: Vec<Value>, deletes: bool) -> Answer<Vec<Value>> {
    if field.patch.strategy != Strategy::Merge && !deletes {
        return Ok(patch);
    }
    if live.is_empty() && patch.is_empty() {
        return Ok(live);
    }
    let kinds = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    let mut all = live.iter().chain(&patch).map(kinds);
    let first = all.next().unwrap_or_default();
    if first == 4 {
        return Err(error::patch_rejected());
    }
    if all.any(|kind| kind != first) {
        let shown = super::super::fields::plain(&Value::Array(vec![live.into(), patch.into()]));
        return failed(format!("list element types are not identical: {shown}"));
    }
    if first == 5 { merge_items(field, live, patch) } else { merge_values(field, live, patch, deletes) }
}

fn merge_values(field: &Field, live: Vec<Value>, patch: Vec<Value>, deletes: bool) -> Answer<Vec<Value>> {
    if deletes {
        return Ok(live.into_iter().filter(|value| !patch.contains(value)).collect());
    }
    let mut merged = live.clone();
    merged.extend(patch.iter().cloned());
    let merged = without_duplicates(merged);
    arrange(merged, &patch, &live, field.patch.merge_key.as_deref())
}

/// The place of a value that was there before is taken by the last one of the list, as the server does it.
fn without_duplicates(mut list: Vec<Value>) -> Vec<Value> {
    let mut place = 0;
    while place < list.len() {
        let mut other = place + 1;
        while other < list.len() {
            if list[place] == list[other] {
                list.swap_remove(other);
            } else {
                other += 1;
            }
        }
        place += 1;
    }
    list
}

fn merge_items(field: &Field, mut live: Vec<Value>, patch: Vec<Value>) -> Answer<Vec<Value>> {
    let Some(key) = field.patch.merge_key.as_deref() else {
        return failed("cannot merge lists without merge key for struct");
    };
    let list = field.of.get().list.as_ref();
    let element = list.map(|list| &list.element);
    let mut plain = Vec::new();
    let mut replaces = false;
    for item in patch {
        match item.get(DIRECTIVE).and_then(Value::as_str) {
            None if item.get(DIRECTIVE).is_none() => plain.push(item),
            Some("delete") => {
                let gone = identity(&item, Some(key))?;
                live.retain(|old| old.get(key) != Some(gone));
            }
            Some("replace") => replaces = true,
            Some("merge") => return failed("merging lists cannot yet be specified in the patch"),
            None | Some(_) => {
                let shown = super::super::fields::plain(&item);
                let directive = item.get(DIRECTIVE).map(super::super::fields::plain).unwrap_or_default();
                return failed(format!("unknown patch type: {directive} in map: {shown}"));
            }
        }
    }
    let (live, patch) = if replaces { (plain, Vec::new()) } else { (live, plain) };
    let mut merged = live.clone();
    for item in &patch {
        let wanted = identity(item, Some(key))?;
        match merged.iter_mut().find(|old| old.get(key) == Some(wanted)) {
            Some(old) => {
                let (Value::Object(map), Value::Object(item)) = (std::mem::take(old), item.clone()) else {
                    return failed("value for key is not a map");
                };
                *old = Value::Object(merge_maps(element, map, item)?);
            }
            None => merged.push(item.clone()),
        }
    }
    arrange(merged, &patch, &live, Some(key))
}

/// Items that the patch names come in its order, the others in the order that they had; where that leaves a choice, an item
/// that stood before another still does.
fn arrange(merged: Vec<Value>, patch: &[Value], live: &[Value], key: Option<&str>) -> Answer<Vec<Value>> {
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        identity(&item, key)?;
        let place = place_of(&item, patch, key);
        match place {
            Some(place) => named.push((place, item)),
            None => others.push((place_of(&item, live, key).unwrap_or(usize::MAX), item)),
        }
    }
    named.sort_by_key(|(place, _)| *place);
    others.sort_by_key(|(place, _)| *place);
    let mut named = named.into_iter().map(|(_, item)| item).peekable();
    let mut others = others.into_iter().map(|(_, item)| item).peekable();
    let mut arranged = Vec::new();
    loop {
        let before = match (others.peek(), named.peek()) {
            (None, None) => return Ok(arranged),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(name)) => match (place_of(other, live, key), place_of(name, live, key)) {
                (Some(other), Some(name)) => other < name,
                (Some(_) | None, _) => false,
            },
        };
        arranged.extend(if before { others.next() } else { named.next() });
    }
}

fn place_of(item: &Value, list: &[Value], key: Option<&str>) -> Option<usize> {
    match key {
        None => list.iter().position(|one| one == item),
        Some(key) => list.iter().position(|one| one.get(key).is_some() && one.get(key) == item.get(key)),
    }
}
