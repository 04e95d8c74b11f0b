//! One value put on top of another.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::types::{Items, List, Part, Record, TypeRef};
use super::Problem;
use super::element;

/// The live value with what the other one says put on top. Nothing goes; lists take the order of what is put on top where
/// that changes something.
pub(crate) fn merge(of: &TypeRef, live: &Value, top: &Value) -> Result<Value, Vec<Problem>> {
    Ok(values(of, Some(live), Some(top))?.unwrap_or_default())
}

fn values(of: &TypeRef, live: Option<&Value>, top: Option<&Value>) -> Result<Option<Value>, Vec<Problem>> {
    let of = of.get();
    let (old, new) = (of.fitting(live), of.fitting(top));
    match (live, top) {
        (None, None) => Ok(None),
        (Some(_), None) => part(old.first(), live, top),
        (None, Some(_)) => part(new.first(), live, top),
        (Some(_), Some(_)) => {
            if !old.same(&new) {
                part(old.first(), live, top)?;
            }
            part(new.first(), live, top)
        }
    }
}

fn part(part: Option<Part<'_>>, live: Option<&Value>, top: Option<&Value>) -> Result<Option<Value>, Vec<Problem>> {
    let whole = || Ok(top.or(live).cloned());
    match part {
        Some(Part::Map(record)) => {
            let (old, new) = (live.and_then(Value::as_object), top.and_then(Value::as_object));
            let empty = |map: Option<&Map<String, Value>>| map.is_none_or(Map::is_empty);
            if record.atomic || (empty(old) && empty(new)) { whole() } else { maps(record, old, new) }
        }
        Some(Part::List(list)) => {
            let (old, new) = (live.and_then(Value::as_array), top.and_then(Value::as_array));
            let empty = |list: Option<&Vec<Value>>| list.is_none_or(Vec::is_empty);
            if list.items == Items::Atomic || (empty(old) && empty(new)) {
                whole()
            } else {
                items(list, old.map_or(&[], Vec::as_slice), new.map_or(&[], Vec::as_slice))
            }
        }
        Some(Part::Scalar(_)) | None => whole(),
    }
}

fn maps(
    record: &Record,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
) -> Result<Option<Value>, Vec<Problem>> {
    let mut merged = Map::new();
    let get = |map: Option<&'_ Map<String, Value>>, key: &str| map.and_then(|map| map.get(key)).cloned();
    let keys = old.into_iter().chain(new).flat_map(Map::keys);
    for key in keys {
        if merged.contains_key(key) {
            continue;
        }
        let (live, top) = (get(old, key), get(new, key));
        let value = match record.below(key) {
            Some(of) => values(of, live.as_ref(), top.as_ref())?,
            None => top.or(live),
        };
        if let Some(value) = value {
            merged.insert(key.clone(), value);
        }
    }
    Ok((!merged.is_empty()).then_some(Value::Object(merged)))
}

/// A list's items by what tells them apart; none for those that more than one item is.
struct Index<'a> {
    steps: Vec<String>,
    values: BTreeMap<String, Option<&'a Value>>,
}

fn index<'a>(list: &List, items: &'a [Value], duplicates: bool) -> Result<Index<'a>, Vec<Problem>> {
    let mut found = Index { steps: Vec::with_capacity(items.len()), values: BTreeMap::new() };
    let mut problems = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let step = match element::item(list, item) {
            Ok(step) => step,
            Err(why) => {
                problems.push(Problem::new(format!("element {place}: {why}")));
                continue;
            }
        };
        if found.values.contains_key(&step) {
            if !duplicates {
                problems.push(Problem::new(format!("duplicate entries for key {}", element::show(&step))));
                continue;
            }
            found.values.insert(step.clone(), None);
        } else {
            found.values.insert(step.clone(), Some(item));
        }
        found.steps.push(step);
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// Walks both lists at once. An item of both comes where the top list has it, one of the live list alone stays before what
/// followed it there.
fn items(list: &List, live: &[Value], top: &[Value]) -> Result<Option<Value>, Vec<Problem>> {
    let new = index(list, top, false)?;
    let old = index(list, live, true)?;
    let mut shared = new.steps.iter().filter(|step| old.values.contains_key(*step));
    let mut next_shared = shared.next();
    let mut taken = std::collections::BTreeSet::new();
    let mut merged = Vec::new();
    let both = |step: &String| {
        values(&list.element, old.values.get(step).copied().flatten(), new.values.get(step).copied().flatten())
    };
    let (mut left, mut right) = (0, 0);
    while left < old.steps.len() || right < new.steps.len() {
        if let (Some(step), Some(other)) = (old.steps.get(left), new.steps.get(right)) {
            if step == other {
                taken.insert(step.clone());
                merged.extend(both(step)?);
                left += 1;
                right += 1;
                next_shared = shared.next();
                continue;
            }
            if new.values.contains_key(step) && next_shared.is_some_and(|next| next != step) {
                // It comes later, where the top list has it.
                left += 1;
                continue;
            }
        }
        if let Some(step) = old.steps.get(left) {
            if !new.values.contains_key(step) {
                merged.extend(values(&list.element, live.get(left), None)?);
                left += 1;
                continue;
            }
            if taken.contains(step) {
                left += 1;
            }
        }
        if let Some(step) = new.steps.get(right) {
            taken.insert(step.clone());
            merged.extend(both(step)?);
            right += 1;
            if next_shared == Some(step) {
                next_shared = shared.next();
            }
        }
    }
    Ok((!merged.is_empty()).then_some(Value::Array(merged)))
}
