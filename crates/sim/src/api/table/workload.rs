//! Workloads, their revisions, their budgets and their scale.

use serde_json::{Value, json};

use super::super::object;
use super::super::selector;
use super::{AGE, Column, NAME, NONE, Seen, integer, text, wide};

pub(super) const STATEFUL_SET: &[Column] = &[NAME, text("Ready"), AGE, wide("Containers"), wide("Images")];

pub(super) const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready"),
    text("Up-to-date"),
    text("Available"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

pub(super) const REPLICA_SET: &[Column] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

pub(super) const JOB: &[Column] = &[
    NAME,
    text("Status"),
    text("Completions"),
    text("Duration"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

pub(super) const CRON_JOB: &[Column] = &[NAME, text("Schedule"), text("Suspend"), AGE];

pub(super) const REVISION: &[Column] = &[NAME, text("Controller"), text("Revision"), AGE];

pub(super) const BUDGET: &[Column] =
    &[NAME, text("Min Available"), text("Max Unavailable"), integer("Allowed Disruptions"), AGE];

pub(super) const SCALE: &[Column] = &[NAME, integer("Desired"), integer("Available"), AGE];

/// The template's containers by one of their fields.
fn containers(seen: Seen<'_>, field: &str) -> Value {
    let containers = seen.list(&["spec", "template", "spec", "containers"]);
    let all: Vec<&str> = containers.iter().map(|container| object::text(container, &[field])).collect();
    json!(all.join(","))
}

fn ready_of(seen: Seen<'_>) -> Value {
    json!(format!("{}/{}", seen.number(&["status", "readyReplicas"]), seen.number(&["spec", "replicas"])))
}

pub(super) fn cron_job(seen: Seen<'_>) -> Vec<Value> {
    let of = |path: &[&str]| object::at(seen.object, path).cloned().unwrap_or(Value::Null);
    vec![json!(seen.name()), of(&["spec", "schedule"]), of(&["spec", "suspend"]), json!(seen.age())]
}

pub(super) fn stateful_set(seen: Seen<'_>) -> Vec<Value> {
    vec![json!(seen.name()), ready_of(seen), json!(seen.age()), containers(seen, "name"), containers(seen, "image")]
}

pub(super) fn deployment(seen: Seen<'_>) -> Vec<Value> {
    vec![
        json!(seen.name()),
        ready_of(seen),
        json!(seen.number(&["status", "updatedReplicas"])),
        json!(seen.number(&["status", "availableReplicas"])),
        json!(seen.age()),
        containers(seen, "name"),
        containers(seen, "image"),
        json!(selector_of(seen)),
    ]
}

pub(super) fn replica_set(seen: Seen<'_>) -> Vec<Value> {
    let selector = selector_of(seen);
    vec![
        json!(seen.name()),
        json!(seen.number(&["spec", "replicas"])),
        json!(seen.number(&["status", "replicas"])),
        json!(seen.number(&["status", "readyReplicas"])),
        json!(seen.age()),
        containers(seen, "name"),
        containers(seen, "image"),
        json!(super::or_none(&selector)),
    ]
}

pub(super) fn job(seen: Seen<'_>) -> Vec<Value> {
    let has = |kind: &&str| {
        let conditions = seen.list(&["status", "conditions"]);
        conditions.iter().any(|condition| {
            object::text(condition, &["type"]) == *kind && object::text(condition, &["status"]) == "True"
        })
    };
    let status = if let Some(ended) = ["Complete", "Failed"].into_iter().find(has) {
        ended
    } else if seen.text(&["metadata", "deletionTimestamp"]).is_empty() {
        ["Suspended", "FailureTarget", "SuccessCriteriaMet"].into_iter().find(has).unwrap_or("Running")
    } else {
        "Terminating"
    };
    let succeeded = seen.number(&["status", "succeeded"]);
    let completions =
        match (object::integer(seen.object, &["spec", "completions"]), seen.number(&["spec", "parallelism"])) {
            (Some(completions), _) => format!("{succeeded}/{completions}"),
            (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
            (None, _) => format!("{succeeded}/1"),
        };
    let (began, ended) = (seen.text(&["status", "startTime"]), seen.text(&["status", "completionTime"]));
    let duration = match (began, ended) {
        ("", _) => String::new(),
        (_, "") => seen.since(&["status", "startTime"]),
        (began, ended) => super::age::between(began, ended),
    };
    vec![
        json!(seen.name()),
        json!(status),
        json!(completions),
        json!(duration),
        json!(seen.age()),
        containers(seen, "name"),
        containers(seen, "image"),
        json!(super::or_none(&selector_of(seen))),
    ]
}

fn selector_of(seen: Seen<'_>) -> String {
    object::at(seen.object, &["spec", "selector"]).map(selector::text_of).unwrap_or_default()
}

pub(super) fn revision(seen: Seen<'_>) -> Vec<Value> {
    let owners = seen.list(&["metadata", "ownerReferences"]);
    let owner = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    let owner = owner.map_or_else(
        || NONE.to_owned(),
        |owner| {
            let kind = object::text(owner, &["kind"]).to_lowercase();
            let group = object::text(owner, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
            let dot = if group.is_empty() { "" } else { "." };
            format!("{kind}{dot}{group}/{}", object::text(owner, &["name"]))
        },
    );
    vec![json!(seen.name()), json!(owner), json!(seen.number(&["revision"])), json!(seen.age())]
}

pub(super) fn budget(seen: Seen<'_>) -> Vec<Value> {
    let limit = |key: &str| match object::at(seen.object, &["spec", key]) {
        None => json!("N/A"),
        Some(Value::String(share)) => json!(share),
        Some(number) => json!(number.to_string()),
    };
    vec![
        json!(seen.name()),
        limit("minAvailable"),
        limit("maxUnavailable"),
        json!(seen.number(&["status", "disruptionsAllowed"])),
        json!(seen.age()),
    ]
}

pub(super) fn scale(seen: Seen<'_>) -> Vec<Value> {
    vec![
        json!(seen.name()),
        json!(seen.number(&["spec", "replicas"])),
        json!(seen.number(&["status", "replicas"])),
        json!(seen.age()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::EPOCH;

    #[test]
    fn a_set_shows_how_many_of_how_many_are_ready() {
        let set = json!({
            "metadata": {"name": "pd", "creationTimestamp": "2025-12-31T23:58:00Z"},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [
                {"name": "pd", "image": "pd:1"}, {"name": "side", "image": "side:2"},
            ]}}},
            "status": {"readyReplicas": 2},
        });
        let cells = stateful_set(Seen { object: &set, now: EPOCH });
        assert_eq!(json!(cells), json!(["pd", "2/3", "2m", "pd,side", "pd:1,side:2"]));
    }

    #[test]
    fn a_budget_shows_numbers_and_shares_and_which_side_is_not_set() {
        let budget_of = |spec: Value| {
            let object = json!({"metadata": {"name": "b"}, "spec": spec, "status": {"disruptionsAllowed": 1}});
            json!(budget(Seen { object: &object, now: EPOCH }))
        };
        assert_eq!(budget_of(json!({"maxUnavailable": 1})), json!(["b", "N/A", "1", 1, "<unknown>"]));
        assert_eq!(budget_of(json!({"minAvailable": "50%"})), json!(["b", "50%", "N/A", 1, "<unknown>"]));
    }

    #[test]
    fn a_revision_names_its_controller_with_its_group() {
        let object = json!({
            "metadata": {"name": "r", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "pd", "controller": true},
            ]},
            "revision": 4,
        });
        let cells = revision(Seen { object: &object, now: EPOCH });
        assert_eq!(cells[1], "statefulset.apps/pd");
        assert_eq!(cells[2], 4);
    }
}
