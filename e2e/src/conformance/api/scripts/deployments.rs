//! Deployments and ReplicaSets: defaults, what they refuse, and what may change.

use serde_json::{Value, json};

use super::super::kind::Kind::{Deployment, ReplicaSet};
use super::super::kind::pod_spec;
use super::super::step::{Script, Step, create, get, merge, script};
use super::workloads::merged;

pub fn scripts() -> Vec<Script> {
    vec![
        deployment_defaults(),
        deployment_strategies(),
        deployments_that_are_wrong(),
        deployment_updates(),
        deployment_status(),
        replica_sets(),
        replica_set_status(),
    ]
}

fn deployment(name: &str, spec: &Value) -> Step {
    create(Deployment, merged(&Deployment.minimal(name), &json!({"spec": spec})))
}

fn replica_set(name: &str, spec: &Value) -> Step {
    create(ReplicaSet, merged(&ReplicaSet.minimal(name), &json!({"spec": spec})))
}

fn deployment_defaults() -> Script {
    script(
        "deployment-defaults",
        vec![
            deployment("a", &json!({})),
            deployment("b", &json!({"replicas": 0, "minReadySeconds": 5, "revisionHistoryLimit": 0, "paused": true})),
            deployment("c", &json!({"paused": false, "minReadySeconds": 0, "progressDeadlineSeconds": 1})),
            deployment("d", &json!({"strategy": null, "revisionHistoryLimit": null})),
            get(Deployment, "a"),
            get(Deployment, "a").part("scale"),
        ],
    )
}

fn deployment_strategies() -> Script {
    let strategy = |name: &str, strategy: Value| deployment(name, &json!({"strategy": strategy}));
    let rolling = |unavailable: Value, surge: Value| json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}});
    script(
        "deployment-strategies",
        vec![
            strategy("a", json!({})),
            strategy("b", json!({"type": "RollingUpdate"})),
            strategy("c", json!({"rollingUpdate": {"maxSurge": 2}})),
            strategy("d", json!({"type": "Recreate"})),
            strategy("e", json!({"type": "Recreate", "rollingUpdate": {}})),
            strategy("f", rolling(json!(0), json!("0%"))),
            strategy("f", rolling(json!("101%"), json!("200%"))),
            strategy("f", rolling(json!(-1), json!(1))),
            strategy("f", rolling(json!(1), json!("half"))),
            strategy("f", rolling(json!("100%"), json!("200%"))),
            merge(Deployment, "f", json!({"spec": {"strategy": {"type": "Recreate"}}})),
            merge(Deployment, "f", json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}})),
            merge(Deployment, "f", json!({"spec": {"strategy": null}})),
            get(Deployment, "f"),
        ],
    )
}

fn deployments_that_are_wrong() -> Script {
    let mut steps = Vec::new();
    for spec in [
        json!({"replicas": -1}),
        json!({"minReadySeconds": -1}),
        json!({"revisionHistoryLimit": -1}),
        json!({"progressDeadlineSeconds": -1}),
        json!({"progressDeadlineSeconds": 0}),
        json!({"progressDeadlineSeconds": 10, "minReadySeconds": 10}),
        json!({"selector": {"matchLabels": {"app": "other"}}}),
        json!({"template": {"metadata": {"labels": {"app": "other"}}}}),
        json!({"template": {"spec": {"restartPolicy": "Never"}}}),
        json!({"template": {"spec": {"activeDeadlineSeconds": 5}}}),
        json!({"template": {"spec": {"containers": []}}}),
        json!({"template": {"spec": {"containers": [{"name": "c"}]}}}),
        json!({"template": {"metadata": {"labels": {"app": "web", "bad key": "x"}}}}),
        json!({"selector": {"matchExpressions": [{"key": "app", "operator": "Odd"}]}}),
    ] {
        steps.push(deployment("a", &spec));
    }
    for kind in [Deployment, ReplicaSet] {
        steps.push(create(kind, kind.with("a", &json!({"spec": {"template": {"spec": pod_spec()}}}))));
        let empty = json!({"spec": {"selector": {}, "template": {"spec": pod_spec()}}});
        steps.push(create(kind, kind.with("a", &empty)));
    }
    script("deployments-that-are-wrong", steps)
}

