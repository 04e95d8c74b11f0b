//! Custom resources: Windlass' own, and definitions as such.

use serde_json::{Value, json};

use super::super::kind::Kind::{Definition, QuorumCluster};
use super::super::step::{Script, Step, create, delete, get, json_patch, merge, put_saved, script};

pub fn scripts() -> Vec<Script> {
    vec![
        cluster_defaults(),
        clusters_that_are_wrong(),
        cluster_rules(),
        cluster_status(),
        cluster_formats(),
        establishment(),
        definitions_that_are_wrong(),
        objects_of_a_definition(),
    ]
}

fn cluster(name: &str, spec: &Value) -> Step {
    let mut object = QuorumCluster.minimal(name);
    for (key, value) in spec.as_object().cloned().unwrap_or_default() {
        object["spec"][key] = value;
    }
    create(QuorumCluster, object)
}

fn cluster_defaults() -> Script {
    script(
        "quorumcluster-defaults",
        vec![
            cluster("a", &json!({})),
            cluster("b", &json!({"upgrade": {}, "policy": {}, "updateStrategy": {}, "requests": {}})),
            cluster("c", &json!({"upgrade": {"deadlines": {"ready": "1h"}}, "policy": {"allowDowngrade": true}})),
            cluster(
                "d",
                &json!({"system": {"type": "Pd", "port": 1, "tls": {"caSecret": "x"}}, "image": "x", "paused": true}),
            ),
            merge(QuorumCluster, "a", json!({"spec": {"upgrade": null, "policy": null, "deletionPolicy": null}})),
            get(QuorumCluster, "a"),
        ],
    )
}

fn clusters_that_are_wrong() -> Script {
    let mut steps = Vec::new();
    for spec in [
        json!({"version": "8.5"}),
        json!({"version": ""}),
        json!({"version": null}),
        json!({"system": {"type": "Odd"}}),
        json!({"system": {}}),
        json!({"system": {"type": "Pd", "port": 0}}),
        json!({"system": {"type": "Pd", "port": 65_536}}),
        json!({"system": {"type": "Pd", "port": 99_999_999_999_i64}}),
        json!({"system": {"type": "Pd", "tls": {}}}),
        json!({"system": {"type": "Pd", "tls": {"caSecret": ""}}}),
        json!({"system": {"type": "Pd", "tls": {"caSecret": "x".repeat(254)}}}),
        json!({"workload": {"statefulSet": ""}}),
        json!({"workload": {"statefulSet": "a", "container": "c".repeat(64)}}),
        json!({"workload": null}),
        json!({"deletionPolicy": "Odd"}),
        json!({"image": ""}),
        json!({"upgrade": {"maxLagEntries": -1}}),
        json!({"upgrade": {"deadlines": {"ready": "soon"}}}),
        json!({"updateStrategy": {"type": "BlueGreen"}}),
        json!({"updateStrategy": {"rollingUpdate": {"order": "Odd"}}}),
        json!({"requests": {"resume": "r".repeat(254)}}),
    ] {
        steps.push(cluster("a", &spec));
    }
    steps.push(create(QuorumCluster, QuorumCluster.with("a", &json!({}))));
    steps.push(create(QuorumCluster, QuorumCluster.with("a", &json!({"spec": {}}))));
    steps.push(create(QuorumCluster, QuorumCluster.with("a", &json!({"spec": null}))));
    script("quorumclusters-that-are-wrong", steps)
}

