//! Deleting: preconditions, grace, propagation, finalizers, many at once; and evicting.

use serde_json::{Value, json};

use super::super::kind::Kind::{
    self, ConfigMap, ControllerRevision, Event, Lease, PersistentVolumeClaim, Pod, PodDisruptionBudget, QuorumCluster,
    Secret, ServiceAccount, StatefulSet,
};
use super::super::step::{
    Body, Script, Step, create, delete, delete_collection, delete_with, get, json_patch, list, merge, script, watch,
};

pub fn scripts() -> Vec<Script> {
    vec![
        plainly(),
        preconditions(),
        propagation(),
        finalizers(),
        grace(),
        collections(),
        options_that_are_wrong(),
        dry_runs(),
        eviction(),
        eviction_within_a_budget(),
        eviction_that_is_wrong(),
        two_budgets(),
    ]
}

const KINDS: [Kind; 11] = [
    ConfigMap,
    Secret,
    Pod,
    StatefulSet,
    PodDisruptionBudget,
    Lease,
    Event,
    ControllerRevision,
    QuorumCluster,
    ServiceAccount,
    PersistentVolumeClaim,
];

fn plainly() -> Script {
    let mut steps = Vec::new();
    for kind in KINDS {
        steps.extend([
            create(kind, kind.minimal("a")),
            delete(kind, "a"),
            get(kind, "a"),
            delete(kind, "a"),
            create(kind, kind.minimal("a")),
        ]);
    }
    script("delete-answers", steps)
}

fn preconditions() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, Pod, StatefulSet, QuorumCluster, Lease] {
        let with = |preconditions: Value| {
            delete_with(kind, "a", json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}))
        };
        steps.extend([
            create(kind, kind.minimal("a")).save("a"),
            merge(kind, "a", json!({"metadata": {"labels": {"x": "y"}}})).save("b"),
            with(json!({"uid": "11111111-2222-3333-4444-555555555555"})),
            with(json!({"resourceVersion": "$(a/metadata/resourceVersion)"})),
            with(json!({"resourceVersion": "x"})),
            with(json!({"uid": "$(a/metadata/uid)", "resourceVersion": "$(a/metadata/resourceVersion)"})),
            with(json!({"uid": "$(a/metadata/uid)", "resourceVersion": "$(b/metadata/resourceVersion)"})),
            get(kind, "a"),
            with(json!({"uid": "$(a/metadata/uid)"})),
        ]);
    }
    script("delete-with-preconditions", steps)
}

fn propagation() -> Script {
    let mut steps = vec![watch(ConfigMap, json!({}))];
    for kind in [ConfigMap, StatefulSet, QuorumCluster, Pod] {
        for policy in ["Background", "Foreground", "Orphan"] {
            let name = policy.to_lowercase();
            steps.extend([
                create(kind, kind.minimal(&name)),
                delete_with(kind, &name, json!({"propagationPolicy": policy})),
                get(kind, &name),
                delete_with(kind, &name, json!({"propagationPolicy": "Background"})),
                get(kind, &name),
                delete_with(kind, &name, json!({"propagationPolicy": "Orphan"})),
                get(kind, &name),
                merge(kind, &name, json!({"metadata": {"finalizers": null}})),
                get(kind, &name),
            ]);
        }
        steps.extend([
            create(kind, kind.minimal("q")),
            delete(kind, "q").query("propagationPolicy", "Foreground"),
            get(kind, "q"),
            create(kind, kind.minimal("r")),
            delete_with(kind, "r", json!({"orphanDependents": true})),
            get(kind, "r"),
            delete_with(kind, "r", json!({"orphanDependents": false})),
        ]);
    }
    script("delete-with-propagation", steps)
}

