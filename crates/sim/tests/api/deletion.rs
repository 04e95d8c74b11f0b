//! Deletion: grace periods, finalizers, preconditions and propagation.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api as Objects, DeleteParams, ListParams, Preconditions};
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_plain_object_goes_at_once_and_the_answer_says_which() {
    let api = api();
    let uid = post(&api, SETS, &stateful_set("web")).body["metadata"]["uid"].clone();
    let gone = delete(&api, &format!("{SETS}/web"), &Value::Null);
    assert_eq!(gone.code, 200);
    assert_eq!(gone.body["status"], "Success");
    assert_eq!(gone.body["details"], json!({"name": "web", "group": "apps", "kind": "statefulsets", "uid": uid}));
    assert_eq!(get(&api, &format!("{SETS}/web")).code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_waits_for_its_kubelet() {
    let api = api();
    let pods: Objects<Pod> = Objects::default_namespaced(api.client("statefulset-controller"));
    post(&api, PODS, &pod("a", Some("n")));
    tokio::time::advance(Duration::from_secs(5)).await;
    let marked = pods.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(30));
    assert_eq!(marked.metadata.deletion_timestamp.unwrap().0.to_string(), "2026-01-01T00:00:35Z");
    assert_eq!(marked.metadata.generation, Some(2));
    let before = api.revision();
    pods.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(api.revision(), before, "a second deletion changes nothing");
    let sooner = DeleteParams { grace_period_seconds: Some(10), ..DeleteParams::default() };
    let sooner = pods.delete("a", &sooner).await.unwrap().left().unwrap();
    assert_eq!(sooner.metadata.deletion_timestamp.unwrap().0.to_string(), "2026-01-01T00:00:15Z");
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    pods.delete("a", &now).await.unwrap();
    assert!(pods.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_never_reached_a_node_goes_at_once() {
    let api = api();
    post(&api, PODS, &pod("a", None));
    assert_eq!(delete(&api, &format!("{PODS}/a"), &Value::Null).body["kind"], "Pod");
    assert_eq!(get(&api, &format!("{PODS}/a")).code, 404);
}

#[tokio::test(start_paused = true)]
async fn preconditions_are_checked_with_the_real_wording() {
    let api = api();
    let made = post(&api, PODS, &pod("a", Some("n"))).body;
    let (uid, revision) = (&made["metadata"]["uid"], &made["metadata"]["resourceVersion"]);
    let path = format!("{PODS}/a");
    let wrong = delete(&api, &path, &json!({"preconditions": {"uid": "other"}}));
    assert_eq!((wrong.code, wrong.reason()), (409, "Conflict"));
    assert_eq!(
        wrong.message(),
        format!(
            "Operation cannot be fulfilled on Pod \"a\": the UID in the precondition (other) does not match the UID in \
             record ({}). The object might have been deleted and then recreated",
            uid.as_str().unwrap()
        )
    );
    let wrong = delete(&api, &path, &json!({"preconditions": {"resourceVersion": "1"}}));
    assert_eq!(
        wrong.message(),
        format!(
            "Operation cannot be fulfilled on Pod \"a\": the ResourceVersion in the precondition (1) does not match the \
             ResourceVersion in record ({}). The object might have been modified",
            revision.as_str().unwrap()
        )
    );
    let both = json!({"preconditions": {"uid": uid, "resourceVersion": revision}});
    assert_eq!(delete(&api, &path, &both).code, 200);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_and_none_can_be_added_then() {
    let api = api();
    let mut object = config_map("a", "1");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    post(&api, MAPS, &object);
    let path = format!("{MAPS}/a");
    let marked = delete(&api, &path, &Value::Null).body;
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    let added = merge(&api, &path, &json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}));
    assert_eq!(added.code, 422);
    assert_eq!(
        added.message(),
        "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
         being deleted, found new finalizers []string{\"example.com/more\"}"
    );
    let before = api.revision();
    assert_eq!(merge(&api, &path, &json!({"metadata": {"finalizers": null}})).code, 200);
    assert_eq!(get(&api, &path).code, 404);
    assert_eq!(api.revision(), before + 1, "the last write is the deletion");
}

#[tokio::test(start_paused = true)]
async fn the_propagation_policy_leaves_its_mark() {
    let api = api();
    for (name, policy, mark) in [("a", "Foreground", "foregroundDeletion"), ("b", "Orphan", "orphan")] {
        post(&api, SETS, &stateful_set(name));
        let path = format!("{SETS}/{name}");
        let marked = delete(&api, &path, &json!({"propagationPolicy": policy})).body;
        assert_eq!(marked["metadata"]["finalizers"], json!([mark]));
        assert_eq!(marked["metadata"]["generation"], 2);
        merge(&api, &path, &json!({"metadata": {"finalizers": []}}));
        assert_eq!(get(&api, &path).code, 404);
    }
    let odd = delete(&api, &format!("{SETS}/a"), &json!({"propagationPolicy": "Odd"}));
    assert_eq!(odd.code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_deletes_nothing() {
    let api = api();
    post(&api, MAPS, &config_map("a", "1"));
    let before = api.revision();
    assert_eq!(delete(&api, &format!("{MAPS}/a?dryRun=All"), &Value::Null).code, 200);
    assert_eq!(delete(&api, &format!("{MAPS}/a"), &json!({"dryRun": ["All"]})).code, 200);
    assert_eq!(api.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn a_selection_can_be_deleted_together() {
    let api = api();
    for name in ["a", "b", "c"] {
        let mut object = config_map(name, "1");
        object["metadata"]["labels"] = json!({"odd": (name != "b").to_string()});
        post(&api, MAPS, &object);
    }
    let maps: Objects<ConfigMap> = Objects::default_namespaced(api.client("tester"));
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("odd=true")).await.unwrap();
    let left: Vec<ConfigMap> = api.list("default");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].metadata.name.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn in_process_deletions_honour_preconditions_too() {
    let api = api();
    post(&api, PODS, &pod("a", Some("n")));
    let other = Preconditions { uid: Some("other".to_owned()), ..Preconditions::default() };
    let options = DeleteParams { preconditions: Some(other), ..DeleteParams::default() };
    assert_eq!(api.delete::<Pod>("tester", "default", "a", &options).unwrap_err().reason, "Conflict");
}
