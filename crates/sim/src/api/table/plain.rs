//! Kinds whose rows copy a field or two.

use serde_json::{Value, json};

use super::super::events;
use super::super::object;
use super::{AGE, Column, NAME, Seen, size, text, wide};

pub(super) const NAMESPACE: &[Column] = &[NAME, text("Status"), AGE];

pub(super) fn namespace(seen: Seen<'_>) -> Vec<Value> {
    vec![json!(seen.name()), json!(seen.text(&["status", "phase"])), json!(seen.age())]
}

pub(super) const CONFIG_MAP: &[Column] = &[NAME, text("Data"), AGE];

pub(super) fn config_map(seen: Seen<'_>) -> Vec<Value> {
    let keys = size(seen.object, &["data"]) + size(seen.object, &["binaryData"]);
    vec![json!(seen.name()), json!(keys), json!(seen.age())]
}

pub(super) const SECRET: &[Column] = &[NAME, text("Type"), text("Data"), AGE];

pub(super) fn secret(seen: Seen<'_>) -> Vec<Value> {
    let keys = size(seen.object, &["data"]);
    vec![json!(seen.name()), json!(seen.text(&["type"])), json!(keys), json!(seen.age())]
}

pub(super) const SERVICE_ACCOUNT: &[Column] = &[NAME, text("Secrets"), AGE];

pub(super) fn service_account(seen: Seen<'_>) -> Vec<Value> {
    vec![json!(seen.name()), json!(seen.list(&["secrets"]).len()), json!(seen.age())]
}

pub(super) const LEASE: &[Column] = &[NAME, text("Holder"), AGE];

pub(super) fn lease(seen: Seen<'_>) -> Vec<Value> {
    vec![json!(seen.name()), json!(seen.text(&["spec", "holderIdentity"])), json!(seen.age())]
}

pub(super) const DEFINITION: &[Column] = &[NAME, Column { kind: "date", ..text("Created At") }];

pub(super) fn definition(seen: Seen<'_>) -> Vec<Value> {
    let created = match seen.text(&["metadata", "creationTimestamp"]) {
        "" => "0001-01-01T00:00:00Z",
        at => at,
    };
    vec![json!(seen.name()), json!(created)]
}

pub(super) const CLAIM: &[Column] = &[
    NAME,
    text("Status"),
    text("Volume"),
    text("Capacity"),
    text("Access Modes"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    AGE,
    wide("VolumeMode"),
];

pub(super) fn claim(seen: Seen<'_>) -> Vec<Value> {
    let unset = |path: &[&str]| match seen.text(path) {
        "" => json!("<unset>"),
        text => json!(text),
    };
    let bound = !seen.text(&["spec", "volumeName"]).is_empty();
    let capacity = if bound { seen.text(&["status", "capacity", "storage"]) } else { "" };
    let modes = if bound { access_modes(seen.list(&["status", "accessModes"])) } else { String::new() };
    let phase = if object::is_deleting(seen.object) { "Terminating" } else { seen.text(&["status", "phase"]) };
    // The annotation is the older place for the class, and wins.
    let class = match seen.text(&["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]) {
        "" => seen.text(&["spec", "storageClassName"]),
        class => class,
    };
    vec![
        json!(seen.name()),
        json!(phase),
        json!(seen.text(&["spec", "volumeName"])),
        json!(capacity),
        json!(modes),
        json!(class),
        unset(&["spec", "volumeAttributesClassName"]),
        json!(seen.age()),
        unset(&["spec", "volumeMode"]),
    ]
}

/// The modes in the order of their widening, shortened.
fn access_modes(modes: &[Value]) -> String {
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |mode: &str| modes.iter().any(|one| one.as_str() == Some(mode));
    let shown: Vec<&str> = short.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    shown.join(",")
}

pub(super) const EVENT: &[Column] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    Column { priority: 1, ..NAME },
];

pub(super) fn event(seen: Seen<'_>) -> Vec<Value> {
    if seen.object.get("regarding").is_some() {
        let core = events::to_core_group(seen.object);
        return event(Seen { object: &core, now: seen.now });
    }
    let first_time: &[&str] =
        if seen.text(&["firstTimestamp"]).is_empty() { &["eventTime"] } else { &["firstTimestamp"] };
    let first = seen.since(first_time);
    let mut last =
        if seen.text(&["lastTimestamp"]).is_empty() { first.clone() } else { seen.since(&["lastTimestamp"]) };
    let mut count = seen.number(&["count"]).max(1);
    if object::at(seen.object, &["series"]).is_some() {
        last = seen.since(&["series", "lastObservedTime"]);
        count = seen.number(&["series", "count"]);
    }
    let (kind, name) = (seen.text(&["involvedObject", "kind"]).to_lowercase(), seen.text(&["involvedObject", "name"]));
    let target = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let either =
        |one: &[&str], other: &[&str]| if seen.text(one).is_empty() { seen.text(other) } else { seen.text(one) };
    let component = either(&["source", "component"], &["reportingComponent"]);
    let host = either(&["source", "host"], &["reportingInstance"]);
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    vec![
        json!(last),
        json!(seen.text(&["type"])),
        json!(seen.text(&["reason"])),
        json!(target),
        json!(seen.text(&["involvedObject", "fieldPath"])),
        json!(source),
        json!(seen.text(&["message"]).trim()),
        json!(first),
        json!(count),
        json!(seen.name()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::EPOCH;

    #[test]
    fn an_event_is_shown_alike_in_both_groups() {
        let core = json!({
            "metadata": {"name": "e"}, "reason": "R", "message": " m ", "type": "Normal",
            "involvedObject": {"kind": "Pod", "name": "p"}, "eventTime": "2025-12-31T23:59:00.000000Z",
            "reportingComponent": "watcher", "reportingInstance": "w-0",
        });
        let shown = json!(event(Seen { object: &core, now: EPOCH }));
        assert_eq!(shown, json!(["60s", "Normal", "R", "pod/p", "", "watcher, w-0", "m", "60s", 1, "e"]));
        let other = events::to_events_group(&core);
        assert_eq!(json!(event(Seen { object: &other, now: EPOCH })), shown);
    }

    #[test]
    fn a_series_tells_when_and_how_often() {
        let object = json!({
            "metadata": {"name": "e"}, "count": 1, "firstTimestamp": "2025-12-31T23:00:00Z",
            "series": {"count": 7, "lastObservedTime": "2025-12-31T23:59:50.000000Z"},
        });
        let cells = event(Seen { object: &object, now: EPOCH });
        assert_eq!((&cells[0], &cells[7], &cells[8]), (&json!("10s"), &json!("60m"), &json!(7)));
    }

    #[test]
    fn a_claim_tells_its_capacity_once_bound() {
        let claim_of = |spec: Value| {
            let object = json!({
                "metadata": {"name": "c"}, "spec": spec,
                "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]},
            });
            json!(claim(Seen { object: &object, now: EPOCH }))
        };
        assert_eq!(
            claim_of(json!({"volumeName": "v", "storageClassName": "fast", "volumeMode": "Filesystem"})),
            json!(["c", "Bound", "v", "1Gi", "RWO,RWX", "fast", "<unset>", "<unknown>", "Filesystem"])
        );
        assert_eq!(claim_of(json!({}))[3], "");
    }
}
