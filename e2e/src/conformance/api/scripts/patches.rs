//! JSON patches and merge patches, sound and broken.

use serde_json::{Value, json};

use super::super::kind::Kind::{ConfigMap, Lease, Pod, PodDisruptionBudget, QuorumCluster, Secret, StatefulSet};
use super::super::step::{Body, Script, create, get, json_patch, merge, script};

pub fn scripts() -> Vec<Script> {
    vec![
        operations(),
        failures(),
        broken_patches(),
        merges(),
        annotations_at_their_limit(),
        merge_preconditions(),
        merge_of_what_is_not_there(),
        broken_merges(),
        media_types(),
        what_a_patch_may_not_do(),
    ]
}

fn map() -> Value {
    ConfigMap.with("a", &json!({"data": {"x": "1", "y": "2"}, "metadata": {"labels": {"app": "x"}}}))
}

fn operations() -> Script {
    let patch = |operations: Value| json_patch(ConfigMap, "a", operations);
    script(
        "json-patch-operations",
        vec![
            create(ConfigMap, map()),
            patch(json!([{"op": "add", "path": "/data/z", "value": "3"}])),
            patch(json!([{"op": "replace", "path": "/data/z", "value": "4"}])),
            patch(json!([{"op": "remove", "path": "/data/z"}])),
            patch(json!([{"op": "copy", "from": "/data/x", "path": "/data/w"}])),
            patch(json!([{"op": "move", "from": "/data/w", "path": "/data/v"}])),
            patch(
                json!([{"op": "test", "path": "/data/x", "value": "1"}, {"op": "replace", "path": "/data/x", "value": "9"}]),
            ),
            patch(json!([{"op": "test", "path": "/data/x", "value": "9"}])),
            patch(json!([])),
            patch(json!([{"op": "add", "path": "/metadata/labels/example.com~1a", "value": "b"}])),
            patch(json!([{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}])),
            patch(json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]}])),
            patch(json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"}])),
            patch(json!([{"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/c"}])),
            patch(json!([{"op": "remove", "path": "/metadata/finalizers/1"}])),
            patch(json!([{"op": "remove", "path": "/metadata/finalizers"}])),
            patch(json!([{"op": "remove", "path": "/data"}])),
            get(ConfigMap, "a"),
        ],
    )
}

fn failures() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster] {
        steps.push(create(kind, kind.minimal("a")));
        for operations in [
            json!([{"op": "test", "path": "/metadata/name", "value": "b"}]),
            json!([{"op": "test", "path": "/nothing", "value": "b"}]),
            json!([{"op": "test", "path": "/nothing/deep", "value": "b"}]),
            json!([{"op": "remove", "path": "/nothing"}]),
            json!([{"op": "replace", "path": "/nothing", "value": 1}]),
            json!([{"op": "replace", "path": "/nothing/deep", "value": 1}]),
            json!([{"op": "add", "path": "/nothing/deep", "value": 1}]),
            json!([{"op": "copy", "from": "/nothing", "path": "/data"}]),
            json!([{"op": "move", "from": "/nothing", "path": "/data"}]),
            json!([{"op": "add", "path": "/metadata/finalizers/7", "value": "example.com/a"}]),
        ] {
            steps.push(json_patch(kind, "a", operations));
        }
        steps.push(json_patch(kind, "missing", json!([{"op": "test", "path": "/x", "value": 1}])));
        steps.push(get(kind, "a"));
    }
    script("json-patch-that-can-not-be-applied", steps)
}

fn broken_patches() -> Script {
    let mut steps = vec![create(ConfigMap, map())];
    for text in [
        "",
        "{",
        "{}",
        "[1]",
        "null",
        "[{}]",
        "\"x\"",
        r#"[{"op": "jump", "path": "/x"}]"#,
        r#"[{"op": "add", "value": 1}]"#,
        r#"[{"op": "add", "path": "x", "value": 1}]"#,
        r#"[{"op": "add", "path": "/data"}]"#,
    ] {
        steps.push(json_patch(ConfigMap, "a", json!(null)).body(Body::Text(text.to_owned())));
    }
    steps.push(get(ConfigMap, "a"));
    script("json-patch-that-is-none", steps)
}

/// All annotations of an object share 256 KiB, keys and values together.
fn annotations_at_their_limit() -> Script {
    let room = 256 * 1024 - "k".len() - "other".len();
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster] {
        let mut full = kind.minimal("a");
        full["metadata"]["annotations"] = json!({"k": "x".repeat(room), "other": ""});
        steps.extend([
            create(kind, full),
            merge(kind, "a", json!({"metadata": {"annotations": {"other": "y"}}})),
            merge(kind, "a", json!({"metadata": {"annotations": {"more": ""}}})),
            merge(kind, "a", json!({"metadata": {"labels": {"l": "1"}}})),
            merge(kind, "a", json!({"metadata": {"annotations": {"k": "x"}}})),
            merge(kind, "a", json!({"metadata": {"annotations": {"other": "y"}}})),
        ]);
    }
    script("annotations-at-their-limit", steps)
}

