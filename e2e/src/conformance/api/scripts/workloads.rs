//! Pods and StatefulSets: defaults, what they refuse, and what may change.

use serde_json::{Value, json};

use super::super::kind::Kind::{Pod, StatefulSet};
use super::super::kind::pod_spec;
use super::super::step::{Script, Step, create, get, json_patch, merge, put_saved, script};

pub fn scripts() -> Vec<Script> {
    vec![
        set_defaults(),
        set_strategies(),
        set_claims(),
        sets_that_are_wrong(),
        set_updates(),
        pod_defaults(),
        pods_that_are_wrong(),
        pod_updates(),
    ]
}

/// The one with the other merged into it.
pub fn merged(base: &Value, change: &Value) -> Value {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            let mut result = base.clone();
            for (key, value) in change {
                let old = base.get(key).cloned().unwrap_or(Value::Null);
                result.insert(key.clone(), merged(&old, value));
            }
            Value::Object(result)
        }
        _ => change.clone(),
    }
}

fn set(name: &str, spec: &Value) -> Step {
    create(StatefulSet, merged(&StatefulSet.minimal(name), &json!({"spec": spec})))
}

fn pod(name: &str, spec: &Value) -> Step {
    create(Pod, merged(&Pod.minimal(name), &json!({"spec": spec})))
}

fn rich_container() -> Value {
    json!({
        "name": "c", "image": "example.com/c",
        "ports": [{"name": "client", "containerPort": 2379}, {"containerPort": 2380, "protocol": "UDP"}],
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "readinessProbe": {"httpGet": {"port": "client"}},
        "livenessProbe": {"tcpSocket": {"port": 2379}, "periodSeconds": 3},
        "startupProbe": {"exec": {"command": ["true"]}, "failureThreshold": 30},
        "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "64Mi", "cpu": "0.5"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "securityContext": {"runAsUser": 1},
    })
}

fn rich_spec() -> Value {
    json!({
        "containers": [rich_container()],
        "initContainers": [{"name": "i", "image": "example.com/i@sha256:0000000000000000000000000000000000000000000000000000000000000000"}],
        "serviceAccountName": "sa",
        "terminationGracePeriodSeconds": 7,
        "volumes": [
            {"name": "data", "emptyDir": {}},
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "m", "configMap": {"name": "m"}},
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "d", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"name": "h", "hostPath": {"path": "/x"}},
        ],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}},
        ]}},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["x"]}],
    })
}

fn set_defaults() -> Script {
    script(
        "statefulset-defaults",
        vec![
            set("a", &json!({})),
            set(
                "b",
                &json!({"replicas": 0, "podManagementPolicy": "Parallel", "minReadySeconds": 5, "revisionHistoryLimit": 0}),
            ),
            set("c", &json!({"template": {"spec": rich_spec()}})),
            set("d", &json!({"serviceName": null, "ordinals": {"start": 3}})),
            set("e", &json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}})),
            get(StatefulSet, "c"),
        ],
    )
}

fn set_strategies() -> Script {
    let strategy = |name: &str, strategy: Value| set(name, &json!({"updateStrategy": strategy}));
    script(
        "statefulset-strategies",
        vec![
            strategy("a", json!({})),
            strategy("b", json!({"type": "RollingUpdate"})),
            strategy("c", json!({"type": "RollingUpdate", "rollingUpdate": {}})),
            strategy("d", json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}})),
            strategy("e", json!({"type": "OnDelete"})),
            strategy("f", json!({"type": "OnDelete", "rollingUpdate": {"partition": 3}})),
            strategy("f", json!({"type": "OnDelete", "rollingUpdate": {}})),
            strategy("f", json!({"type": "Odd"})),
            strategy("f", json!({"type": "RollingUpdate", "rollingUpdate": {"partition": -1}})),
            strategy("f", json!({"rollingUpdate": {"partition": 2}})),
            strategy("g", json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 2}})),
            merge(StatefulSet, "d", json!({"spec": {"updateStrategy": {"type": "OnDelete"}}})),
            merge(StatefulSet, "d", json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}})),
            merge(StatefulSet, "d", json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}})),
            merge(StatefulSet, "d", json!({"spec": {"updateStrategy": null}})),
            merge(StatefulSet, "d", json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 9}}}})),
            get(StatefulSet, "d"),
        ],
    )
}

