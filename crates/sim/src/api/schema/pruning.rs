//! Dropping what a schema doesn't declare.

use serde_json::Value;

use super::{Additional, Node, below};

/// What every object has, whatever its schema says.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes undeclared fields; the result names them in order.
pub(super) fn apply(root: &Node, object: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    prune(root, object, "", true, &mut dropped);
    dropped.sort();
    dropped
}

fn prune(node: &Node, value: &mut Value, path: &str, is_object: bool, dropped: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let mut gone = Vec::new();
            for (name, child) in map.iter_mut() {
                if is_object && ENVELOPE.contains(&name.as_str()) {
                    continue;
                }
                let place = below(path, name);
                if let Some(known) = node.properties.get(name) {
                    prune(known, child, &place, known.embedded, dropped);
                } else {
                    match &node.additional {
                        Additional::Of(additional) => prune(additional, child, &place, additional.embedded, dropped),
                        Additional::Any => {}
                        Additional::Undeclared if node.preserve_unknown => {}
                        Additional::Undeclared => gone.push(name.clone()),
                    }
                }
            }
            for name in gone {
                map.remove(&name);
                dropped.push(below(path, &name));
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for (index, item) in list.iter_mut().enumerate() {
                    prune(items, item, &format!("{path}[{index}]"), items.embedded, dropped);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
