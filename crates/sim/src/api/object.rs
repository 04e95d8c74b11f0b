//! Reading and writing the parts that all objects have, on plain JSON.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The text at a path of keys; empty when there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or("")
}

/// The value at a path of keys; a null counts as absent.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let mut value = object;
    for key in path {
        value = value.get(key)?;
    }
    (!value.is_null()).then_some(value)
}

pub(crate) fn integer(object: &Value, path: &[&str]) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

pub(crate) fn meta<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    at(object, &["metadata", key])
}

pub(crate) fn meta_text<'a>(object: &'a Value, key: &str) -> &'a str {
    text(object, &["metadata", key])
}

pub(crate) fn name(object: &Value) -> &str {
    meta_text(object, "name")
}

/// The revision of the object's last write; 0 when it has none.
pub(crate) fn revision(object: &Value) -> u64 {
    meta_text(object, "resourceVersion").parse().unwrap_or(0)
}

pub(crate) fn generation(object: &Value) -> i64 {
    integer(object, &["metadata", "generation"]).unwrap_or(0)
}

pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let list = meta(object, "finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    meta(object, "deletionTimestamp").is_some()
}

/// The map at this key, made when there is none.
pub(crate) fn child<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = map.entry(key).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    as_map(value)
}

/// The value as a map; anything else becomes an empty one.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("it was made a map just above")
        }
    }
}

pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    child(as_map(object), "metadata")
}

pub(crate) fn set_meta(object: &mut Value, key: &str, value: Value) {
    meta_mut(object).insert(key.to_owned(), value);
}

/// Sets the field, or removes it where there is no value.
pub(crate) fn put(map: &mut Map<String, Value>, key: &str, value: Option<&Value>) {
    match value {
        Some(value) => {
            map.insert(key.to_owned(), value.clone());
        }
        None => {
            map.remove(key);
        }
    }
}

pub(crate) fn set_revision(object: &mut Value, revision: u64) {
    set_meta(object, "resourceVersion", Value::String(revision.to_string()));
}

pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if finalizers.is_empty() {
        meta_mut(object).remove("finalizers");
    } else {
        set_meta(object, "finalizers", json!(finalizers));
    }
}

/// Fills in a field that is absent or null.
pub(crate) fn default(map: &mut Map<String, Value>, key: &str, value: Value) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value);
    }
}

/// A timestamp as objects carry it: whole seconds.
pub(crate) fn seconds(at: Timestamp) -> Value {
    let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
    Value::String(whole.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_whole_seconds() {
        let at = Timestamp::new(1_767_225_600, 999).unwrap();
        assert_eq!(seconds(at), json!("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn a_null_counts_as_absent() {
        assert!(at(&json!({"a": null}), &["a"]).is_none());
    }
}
