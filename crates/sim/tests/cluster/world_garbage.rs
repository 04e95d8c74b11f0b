//! The garbage collector and the namespace controller.

use crate::world_support::{Cluster, NS, set_of};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};

fn map(name: &str, owners: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NS, "ownerReferences": owners},
    })
}

fn owner(name: &str, uid: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})
}

#[tokio::test(start_paused = true)]
async fn deleting_a_set_in_the_background_takes_its_pods_and_revisions_and_leaves_its_claims() {
    let cluster = Cluster::with(1, set_of(3)).await;
    cluster.api.delete::<StatefulSet>("admin", NS, "pd", &DeleteParams::background()).expect("a deletion");
    cluster.until("pods gone", |c| c.names().is_empty()).await;
    cluster.until("history gone", |c| c.api.list_values("controllerrevisions.apps", NS).is_empty()).await;
    assert_eq!(cluster.api.list_values("persistentvolumeclaims", NS).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_set_in_the_foreground_keeps_it_until_its_pods_are_gone() {
    let cluster = Cluster::with(2, set_of(3)).await;
    let options = DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
    cluster.api.delete::<StatefulSet>("admin", NS, "pd", &options).expect("a deletion");
    while !cluster.names().is_empty() {
        assert!(cluster.api.get_value("statefulsets.apps", NS, "pd").is_some());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    cluster.until("the set gone", |c| c.api.get_value("statefulsets.apps", NS, "pd").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_goes_with_its_last_owner_and_an_owner_with_another_uid_does_not_count() {
    let cluster = Cluster::start(3);
    let create = |object: Value| cluster.api.create_value("admin", object).expect("created")["metadata"]["uid"].clone();
    let a = create(map("a", &json!([])));
    let b = create(map("b", &json!([])));
    create(map("both", &json!([owner("a", &a), owner("b", &b)])));
    create(map("stranger", &json!([owner("a", &json!("6b1f2a52-0000-4000-8000-000000000000"))])));
    cluster.pass(5).await;
    let exists = |name: &str| cluster.api.get_value("configmaps", NS, name).is_some();
    assert!(exists("both") && !exists("stranger"));
    cluster.api.delete::<ConfigMap>("admin", NS, "a", &DeleteParams::default()).expect("a deletion");
    cluster.pass(5).await;
    assert!(exists("both"));
    cluster.api.delete::<ConfigMap>("admin", NS, "b", &DeleteParams::default()).expect("a deletion");
    cluster.pass(5).await;
    assert!(!exists("both"));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied_first() {
    let cluster = Cluster::with(4, set_of(3)).await;
    cluster.api.delete::<Namespace>("admin", "", NS, &DeleteParams::default()).expect("a deletion");
    cluster.until("gone", |c| c.api.get_value("namespaces", "", NS).is_none()).await;
    assert!(cluster.names().is_empty());
    assert!(cluster.api.list_values("persistentvolumeclaims", NS).is_empty());
}
