//! A simulated OpenBao in the pods of a StatefulSet: what its processes say of themselves there, and when they are ready.

use crate::world_support::{Cluster, NS};
use serde_json::{Value, json};
use windlass_sim::{journal::Event, objects};

const IMAGE: &str = "quay.example/openbao/openbao:2.5.5";

async fn cluster(seed: u64) -> Cluster {
    let cluster = Cluster::start(seed);
    for object in objects::openbao(NS, "openbao", 3, IMAGE) {
        cluster.api.create_value("admin", object).expect("an object");
    }
    cluster.until("an active member", |cluster| leader(cluster).is_some()).await;
    cluster.pass(30).await;
    cluster
}

fn leader(cluster: &Cluster) -> Option<String> {
    let members = cluster.world.truths().into_iter().flat_map(|truth| truth.members);
    members.into_iter().find(|member| member.leader).map(|member| member.pod)
}

fn label(cluster: &Cluster, pod: &str, name: &str) -> Value {
    cluster.pod(pod).map_or(Value::Null, |pod| pod["metadata"]["labels"][name].clone())
}

/// The pods that say they are active.
fn active(cluster: &Cluster) -> Vec<String> {
    cluster.names().into_iter().filter(|pod| label(cluster, pod, "openbao-active") == "true").collect()
}

#[tokio::test(start_paused = true)]
async fn pods_say_what_their_processes_are() {
    let cluster = cluster(1).await;
    assert_eq!(active(&cluster), [leader(&cluster).expect("a leader")]);
    for pod in cluster.names() {
        let labels =
            ["openbao-sealed", "openbao-initialized", "openbao-version"].map(|name| label(&cluster, &pod, name));
        assert_eq!(labels, [json!("false"), json!("true"), json!("2.5.5")], "{pod}");
        assert!(cluster.ready(&pod));
    }
    let writers: Vec<String> = cluster
        .journal
        .entries()
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Write(change) => Some(change.user.clone()),
            Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
        })
        .filter(|user| user.starts_with("system:serviceaccount:"))
        .collect();
    assert!(writers.iter().all(|user| user == "system:serviceaccount:db:default") && !writers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_label_of_a_leader_that_lost_its_node_is_stale() {
    let cluster = cluster(2).await;
    let old = leader(&cluster).expect("a leader");
    let pod = cluster.pod(&old).expect("the pod");
    cluster.world.node_down(pod["spec"]["nodeName"].as_str().expect("a node"));
    cluster.until("another leader", |cluster| leader(cluster).is_some_and(|new| new != old)).await;
    cluster.pass(5).await;
    assert_eq!(active(&cluster).len(), 2, "the old one can't take its word back");
}

#[tokio::test(start_paused = true)]
async fn a_sealed_member_is_not_ready_until_somebody_unseals_it() {
    let cluster = cluster(3).await;
    cluster.world.auto_unseal(NS, "openbao", false);
    cluster.delete_pod("openbao-1");
    cluster.pass(60).await;
    assert!(!cluster.ready("openbao-1"));
    assert_eq!(label(&cluster, "openbao-1", "openbao-sealed"), "true");
    cluster.world.unseal(NS, "openbao", "openbao-1");
    cluster.pass(20).await;
    assert!(cluster.ready("openbao-1"));
    assert_eq!(label(&cluster, "openbao-1", "openbao-sealed"), "false");
}
