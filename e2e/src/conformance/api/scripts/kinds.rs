//! The rules of single kinds: defaults, what they refuse, and what may change.

use serde_json::{Value, json};

use super::super::kind::Kind::{
    self, ConfigMap, ControllerRevision, Event, Lease, Namespace, NewEvent, Node, PodDisruptionBudget, Secret,
};
use super::super::step::{Script, Step, create, delete, get, json_patch, list, merge, put_saved, script};

pub fn scripts() -> Vec<Script> {
    vec![
        budget_defaults(),
        budgets_that_are_wrong(),
        leases(),
        lease_updates(),
        config_maps(),
        immutable_maps(),
        secrets(),
        secret_updates(),
        revisions(),
        events(),
        new_events(),
        nodes(),
        namespaces(),
    ]
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
fn with_spec(kind: Kind, name: &str, spec: Value) -> Step {
    create(kind, kind.with(name, &json!({"spec": spec})))
}

fn budget_defaults() -> Script {
    let budget = |name: &str, spec: Value| with_spec(PodDisruptionBudget, name, spec);
    script(
        "budget-defaults",
        vec![
            budget("a", json!({})),
            budget("b", json!({"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}})),
            budget("c", json!({"maxUnavailable": 0, "selector": {}, "unhealthyPodEvictionPolicy": "IfHealthyBudget"})),
            create(PodDisruptionBudget, PodDisruptionBudget.with("d", &json!({}))),
            merge(PodDisruptionBudget, "b", json!({"spec": {"minAvailable": 2}})),
            merge(PodDisruptionBudget, "b", json!({"spec": {"minAvailable": null, "maxUnavailable": 1}})),
            merge(PodDisruptionBudget, "b", json!({"spec": {"selector": {"matchLabels": {"a": "c"}}}})),
            get(PodDisruptionBudget, "b"),
        ],
    )
}

fn budgets_that_are_wrong() -> Script {
    let selector = json!({"matchLabels": {"a": "b"}});
    let mut steps = Vec::new();
    for spec in [
        json!({"minAvailable": 1, "maxUnavailable": 1, "selector": selector}),
        json!({"minAvailable": -1, "selector": selector}),
        json!({"maxUnavailable": -1, "selector": selector}),
        json!({"minAvailable": "x", "selector": selector}),
        json!({"minAvailable": "101%", "selector": selector}),
        json!({"maxUnavailable": "-5%", "selector": selector}),
        json!({"minAvailable": 1, "unhealthyPodEvictionPolicy": "Never", "selector": selector}),
        json!({"minAvailable": 1, "selector": {"matchLabels": {"a b": "c"}}}),
        json!({"minAvailable": 1, "selector": {"matchLabels": {"a": "b c"}}}),
        json!({"minAvailable": 1, "selector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["x"]}]}}),
        json!({"minAvailable": 1, "selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        json!({"minAvailable": 1, "selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}}),
    ] {
        steps.push(with_spec(PodDisruptionBudget, "a", spec));
    }
    script("budgets-that-are-wrong", steps)
}

fn leases() -> Script {
    let lease = |name: &str, spec: Value| with_spec(Lease, name, spec);
    script(
        "leases",
        vec![
            lease(
                "a",
                json!({
                    "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                    "acquireTime": "2031-02-03T00:00:00.000000Z", "renewTime": "2031-02-03T00:00:01.500000Z",
                }),
            ),
            lease("b", json!({"renewTime": "2031-02-03T00:00:01Z"})),
            lease("b2", json!({"renewTime": "2031-02-03T02:00:01+02:00"})),
            lease("b3", json!({"renewTime": "2031-02-03T00:00:01.123456789Z"})),
            lease("c", json!({"leaseDurationSeconds": 0})),
            lease("c", json!({"leaseDurationSeconds": -1, "leaseTransitions": -1})),
            lease("c", json!({"holderIdentity": ""})),
            lease("d", json!({"strategy": "OldestEmulationVersion"})),
            lease("e", json!({"strategy": "OldestEmulationVersion", "preferredHolder": "x"})),
            lease("f", json!({"preferredHolder": "x"})),
        ],
    )
}

fn lease_updates() -> Script {
    script(
        "lease-updates",
        vec![
            with_spec(Lease, "a", json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 1}))
                .save("a"),
            put_saved(Lease, "a", "a", json!({"spec": {"renewTime": "2031-02-03T00:00:01.500000Z"}})).save("b"),
            put_saved(Lease, "a", "b", json!({"spec": {"holderIdentity": ""}})).save("b"),
            put_saved(Lease, "a", "b", json!({"spec": {"holderIdentity": null}})).save("b"),
            put_saved(Lease, "a", "b", json!({"spec": {"leaseTransitions": 0}})).save("b"),
            put_saved(Lease, "a", "b", json!({"spec": null})).save("b"),
            merge(Lease, "a", json!({"spec": {"holderIdentity": "other"}})),
            json_patch(Lease, "a", json!([{"op": "test", "path": "/spec/holderIdentity", "value": "me"}])),
            get(Lease, "a"),
        ],
    )
}

fn config_maps() -> Script {
    let map = |name: &str, fields: Value| create(ConfigMap, ConfigMap.with(name, &fields));
    script(
        "config-maps",
        vec![
            map("a", json!({"data": {"k": "v"}, "binaryData": {"b": "AAEC"}})),
            map("b", json!({"data": {"k": "v"}, "binaryData": {"k": "AAEC"}})),
            map("b", json!({"data": {"bad key": "v"}})),
            map("b", json!({"data": {"": "v"}})),
            map("b", json!({"data": {"..": "v"}})),
            map("b", json!({"data": {"k".repeat(254): "v"}})),
            map("b", json!({"binaryData": {"b": "not base64!"}})),
            map("c", json!({"immutable": false})),
        ],
    )
}

fn immutable_maps() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, Secret] {
        let value = if kind == Secret { "dg==" } else { "v" };
        let other = if kind == Secret { "dw==" } else { "w" };
        steps.extend([
            create(kind, kind.with("a", &json!({"data": {"k": value}, "immutable": true}))),
            merge(kind, "a", json!({"data": {"k": other}})),
            merge(kind, "a", json!({"data": {"l": other}})),
            merge(kind, "a", json!({"immutable": false})),
            merge(kind, "a", json!({"immutable": null})),
            merge(kind, "a", json!({"immutable": null, "data": null})),
            merge(kind, "a", json!({"metadata": {"labels": {"x": "y"}}})),
            get(kind, "a"),
            create(kind, kind.with("b", &json!({"data": {"k": value}}))),
            merge(kind, "b", json!({"immutable": true})),
            merge(kind, "b", json!({"data": null})),
        ]);
    }
    script("immutable-maps", steps)
}

fn secrets() -> Script {
    let secret = |name: &str, fields: Value| create(Secret, Secret.with(name, &fields));
    script(
        "secrets",
        vec![
            secret("a", json!({"data": {"k": "dg=="}})),
            secret("b", json!({"stringData": {"k": "v"}})),
            secret("c", json!({"stringData": {"k": "v"}, "data": {"k": "dw==", "l": "dw=="}})),
            secret("d", json!({"data": {"k": "not base64!"}})),
            secret("d", json!({"data": {"bad key": "dg=="}})),
            secret("d", json!({"stringData": {"bad key": "v"}})),
            secret("e", json!({"type": "kubernetes.io/tls"})),
            secret("f", json!({"type": "kubernetes.io/basic-auth"})),
            secret("g", json!({"type": "kubernetes.io/dockerconfigjson"})),
            secret("h", json!({"type": "kubernetes.io/ssh-auth"})),
            secret("i", json!({"type": "kubernetes.io/service-account-token"})),
            secret("j", json!({"type": ""})),
            secret("k", json!({"data": {}})),
            secret("l", json!({"data": {"k": ""}})),
            secret("m", json!({"data": {"k": null}})),
        ],
    )
}

fn secret_updates() -> Script {
    script(
        "secret-updates",
        vec![
            create(Secret, Secret.with("a", &json!({"data": {"k": "dg=="}}))).save("a"),
            merge(Secret, "a", json!({"type": "example.com/x"})),
            merge(Secret, "a", json!({"type": null})),
            merge(Secret, "a", json!({"stringData": {"l": "w"}})),
            merge(Secret, "a", json!({"data": {"k": null}})),
            put_saved(Secret, "a", "a", json!({"metadata": {"resourceVersion": null}, "stringData": {"k": "other"}})),
            get(Secret, "a"),
        ],
    )
}

fn revisions() -> Script {
    let revision = |name: &str, fields: Value| create(ControllerRevision, ControllerRevision.with(name, &fields));
    script(
        "controller-revisions",
        vec![
            revision("a", json!({"revision": 1, "data": {"spec": {"x": 1}}})).save("a"),
            revision("b", json!({"revision": -1, "data": {}})),
            revision("c", json!({"data": {}})),
            revision("d", json!({"revision": 2})),
            revision("e", json!({"revision": 2, "data": "x"})),
            revision("f", json!({"revision": 2, "data": null})),
            merge(ControllerRevision, "a", json!({"revision": 5})),
            merge(ControllerRevision, "a", json!({"data": {"spec": {"x": 2}}})),
            merge(ControllerRevision, "a", json!({"revision": -5})),
            merge(ControllerRevision, "a", json!({"metadata": {"labels": {"x": "y"}}})),
            get(ControllerRevision, "a"),
            list(ControllerRevision),
        ],
    )
}

fn events() -> Script {
    let event = |name: &str, fields: Value| create(Event, Event.with(name, &fields));
    let about = json!({"kind": "Pod", "name": "p", "namespace": "$(ns)", "apiVersion": "v1"});
    script(
        "events",
        vec![
            event(
                "a",
                json!({
                    "involvedObject": about, "reason": "R", "message": "m", "type": "Normal", "count": 1,
                    "firstTimestamp": "2031-02-03T00:00:00Z", "lastTimestamp": "2031-02-03T00:00:00Z", "source": {"component": "c"},
                }),
            ),
            event("b", json!({"involvedObject": {"kind": "Pod", "name": "p", "namespace": "other"}})),
            event("c", json!({"involvedObject": {"kind": "Node", "name": "n"}})),
            event("d", json!({})),
            event("e", json!({"involvedObject": about, "type": "Odd"})),
            event("f", json!({"involvedObject": about, "eventTime": "2031-02-03T00:00:00.000000Z"})),
            event(
                "g",
                json!({
                    "involvedObject": about, "eventTime": "2031-02-03T00:00:00.000000Z", "reportingComponent": "example.com/c",
                    "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal",
                }),
            ),
            merge(Event, "a", json!({"count": 2, "lastTimestamp": "2031-02-03T00:01:00Z"})),
            get(NewEvent, "a"),
            get(NewEvent, "g"),
            list(NewEvent),
            list(Event),
            delete(Event, "a"),
        ],
    )
}

fn new_events() -> Script {
    let event = |name: &str, change: Value| {
        let mut object = NewEvent.minimal(name);
        for (key, value) in change.as_object().cloned().unwrap_or_default() {
            object[key] = value;
        }
        create(NewEvent, object)
    };
    script(
        "events-of-the-new-group",
        vec![
            event("a", json!({"note": "n"})),
            event("b", json!({"type": "Odd"})),
            event("c", json!({"reason": ""})),
            event("d", json!({"action": ""})),
            event("e", json!({"reportingController": ""})),
            event("f", json!({"reportingInstance": ""})),
            event("g", json!({"eventTime": null})),
            event("h", json!({"note": "n".repeat(1025)})),
            event("i", json!({"regarding": {"kind": "Pod", "name": "p", "namespace": "other"}})),
            event("j", json!({"regarding": {"kind": "Node", "name": "n"}})),
            event("k", json!({"series": {"count": 2, "lastObservedTime": "2031-02-03T00:00:00.000000Z"}})),
            event("l.", json!({})),
            event("UP", json!({})),
            create(
                Event,
                Event.with("l.", &json!({"involvedObject": {"kind": "Pod", "name": "p", "namespace": "$(ns)"}})),
            ),
            get(Event, "a"),
            get(NewEvent, "a"),
            merge(NewEvent, "a", json!({"series": {"count": 3, "lastObservedTime": "2031-02-03T00:00:00.000000Z"}})),
            merge(NewEvent, "a", json!({"note": "other"})),
        ],
    )
}

fn nodes() -> Script {
    let name = "n-$(ns)";
    let node = |fields: Value| create(Node, Node.with(name, &fields));
    script(
        "nodes",
        vec![
            node(json!({"metadata": {"labels": {"kubernetes.io/hostname": "x"}}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})),
            merge(Node, name, json!({"spec": {"unschedulable": true}})),
            merge(Node, name, json!({"spec": {"unschedulable": null}})),
            merge(Node, name, json!({"spec": {"providerID": "x"}})),
            merge(Node, name, json!({"status": {"capacity": {"cpu": "2", "memory": "1Gi"}, "conditions": [{"type": "Ready", "status": "True"}]}})).part("status"),
            get(Node, name),
            list(Node).query("fieldSelector", "metadata.name=n-$(ns)"),
            delete(Node, name),
            get(Node, name),
        ],
    )
}

fn namespaces() -> Script {
    let name = "x-$(ns)";
    let inside = |name: &str| {
        let mut step = create(ConfigMap, ConfigMap.minimal(name));
        step.path = "/api/v1/namespaces/x-$(ns)/configmaps".into();
        step
    };
    let finalize = Step { method: http::Method::PUT, ..get(Namespace, name).part("finalize") };
    script(
        "namespaces",
        vec![
            create(Namespace, Namespace.minimal(name)).save("n"),
            inside("a"),
            merge(Namespace, name, json!({"metadata": {"labels": {"x": "y"}}})),
            merge(Namespace, name, json!({"metadata": {"labels": {"kubernetes.io/metadata.name": null}}})),
            merge(Namespace, name, json!({"spec": {"finalizers": []}})),
            delete(Namespace, name).save("n"),
            delete(Namespace, name),
            inside("b"),
            get(Namespace, name),
            finalize
                .content_type("application/json")
                .body(super::super::step::Body::Saved("n".to_owned(), json!({"spec": {"finalizers": null}}))),
            get(Namespace, name),
            delete(Namespace, name),
            get(Namespace, name),
            create(Namespace, Namespace.minimal("Bad")),
            create(Namespace, Namespace.minimal("a.b")),
            delete(Namespace, "kube-system"),
        ],
    )
}
