//! Creating: names, and what the server fills in or refuses.

use serde_json::{Value, json};

use super::super::kind::Kind::{ConfigMap, Lease, Pod, QuorumCluster, Secret, StatefulSet};
use super::super::kind::pod_spec;
use super::super::step::{Body, Script, create, get, list, script};

pub fn scripts() -> Vec<Script> {
    vec![
        read_back(),
        existing_name(),
        generated_name(),
        without_a_name(),
        what_only_the_server_sets(),
        names_that_are_wrong(),
        another_namespace(),
        metadata_that_is_wrong(),
        another_kind_in_the_body(),
    ]
}

fn map(fields: &Value) -> Value {
    ConfigMap.with("a", fields)
}

fn read_back() -> Script {
    let object = map(&json!({"data": {"k": "v"}, "metadata": {"labels": {"app": "x"}}}));
    script("create-and-read-back", vec![create(ConfigMap, object), get(ConfigMap, "a"), list(ConfigMap)])
}

fn existing_name() -> Script {
    let mut steps = vec![create(ConfigMap, map(&json!({}))), create(ConfigMap, map(&json!({"data": {"k": "v"}})))];
    for kind in [Lease, StatefulSet, QuorumCluster] {
        steps.extend([create(kind, kind.minimal("a")), create(kind, kind.minimal("a"))]);
    }
    steps.push(get(ConfigMap, "a"));
    script("create-an-existing-name", steps)
}

fn generated_name() -> Script {
    let mut custom = QuorumCluster.minimal("");
    custom["metadata"] = json!({"generateName": "qc-"});
    script(
        "create-with-a-generated-name",
        vec![
            create(ConfigMap, json!({"metadata": {"generateName": "gen-"}})).save("g"),
            get(ConfigMap, "$(g/metadata/name)"),
            create(ConfigMap, json!({"metadata": {"generateName": "gen-", "name": "given"}})),
            create(Pod, json!({"metadata": {"generateName": "pod-"}, "spec": pod_spec()})),
            create(QuorumCluster, custom),
            create(ConfigMap, json!({"metadata": {"generateName": "Bad_"}})),
        ],
    )
}

fn without_a_name() -> Script {
    script(
        "create-without-a-name",
        vec![
            create(ConfigMap, json!({"metadata": {}})),
            create(ConfigMap, json!({})),
            create(QuorumCluster, QuorumCluster.minimal("")),
            create(Secret, json!({"metadata": {"name": ""}})),
        ],
    )
}

fn what_only_the_server_sets() -> Script {
    let mut custom = QuorumCluster.minimal("a");
    custom["metadata"]["resourceVersion"] = json!("5");
    let spec = |kind: super::super::kind::Kind| kind.minimal("x")["spec"].clone();
    script(
        "create-with-what-only-the-server-sets",
        vec![
            create(ConfigMap, map(&json!({"metadata": {"resourceVersion": "5"}}))),
            create(QuorumCluster, custom),
            create(QuorumCluster, QuorumCluster.with("a", &json!({"metadata": {"resourceVersion": "5"}}))),
            create(ConfigMap, map(&json!({"metadata": {"resourceVersion": "x"}}))),
            create(
                ConfigMap,
                map(&json!({"metadata": {
                    "uid": "11111111-2222-3333-4444-555555555555", "creationTimestamp": "2020-01-01T00:00:00Z",
                    "generation": 7, "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3,
                    "selfLink": "/x",
                }})),
            ),
            create(
                StatefulSet,
                StatefulSet.with(
                    "b",
                    &json!({"spec": spec(StatefulSet), "metadata": {"generation": 9}, "status": {"replicas": 4}}),
                ),
            ),
            create(
                QuorumCluster,
                QuorumCluster.with(
                    "c",
                    &json!({"spec": spec(QuorumCluster), "metadata": {"generation": 9}, "status": {"phase": "X"}}),
                ),
            ),
        ],
    )
}

