//! Strategic merge patches, server-side apply, and who manages what.

use serde_json::{Value, json};

use super::super::kind::Kind::{ConfigMap, Pod, QuorumCluster, StatefulSet};
use super::super::step::{Body, Script, Step, apply, create, get, merge, put_saved, script, strategic};

/// Strategic merge patches.
pub fn strategic_scripts() -> Vec<Script> {
    vec![strategic_lists(), strategic_directives(), strategic_that_is_wrong()]
}

/// Server-side apply, and the managers of plain writes.
pub fn apply_scripts() -> Vec<Script> {
    vec![
        managers_of_plain_writes(),
        apply_creates(),
        apply_conflicts(),
        apply_lists(),
        apply_preconditions(),
        apply_that_is_wrong(),
    ]
}

fn strategic_lists() -> Script {
    let patch = |spec: Value| strategic(StatefulSet, "a", json!({"spec": {"template": {"spec": spec}}}));
    script(
        "strategic-merge-of-lists",
        vec![
            create(StatefulSet, StatefulSet.minimal("a")),
            patch(json!({"containers": [{"name": "c", "image": "example.com/c:2"}]})),
            patch(json!({"containers": [{"name": "d", "image": "example.com/d:1"}]})),
            patch(json!({"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]})),
            patch(json!({"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}], "args": ["x"]}]})),
            patch(json!({"containers": [{"name": "c", "args": ["y", "z"], "ports": [{"containerPort": 80}]}]})),
            patch(json!({"volumes": [{"name": "v", "emptyDir": {}}]})),
            patch(json!({"volumes": [{"name": "v", "emptyDir": null, "hostPath": {"path": "/x"}}]})),
            strategic(
                StatefulSet,
                "a",
                json!({"spec": {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 3}}}}),
            ),
            strategic(StatefulSet, "a", json!({"metadata": {"finalizers": ["example.com/a"]}})),
            strategic(StatefulSet, "a", json!({"metadata": {"finalizers": ["example.com/b"]}})),
            strategic(StatefulSet, "a", json!({"metadata": {"labels": {"x": "y"}, "annotations": {"k": "v"}}})),
            strategic(StatefulSet, "a", json!({"metadata": {"labels": {"x": null}, "annotations": null}})),
            strategic(StatefulSet, "a", json!({})),
            get(StatefulSet, "a"),
        ],
    )
}

fn strategic_directives() -> Script {
    let patch = |spec: Value| strategic(StatefulSet, "a", json!({"spec": {"template": {"spec": spec}}}));
    script(
        "strategic-merge-directives",
        vec![
            create(StatefulSet, StatefulSet.minimal("a")),
            patch(json!({"containers": [{"name": "d", "image": "example.com/d:1"}]})),
            patch(json!({"containers": [{"name": "d", "$patch": "delete"}]})),
            patch(json!({"containers": [{"$patch": "replace"}, {"name": "e", "image": "example.com/e:1"}]})),
            patch(
                json!({"$setElementOrder/containers": [{"name": "f"}, {"name": "e"}], "containers": [{"name": "f", "image": "x:1"}]}),
            ),
            patch(json!({"securityContext": {"$patch": "replace", "runAsUser": 5}})),
            strategic(StatefulSet, "a", json!({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})),
            strategic(
                StatefulSet,
                "a",
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}),
            ),
            get(StatefulSet, "a"),
        ],
    )
}

fn strategic_that_is_wrong() -> Script {
    script(
        "strategic-merge-that-is-wrong",
        vec![
            create(ConfigMap, ConfigMap.minimal("a")),
            create(Pod, Pod.minimal("a")),
            strategic(ConfigMap, "a", json!([])),
            strategic(ConfigMap, "a", json!({})).body(Body::Text("{".to_owned())),
            strategic(ConfigMap, "missing", json!({})),
            strategic(ConfigMap, "a", json!({"metadata": {"name": "b"}})),
            strategic(ConfigMap, "a", json!({"metadata": {"resourceVersion": "1"}})),
            strategic(Pod, "a", json!({"spec": {"containers": [{"image": "x"}]}})),
            strategic(Pod, "a", json!({"spec": {"containers": [{"name": "c", "$patch": "odd"}]}})),
            strategic(Pod, "a", json!({"spec": {"nodeName": "n"}})),
            strategic(ConfigMap, "a", json!({"data": {"k": "v"}})).query("dryRun", "All"),
            strategic(Pod, "a", json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}))
                .part("status"),
            strategic(Pod, "a", json!({"status": {"conditions": [{"type": "Other", "status": "True"}]}}))
                .part("status"),
            get(Pod, "a"),
        ],
    )
}

fn managers_of_plain_writes() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, StatefulSet, QuorumCluster] {
        steps.extend([
            create(kind, kind.minimal("a")).agent("alice/v1.2 (linux)").save("a"),
            merge(kind, "a", json!({"metadata": {"labels": {"x": "1"}}})).query("fieldManager", "bob"),
            merge(kind, "a", json!({"metadata": {"labels": {"x": "1"}}})).query("fieldManager", "carol"),
            merge(kind, "a", json!({"metadata": {"labels": {"x": "2"}}})).query("fieldManager", "carol"),
            merge(kind, "a", json!({"metadata": {"labels": {"x": null}}})).agent("dave"),
            put_saved(kind, "a", "a", json!({"metadata": {"resourceVersion": null, "annotations": {"k": "v"}}}))
                .agent("erin"),
            merge(kind, "a", json!({"metadata": {"managedFields": []}})),
            merge(kind, "a", json!({"metadata": {"managedFields": [{}]}})),
            get(kind, "a"),
        ]);
    }
    steps.push(merge(StatefulSet, "a", json!({"status": {"replicas": 1}})).part("status").agent("controller"));
    steps.push(merge(StatefulSet, "a", json!({"spec": {"replicas": 2}})).part("scale").agent("scaler"));
    steps.push(get(StatefulSet, "a"));
    script("managers-of-plain-writes", steps)
}