fn finalizers() -> Script {
    let mut steps = vec![watch(ConfigMap, json!({})), watch(QuorumCluster, json!({})), watch(Pod, json!({}))];
    for kind in [ConfigMap, StatefulSet, QuorumCluster, Pod, Lease, Event] {
        let mut object = kind.minimal("a");
        object["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
        steps.extend([
            create(kind, object),
            delete(kind, "a").save("a"),
            get(kind, "a"),
            delete(kind, "a"),
            create(kind, kind.minimal("a")),
            merge(kind, "a", json!({"metadata": {"finalizers": ["example.com/a"]}})),
            merge(kind, "a", json!({"metadata": {"labels": {"x": "y"}}})),
            json_patch(kind, "a", json!([{"op": "remove", "path": "/metadata/finalizers/0"}])),
            get(kind, "a"),
        ]);
    }
    script("delete-waits-for-finalizers", steps)
}

fn grace() -> Script {
    let running = |name: &str| {
        let mut pod = Pod.minimal(name);
        pod["spec"]["nodeName"] = json!("n1");
        create(Pod, pod)
    };
    let with = |name: &str, seconds: i64| delete_with(Pod, name, json!({"gracePeriodSeconds": seconds}));
    let mut steps = vec![
        watch(Pod, json!({})),
        running("a"),
        delete(Pod, "a"),
        delete(Pod, "a"),
        with("a", 60),
        with("a", 10),
        get(Pod, "a"),
        with("a", 0),
        get(Pod, "a"),
        running("b"),
        with("b", 5),
        with("b", -1),
        with("b", 1),
        get(Pod, "b"),
        merge(Pod, "b", json!({"metadata": {"labels": {"x": "y"}}})),
        with("b", 0),
        running("c"),
        delete(Pod, "c").query("gracePeriodSeconds", "7"),
        get(Pod, "c"),
        running("d"),
        with("d", 0),
        get(Pod, "d"),
        running("e"),
        merge(Pod, "e", json!({"status": {"phase": "Succeeded"}})).part("status"),
        delete(Pod, "e"),
        get(Pod, "e"),
        running("f"),
        with("f", -7),
        get(Pod, "f"),
        create(Pod, Pod.minimal("g")),
        with("g", 20),
        get(Pod, "g"),
    ];
    steps.extend([
        create(ConfigMap, ConfigMap.minimal("a")),
        delete_with(ConfigMap, "a", json!({"gracePeriodSeconds": 30})),
        get(ConfigMap, "a"),
    ]);
    script("delete-with-a-grace-period", steps)
}

fn collections() -> Script {
    let labelled = |kind: Kind, name: &str, value: &str| {
        let mut object = kind.minimal(name);
        object["metadata"]["labels"] = json!({"x": value});
        create(kind, object)
    };
    let mut steps = vec![watch(ConfigMap, json!({}))];
    for kind in [ConfigMap, QuorumCluster, Pod] {
        steps.extend([
            labelled(kind, "a", "1"),
            labelled(kind, "b", "2"),
            labelled(kind, "c", "1"),
            delete_collection(kind).query("labelSelector", "x=3"),
            delete_collection(kind).query("dryRun", "All"),
            delete_collection(kind).query("labelSelector", "x=1"),
            list(kind),
            delete_collection(kind).query("fieldSelector", "metadata.name=b"),
            list(kind),
            delete_collection(kind),
            delete_collection(kind).query("labelSelector", "!!"),
        ]);
    }
    let mut held = ConfigMap.minimal("held");
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    steps.extend([create(ConfigMap, held), delete_collection(ConfigMap), list(ConfigMap)]);
    script("delete-a-collection", steps)
}

fn options_that_are_wrong() -> Script {
    let text = |text: &str| Step { body: Body::Text(text.to_owned()), ..delete_with(ConfigMap, "a", json!({})) };
    script(
        "delete-with-options-that-are-wrong",
        vec![
            create(ConfigMap, ConfigMap.minimal("a")),
            delete_with(ConfigMap, "a", json!({"propagationPolicy": "Sideways"})),
            delete_with(ConfigMap, "a", json!({"propagationPolicy": "Orphan", "orphanDependents": true})),
            delete(ConfigMap, "a").query("propagationPolicy", "Sideways"),
            delete(ConfigMap, "a").query("dryRun", "Some"),
            delete_with(ConfigMap, "a", json!({"dryRun": ["Some"]})),
            delete(ConfigMap, "a").query("gracePeriodSeconds", "x"),
            text("{"),
            text("[]"),
            text("null"),
            delete_with(ConfigMap, "a", json!({"kind": "Other", "apiVersion": "v1"})),
            delete_with(ConfigMap, "a", json!({"gracePeriodSeconds": "x"})),
            create(ConfigMap, ConfigMap.minimal("a")),
            delete_with(ConfigMap, "a", json!({"unknown": 1})),
            get(ConfigMap, "a"),
        ],
    )
}

fn dry_runs() -> Script {
    let mut steps = vec![watch(ConfigMap, json!({}))];
    for kind in [ConfigMap, StatefulSet, QuorumCluster, Pod] {
        steps.extend([
            create(kind, kind.minimal("a")).query("dryRun", "All"),
            get(kind, "a"),
            create(kind, kind.minimal("a")).save("a"),
            create(kind, kind.minimal("a")).query("dryRun", "All"),
            merge(kind, "a", json!({"metadata": {"labels": {"x": "y"}}})).query("dryRun", "All"),
            super::super::step::put_saved(kind, "a", "a", json!({"metadata": {"labels": {"x": "z"}}}))
                .query("dryRun", "All"),
            get(kind, "a"),
            delete(kind, "a").query("dryRun", "All"),
            delete_with(kind, "a", json!({"dryRun": ["All"], "propagationPolicy": "Foreground"})),
            get(kind, "a"),
            create(kind, kind.minimal("b")).query("dryRun", "Maybe"),
            merge(kind, "a", json!({})).query("dryRun", "Maybe"),
            merge(kind, "a", json!({"metadata": {"labels": {"bad label": "y"}}})).query("dryRun", "All"),
        ]);
    }
    script("dry-run", steps)
}

fn evict(name: &str, fields: &Value) -> Step {
    let mut object =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "$(ns)"}});
    if let (Some(map), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
        map.extend(fields.clone());
    }
    let mut step = create(Pod, object);
    step.path = format!("{}/eviction", Pod.object(name));
    step
}

