//! Events are one thing with two shapes: the core group's and `events.k8s.io`'s.

use serde_json::{Map, Value, json};

use super::object;

/// Field of the core group's event, field of the other's.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(crate) fn to_events_group(event: &Value) -> Value {
    let mut renamed = rename(event, |field| RENAMED.iter().find(|(core, _)| *core == field).map(|(_, other)| *other));
    let map = object::as_map(&mut renamed);
    map.insert("apiVersion".to_owned(), json!("events.k8s.io/v1"));
    // This group leaves out what is empty.
    map.retain(|key, value| *value != json!("") || key == "apiVersion");
    renamed
}

pub(crate) fn to_core_group(event: &Value) -> Value {
    let mut renamed = rename(event, |field| RENAMED.iter().find(|(_, other)| *other == field).map(|(core, _)| *core));
    let map = object::as_map(&mut renamed);
    map.insert("apiVersion".to_owned(), json!("v1"));
    // The core type always shows these.
    for (key, value) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("eventTime", Value::Null),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        object::default(map, key, value);
    }
    renamed
}

fn rename(event: &Value, to: impl Fn(&str) -> Option<&'static str>) -> Value {
    let fields: Map<String, Value> = event
        .as_object()
        .into_iter()
        .flatten()
        .map(|(field, value)| (to(field).unwrap_or(field).to_owned(), value.clone()))
        .collect();
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_keeps_its_content_through_both_shapes() {
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "reason": "R", "message": "m", "count": 2,
            "involvedObject": {"kind": "Pod", "name": "p"}, "source": {"component": "c"}, "reportingComponent": "c",
            "eventTime": null, "firstTimestamp": null, "lastTimestamp": null, "reportingInstance": "",
        });
        let other = to_events_group(&event);
        assert_eq!(other["note"], "m");
        assert_eq!(other["regarding"]["name"], "p");
        assert_eq!(to_core_group(&other), event);
    }
}
