//! A value without some of its fields.

use serde_json::{Map, Value};

use super::super::types::{Items, List, Part, Record, TypeRef};
use super::FieldSet;
use super::element;
use super::set::part_of;

/// The value without these fields and items. What has nothing left is null.
pub(crate) fn remove(of: &TypeRef, value: &Value, fields: &FieldSet) -> Value {
    match (part_of(of, value), value) {
        (Some(Part::Map(record)), Value::Object(map)) if !record.atomic => from_map(record, map, fields),
        (Some(Part::List(list)), Value::Array(items)) if list.items != Items::Atomic => from_list(list, items, fields),
        (Some(Part::Map(_) | Part::List(_)), _) => Value::Null,
        (Some(Part::Scalar(_)) | None, value) => value.clone(),
    }
}

fn from_map(record: &Record, map: &Map<String, Value>, fields: &FieldSet) -> Value {
    let mut left = Map::new();
    for (key, value) in map {
        let step = element::field(key);
        if fields.has_step(&step) {
            continue;
        }
        let value = match (fields.below(&step), record.below(key)) {
            (Some(below), Some(of)) => remove(of, value, &below),
            (Some(_) | None, _) => value.clone(),
        };
        left.insert(key.clone(), value);
    }
    if left.is_empty() { Value::Null } else { Value::Object(left) }
}

fn from_list(list: &List, items: &[Value], fields: &FieldSet) -> Value {
    let mut left = Vec::new();
    for item in items {
        let Ok(step) = element::item(list, item) else {
            left.push(item.clone());
            continue;
        };
        if fields.has_step(&step) {
            continue;
        }
        left.push(match fields.below(&step) {
            Some(below) => remove(&list.element, item, &below),
            None => item.clone(),
        });
    }
    if left.is_empty() { Value::Null } else { Value::Array(left) }
}
