//! Filling in what a schema gives a default for.

use serde_json::Value;

use super::{Additional, Node};

/// Fills in defaults, into defaults too. A null where null isn't allowed counts as absent when there is a default.
pub(super) fn apply(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, child) in &node.properties {
                if let Some(default) = &child.default {
                    let absent = map.get(name).is_none_or(|value| value.is_null() && !child.nullable);
                    if absent {
                        map.insert(name.clone(), default.clone());
                    }
                }
            }
            for (name, child) in map.iter_mut() {
                if let Some(known) = node.properties.get(name) {
                    apply(known, child);
                } else if let Additional::Of(additional) = &node.additional {
                    if child.is_null()
                        && !additional.nullable
                        && let Some(default) = &additional.default
                    {
                        *child = default.clone();
                    }
                    apply(additional, child);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for item in list {
                    if item.is_null()
                        && !items.nullable
                        && let Some(default) = &items.default
                    {
                        *item = default.clone();
                    }
                    apply(items, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
