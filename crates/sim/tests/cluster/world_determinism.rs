//! One seed, one history.

use std::time::Duration;

use crate::world_support::{Cluster, NEW, NS, image, set_of};
use http::Method;
use serde_json::json;

/// A rolling update with a crash, a hang and a drain in it, as one text.
async fn history(seed: u64) -> String {
    let cluster = Cluster::with(seed, set_of(3)).await;
    cluster.patch(&image(NEW));
    cluster.pass(5).await;
    cluster.world.crash_process(NS, "pd-0");
    cluster.world.hang_process(NS, "pd-1", Duration::from_secs(7));
    cluster.pass(20).await;
    cluster.world.drain("node-1");
    if cluster.pod("pd-0").is_some_and(|pod| pod["status"]["podIP"].is_string()) {
        let _ = cluster.dial("pd-0", Method::POST, "/pd/api/v1/leader/resign", json!(null)).await;
    }
    cluster.pass(600).await;
    let entries = cluster.journal.entries();
    let lines: Vec<String> = entries.iter().map(|entry| format!("{} {:?}", entry.at, entry.event)).collect();
    lines.join("\n")
}

fn run(seed: u64) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_or_else(|error| error.to_string(), |runtime| runtime.block_on(history(seed)))
}

#[test]
fn the_same_seed_gives_the_same_journal_and_another_seed_another() {
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1), run(2));
    assert!(run(1).contains("pd-2"), "{}", run(1));
}

#[tokio::test(start_paused = true)]
async fn an_idle_cluster_writes_nothing() {
    let cluster = Cluster::with(3, set_of(3)).await;
    let before = cluster.journal.entries().len();
    cluster.pass(3600).await;
    assert_eq!(cluster.journal.entries().len(), before);
}