fn merges() -> Script {
    let mut steps = vec![create(ConfigMap, map())];
    for patch in [
        json!({"data": {"x": "9"}}),
        json!({"data": {"x": null}}),
        json!({"data": {"x": null}}),
        json!({"data": null}),
        json!({}),
        json!({"metadata": {"labels": {"app": null, "b": "c"}}}),
        json!({"metadata": {"labels": null}}),
        json!({"metadata": {"annotations": {"k": "v"}, "finalizers": ["example.com/a"]}}),
        json!({"metadata": {"finalizers": []}}),
        json!({"binaryData": {"b": "AAEC"}, "data": {"k": "v"}}),
        json!({"metadata": null}),
    ] {
        steps.push(merge(ConfigMap, "a", patch));
    }
    steps.push(create(QuorumCluster, QuorumCluster.minimal("q")));
    for patch in [
        json!({"spec": {"paused": true}}),
        json!({"spec": {"paused": null}}),
        json!({"spec": {"image": null}}),
        json!({"spec": {"system": {"tls": {"caSecret": "x"}}}}),
        json!({"spec": {"system": {"tls": null}}}),
        json!({"spec": {"upgrade": null}}),
        json!({"spec": null}),
        json!({"unknown": 1}),
    ] {
        steps.push(merge(QuorumCluster, "q", patch));
    }
    script("merge-patch", steps)
}

fn merge_preconditions() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, Lease, StatefulSet, PodDisruptionBudget, QuorumCluster, Pod, Secret] {
        let revision = |revision: &str| json!({"metadata": {"resourceVersion": revision, "labels": {"x": revision}}});
        steps.extend([
            create(kind, kind.minimal("a")).save("a"),
            merge(
                kind,
                "a",
                json!({"metadata": {"resourceVersion": "$(a/metadata/resourceVersion)", "labels": {"x": "1"}}}),
            ),
            merge(
                kind,
                "a",
                json!({"metadata": {"resourceVersion": "$(a/metadata/resourceVersion)", "labels": {"x": "2"}}}),
            ),
            merge(kind, "a", json!({"metadata": {"uid": "$(a/metadata/uid)", "labels": {"x": "3"}}})),
            merge(
                kind,
                "a",
                json!({"metadata": {"uid": "11111111-2222-3333-4444-555555555555", "labels": {"x": "4"}}}),
            ),
            merge(kind, "a", revision("1")),
            merge(kind, "a", revision("x")),
            merge(kind, "a", revision("0")),
            merge(kind, "a", revision("")),
            merge(kind, "a", json!({"metadata": {"resourceVersion": null, "labels": {"x": "5"}}})),
            merge(kind, "a", json!({"metadata": {"uid": null, "creationTimestamp": null, "labels": {"x": "6"}}})),
            get(kind, "a"),
        ]);
    }
    script("merge-patch-with-preconditions", steps)
}

fn merge_of_what_is_not_there() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, Lease, QuorumCluster, Pod] {
        steps.push(merge(kind, "missing", json!({"metadata": {"labels": {"x": "1"}}})));
    }
    script("merge-patch-of-what-is-not-there", steps)
}

fn broken_merges() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster] {
        steps.push(create(kind, kind.minimal("a")));
        for text in
            ["", "{", "[]", "null", "1", "\"x\"", "{\"metadata\": 5}", "{\"data\": [1]}", "{\"kind\": \"Other\"}"]
        {
            steps.push(merge(kind, "a", json!(null)).body(Body::Text(text.to_owned())));
        }
        steps.push(merge(kind, "a", json!({"metadata": {"name": "b"}})));
        steps.push(merge(kind, "a", json!({"metadata": {"namespace": "b"}})));
        steps.push(merge(kind, "a", json!({"apiVersion": "example.com/v1"})));
        steps.push(get(kind, "a"));
    }
    script("merge-patch-that-is-none", steps)
}

fn media_types() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster] {
        steps.push(create(kind, kind.minimal("a")));
        for media in ["application/json", "text/plain", "application/yaml", "application/nonsense", "nonsense"] {
            steps.push(merge(kind, "a", json!({})).content_type(media));
        }
        steps.push(
            merge(kind, "a", json!({"metadata": {"labels": {"x": "y"}}}))
                .content_type("application/merge-patch+json; charset=utf-8"),
        );
    }
    let media = "application/strategic-merge-patch+json";
    steps.push(merge(QuorumCluster, "a", json!({})).content_type(media));
    script("patch-with-other-media-types", steps)
}

fn what_a_patch_may_not_do() -> Script {
    let labels = json!({"metadata": {"labels": {"bad label": "x"}}});
    script(
        "patch-to-something-invalid",
        vec![
            create(StatefulSet, StatefulSet.minimal("a")),
            merge(StatefulSet, "a", json!({"spec": {"serviceName": "other"}})),
            merge(StatefulSet, "a", json!({"spec": {"replicas": -1}})),
            merge(StatefulSet, "a", json!({"spec": {"replicas": "x"}})),
            merge(StatefulSet, "a", labels),
            json_patch(StatefulSet, "a", json!([{"op": "replace", "path": "/spec/replicas", "value": 2}])),
            json_patch(StatefulSet, "a", json!([{"op": "replace", "path": "/spec/replicas", "value": true}])),
            merge(StatefulSet, "a", json!({"status": {"replicas": 5}})),
            get(StatefulSet, "a"),
        ],
    )
}