fn set_claims() -> Script {
    let claim = |fields: Value| {
        merged(
            &json!({"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            }}),
            &fields,
        )
    };
    script(
        "statefulset-claims",
        vec![
            set("a", &json!({"volumeClaimTemplates": [claim(json!({}))]})),
            set(
                "b",
                &json!({"volumeClaimTemplates": [claim(json!({"spec": {"storageClassName": "fast"}, "metadata": {"labels": {"x": "y"}}}))]}),
            ),
            merge(StatefulSet, "a", json!({"spec": {"volumeClaimTemplates": null}})),
            merge(
                StatefulSet,
                "a",
                json!({"spec": {"volumeClaimTemplates": [claim(json!({"spec": {"storageClassName": "slow"}}))]}}),
            ),
            merge(
                StatefulSet,
                "a",
                json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}),
            ),
            merge(StatefulSet, "a", json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Odd"}}})),
            get(StatefulSet, "a"),
        ],
    )
}

fn sets_that_are_wrong() -> Script {
    let mut steps = Vec::new();
    for spec in [
        json!({"replicas": -1}),
        json!({"minReadySeconds": -1}),
        json!({"revisionHistoryLimit": -1}),
        json!({"podManagementPolicy": "Odd"}),
        json!({"podManagementPolicy": ""}),
        json!({"ordinals": {"start": -1}}),
        json!({"selector": {"matchLabels": {"app": "other"}}}),
        json!({"template": {"metadata": {"labels": {"app": "other"}}}}),
        json!({"template": {"spec": {"restartPolicy": "Never"}}}),
        json!({"template": {"spec": {"containers": []}}}),
        json!({"template": {"spec": {"containers": [{"name": "c"}]}}}),
        json!({"template": {"spec": {"containers": [{"image": "x"}]}}}),
        json!({"template": {"spec": {"activeDeadlineSeconds": 5}}}),
        json!({"template": {"metadata": {"labels": {"app": "web", "bad key": "x"}}}}),
        json!({"serviceName": "Bad_Name"}),
        json!({"selector": {"matchExpressions": [{"key": "app", "operator": "Odd"}]}}),
        json!({"selector": {"matchLabels": {"app": "web", "bad key": "x"}}}),
        json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Odd"}}),
    ] {
        steps.push(set("a", &spec));
    }
    steps.push(create(StatefulSet, StatefulSet.with("a", &json!({}))));
    steps.push(create(StatefulSet, StatefulSet.with("a", &json!({"spec": {"template": {"spec": pod_spec()}}}))));
    steps.push(create(
        StatefulSet,
        StatefulSet.with("a", &json!({"spec": {"selector": {}, "template": {"spec": pod_spec()}}})),
    ));
    script("statefulsets-that-are-wrong", steps)
}

fn set_updates() -> Script {
    let change = |spec: Value| merge(StatefulSet, "a", json!({"spec": spec}));
    script(
        "statefulset-updates",
        vec![
            set("a", &json!({})).save("a"),
            change(json!({"replicas": 3})),
            change(json!({"replicas": null})),
            change(json!({"template": {"spec": {"containers": [{"name": "c", "image": "example.com/c:2"}]}}})),
            change(json!({"template": {"metadata": {"annotations": {"k": "v"}}}})),
            change(json!({"template": {"metadata": {"labels": {"app": "other"}}}})),
            change(json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}})),
            change(json!({"minReadySeconds": 3})),
            change(json!({"revisionHistoryLimit": 3})),
            change(json!({"ordinals": {"start": 1}})),
            change(json!({"ordinals": null})),
            change(json!({"selector": {"matchLabels": {"app": "other"}}})),
            change(json!({"selector": {"matchLabels": {"more": "x"}}})),
            change(json!({"serviceName": "other"})),
            change(json!({"podManagementPolicy": "Parallel"})),
            change(json!({"podManagementPolicy": "Parallel", "replicas": -4})),
            json_patch(
                StatefulSet,
                "a",
                json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": ""}]),
            ),
            json_patch(StatefulSet, "a", json!([{"op": "remove", "path": "/spec/template/spec/containers/0"}])),
            put_saved(
                StatefulSet,
                "a",
                "a",
                json!({"metadata": {"resourceVersion": null}, "spec": {"serviceName": "other"}}),
            ),
            get(StatefulSet, "a"),
        ],
    )
}

