//! Nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::object;
use super::{AGE, Column, NAME, NONE, Seen, text, wide};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    text("Status"),
    text("Roles"),
    AGE,
    text("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

pub(super) fn cells(seen: Seen<'_>) -> Vec<Value> {
    let ready = seen.list(&["status", "conditions"]).iter().find(|one| object::text(one, &["type"]) == "Ready");
    let mut status = match ready.map(|condition| object::text(condition, &["status"])) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if object::at(seen.object, &["spec", "unschedulable"]) == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = seen.list(&["status", "addresses"]).iter().find(|one| object::text(one, &["type"]) == kind);
        json!(found.map_or(NONE, |address| object::text(address, &["address"])))
    };
    let info = |key: &str| match seen.text(&["status", "nodeInfo", key]) {
        "" => json!("<unknown>"),
        text => json!(text),
    };
    vec![
        json!(seen.name()),
        json!(status),
        json!(roles(seen.object)),
        json!(seen.age()),
        json!(seen.text(&["status", "nodeInfo", "kubeletVersion"])),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn roles(node: &Value) -> String {
    let labels = object::meta(node, "labels").and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    super::or_none(&roles.join(",")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cordoned_node_says_so_and_roles_come_from_labels() {
        let node = json!({
            "metadata": {"name": "n", "labels": {
                "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "x",
            }},
            "spec": {"unschedulable": true},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        });
        let cells = cells(Seen { object: &node, now: crate::clock::EPOCH });
        assert_eq!(cells[1], "NotReady,SchedulingDisabled");
        assert_eq!(cells[2], "control-plane,worker,x");
        assert_eq!(cells[7], "<unknown>");
    }
}
