//! The parts of objects with an address of their own: status, scale, binding; and what moves the generation.
#![expect(clippy::wildcard_enum_match_arm, reason = "what is not named here is a custom resource")]

use serde_json::{Value, json};

use super::super::kind::Kind::{self, ConfigMap, Node, Pod, PodDisruptionBudget, QuorumCluster, StatefulSet};
use super::super::step::{Body, Script, Step, create, delete, delete_with, get, json_patch, merge, put_saved, script};

pub fn scripts() -> Vec<Script> {
    vec![
        only_the_status(),
        not_the_status(),
        status_of_what_has_none(),
        invalid_status(),
        generations(),
        pod_generations(),
        touched_pods(),
        scales(),
        broken_scales(),
        binding(),
    ]
}

fn ready() -> Value {
    json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2031-02-03T00:00:00Z"}]})
}

fn only_the_status() -> Script {
    let mut steps = Vec::new();
    for kind in [StatefulSet, Pod, PodDisruptionBudget, QuorumCluster] {
        let status = match kind {
            StatefulSet => json!({"replicas": 3, "readyReplicas": 2, "observedGeneration": 1, "currentRevision": "r"}),
            Pod => {
                json!({"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}], "conditions": ready()["conditions"]})
            }
            PodDisruptionBudget => {
                json!({"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, "observedGeneration": 1})
            }
            _ => json!({"phase": "Running", "observedGeneration": 1}),
        };
        steps.extend([
            create(kind, kind.minimal("a")).save("a"),
            put_saved(kind, "a", "a", json!({"status": status, "spec": {"paused": true}, "metadata": {"labels": {"x": "y"}, "annotations": {"k": "v"}}}))
                .part("status")
                .save("b"),
            get(kind, "a"),
            put_saved(kind, "a", "a", json!({"status": status})).part("status"),
            put_saved(kind, "a", "b", json!({})).part("status"),
            get(kind, "a").part("status"),
            merge(kind, "a", json!({"status": {"observedGeneration": 2}})).part("status"),
            merge(kind, "a", json!({"status": null})).part("status"),
            json_patch(kind, "a", json!([{"op": "add", "path": "/status", "value": status}])).part("status"),
            merge(kind, "a", json!({"metadata": {"finalizers": ["example.com/x"], "labels": {"z": "1"}}})).part("status"),
            merge(kind, "missing", json!({"status": {}})).part("status"),
            get(kind, "missing").part("status"),
            get(kind, "a"),
        ]);
    }
    script("status-is-written-alone", steps)
}

fn not_the_status() -> Script {
    let mut steps = Vec::new();
    for kind in [StatefulSet, Pod, PodDisruptionBudget, QuorumCluster] {
        steps.extend([
            create(kind, kind.minimal("a")).save("a"),
            put_saved(kind, "a", "a", json!({"status": {"observedGeneration": 7, "phase": "Running"}})),
            merge(kind, "a", json!({"status": {"observedGeneration": 8, "phase": "Running"}})),
            merge(kind, "a", json!({"status": null})),
            get(kind, "a"),
        ]);
    }
    script("status-is-not-written-with-the-rest", steps)
}

fn status_of_what_has_none() -> Script {
    script(
        "parts-that-are-not-there",
        vec![
            create(ConfigMap, ConfigMap.minimal("a")),
            get(ConfigMap, "a").part("status"),
            get(ConfigMap, "a").part("scale"),
            get(ConfigMap, "a").part("nothing"),
            merge(ConfigMap, "a", json!({})).part("status"),
            create(QuorumCluster, QuorumCluster.minimal("a")),
            get(QuorumCluster, "a").part("scale"),
            get(QuorumCluster, "a").part("nothing"),
            create(Pod, Pod.minimal("a")),
            get(Pod, "a").part("eviction"),
            get(Pod, "a").part("binding"),
            get(Pod, "a").part("scale"),
        ],
    )
}

fn invalid_status() -> Script {
    let status = |kind: Kind, status: Value| merge(kind, "a", json!({"status": status})).part("status");
    script(
        "status-that-is-invalid",
        vec![
            create(StatefulSet, StatefulSet.minimal("a")),
            status(StatefulSet, json!({"replicas": -1})),
            status(StatefulSet, json!({"readyReplicas": 5, "replicas": 3})),
            status(StatefulSet, json!({"replicas": 3, "readyReplicas": 3, "availableReplicas": 4})),
            status(StatefulSet, json!({"replicas": 3, "currentReplicas": -4})),
            status(StatefulSet, json!({"observedGeneration": -4})),
            status(StatefulSet, json!({"collisionCount": -4})),
            create(PodDisruptionBudget, PodDisruptionBudget.minimal("a")),
            status(PodDisruptionBudget, json!({"disruptionsAllowed": -1})),
            status(PodDisruptionBudget, json!({"currentHealthy": -1, "desiredHealthy": -1, "expectedPods": -1})),
            create(QuorumCluster, QuorumCluster.minimal("a")),
            status(QuorumCluster, json!({"phase": 5})),
            status(QuorumCluster, json!({"conditions": [{"type": "Ready"}]})),
            status(QuorumCluster, json!({"observedGeneration": "x"})),
            status(QuorumCluster, json!({"upgrade": {"fromVersion": "1"}})),
            status(QuorumCluster, json!({"unknown": 1})),
            create(Pod, Pod.minimal("a")),
            status(Pod, json!({"phase": "Sleeping"})),
            status(Pod, json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": -1}]})),
            get(Pod, "a"),
        ],
    )
}

fn generations() -> Script {
    let mut steps = Vec::new();
    for kind in [StatefulSet, PodDisruptionBudget, QuorumCluster] {
        let change = match kind {
            StatefulSet => json!({"spec": {"replicas": 3}}),
            PodDisruptionBudget => json!({"spec": {"maxUnavailable": 2}}),
            _ => json!({"spec": {"paused": true}}),
        };
        steps.extend([
            create(kind, kind.minimal("a")).save("a"),
            merge(kind, "a", json!({"metadata": {"labels": {"x": "1"}}})),
            merge(kind, "a", json!({"metadata": {"annotations": {"x": "1"}}})),
            merge(kind, "a", change.clone()),
            merge(kind, "a", change),
            merge(kind, "a", json!({"status": {"observedGeneration": 2}})).part("status"),
            merge(kind, "a", json!({"metadata": {"generation": 77}})),
            merge(kind, "a", json!({"metadata": {"finalizers": ["example.com/x"]}})),
            delete(kind, "a"),
            delete(kind, "a"),
            get(kind, "a"),
        ]);
    }
    script("generation-counts-changes-of-the-spec", steps)
}

fn pod_generations() -> Script {
    script(
        "generation-of-pods",
        vec![
            create(Pod, Pod.minimal("a")),
            merge(Pod, "a", json!({"metadata": {"labels": {"x": "1"}}})),
            json_patch(
                Pod,
                "a",
                json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "example.com/c:2"}]),
            ),
            merge(Pod, "a", json!({"spec": {"activeDeadlineSeconds": 100}})),
            merge(Pod, "a", json!({"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}})),
            merge(Pod, "a", json!({"status": {"phase": "Running"}})).part("status"),
            get(Pod, "a"),
        ],
    )
}

/// An annotation that comes with the status moves the resourceVersion, and a deletion that was decided before misses.
fn touched_pods() -> Script {
    let mark = |by: &str| json!({"metadata": {"annotations": {"windlass.dev/touched-by": by}}});
    let delete_as_in = |slot: &str| {
        let seen =
            json!({"uid": "$(a/metadata/uid)", "resourceVersion": format!("$({slot}/metadata/resourceVersion)")});
        delete_with(Pod, "a", json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": seen}))
    };
    script(
        "touches-of-pods-by-their-status",
        vec![
            create(Pod, Pod.minimal("a")).save("a"),
            merge(Pod, "a", mark("1")).part("status").save("b"),
            merge(Pod, "a", mark("1")).part("status"),
            delete_as_in("a"),
            merge(
                Pod,
                "a",
                json!({"metadata": mark("2")["metadata"], "spec": {"containers": [{"name": "c", "image": "evil"}]}}),
            )
            .part("status")
            .save("c"),
            delete_as_in("b"),
            get(Pod, "a"),
            delete_as_in("c"),
            merge(Pod, "a", mark("3")).part("status"),
        ],
    )
}

fn scales() -> Script {
    script(
        "scale",
        vec![
            create(StatefulSet, StatefulSet.minimal("a")).save("a"),
            get(StatefulSet, "a").part("scale").save("s"),
            put_saved(StatefulSet, "a", "s", json!({"spec": {"replicas": 3}})).part("scale").save("t"),
            put_saved(StatefulSet, "a", "s", json!({"spec": {"replicas": 4}})).part("scale"),
            put_saved(StatefulSet, "a", "t", json!({"metadata": {"resourceVersion": null}, "spec": {"replicas": 5}}))
                .part("scale"),
            merge(StatefulSet, "a", json!({"spec": {"replicas": 0}})).part("scale"),
            merge(StatefulSet, "a", json!({"spec": {"replicas": 2}})).part("scale"),
            merge(StatefulSet, "a", json!({"spec": {"replicas": 2}})).part("scale"),
            json_patch(StatefulSet, "a", json!([{"op": "replace", "path": "/spec/replicas", "value": 6}]))
                .part("scale"),
            merge(StatefulSet, "a", json!({"status": {"replicas": 2}})).part("status"),
            get(StatefulSet, "a").part("scale"),
            get(StatefulSet, "a"),
            get(StatefulSet, "missing").part("scale"),
        ],
    )
}

fn broken_scales() -> Script {
    let scale = |body: Value| {
        Step { method: http::Method::PUT, ..get(StatefulSet, "a").part("scale") }
            .body(Body::Json(body))
            .content_type("application/json")
    };
    script(
        "scale-that-is-invalid",
        vec![
            create(StatefulSet, StatefulSet.minimal("a")).save("a"),
            merge(StatefulSet, "a", json!({"spec": {"replicas": -1}})).part("scale"),
            merge(StatefulSet, "a", json!({"spec": {"replicas": "x"}})).part("scale"),
            scale(
                json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a", "namespace": "$(ns)"}, "spec": {"replicas": 2}}),
            ),
            scale(json!({"metadata": {"name": "a"}, "spec": {"replicas": 3}})),
            scale(json!({"metadata": {"name": "b"}, "spec": {"replicas": 3}})),
            scale(json!({"kind": "Other", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"}})),
            merge(StatefulSet, "a", json!({"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}})).part("scale"),
            get(StatefulSet, "a").part("scale"),
        ],
    )
}

fn binding() -> Script {
    let bind = |name: &str, node: &str| {
        let mut step = create(
            Pod,
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}),
        );
        step.path = format!("{}/binding", Pod.object(name));
        step
    };
    script(
        "binding-of-pods",
        vec![
            create(Pod, Pod.minimal("a")),
            bind("missing", "n"),
            bind("a", ""),
            bind("a", "n1").query("dryRun", "All"),
            bind("a", "n1"),
            bind("a", "n2"),
            get(Pod, "a"),
            create(Node, Node.minimal("n-$(ns)")).save("n"),
            merge(Node, "n-$(ns)", json!({"status": ready()})).part("status"),
            merge(Node, "n-$(ns)", json!({"spec": {"unschedulable": true}})),
            merge(Node, "n-$(ns)", json!({"spec": {"podCIDR": "10.0.0.0/24"}})),
            delete(Node, "n-$(ns)"),
        ],
    )
}