fn pod_defaults() -> Script {
    script(
        "pod-defaults",
        vec![
            pod("a", &json!({})),
            pod("b", &rich_spec()),
            pod(
                "c",
                &json!({"hostNetwork": true, "containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 80}]}]}),
            ),
            pod(
                "d",
                &json!({"hostname": "h", "subdomain": "s", "enableServiceLinks": false, "shareProcessNamespace": true}),
            ),
            pod(
                "e",
                &json!({"containers": [{"name": "c", "image": "x:latest", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}),
            ),
            pod(
                "f",
                &json!({"containers": [{"name": "c", "image": "x:1", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1000m"}}}]}),
            ),
            pod("g", &json!({"initContainers": [{"name": "i", "image": "x:1", "restartPolicy": "Always"}]})),
            pod(
                "h",
                &json!({"restartPolicy": "Never", "dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.1"]}}),
            ),
        ],
    )
}

fn pods_that_are_wrong() -> Script {
    let container = |fields: Value| json!({"containers": [merged(&json!({"name": "c", "image": "x:1"}), &fields)]});
    let mut steps = Vec::new();
    for spec in [
        json!({"containers": []}),
        json!({"containers": null}),
        container(json!({"name": ""})),
        container(json!({"name": "Bad_Name"})),
        container(json!({"image": ""})),
        container(json!({"image": " x"})),
        json!({"containers": [{"name": "c", "image": "x"}, {"name": "c", "image": "x"}]}),
        json!({"restartPolicy": "Odd"}),
        json!({"dnsPolicy": "Odd"}),
        json!({"terminationGracePeriodSeconds": -1}),
        json!({"activeDeadlineSeconds": 0}),
        json!({"nodeName": "Bad Node"}),
        container(json!({"ports": [{"containerPort": 0}]})),
        container(json!({"ports": [{"containerPort": 70_000}]})),
        container(json!({"imagePullPolicy": "Odd"})),
        container(json!({"volumeMounts": [{"name": "nothing", "mountPath": "/x"}]})),
        container(json!({"env": [{"name": ""}]})),
        json!({"volumes": [{"name": "v"}, {"name": "v"}]}),
        json!({"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]}),
        container(json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}})),
        container(json!({"resources": {"requests": {"cpu": "lots"}}})),
    ] {
        steps.push(pod("a", &spec));
    }
    steps.push(create(Pod, Pod.with("a", &json!({}))));
    script("pods-that-are-wrong", steps)
}

fn pod_updates() -> Script {
    let change = |spec: Value| merge(Pod, "a", json!({"spec": spec}));
    script(
        "pod-updates",
        vec![
            pod("a", &json!({"tolerations": [{"key": "a", "operator": "Exists"}]})).save("a"),
            json_patch(
                Pod,
                "a",
                json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "example.com/c:2"}]),
            ),
            json_patch(Pod, "a", json!([{"op": "replace", "path": "/spec/containers/0/image", "value": ""}])),
            json_patch(Pod, "a", json!([{"op": "replace", "path": "/spec/containers/0/name", "value": "d"}])),
            json_patch(
                Pod,
                "a",
                json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "d", "image": "x"}}]),
            ),
            change(json!({"nodeName": "n1"})),
            change(json!({"restartPolicy": "Never"})),
            change(json!({"terminationGracePeriodSeconds": 5})),
            change(json!({"activeDeadlineSeconds": 100})),
            change(json!({"activeDeadlineSeconds": 200})),
            change(json!({"activeDeadlineSeconds": null})),
            change(json!({"tolerations": []})),
            change(json!({"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]})),
            change(json!({"serviceAccountName": "x"})),
            put_saved(Pod, "a", "a", json!({"metadata": {"resourceVersion": null}, "spec": {"hostNetwork": true}})),
            merge(
                Pod,
                "a",
                json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "u"}]}}),
            ),
            get(Pod, "a"),
        ],
    )
}