fn cluster_rules() -> Script {
    let change = |spec: Value| merge(QuorumCluster, "a", json!({"spec": spec}));
    script(
        "quorumcluster-rules-about-changes",
        vec![
            cluster("a", &json!({})).save("a"),
            change(json!({"version": "8.5.8"})),
            change(json!({"version": "8"})),
            change(json!({"system": {"type": "Odd"}})),
            change(json!({"workload": {"statefulSet": "other"}})),
            change(json!({"workload": {"container": "other"}})),
            change(json!({"workload": {"statefulSet": "other"}, "version": "8"})),
            change(json!({"workload": null})),
            change(json!({"system": {"port": 5}})),
            json_patch(
                QuorumCluster,
                "a",
                json!([{"op": "replace", "path": "/spec/workload/statefulSet", "value": "other"}]),
            ),
            put_saved(
                QuorumCluster,
                "a",
                "a",
                json!({"metadata": {"resourceVersion": null}, "spec": {"workload": {"statefulSet": "z"}}}),
            ),
            put_saved(QuorumCluster, "a", "a", json!({"spec": {"workload": {"statefulSet": "z"}}})),
            change(json!({"unknown": 1})),
            get(QuorumCluster, "a"),
        ],
    )
}

fn cluster_status() -> Script {
    let status = |status: Value| merge(QuorumCluster, "a", json!({"status": status})).part("status");
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2031-02-03T00:00:00Z"});
    let upgrade = json!({
        "currentPartition": 3, "fromImage": "a", "fromVersion": "1.0.0", "startedAt": "2031-02-03T00:00:00Z",
        "targetImage": "b", "targetVersion": "1.0.1",
    });
    script(
        "quorumcluster-status",
        vec![
            cluster("a", &json!({})),
            status(
                json!({"conditions": [condition("Ready", "True"), condition("Stalled", "False")], "observedGeneration": 1}),
            ),
            status(json!({"conditions": [condition("Ready", "True"), condition("Ready", "False")]})),
            status(json!({"members": [{"pod": "p-0", "role": "Leader", "healthy": "True"}]})),
            status(
                json!({"members": [{"pod": "p-0", "role": "Leader", "healthy": "True"}, {"pod": "p-0", "role": "Follower", "healthy": "True"}]}),
            ),
            status(json!({"upgrade": upgrade})),
            status(json!({"upgrade": {"previousPartitions": [3, 2]}})),
            status(json!({"upgrade": {"previousPartitions": [3, 3]}})),
            status(json!({"upgrade": {"startedAt": "yesterday"}})),
            status(json!({"upgrade": null, "phase": null})),
            status(json!({"conditions": null})),
            merge(QuorumCluster, "a", json!({"status": null})).part("status"),
            merge(QuorumCluster, "a", json!({"spec": {"workload": {"statefulSet": "other"}}})).part("status"),
            get(QuorumCluster, "a"),
        ],
    )
}

/// What is taken for a date-time: more than clients can read.
fn cluster_formats() -> Script {
    let until = |until: Value| json!({"gates": {"overrides": [{"gate": "Soak", "until": until}]}});
    let mut steps = vec![cluster("a", &json!({}))];
    for text in [
        "2030-01-01T00:00:00Z",
        "2030-01-01t00:00:00z",
        "2030-01-01T00:00:00.123456789Z",
        "2030-01-01T00:00:00+99:99",
        "2030-01-01T00:00:00-00:00",
        "2030-01-01T00:00:00x5Z",
        "2030-01-01T00:00:00.Z",
        "2030-01-01T00:00:00ZTomorrow",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "10000-01-01T00:00:00Z",
        "2030-02-29T00:00:00Z",
        "2030-01-01T24:00:00Z",
        "2030-01-01T00:60:00Z",
        "2030-01-01T00:00:60Z",
        "2030-01-01T00:00:00",
        "2030-01-01 00:00:00Z",
        "2030-01-01",
        "",
    ] {
        steps.push(merge(QuorumCluster, "a", json!({"spec": until(json!(text))})));
    }
    // No lists: a real server takes them, too, and keeps no managedFields of an object that has one.
    for other in [json!({}), json!(5), json!(true)] {
        steps.push(merge(QuorumCluster, "a", json!({"spec": until(other)})));
    }
    steps.push(get(QuorumCluster, "a"));
    script("quorumcluster-formats", steps)
}