fn deployment_updates() -> Script {
    let change = |spec: Value| merge(Deployment, "a", json!({"spec": spec}));
    script(
        "deployment-updates",
        vec![
            deployment("a", &json!({})),
            change(json!({"replicas": 3})),
            change(json!({"replicas": null})),
            change(json!({"paused": true})),
            change(json!({"paused": false})),
            change(json!({"template": {"spec": {"containers": [{"name": "c", "image": "example.com/c:2"}]}}})),
            change(json!({"selector": {"matchLabels": {"more": "x"}}})),
            change(json!({"minReadySeconds": 600})),
            // Annotations are copied to ReplicaSets, and so they make a generation; labels do not.
            merge(Deployment, "a", json!({"metadata": {"annotations": {"team": "a"}}})),
            merge(Deployment, "a", json!({"metadata": {"labels": {"team": "a"}}})),
            merge(Deployment, "a", json!({"spec": {"replicas": 4}})).part("scale"),
            merge(Deployment, "a", json!({"spec": {"replicas": -4}})).part("scale"),
            get(Deployment, "a"),
        ],
    )
}

fn deployment_status() -> Script {
    let told = |status: Value| merge(Deployment, "a", json!({"status": status})).part("status");
    script(
        "deployment-status",
        vec![
            deployment("a", &json!({})),
            told(
                json!({"replicas": 3, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 1, "unavailableReplicas": 2, "observedGeneration": 1}),
            ),
            told(json!({"availableReplicas": 3})),
            told(json!({"updatedReplicas": 4})),
            told(json!({"unavailableReplicas": -1})),
            told(
                json!({"replicas": 0, "updatedReplicas": 0, "readyReplicas": 0, "availableReplicas": 0, "unavailableReplicas": 0}),
            ),
            told(json!({"collisionCount": 2})),
            told(json!({"collisionCount": 1})),
            told(json!({"terminatingReplicas": 1})),
            told(json!({"conditions": [{"type": "Available", "status": "True"}]})),
            merge(
                Deployment,
                "a",
                json!({"metadata": {"annotations": {"k": "v"}, "labels": {"k": "v"}}, "spec": {"replicas": 9}}),
            )
            .part("status"),
            get(Deployment, "a"),
        ],
    )
}

fn replica_sets() -> Script {
    let change = |spec: Value| merge(ReplicaSet, "a", json!({"spec": spec}));
    script(
        "replicaset-rules",
        vec![
            replica_set("a", &json!({})),
            replica_set("b", &json!({"replicas": 0, "minReadySeconds": 7})),
            replica_set("c", &json!({"replicas": -1, "minReadySeconds": -1})),
            replica_set("c", &json!({"template": {"spec": {"restartPolicy": "Never"}}})),
            replica_set("c", &json!({"selector": {"matchLabels": {"app": "other"}}})),
            change(json!({"replicas": 3})),
            change(json!({"template": {"metadata": {"annotations": {"k": "v"}}}})),
            change(json!({"selector": {"matchLabels": {"more": "x"}}})),
            merge(ReplicaSet, "a", json!({"metadata": {"annotations": {"k": "v"}}})),
            merge(ReplicaSet, "a", json!({"spec": {"replicas": 4}})).part("scale"),
            get(ReplicaSet, "a"),
        ],
    )
}

fn replica_set_status() -> Script {
    let told = |status: Value| merge(ReplicaSet, "a", json!({"status": status})).part("status");
    script(
        "replicaset-status",
        vec![
            replica_set("a", &json!({})),
            told(
                json!({"replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 2, "availableReplicas": 1, "observedGeneration": 1}),
            ),
            told(json!({"availableReplicas": 3})),
            told(json!({"fullyLabeledReplicas": 4})),
            told(json!({"readyReplicas": -1})),
            told(json!({"replicas": 0, "fullyLabeledReplicas": 0, "readyReplicas": 0, "availableReplicas": 0})),
            told(json!({"terminatingReplicas": 1})),
            told(json!({"conditions": [{"type": "ReplicaFailure", "status": "True"}]})),
            get(ReplicaSet, "a"),
        ],
    )
}