fn names_that_are_wrong() -> Script {
    let mut steps = Vec::new();
    for name in ["Upper", "a_b", "-a", "a-", "a..b", "a/b", ".", ""] {
        steps.push(create(ConfigMap, ConfigMap.minimal(name)));
        steps.push(create(QuorumCluster, QuorumCluster.minimal(name)));
    }
    steps.extend([
        create(ConfigMap, ConfigMap.minimal(&"a".repeat(254))),
        create(ConfigMap, ConfigMap.minimal(&"a".repeat(253))),
        create(StatefulSet, StatefulSet.minimal("a.b")),
        create(StatefulSet, StatefulSet.minimal(&"a".repeat(64))),
        create(Pod, Pod.minimal("a.b")),
        create(Pod, Pod.minimal(&"a".repeat(64))),
    ]);
    script("create-with-names-that-are-wrong", steps)
}

fn another_namespace() -> Script {
    let elsewhere =
        |path: &str, step: super::super::step::Step| super::super::step::Step { path: path.to_owned(), ..step };
    script(
        "create-in-another-namespace",
        vec![
            create(ConfigMap, map(&json!({"metadata": {"namespace": "other"}}))),
            create(ConfigMap, map(&json!({"metadata": {"namespace": "$(ns)"}}))),
            elsewhere("/api/v1/namespaces/no-such-namespace/configmaps", create(ConfigMap, map(&json!({})))),
            elsewhere("/api/v1/configmaps", create(ConfigMap, map(&json!({})))),
            elsewhere(
                "/apis/windlass.dev/v1alpha1/namespaces/no-such-namespace/quorumclusters",
                create(QuorumCluster, QuorumCluster.minimal("x")),
            ),
        ],
    )
}

fn metadata_that_is_wrong() -> Script {
    let owner =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "u", "controller": true});
    let wrong = [
        json!({"labels": {"a b": "x"}}),
        json!({"labels": {"a": "x y"}}),
        json!({"labels": {"/a": "x"}}),
        json!({"labels": {"A.B/a": "x"}}),
        json!({"labels": {"a/b/c": "x"}}),
        json!({"labels": {"": "x"}}),
        json!({"labels": {"a": "x".repeat(64)}}),
        json!({"labels": {"a".repeat(64): "x"}}),
        json!({"annotations": {"a b": "x"}}),
        json!({"annotations": {"Key": "x"}}),
        json!({"annotations": {"k": "x".repeat(256 * 1024)}}),
        json!({"finalizers": ["x"]}),
        json!({"finalizers": ["example.com/x", "Bad Name/x"]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": "u"}]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "o", "uid": "u"}]}),
        json!({"ownerReferences": [{"apiVersion": "", "kind": "ConfigMap", "name": "o", "uid": "u"}]}),
        json!({"ownerReferences": [owner("o"), owner("p")]}),
        json!({"ownerReferences": [owner("o")]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "u"}]}),
    ];
    let mut steps = Vec::new();
    for (number, meta) in wrong.into_iter().enumerate() {
        for kind in [ConfigMap, QuorumCluster] {
            let mut object = kind.minimal(&format!("n{number}"));
            for (key, value) in meta.as_object().cloned().unwrap_or_default() {
                object["metadata"][key] = value;
            }
            steps.push(create(kind, object));
        }
    }
    script("create-with-metadata-that-is-wrong", steps)
}

fn another_kind_in_the_body() -> Script {
    let named =
        |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
    script(
        "create-with-another-kind-in-the-body",
        vec![
            create(ConfigMap, Secret.minimal("a")),
            create(ConfigMap, named("v2", "ConfigMap")),
            create(ConfigMap, named("apps/v1", "ConfigMap")),
            create(ConfigMap, json!({"kind": "ConfigMap", "metadata": {"name": "b"}})),
            create(ConfigMap, json!({"apiVersion": "v1", "metadata": {"name": "c"}})),
            create(ConfigMap, named("v1", "NoSuchKind")),
            create(ConfigMap, named("a/b/c", "ConfigMap")),
            create(QuorumCluster, Secret.minimal("a")),
            create(QuorumCluster, json!({"metadata": {"name": "a"}})),
            create(QuorumCluster, named("windlass.dev/v2", "QuorumCluster")),
            create(QuorumCluster, named("windlass.dev/v1alpha1", "Other")),
            create(ConfigMap, json!([])).body(Body::Text("[]".to_owned())),
            create(QuorumCluster, json!([])).body(Body::Text("[]".to_owned())),
        ],
    )
}