fn established(name: &str) -> Step {
    get(Definition, name).until("/status/conditions/1/status", json!("True"))
}

fn establishment() -> Script {
    let name = "things.$(ns).example.com";
    let mut object = Definition.minimal(name);
    object["spec"]["names"]["shortNames"] = json!(["th"]);
    let things = "/apis/$(ns).example.com/v1/namespaces/$(ns)/things";
    let gone = |path: &str| Step::new(http::Method::GET, path).until_code(404);
    script(
        "definition-establishment",
        vec![
            create(Definition, object.clone()),
            established(name),
            Step::new(http::Method::GET, things).until_code(200),
            create(Definition, object),
            merge(Definition, name, json!({"spec": {"names": {"plural": "other"}}})),
            merge(Definition, name, json!({"spec": {"scope": "Cluster"}})),
            delete(Definition, name),
            gone(&Definition.object(name)),
            gone(things),
        ],
    )
}

fn definitions_that_are_wrong() -> Script {
    let name = "things.$(ns).example.com";
    let with = |pointer: &str, value: Value| {
        let mut object = Definition.minimal(name);
        if let Some(place) = object.pointer_mut(pointer) {
            *place = value;
        }
        create(Definition, object)
    };
    script(
        "definitions-that-are-wrong",
        vec![with("/metadata/name", json!("other.$(ns).example.com")), with("/spec/scope", json!("Odd"))],
    )
}

fn objects_of_a_definition() -> Script {
    let name = "sizes.$(ns).example.com";
    let mut object = Definition.minimal(name);
    object["spec"]["names"] = json!({"plural": "sizes", "kind": "Size"});
    object["spec"]["versions"][0]["subresources"] = json!({"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"}});
    object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!({
        "spec": {"type": "object", "default": {}, "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 9, "default": 1},
            "list": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "not bad"}]}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "either": {"x-kubernetes-int-or-string": true},
        }, "x-kubernetes-validations": [{"rule": "!has(self.list) || self.list.size() <= self.size"}]},
        "status": {"type": "object", "properties": {"size": {"type": "integer"}, "selector": {"type": "string"}}},
    });
    let collection = "/apis/$(ns).example.com/v1/namespaces/$(ns)/sizes";
    let at = |method: http::Method, path: &str, body: Value, media: &str| {
        Step::new(method, format!("{collection}{path}")).body(super::super::step::Body::Json(body)).content_type(media)
    };
    let size = |name: &str, spec: Value| {
        let object =
            json!({"apiVersion": "$(ns).example.com/v1", "kind": "Size", "metadata": {"name": name}, "spec": spec});
        at(http::Method::POST, "", object, "application/json")
    };
    let change = |path: &str, patch: Value| at(http::Method::PATCH, path, patch, "application/merge-patch+json");
    script(
        "objects-of-a-definition",
        vec![
            create(Definition, object),
            established(name),
            Step::new(http::Method::GET, collection).until_code(200),
            size("a", json!({})),
            size("b", json!({"size": 10})),
            size("b", json!({"size": 2, "list": ["x", "y"], "free": {"a": {"b": 1}}, "either": "5", "unknown": 1})),
            size("c", json!({"size": 1, "list": ["x", "y"]})),
            size("c", json!({"size": 5, "list": ["x", "bad"]})),
            size("d", json!({"either": true})),
            change("/b", json!({"spec": {"list": ["x", "y", "z"]}})),
            change("/b/scale", json!({"spec": {"replicas": 4}})),
            Step::new(http::Method::GET, format!("{collection}/b/scale")),
            change("/b/scale", json!({"spec": {"replicas": 40}})),
            change("/b/scale", json!({"spec": {"replicas": 1}})),
            change("/b/status", json!({"status": {"size": 4, "selector": "a=b"}})),
            Step::new(http::Method::GET, format!("{collection}/b/scale")),
            Step::new(http::Method::GET, format!("{collection}/b")),
            Step::new(http::Method::GET, collection),
        ],
    )
}
