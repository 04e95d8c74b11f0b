//! Facts about fields that their types don't tell: whether a list is a set or keyed, and how a patch treats it. The table of
//! the built-in types has them; this reads it for its words, as those who build patches need `retainKeys` too.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::super::types::BUILT_IN;

type Extensions = Map<String, Value>;

/// By definition and field.
static FACTS: LazyLock<BTreeMap<(&'static str, &'static str), Extensions>> = LazyLock::new(|| read(BUILT_IN));

/// The extensions of one field of a definition.
pub(super) fn of(definition: &str, field: &str) -> Extensions {
    let name = definition.strip_prefix("io.k8s.").unwrap_or(definition);
    FACTS.get(&(name, field)).cloned().unwrap_or_default()
}

fn read(table: &'static str) -> BTreeMap<(&'static str, &'static str), Extensions> {
    let mut facts = BTreeMap::new();
    let mut owner = "";
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("type ") {
            owner = head.split(' ').next().unwrap_or(head);
        } else if let Some(field) = line.strip_prefix("  ") {
            let mut words = field.split(' ');
            if let (Some(name), Some(of)) = (words.next(), words.next()) {
                facts.insert((owner, name), extensions(of, words));
            }
        }
    }
    facts
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
    }
}
