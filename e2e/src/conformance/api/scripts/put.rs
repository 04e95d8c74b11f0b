//! Replacing: preconditions, and who may be made by a PUT.

use serde_json::{Value, json};

use super::super::kind::Kind::{
    self, ConfigMap, ControllerRevision, Event, Lease, Node, Pod, PodDisruptionBudget, QuorumCluster, Secret,
    StatefulSet,
};
use super::super::step::{Script, Step, create, get, put, put_saved, script};

const KINDS: [Kind; 9] =
    [ConfigMap, Secret, Pod, StatefulSet, PodDisruptionBudget, Lease, Event, ControllerRevision, QuorumCluster];

pub fn scripts() -> Vec<Script> {
    vec![
        current_revision(),
        stale_revision(),
        without_a_revision(),
        revisions_that_are_none(),
        wrong_uid(),
        name_mismatch(),
        of_what_is_not_there(),
        no_op(),
        immutable_metadata(),
        finalizers_after_deletion(),
    ]
}

fn each(name: &str, steps: impl Fn(Kind) -> Vec<Step>) -> Script {
    let mut all = Vec::new();
    for kind in KINDS {
        all.push(create(kind, kind.minimal("a")).save("a"));
        all.extend(steps(kind));
    }
    script(name, all)
}

fn labelled() -> Value {
    json!({"metadata": {"labels": {"x": "1"}}})
}

fn current_revision() -> Script {
    each("put-with-the-current-revision", |kind| {
        vec![
            put_saved(kind, "a", "a", labelled()).save("b"),
            put_saved(kind, "a", "b", json!({"metadata": {"labels": {"x": null}}})),
            get(kind, "a"),
        ]
    })
}

fn stale_revision() -> Script {
    each("put-with-a-stale-revision", |kind| {
        vec![
            put_saved(kind, "a", "a", labelled()),
            put_saved(kind, "a", "a", json!({"metadata": {"labels": {"x": "2"}}})),
            get(kind, "a"),
        ]
    })
}

fn without_a_revision() -> Script {
    each("put-without-a-revision", |kind| {
        let bare = json!({"metadata": {"resourceVersion": null, "labels": {"x": "1"}}});
        vec![put_saved(kind, "a", "a", bare), get(kind, "a")]
    })
}

fn revisions_that_are_none() -> Script {
    each("put-with-a-revision-that-is-none", |kind| {
        ["0", "x", "-1", "1.5", ""]
            .into_iter()
            .map(|revision| put_saved(kind, "a", "a", json!({"metadata": {"resourceVersion": revision}})))
            .collect()
    })
}

fn wrong_uid() -> Script {
    each("put-with-a-wrong-uid", |kind| {
        let uid = "11111111-2222-3333-4444-555555555555";
        vec![
            put_saved(kind, "a", "a", json!({"metadata": {"uid": uid}})),
            put_saved(kind, "a", "a", json!({"metadata": {"uid": uid, "resourceVersion": null}})),
            put_saved(kind, "a", "a", json!({"metadata": {"uid": null}})),
        ]
    })
}

fn name_mismatch() -> Script {
    each("put-with-another-name", |kind| {
        vec![
            put_saved(kind, "a", "a", json!({"metadata": {"name": "b"}})),
            put_saved(kind, "a", "a", json!({"metadata": {"name": null}})),
            put_saved(kind, "b", "a", json!({})),
            put_saved(kind, "a", "a", json!({"metadata": {"namespace": "other"}})),
            put(kind, "a", json!({})),
            put(kind, "a", json!({"apiVersion": kind.api_version(), "kind": kind.name()})),
            put_saved(kind, "a", "a", json!({"kind": "Other"})),
            put_saved(kind, "a", "a", json!({"apiVersion": "example.com/v1"})),
        ]
    })
}

fn of_what_is_not_there() -> Script {
    let mut steps = Vec::new();
    for kind in KINDS {
        let mut with_revision = kind.minimal("new");
        with_revision["metadata"]["resourceVersion"] = json!("5");
        steps.extend([put(kind, "new", with_revision), put(kind, "new", kind.minimal("new")), get(kind, "new")]);
    }
    steps.push(put(Node, "$(ns)", Node.minimal("$(ns)")));
    script("put-of-what-is-not-there", steps)
}

fn no_op() -> Script {
    each("put-that-changes-nothing", |kind| {
        vec![put_saved(kind, "a", "a", json!({})).save("b"), put_saved(kind, "a", "b", json!({})), get(kind, "a")]
    })
}

fn immutable_metadata() -> Script {
    each("put-of-metadata-that-can-not-change", |kind| {
        vec![
            put_saved(kind, "a", "a", json!({"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}})).save("a"),
            put_saved(kind, "a", "a", json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}})),
            put_saved(kind, "a", "a", json!({"metadata": {"deletionGracePeriodSeconds": 4}})),
            put_saved(kind, "a", "a", json!({"metadata": {"generation": 40}})).save("a"),
            put_saved(kind, "a", "a", json!({"metadata": {"selfLink": "/x"}})).save("a"),
            put_saved(kind, "a", "a", json!({"metadata": {"generateName": "x-"}})).save("a"),
            put_saved(kind, "a", "a", json!({"metadata": {"labels": {"bad label": "x"}}})),
            put_saved(kind, "a", "a", json!({"metadata": {"finalizers": ["x"]}})),
        ]
    })
}

fn finalizers_after_deletion() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, StatefulSet, QuorumCluster, Pod] {
        let mut object = kind.minimal("a");
        object["metadata"]["finalizers"] = json!(["example.com/a"]);
        steps.extend([
            create(kind, object),
            super::super::step::delete(kind, "a").save("a"),
            put_saved(kind, "a", "a", json!({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})),
            put_saved(kind, "a", "a", json!({"metadata": {"deletionTimestamp": null}})).save("a"),
            put_saved(kind, "a", "a", json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}})),
            put_saved(kind, "a", "a", json!({"metadata": {"labels": {"x": "y"}}})).save("a"),
            get(kind, "a"),
            put_saved(kind, "a", "a", json!({"metadata": {"finalizers": null}})),
            get(kind, "a"),
        ]);
    }
    script("put-while-being-deleted", steps)
}
