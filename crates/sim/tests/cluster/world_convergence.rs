//! Whatever is done to the cluster, it heals once it is left alone.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::world_support::{Cluster, NEW, NS, OLD, image, set_of};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::json;
use windlass_sim::journal::Event;
use windlass_sim::rng::Rng;
use windlass_sim::world::ImageBehaviour;

const BROKEN: &str = "registry.example/pingcap/pd:v0.0.0";

fn disturb(cluster: &Cluster, rng: &mut Rng) {
    let pod = format!("pd-{}", rng.below(3));
    let node = format!("node-{}", rng.below(3));
    let millis = Duration::from_millis(rng.below(90_000));
    match rng.below(12) {
        0 => cluster.world.crash_process(NS, &pod),
        1 => cluster.world.hang_process(NS, &pod, millis),
        2 => cluster.world.node_down(&node),
        3 | 4 => cluster.world.node_up(&node),
        5 => cluster.world.drain(&node),
        6 => cluster.world.freeze_controllers(cluster.clock.elapsed() + millis),
        7 => cluster.patch(&image(NEW)),
        8 => cluster.patch(&image(OLD)),
        9 => cluster.patch(&image(BROKEN)),
        10 => {
            // Gone already is as good.
            let _ = cluster.api.delete::<Pod>("admin", NS, &pod, &DeleteParams::default());
        }
        _ => {
            let force = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            let _ = cluster.api.delete::<Pod>("admin", NS, &pod, &force);
        }
    }
}

async fn suffer_and_heal(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut set = set_of(3);
    if rng.one_in(2) {
        set["spec"]["podManagementPolicy"] = json!("Parallel");
    }
    let cluster = Cluster::with(seed, set).await;
    let broken = [ImageBehaviour::CannotPull, ImageBehaviour::Crashes, ImageBehaviour::NeverReady];
    cluster.world.set_image(BROKEN, rng.pick(&broken).copied().unwrap_or(ImageBehaviour::Crashes));
    for _ in 0..12 {
        disturb(&cluster, &mut rng);
        tokio::time::sleep(Duration::from_millis(rng.below(40_000))).await;
    }
    for node in ["node-0", "node-1", "node-2"] {
        cluster.world.node_up(node);
    }
    cluster.patch(&image(NEW));
    cluster.pass(120).await;
    // A pod that came up broken is not replaced by the controller: somebody must delete it.
    for name in cluster.names() {
        if cluster.image(&name) == BROKEN {
            cluster.delete_pod(&name);
        }
    }
    cluster
        .until("healed", |c| {
            (0..3).all(|ordinal| {
                let name = format!("pd-{ordinal}");
                c.image(&name) == NEW && c.ready(&name)
            }) && c.status("/currentRevision") == c.status("/updateRevision")
                && c.world.truths().iter().all(|truth| {
                    truth.members.iter().all(|member| member.healthy && member.version == "v8.5.7")
                        && truth.members.iter().filter(|member| member.leader).count() == 1
                })
        })
        .await;
    let before = cluster.journal.entries().len();
    cluster.pass(900).await;
    let entries = cluster.journal.entries();
    let late: Vec<&Event> = entries[before..].iter().map(|entry| &entry.event).collect();
    assert!(late.len() <= 6, "seed {seed}: a healed cluster goes on: {late:?}");
    let mut addresses = BTreeSet::new();
    for entry in entries.iter() {
        if let Event::Write(change) = &entry.event
            && change.resource == "pods"
            && let Some(pod) = &change.after
            && let Some(address) = pod["status"]["podIP"].as_str()
        {
            addresses.insert((address.to_owned(), pod["metadata"]["uid"].to_string()));
        }
    }
    let distinct: BTreeSet<&String> = addresses.iter().map(|(address, _)| address).collect();
    assert_eq!(distinct.len(), addresses.len(), "seed {seed}: an address was used by two pods");
}

#[test]
fn a_cluster_that_suffered_heals_and_then_rests() {
    for seed in 0..60 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(suffer_and_heal(seed));
    }
}