fn applied(kind: super::super::kind::Kind, manager: &str, fields: &Value) -> Step {
    apply(kind, "a", manager, kind.with("a", fields))
}

fn apply_creates() -> Script {
    script(
        "apply-creates-and-owns",
        vec![
            applied(ConfigMap, "alice", &json!({"data": {"k": "1", "l": "2"}})),
            applied(ConfigMap, "alice", &json!({"data": {"k": "1", "l": "2"}})),
            applied(ConfigMap, "alice", &json!({"data": {"k": "3"}})),
            applied(ConfigMap, "bob", &json!({"data": {"m": "1"}})),
            applied(ConfigMap, "bob", &json!({})),
            applied(QuorumCluster, "alice", &json!({"spec": QuorumCluster.minimal("a")["spec"]})),
            applied(QuorumCluster, "bob", &json!({"spec": {"paused": true}})).query("force", "true"),
            applied(QuorumCluster, "alice", &json!({"spec": QuorumCluster.minimal("a")["spec"]})),
            get(ConfigMap, "a"),
            get(QuorumCluster, "a"),
        ],
    )
}

fn apply_conflicts() -> Script {
    script(
        "apply-conflicts",
        vec![
            create(ConfigMap, ConfigMap.with("a", &json!({"data": {"k": "0"}}))).agent("carol"),
            applied(ConfigMap, "alice", &json!({"data": {"k": "1"}})),
            applied(ConfigMap, "alice", &json!({"data": {"k": "1"}})).query("force", "true"),
            applied(ConfigMap, "bob", &json!({"data": {"k": "2", "l": "2"}})),
            applied(ConfigMap, "bob", &json!({"data": {"k": "1"}})),
            applied(ConfigMap, "bob", &json!({"data": {"k": "2"}})),
            applied(ConfigMap, "bob", &json!({"data": {"k": "2"}})).query("force", "true"),
            merge(ConfigMap, "a", json!({"data": {"k": "3"}})).agent("dave"),
            applied(ConfigMap, "bob", &json!({"data": {"k": "2"}})),
            get(ConfigMap, "a"),
        ],
    )
}

fn apply_lists() -> Script {
    let set = |manager: &str, spec: Value| applied(StatefulSet, manager, &json!({"spec": spec}));
    let image = |image: &str| json!({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}});
    script(
        "apply-of-lists",
        vec![
            set("alice", StatefulSet.minimal("a")["spec"].clone()),
            set(
                "bob",
                json!({"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}}}),
            ),
            set("bob", json!({"template": {"spec": {"containers": [{"name": "d", "image": "x:1"}]}}})),
            set("bob", json!({"replicas": 3})),
            set("carol", image("example.com/c:9")),
            set("carol", image("example.com/c:9")).query("force", "true"),
            set("alice", json!({"serviceName": "web", "selector": {"matchLabels": {"app": "web"}}})),
            get(StatefulSet, "a"),
        ],
    )
}

fn apply_preconditions() -> Script {
    script(
        "apply-with-preconditions",
        vec![
            applied(ConfigMap, "alice", &json!({"metadata": {"resourceVersion": "5"}})),
            applied(ConfigMap, "alice", &json!({"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}})),
            create(ConfigMap, ConfigMap.minimal("a")).save("a"),
            applied(ConfigMap, "alice", &json!({"metadata": {"resourceVersion": "1"}, "data": {"k": "1"}})),
            applied(
                ConfigMap,
                "alice",
                &json!({"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}, "data": {"k": "1"}}),
            ),
            applied(
                ConfigMap,
                "alice",
                &json!({
                    "metadata": {"uid": "$(a/metadata/uid)", "resourceVersion": "$(a/metadata/resourceVersion)"}, "data": {"k": "1"},
                }),
            ),
            get(ConfigMap, "a"),
        ],
    )
}

fn apply_that_is_wrong() -> Script {
    let bare = |step: Step| Step { query: Vec::new(), ..step };
    script(
        "apply-that-is-wrong",
        vec![
            bare(applied(ConfigMap, "alice", &json!({}))),
            applied(ConfigMap, "alice", &json!({})).body(Body::Text("{".to_owned())),
            applied(ConfigMap, "alice", &json!({})).body(Body::Text("[]".to_owned())),
            applied(ConfigMap, "alice", &json!({})).body(Body::Json(json!({"metadata": {"name": "a"}}))),
            applied(ConfigMap, "alice", &json!({"metadata": {"name": "b"}})),
            applied(ConfigMap, "alice", &json!({"metadata": {"managedFields": [{"manager": "x"}]}})),
            applied(ConfigMap, "alice", &json!({"unknown": 1})),
            applied(ConfigMap, "alice", &json!({"unknown": 1})).query("fieldValidation", "Strict"),
            applied(QuorumCluster, "alice", &json!({"spec": {"unknown": 1}})),
            applied(StatefulSet, "alice", &json!({"spec": {"replicas": "x"}})),
            merge(ConfigMap, "a", json!({})).query("force", "true"),
            applied(ConfigMap, "alice", &json!({"data": {"k": "v"}})).query("dryRun", "All"),
            get(ConfigMap, "a"),
        ],
    )
}