fn labelled_pod(name: &str) -> Step {
    let mut pod = Pod.minimal(name);
    pod["metadata"]["labels"] = json!({"app": "web"});
    pod["spec"]["nodeName"] = json!("n1");
    create(Pod, pod)
}

fn ready(name: &str) -> Step {
    let conditions = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2031-02-03T00:00:00Z"}]);
    merge(Pod, name, json!({"status": {"phase": "Running", "conditions": conditions}})).part("status")
}

fn eviction() -> Script {
    script(
        "evict-without-a-budget",
        vec![
            watch(Pod, json!({})),
            evict("missing", &json!({})),
            labelled_pod("a"),
            evict("a", &json!({"deleteOptions": {"dryRun": ["All"]}})),
            evict("a", &json!({})).query("dryRun", "All"),
            get(Pod, "a"),
            evict("a", &json!({"deleteOptions": {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}})),
            evict("a", &json!({"deleteOptions": {"preconditions": {"resourceVersion": "1"}}})),
            evict("a", &json!({})),
            get(Pod, "a"),
            evict("a", &json!({"deleteOptions": {"gracePeriodSeconds": 3}})),
            get(Pod, "a"),
            labelled_pod("b").save("b"),
            ready("b"),
            evict(
                "b",
                &json!({"deleteOptions": {"preconditions": {"uid": "$(b/metadata/uid)"}, "gracePeriodSeconds": 0}}),
            ),
            get(Pod, "b"),
            create(Pod, Pod.minimal("c")),
            evict("c", &json!({})),
            get(Pod, "c"),
        ],
    )
}

fn eviction_within_a_budget() -> Script {
    let status = |status: Value| merge(PodDisruptionBudget, "web", json!({"status": status})).part("status");
    script(
        "evict-within-a-budget",
        vec![
            watch(PodDisruptionBudget, json!({})),
            create(PodDisruptionBudget, PodDisruptionBudget.minimal("web")),
            labelled_pod("a"),
            labelled_pod("b"),
            labelled_pod("c"),
            evict("a", &json!({})).query("dryRun", "All"),
            ready("a"),
            ready("b"),
            evict("a", &json!({})),
            status(
                json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 3}),
            ),
            evict("a", &json!({})),
            status(json!({"disruptionsAllowed": 1, "currentHealthy": 3})),
            evict("a", &json!({})).query("dryRun", "All"),
            evict("a", &json!({})),
            get(PodDisruptionBudget, "web"),
            evict("b", &json!({})),
            get(Pod, "b"),
            merge(Pod, "c", json!({"status": {"phase": "Running"}})).part("status"),
            evict("c", &json!({})),
            get(Pod, "c"),
            labelled_pod("d"),
            merge(Pod, "d", json!({"status": {"phase": "Running"}})).part("status"),
            status(json!({"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2})),
            evict("d", &json!({})),
            merge(PodDisruptionBudget, "web", json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}})),
            evict("d", &json!({})),
            get(Pod, "d"),
            get(PodDisruptionBudget, "web"),
        ],
    )
}

fn eviction_that_is_wrong() -> Script {
    script(
        "evict-with-a-body-that-is-wrong",
        vec![
            labelled_pod("a"),
            evict("a", &json!({"metadata": {"name": "b"}})),
            evict("a", &json!({"metadata": {}})),
            evict("a", &json!({"metadata": {"name": "a", "namespace": "other"}})),
            evict("a", &json!({"kind": "Other"})),
            evict("a", &json!({"apiVersion": "policy/v1beta1"})),
            evict("a", &json!({"deleteOptions": {"propagationPolicy": "Sideways"}})),
            evict("a", &json!({})).body(Body::None),
            get(Pod, "a"),
        ],
    )
}

fn two_budgets() -> Script {
    script(
        "evict-under-two-budgets",
        vec![
            create(PodDisruptionBudget, PodDisruptionBudget.minimal("one")),
            create(PodDisruptionBudget, PodDisruptionBudget.minimal("two")),
            labelled_pod("a"),
            evict("a", &json!({})).query("dryRun", "All"),
            ready("a"),
            evict("a", &json!({})),
            get(Pod, "a"),
        ],
    )
}
