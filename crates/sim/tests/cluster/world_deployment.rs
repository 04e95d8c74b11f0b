//! Deployments and ReplicaSets with kubelets: rollouts, what holds them up, and what is left at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::world_support::{Cluster, NS};
use k8s_openapi::api::{apps::v1::Deployment, apps::v1::ReplicaSet, core::v1::Pod};
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};
use windlass_sim::journal::{Event, Verb};
use windlass_sim::world::ImageBehaviour;

const V1: &str = "registry.example/web:v1";
const V2: &str = "registry.example/web:v2";
const SETS: &str = "replicasets.apps";

fn deployment(name: &str, spec: &Value) -> Value {
    let mut deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NS},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": V1}]},
            },
        },
    });
    for (key, value) in spec.as_object().expect("fields of a spec") {
        deployment["spec"][key] = value.clone();
    }
    deployment
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
}

fn web(cluster: &Cluster) -> Arc<Value> {
    cluster.api.get_value("deployments.apps", NS, "web").expect("the Deployment")
}

fn status(cluster: &Cluster, field: &str) -> i64 {
    web(cluster)["status"][field].as_i64().unwrap_or(0)
}

fn progress(cluster: &Cluster) -> String {
    let conditions = web(cluster)["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == "Progressing");
    found.map(|condition| condition["reason"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

fn patch(cluster: &Cluster, patch: &Value) {
    cluster.api.merge::<Deployment>("admin", NS, "web", patch).expect("a patch");
}

/// Whether the newest template runs everywhere and nothing else does, as an installer asks for it.
fn is_rolled_out(cluster: &Cluster) -> bool {
    let web = web(cluster);
    let wanted = web["spec"]["replicas"].as_i64().unwrap_or(1);
    web["status"]["observedGeneration"] == web["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|field| status(cluster, field) == wanted)
}

async fn start(seed: u64, spec: &Value) -> Cluster {
    let cluster = Cluster::start(seed);
    cluster.api.create_value("admin", deployment("web", spec)).expect("a Deployment");
    cluster.until("all pods up", is_rolled_out).await;
    cluster
}

fn images(cluster: &Cluster) -> Vec<String> {
    let pods = cluster.api.list_values("pods", NS);
    let mut images: Vec<String> = pods
        .iter()
        .filter(|pod| pod["metadata"].get("deletionTimestamp").is_none())
        .map(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned())
        .collect();
    images.sort();
    images
}

/// The largest size that all ReplicaSets had together since this line of the journal, and the fewest pods that were ready.
///
/// A set that shrinks may lose its pod after another has made one, so there can be more pods for a moment: sizes are what is promised.
fn extremes(cluster: &Cluster, since: usize) -> (i64, i64) {
    let (mut sizes, mut ready) = (BTreeMap::new(), BTreeSet::new());
    let (mut most, mut fewest) = (0, i64::MAX);
    for (line, entry) in cluster.journal.entries().iter().enumerate() {
        let Event::Write(change) = &entry.event else { continue };
        let object = change.after.as_deref().cloned().unwrap_or_default();
        if change.resource == SETS {
            sizes.insert(change.name.clone(), object["spec"]["replicas"].as_i64().unwrap_or(0));
        } else if change.resource == "pods" {
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let serves = conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
            let leaves = change.verb == Verb::Delete || object["metadata"].get("deletionTimestamp").is_some();
            if serves && !leaves {
                ready.insert(change.name.clone());
            } else {
                ready.remove(&change.name);
            }
        }
        if line >= since {
            most = most.max(sizes.values().sum());
            fewest = fewest.min(i64::try_from(ready.len()).unwrap_or(i64::MAX));
        }
    }
    (most, fewest)
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_keeps_to_its_limits_and_leaves_the_old_set_empty() {
    for (seed, surge, unavailable) in [(1, 1, 0), (2, 0, 1), (3, 2, 2)] {
        let limits = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let cluster = start(seed, &json!({"replicas": 4, "strategy": {"rollingUpdate": limits}})).await;
        let since = cluster.journal.entries().len();
        patch(&cluster, &image(V2));
        cluster.until("a rollout", is_rolled_out).await;
        cluster.pass(30).await;
        assert_eq!(images(&cluster), [V2; 4]);
        let (most, fewest) = extremes(&cluster, since);
        assert!(most <= 4 + surge && fewest >= 4 - unavailable, "{surge}/{unavailable}: {fewest} to {most}");
        let sets = cluster.api.list_values(SETS, NS);
        let mut sizes: Vec<(&str, i64)> = sets
            .iter()
            .map(|set| {
                let revision = set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str();
                (revision.unwrap_or_default(), set["spec"]["replicas"].as_i64().unwrap_or(-1))
            })
            .collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [("1", 0), ("2", 4)]);
        assert_eq!(web(&cluster)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
        assert_eq!(progress(&cluster), "NewReplicaSetAvailable");
    }
}

#[tokio::test(start_paused = true)]
async fn recreate_never_runs_two_templates_at_once() {
    let cluster = start(4, &json!({"strategy": {"type": "Recreate"}})).await;
    patch(&cluster, &image(V2));
    cluster
        .until("a rollout", |c| {
            let pods = c.api.list_values("pods", NS);
            let of = |image: &str| pods.iter().filter(|pod| pod["spec"]["containers"][0]["image"] == image).count();
            assert!(of(V1) == 0 || of(V2) == 0, "{} and {}", of(V1), of(V2));
            is_rolled_out(c)
        })
        .await;
    assert_eq!(images(&cluster), [V2; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_hangs_says_so_when_its_time_is_up_and_goes_on_when_it_is_mended() {
    let cluster = start(5, &json!({"progressDeadlineSeconds": 120})).await;
    cluster.world.set_image(V2, ImageBehaviour::CannotPull);
    patch(&cluster, &image(V2));
    cluster.pass(100).await;
    assert_ne!(progress(&cluster), "ProgressDeadlineExceeded");
    cluster.pass(40).await;
    assert_eq!(progress(&cluster), "ProgressDeadlineExceeded");
    assert_eq!((status(&cluster, "availableReplicas"), status(&cluster, "updatedReplicas")), (3, 1));
    cluster.world.set_image(V2, ImageBehaviour::Works);
    cluster.until("a rollout", is_rolled_out).await;
    cluster.until("the word for it", |c| progress(c) == "NewReplicaSetAvailable").await;
}

#[tokio::test(start_paused = true)]
async fn going_back_uses_the_old_set_again_and_counts_on() {
    let cluster = start(6, &json!({})).await;
    cluster.world.set_image(V2, ImageBehaviour::Crashes);
    patch(&cluster, &image(V2));
    cluster.pass(60).await;
    patch(&cluster, &image(V1));
    cluster.until("a rollout", is_rolled_out).await;
    assert_eq!((images(&cluster).len(), cluster.api.list_values(SETS, NS).len()), (3, 2));
    let annotations = web(&cluster)["metadata"]["annotations"].clone();
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    let sets = cluster.api.list_values(SETS, NS);
    let back = sets.iter().find(|set| set["spec"]["replicas"] == 3).expect("the set of the first template");
    assert_eq!(back["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_is_scaled_and_not_rolled_out() {
    let cluster = start(7, &json!({})).await;
    patch(&cluster, &json!({"spec": {"paused": true}}));
    patch(&cluster, &image(V2));
    patch(&cluster, &json!({"spec": {"replicas": 4}}));
    cluster.pass(60).await;
    assert_eq!((images(&cluster), progress(&cluster).as_str()), (vec![V1.to_owned(); 4], "DeploymentPaused"));
    patch(&cluster, &json!({"spec": {"paused": false}}));
    cluster.until("a rollout", is_rolled_out).await;
    assert_eq!(images(&cluster), [V2; 4]);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_old_sets_are_kept() {
    let cluster = start(8, &json!({"revisionHistoryLimit": 1, "replicas": 1})).await;
    for version in 2..6 {
        patch(&cluster, &image(&format!("registry.example/web:v{version}")));
        cluster.until("a rollout", is_rolled_out).await;
        cluster.pass(30).await;
    }
    assert_eq!(cluster.api.list_values(SETS, NS).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_or_leaves_the_selection_is_replaced() {
    let cluster = start(9, &json!({"replicas": 2})).await;
    let first = cluster.names().remove(0);
    cluster.delete_pod(&first);
    cluster.until("another one", |c| !c.names().contains(&first) && is_rolled_out(c)).await;
    let second = cluster.names().remove(0);
    let apart = json!({"metadata": {"labels": {"app": "apart"}}});
    cluster.api.merge::<Pod>("admin", NS, &second, &apart).expect("a patch");
    cluster.until("a third one", |c| c.names().len() == 3 && is_rolled_out(c)).await;
    let pod = cluster.pod(&second).expect("it stays");
    assert_eq!(pod["metadata"].get("ownerReferences"), None);
    // And back: now there is one too many.
    let back = json!({"metadata": {"labels": {"app": "web"}}});
    cluster.api.merge::<Pod>("admin", NS, &second, &back).expect("a patch");
    cluster.until("two again", |c| c.names().len() == 2 && is_rolled_out(c)).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_deployment_owned_goes_with_it_or_is_found_again() {
    let policy = |policy| DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    for how in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let cluster = start(10, &json!({})).await;
        cluster.api.delete::<Deployment>("admin", NS, "web", &policy(how)).expect("a deletion");
        let nothing =
            |c: &Cluster| ["deployments.apps", SETS, "pods"].iter().all(|kind| c.api.list_values(kind, NS).is_empty());
        cluster.until("nothing left", nothing).await;
    }
    let cluster = start(11, &json!({})).await;
    let names = cluster.names();
    cluster.api.delete::<Deployment>("admin", NS, "web", &policy(PropagationPolicy::Orphan)).expect("a deletion");
    cluster.until("it gone", |c| c.api.get_value("deployments.apps", NS, "web").is_none()).await;
    cluster.pass(10).await;
    assert_eq!(cluster.api.list_values(SETS, NS)[0]["metadata"].get("ownerReferences"), None);
    cluster.api.create_value("admin", deployment("web", &json!({}))).expect("a Deployment");
    cluster.until("the old pods found", is_rolled_out).await;
    assert_eq!((cluster.names(), cluster.api.list_values(SETS, NS).len()), (names, 1));
}

#[tokio::test(start_paused = true)]
async fn a_set_without_a_deployment_keeps_its_number_of_pods() {
    let cluster = Cluster::start(12);
    let mut set = deployment("web", &json!({"replicas": 2}));
    set["kind"] = json!("ReplicaSet");
    cluster.api.create_value("admin", set).expect("a ReplicaSet");
    let ready =
        |c: &Cluster| c.api.get_value(SETS, NS, "web").map(|set| set["status"]["readyReplicas"].as_i64().unwrap_or(0));
    cluster.until("two pods", |c| ready(c) == Some(2)).await;
    cluster.api.merge::<ReplicaSet>("admin", NS, "web", &json!({"spec": {"replicas": 1}})).expect("a patch");
    cluster.until("one pod", |c| c.names().len() == 1).await;
    assert!(cluster.names()[0].starts_with("web-"), "{:?}", cluster.names());
}

#[tokio::test(start_paused = true)]
async fn frozen_controllers_do_nothing_until_they_thaw() {
    let cluster = Cluster::start(13);
    cluster.world.freeze_controllers(Duration::from_mins(2));
    cluster.api.create_value("admin", deployment("web", &json!({}))).expect("a Deployment");
    cluster.pass(90).await;
    assert!(cluster.api.list_values(SETS, NS).is_empty());
    cluster.until("all pods up", is_rolled_out).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_writes_nothing() {
    let cluster = start(14, &json!({"minReadySeconds": 5})).await;
    patch(&cluster, &image(V2));
    cluster.until("a rollout", is_rolled_out).await;
    cluster.pass(30).await;
    let before = cluster.journal.entries().len();
    cluster.pass(3600).await;
    assert_eq!(cluster.journal.entries().len(), before);
}

/// Several Deployments at once, with a crash and a drain, as one text.
async fn history(seed: u64) -> String {
    let cluster = start(seed, &json!({"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}})).await;
    for name in ["a", "b"] {
        cluster.api.create_value("admin", deployment(name, &json!({"replicas": 2}))).expect("a Deployment");
    }
    patch(&cluster, &image(V2));
    cluster.pass(3).await;
    let some = cluster.names().remove(0);
    cluster.world.crash_process(NS, &some);
    cluster.world.drain("node-1");
    patch(&cluster, &json!({"spec": {"replicas": 5}}));
    cluster.pass(120).await;
    let entries = cluster.journal.entries();
    let lines: Vec<String> = entries.iter().map(|entry| format!("{} {:?}", entry.at, entry.event)).collect();
    lines.join("\n")
}

#[test]
fn the_same_seed_gives_the_same_journal_and_another_seed_another() {
    let run = |seed: u64| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(history(seed))
    };
    for seed in 0..10 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1), run(2));
}

/// How long it takes to bring up so many Deployments of one replica and then, one after the other, to roll some of them out.
async fn cost_of_one(count: usize) -> Duration {
    let cluster = Cluster::start(15);
    let name = |number: usize| format!("web-{number}");
    for number in 0..count {
        let one = deployment(&name(number), &json!({"replicas": 1}));
        cluster.api.create_value("admin", one).expect("a Deployment");
    }
    cluster.pass(60).await;
    let is_up = |number: usize| {
        let web = cluster.api.get_value("deployments.apps", NS, &name(number)).expect("the Deployment");
        web["status"]["availableReplicas"] == 1 && web["status"]["observedGeneration"] == web["metadata"]["generation"]
    };
    assert!((0..count).all(is_up));
    let began = Instant::now();
    for number in 0..20 {
        cluster.api.merge::<Deployment>("admin", NS, &name(number), &image(V2)).expect("a patch");
        cluster.pass(60).await;
        assert!(is_up(number));
    }
    began.elapsed() / 20
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_one_deployment_costs_no_more_among_many() {
    let (alone, among_many) = (cost_of_one(20).await, cost_of_one(1000).await);
    // Looking through all of them once per event would cost fifty times as much.
    assert!(among_many < alone * 10, "{alone:?} alone, {among_many:?} among many");
}
