//! Facts about fields that their types don't tell: whether a list is a set or keyed, and how a patch treats it. The table of
//! the built-in types has them; this reads it for its words, as those who build patches need `retainKeys` too.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::super::types::BUILT_IN;

type Extensions = Map<String, Value>;

/// What is known of one definition.
#[derive(Default)]
struct Definition {
    fields: BTreeMap<&'static str, Extensions>,
    required: Vec<&'static str>,
}

static DEFINITIONS: LazyLock<BTreeMap<&'static str, Definition>> = LazyLock::new(|| read(BUILT_IN));

fn find(definition: &str) -> Option<&'static Definition> {
    DEFINITIONS.get(definition.strip_prefix("io.k8s.").unwrap_or(definition))
}

/// The extensions of one field of a definition.
pub(super) fn of(definition: &str, field: &str) -> Extensions {
    find(definition).and_then(|known| known.fields.get(field)).cloned().unwrap_or_default()
}

/// The fields that must be there; none where the definition is not known.
pub(super) fn required(definition: &str) -> Option<&'static [&'static str]> {
    find(definition).map(|known| known.required.as_slice())
}

fn read(table: &'static str) -> BTreeMap<&'static str, Definition> {
    let mut definitions: BTreeMap<&str, Definition> = BTreeMap::new();
    let mut owner = "";
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("type ") {
            owner = head.split(' ').next().unwrap_or(head);
        } else if let Some(field) = line.strip_prefix("  ") {
            let mut words = field.split(' ');
            if let (Some(name), Some(of)) = (words.next(), words.next()) {
                let words: Vec<&str> = words.collect();
                let known = definitions.entry(owner).or_default();
                known.required.extend(words.contains(&"required").then_some(name));
                known.fields.insert(name, extensions(of, words.into_iter()));
            }
        }
    }
    definitions
}

fn extensions<'a>(of: &str, words: impl Iterator<Item = &'a str>) -> Extensions {
    let mut found: Vec<(&str, Value)> = Vec::new();
    if let Some((how, _)) = of.strip_suffix(']').and_then(|list| list.split_once('[')) {
        let keys = how.strip_prefix("keys(").and_then(|keys| keys.strip_suffix(')'));
        let kind = if keys.is_some() {
            "map"
        } else if how == "set" {
            "set"
        } else {
            "atomic"
        };
        found.push(("x-kubernetes-list-type", json!(kind)));
        found.extend(keys.map(|keys| ("x-kubernetes-list-map-keys", keys.split(',').collect())));
    } else if of.starts_with("atomic{") {
        found.push(("x-kubernetes-map-type", json!("atomic")));
    }
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        match key {
            "patch" => {
                let (strategy, key) = value.split_once('/').unwrap_or((value, ""));
                found.push(("x-kubernetes-patch-strategy", json!(strategy)));
                found.extend((!key.is_empty()).then(|| ("x-kubernetes-patch-merge-key", json!(key))));
            }
            "default" => found.extend(serde_json::from_str(value).ok().map(|default| ("default", default))),
            _ => {}
        }
    }
    found.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyed_list_tells_its_keys_and_how_it_is_patched() {
        let ports = of("io.k8s.api.core.v1.Container", "ports");
        assert_eq!(ports["x-kubernetes-list-type"], "map");
        assert_eq!(ports["x-kubernetes-list-map-keys"], json!(["containerPort", "protocol"]));
        assert_eq!(ports["x-kubernetes-patch-strategy"], "merge");
        assert_eq!(ports["x-kubernetes-patch-merge-key"], "containerPort");
        assert_eq!(of("io.k8s.api.core.v1.PodSpec", "volumes")["x-kubernetes-patch-strategy"], "merge,retainKeys");
        assert_eq!(of("io.k8s.api.core.v1.ContainerPort", "protocol")["default"], "TCP");
        assert_eq!(required("io.k8s.api.apps.v1.StatefulSet"), Some(&[][..]));
        assert_eq!(required("io.k8s.api.core.v1.ContainerPort"), Some(&["containerPort"][..]));
    }
}
