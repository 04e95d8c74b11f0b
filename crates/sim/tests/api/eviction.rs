//! Evictions within and against budgets, and bindings.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api as Objects, EvictParams};
use serde_json::{Value, json};
use windlass_sim::api::Api;

use crate::support::*;

fn running(api: &Api, name: &str, ready: bool) {
    post(api, PODS, &pod(name, Some("n")));
    let status = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": if ready { "True" } else { "False" }},
    ]}});
    assert_eq!(merge(api, &format!("{PODS}/{name}/status"), &status).code, 200);
}

fn budget(api: &Api, name: &str, status: &Value) {
    let object =
        json!({"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}});
    assert_eq!(post(api, BUDGETS, &object).code, 201);
    assert_eq!(merge(api, &format!("{BUDGETS}/{name}/status"), &json!({"status": status})).code, 200);
}

fn evict(api: &Api, name: &str) -> Answer {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    post(api, &format!("{PODS}/{name}/eviction"), &eviction)
}

#[tokio::test(start_paused = true)]
async fn an_eviction_takes_one_disruption_and_marks_the_pod() {
    let api = api();
    running(&api, "a", true);
    budget(
        &api,
        "pdb",
        &json!({"disruptionsAllowed": 1, "observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1}),
    );
    let done = evict(&api, "a");
    assert_eq!((done.code, &done.body["status"]), (201, &json!("Success")));
    let pod = get(&api, &format!("{PODS}/a")).body;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(pod["status"]["conditions"][1]["reason"], "EvictionByEvictionAPI");
    let status = get(&api, &format!("{BUDGETS}/pdb")).body["status"].clone();
    assert_eq!(status["disruptionsAllowed"], 0);
    assert_eq!(status["disruptedPods"], json!({"a": "2026-01-01T00:00:00Z"}));
    assert_eq!(status["conditions"][0]["reason"], "InsufficientPods");
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_budget_refuses() {
    let api = api();
    running(&api, "a", true);
    budget(
        &api,
        "pdb",
        &json!({"disruptionsAllowed": 0, "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1}),
    );
    let refused = evict(&api, "a");
    assert_eq!((refused.code, refused.reason()), (429, "TooManyRequests"));
    assert_eq!(refused.message(), "Cannot evict pod as it would violate the pod's disruption budget.");
    assert_eq!(
        refused.body["details"]["causes"],
        json!([{"reason": "DisruptionBudget", "message": "The disruption budget pdb needs 1 healthy pods and has 1 currently"}])
    );
    let pods: Objects<Pod> = Objects::default_namespaced(api.client("tester"));
    let error = pods.evict("a", &EvictParams::default()).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 429));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_was_not_looked_at_yet_refuses() {
    let api = api();
    running(&api, "a", true);
    budget(&api, "pdb", &json!({"disruptionsAllowed": 1, "observedGeneration": 0}));
    let refused = evict(&api, "a");
    assert_eq!((refused.code, &refused.body["details"]["retryAfterSeconds"]), (429, &json!(10)));
}

#[tokio::test(start_paused = true)]
async fn an_unready_pod_may_go_when_enough_others_are_healthy() {
    let api = api();
    running(&api, "a", false);
    budget(
        &api,
        "pdb",
        &json!({"disruptionsAllowed": 0, "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1}),
    );
    assert_eq!(evict(&api, "a").code, 201);
    assert_eq!(get(&api, &format!("{BUDGETS}/pdb")).body["status"]["disruptionsAllowed"], 0);
}

#[tokio::test(start_paused = true)]
async fn two_budgets_for_one_pod_are_an_error() {
    let api = api();
    running(&api, "a", true);
    for name in ["one", "two"] {
        budget(&api, name, &json!({"disruptionsAllowed": 1, "observedGeneration": 1}));
    }
    let refused = evict(&api, "a");
    assert_eq!(refused.code, 500);
    assert_eq!(
        refused.message(),
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    );
}

#[tokio::test(start_paused = true)]
async fn an_eviction_honours_preconditions_and_a_pending_pod_needs_no_budget() {
    let api = api();
    post(&api, PODS, &pod("a", Some("n")));
    budget(&api, "pdb", &json!({"disruptionsAllowed": 0, "observedGeneration": 1}));
    let eviction = json!({"metadata": {"name": "a"}, "deleteOptions": {"preconditions": {"uid": "other"}}});
    assert_eq!(post(&api, &format!("{PODS}/a/eviction"), &eviction).code, 409);
    assert_eq!(evict(&api, "a").code, 201);
}

/// The budget is asked before the preconditions are: whoever evicts a pod that has changed takes one from it and evicts nobody.
#[tokio::test(start_paused = true)]
async fn an_eviction_of_what_has_changed_costs_the_budget_one() {
    let api = api();
    running(&api, "a", true);
    budget(&api, "pdb", &json!({"disruptionsAllowed": 1, "observedGeneration": 1}));
    for wrong in [json!({"uid": "other"}), json!({"resourceVersion": "1"})] {
        let allowed = json!({"status": {"disruptionsAllowed": 1}});
        assert_eq!(merge(&api, &format!("{BUDGETS}/pdb/status"), &allowed).code, 200);
        let eviction = json!({"metadata": {"name": "a"}, "deleteOptions": {"preconditions": wrong}});
        assert_eq!(post(&api, &format!("{PODS}/a/eviction"), &eviction).code, 409);
        assert_eq!(get(&api, &format!("{BUDGETS}/pdb")).body["status"]["disruptionsAllowed"], 0);
    }
    assert!(get(&api, &format!("{PODS}/a")).body["metadata"]["deletionTimestamp"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_binding_puts_a_pod_on_a_node_once() {
    let api = api();
    post(&api, PODS, &pod("a", None));
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(post(&api, &format!("{PODS}/a/binding"), &binding).code, 201);
    assert_eq!(get(&api, &format!("{PODS}/a")).body["spec"]["nodeName"], "n");
    assert_eq!(api.bind("kube-scheduler", "default", "a", "m").unwrap_err().code, 409);
}
