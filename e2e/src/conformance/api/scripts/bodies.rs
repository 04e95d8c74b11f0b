//! Bodies and media types, and fields that nobody knows.

use serde_json::{Value, json};

use super::super::kind::Kind::{self, ConfigMap, Lease, QuorumCluster, StatefulSet};
use super::super::step::{Body, Script, Step, create, get, merge, put, script};

pub fn scripts() -> Vec<Script> {
    vec![broken_bodies(), media_types(), unknown_fields(), wrong_types(), nulls()]
}

fn text(kind: Kind, text: &str) -> Step {
    create(kind, Value::Null).body(Body::Text(text.to_owned()))
}

fn broken_bodies() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster] {
        for body in ["", "{", "}", "null", "1", "\"x\"", "true", "{\"metadata\": ", "{]", "[]", "nonsense"] {
            steps.push(text(kind, body));
            steps.push(Step { body: Body::Text(body.to_owned()), ..put(kind, "a", Value::Null) });
        }
    }
    script("bodies-that-are-none", steps)
}

fn media_types() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster] {
        let object = |name: &str| create(kind, kind.minimal(name));
        steps.extend([
            object("a").content_type("application/json; charset=utf-8"),
            object("b").content_type("text/plain"),
            object("c").content_type("application/nonsense"),
            object("d").content_type("nonsense"),
            object("e").accept("application/nonsense"),
            object("f").accept("*/*"),
            object("g").accept("application/nonsense, application/json;q=0.5"),
            get(kind, "a").accept("text/plain"),
            get(kind, "a").accept(""),
        ]);
        let mut bare = object("h");
        bare.content_type = None;
        steps.push(bare);
    }
    script("media-types", steps)
}

fn unknown_fields() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, StatefulSet, Lease, QuorumCluster] {
        for validation in ["Ignore", "Warn", "Strict", ""] {
            let name = format!("u{}", validation.to_lowercase());
            let mut object = kind.minimal(&name);
            object["unknown"] = json!(1);
            object["metadata"]["unknownMeta"] = json!({"x": 1});
            if kind != ConfigMap {
                object["spec"]["unknownSpec"] = json!([1]);
            }
            let checked =
                |step: Step| if validation.is_empty() { step } else { step.query("fieldValidation", validation) };
            steps.extend([
                checked(create(kind, object.clone())),
                create(kind, kind.minimal(&name)),
                checked(put(kind, &name, object)),
                checked(merge(kind, &name, json!({"unknownTop": 1, "metadata": {"labels": {"x": "y"}}}))),
                checked(merge(kind, &name, json!({"spec": {"unknownInSpec": 1}}))),
                get(kind, &name),
            ]);
        }
    }
    let mut set = StatefulSet.minimal("deep");
    set["spec"]["template"]["spec"]["containers"][0]["unknownInContainer"] = json!("x");
    set["spec"]["template"]["metadata"]["unknownInTemplate"] = json!("x");
    steps.push(create(StatefulSet, set.clone()));
    steps.push(create(StatefulSet, set).query("fieldValidation", "Strict"));
    let mut cluster = QuorumCluster.minimal("deep");
    cluster["spec"]["system"]["unknownInSystem"] = json!("x");
    cluster["spec"]["upgrade"] = json!({"deadlines": {"unknownDeadline": 1}});
    steps.push(create(QuorumCluster, cluster.clone()));
    steps.push(create(QuorumCluster, cluster).query("fieldValidation", "Strict"));
    script("unknown-fields", steps)
}

fn wrong_types() -> Script {
    let set = |spec: Value| create(StatefulSet, StatefulSet.with("a", &json!({"spec": spec})));
    let cluster = |change: Value| {
        let mut object = QuorumCluster.minimal("a");
        for (key, value) in change.as_object().cloned().unwrap_or_default() {
            object["spec"][key] = value;
        }
        create(QuorumCluster, object)
    };
    script(
        "fields-of-the-wrong-type",
        vec![
            set(json!({"replicas": "3"})),
            set(json!({"replicas": 1.5})),
            set(json!({"replicas": 99_999_999_999_i64})),
            set(json!({"selector": "x"})),
            set(json!([])),
            create(ConfigMap, ConfigMap.with("a", &json!({"data": {"k": 1}}))),
            create(ConfigMap, ConfigMap.with("a", &json!({"data": []}))),
            create(ConfigMap, ConfigMap.with("a", &json!({"metadata": {"labels": {"a": 1}}}))),
            create(ConfigMap, ConfigMap.with("a", &json!({"metadata": {"labels": []}}))),
            create(ConfigMap, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": []})),
            create(ConfigMap, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 5}})),
            create(Lease, Lease.with("a", &json!({"spec": {"renewTime": "yesterday"}}))),
            cluster(json!({"paused": "yes"})),
            cluster(json!({"version": 8})),
            cluster(json!({"system": {"type": "Pd", "port": "x"}})),
            cluster(json!({"system": {"type": "Pd", "port": 1.5}})),
            cluster(json!({"workload": []})),
            create(QuorumCluster, QuorumCluster.with("a", &json!({"spec": 5}))),
            create(
                QuorumCluster,
                QuorumCluster
                    .with("a", &json!({"metadata": {"labels": {"a": 1}}, "spec": QuorumCluster.minimal("a")["spec"]})),
            ),
            create(
                QuorumCluster,
                json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster", "metadata": []}),
            ),
        ],
    )
}

fn nulls() -> Script {
    script(
        "nulls-count-as-absent",
        vec![
            create(
                ConfigMap,
                ConfigMap.with("a", &json!({"data": null, "metadata": {"labels": null, "annotations": {"x": ""}}})),
            ),
            create(
                ConfigMap,
                ConfigMap
                    .with("b", &json!({"data": {}, "binaryData": {}, "metadata": {"labels": {}, "finalizers": []}})),
            ),
            create(ConfigMap, ConfigMap.with("c", &json!({"data": {"k": null}}))),
            create(StatefulSet, {
                let mut set = StatefulSet.minimal("a");
                set["spec"]["replicas"] = Value::Null;
                set["spec"]["volumeClaimTemplates"] = json!([]);
                set["spec"]["template"]["spec"]["volumes"] = json!([]);
                set
            }),
            create(QuorumCluster, {
                let mut cluster = QuorumCluster.minimal("a");
                cluster["spec"]["image"] = Value::Null;
                cluster["spec"]["policy"] = Value::Null;
                cluster["spec"]["paused"] = Value::Null;
                cluster["spec"]["requests"] = json!({"resume": null});
                cluster["spec"]["system"]["tls"] = Value::Null;
                cluster
            }),
            create(QuorumCluster, {
                let mut cluster = QuorumCluster.minimal("b");
                cluster["metadata"]["labels"] = Value::Null;
                cluster["metadata"]["annotations"] = json!({});
                cluster
            }),
        ],
    )
}
