//! A simulated OpenBao in the pods of a StatefulSet.

#![allow(clippy::expect_used, reason = "a test that lacks something has failed")]

mod world_support;

use windlass_sim::objects;
use world_support::{Cluster, NS};

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

#[tokio::test(start_paused = true)]
async fn a_sealed_member_is_not_ready_until_somebody_unseals_it() {
    let cluster = cluster(3).await;
    cluster.world.auto_unseal(NS, "openbao", false);
    cluster.delete_pod("openbao-1");
    cluster.pass(60).await;
    assert!(!cluster.ready("openbao-1"));
    cluster.world.unseal(NS, "openbao", "openbao-1");
    cluster.pass(20).await;
    assert!(cluster.ready("openbao-1"));
}
