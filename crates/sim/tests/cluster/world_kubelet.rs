//! A pod's life on its node: start, crash, back-off, hang, the node's loss, its end.

use std::time::Duration;

use crate::world_support::{Cluster, NS, OLD, set_of};
use http::Method;
use serde_json::{Value, json};
use windlass_sim::world::ImageBehaviour;

fn condition(pod: &Value, kind: &str) -> Value {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or(Value::Null)
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_created_started_and_then_ready() {
    let cluster = Cluster::start(1);
    cluster.api.create_value("admin", set_of(1)).expect("a set");
    cluster.until("creating", |c| c.waiting("pd-0") == "ContainerCreating").await;
    let pod = cluster.pod("pd-0").expect("the pod");
    assert_eq!(pod["status"]["phase"], "Pending");
    assert!(pod["spec"]["nodeName"].is_string());
    assert_eq!(condition(&pod, "PodScheduled")["status"], "True");
    cluster.until("ready", |c| c.ready("pd-0")).await;
    let pod = cluster.pod("pd-0").expect("the pod");
    assert_eq!(pod["status"]["phase"], "Running");
    let container = &pod["status"]["containerStatuses"][0];
    assert_eq!(container["image"], OLD);
    assert!(container["imageID"].as_str().is_some_and(|id| id.starts_with("registry.example/pingcap/pd@sha256:")));
    assert_eq!(container["restartCount"], 0);
    assert!(pod["status"]["podIP"].as_str().is_some_and(|ip| ip.starts_with("10.244.")));
}

#[tokio::test(start_paused = true)]
async fn pods_are_spread_over_the_nodes() {
    let cluster = Cluster::with(2, set_of(3)).await;
    let mut nodes: Vec<String> = cluster
        .names()
        .iter()
        .filter_map(|name| cluster.pod(name))
        .map(|pod| pod["spec"]["nodeName"].to_string())
        .collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_crashed_process_restarts_at_once_and_backs_off_longer_each_time() {
    let cluster = Cluster::with(3, set_of(1)).await;
    let address = cluster.pod("pd-0").expect("the pod")["status"]["podIP"].clone();
    cluster.world.crash_process(NS, "pd-0");
    cluster.until("unready", |c| !c.ready("pd-0")).await;
    cluster.until("ready again", |c| c.ready("pd-0")).await;
    let pod = cluster.pod("pd-0").expect("the pod");
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 1);
    assert_eq!(pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 137);
    assert_eq!(pod["status"]["podIP"], address);
    let began = cluster.clock.elapsed();
    cluster.world.crash_process(NS, "pd-0");
    cluster.until("back-off", |c| c.waiting("pd-0") == "CrashLoopBackOff").await;
    cluster.until("ready again", |c| c.ready("pd-0")).await;
    assert!(cluster.clock.elapsed() >= began + Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_recovers_when_it_can() {
    let cluster = Cluster::start(4);
    cluster.world.set_image(OLD, ImageBehaviour::CannotPull);
    cluster.api.create_value("admin", set_of(1)).expect("a set");
    cluster.until("failed", |c| c.waiting("pd-0") == "ErrImagePull").await;
    cluster.until("back-off", |c| c.waiting("pd-0") == "ImagePullBackOff").await;
    cluster.world.set_image(OLD, ImageBehaviour::Works);
    cluster.until("ready", |c| c.ready("pd-0")).await;
}

#[tokio::test(start_paused = true)]
async fn images_that_crash_or_never_serve_never_become_ready() {
    for behaviour in [ImageBehaviour::Crashes, ImageBehaviour::NeverReady] {
        let cluster = Cluster::start(5);
        cluster.world.set_image(OLD, behaviour);
        cluster.api.create_value("admin", set_of(1)).expect("a set");
        cluster.pass(120).await;
        assert!(!cluster.ready("pd-0"));
        let pod = cluster.pod("pd-0").expect("the pod");
        assert_eq!(pod["status"]["phase"], "Running");
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_i64();
        assert_eq!(restarts.is_some_and(|count| count > 2), behaviour == ImageBehaviour::Crashes, "{restarts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_process_answers_nobody_and_comes_back_by_itself() {
    let cluster = Cluster::with(6, set_of(3)).await;
    let follower = cluster.follower();
    cluster.world.hang_process(NS, &follower, Duration::from_mins(1));
    let error = cluster.dial(&follower, Method::GET, "/pd/api/v1/ping", Value::Null).await.expect_err("silence");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    cluster.until("ready again", |c| c.ready(&follower)).await;
    assert_eq!(cluster.ask(&follower, Method::GET, "/pd/api/v1/ping").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_makes_its_pods_unready_and_they_restart_when_it_is_back() {
    let cluster = Cluster::with(7, set_of(3)).await;
    let pod = cluster.pod("pd-1").expect("the pod");
    let node = pod["spec"]["nodeName"].as_str().expect("a node").to_owned();
    cluster.world.node_down(&node);
    cluster.pass(20).await;
    assert!(cluster.ready("pd-1"), "nobody has noticed yet");
    cluster.until("noticed", |c| !c.ready("pd-1")).await;
    let lost = cluster.api.get_value("nodes", "", &node).expect("the node");
    assert_eq!(condition(&lost, "Ready")["status"], "Unknown");
    cluster.world.node_up(&node);
    cluster.until("back", |c| c.ready("pd-1")).await;
    let back = cluster.pod("pd-1").expect("the pod");
    assert_eq!(back["metadata"]["uid"], pod["metadata"]["uid"]);
    assert_ne!(back["status"]["podIP"], pod["status"]["podIP"]);
    assert_eq!(back["status"]["containerStatuses"][0]["restartCount"], 1);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_stays_away_hang_in_termination() {
    let cluster = Cluster::with(8, set_of(3)).await;
    let pod = cluster.pod("pd-1").expect("the pod");
    let node = pod["spec"]["nodeName"].as_str().expect("a node").to_owned();
    cluster.world.node_down(&node);
    cluster.pass(400).await;
    let stuck = cluster.pod("pd-1").expect("still there");
    assert_eq!(stuck["metadata"]["uid"], pod["metadata"]["uid"]);
    assert!(stuck["metadata"]["deletionTimestamp"].is_string());
    cluster.world.node_up(&node);
    cluster.until("replaced", |c| c.ready("pd-1")).await;
    assert_ne!(cluster.pod("pd-1").expect("new")["metadata"]["uid"], pod["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_no_node_takes_says_so_and_is_bound_when_one_does() {
    let cluster = Cluster::start(9);
    for node in ["node-0", "node-1", "node-2"] {
        cluster.world.drain(node);
    }
    cluster.api.create_value("admin", set_of(1)).expect("a set");
    cluster.pass(10).await;
    let pod = cluster.pod("pd-0").expect("the pod");
    assert_eq!(condition(&pod, "PodScheduled")["reason"], "Unschedulable");
    cluster.world.uncordon("node-1");
    cluster.until("ready", |c| c.ready("pd-0")).await;
    assert_eq!(cluster.pod("pd-0").expect("the pod")["spec"]["nodeName"], "node-1");
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_budget() {
    let cluster = Cluster::with(10, set_of(3)).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "pd", "namespace": NS},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "pd"}}},
    });
    cluster.api.create_value("admin", budget).expect("a budget");
    cluster.pass(5).await;
    let status = |c: &Cluster| c.api.get_value("poddisruptionbudgets.policy", NS, "pd").expect("it")["status"].clone();
    assert_eq!(status(&cluster)["disruptionsAllowed"], 1);
    assert_eq!((&status(&cluster)["expectedPods"], &status(&cluster)["desiredHealthy"]), (&json!(3), &json!(2)));
    cluster.world.crash_process(NS, "pd-0");
    cluster.world.hang_process(NS, "pd-1", Duration::from_secs(90));
    cluster.until("pd-1 unready", |c| !c.ready("pd-1") && status(c)["disruptionsAllowed"] == 0).await;
    let before = cluster.uid("pd-2");
    let node = cluster.pod("pd-2").expect("it")["spec"]["nodeName"].as_str().expect("a node").to_owned();
    cluster.world.drain(&node);
    cluster.pass(20).await;
    assert_eq!(cluster.uid("pd-2"), before, "the budget forbids it");
    cluster.until("evicted", |c| !c.uid("pd-2").is_empty() && c.uid("pd-2") != before && c.ready("pd-2")).await;
    assert_ne!(cluster.pod("pd-2").expect("it")["spec"]["nodeName"], node.as_str());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_evicted_under_pressure_fails_and_its_controller_replaces_it() {
    let cluster = Cluster::with(5, set_of(3)).await;
    let before = cluster.pod("pd-1").expect("the pod")["metadata"]["uid"].clone();
    cluster.world.evict_under_pressure(NS, "pd-1");
    assert_eq!(cluster.pod("pd-1").expect("the pod")["status"]["phase"], "Failed");
    cluster.until("replaced", |c| c.pod("pd-1").is_some_and(|pod| pod["metadata"]["uid"] != before)).await;
    cluster.until("ready", |c| c.ready("pd-1")).await;
}

/// The log of a pod's only container, or why there is none.
async fn log(cluster: &Cluster, pod: &str, previous: bool) -> Result<String, String> {
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::namespaced(cluster.api.client("tester"), NS);
    let params = kube::api::LogParams { previous, tail_lines: Some(1), ..kube::api::LogParams::default() };
    pods.logs(pod, &params).await.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_log_is_of_the_run_that_is_asked_for() {
    let cluster = Cluster::start(5);
    cluster.world.set_image(OLD, ImageBehaviour::Crashes);
    cluster.api.create_value("admin", set_of(1)).expect("a set");
    cluster.until("creating", |c| c.waiting("pd-0") == "ContainerCreating").await;
    let why = log(&cluster, "pd-0", false).await.expect_err("nothing runs yet");
    assert!(why.contains("container \"pd\" in pod \"pd-0\" is waiting to start: ContainerCreating"), "{why}");
    let why = log(&cluster, "pd-0", true).await.expect_err("nothing ran yet");
    assert!(why.contains("previous terminated container \"pd\" in pod \"pd-0\" not found"), "{why}");
    cluster.until("backing off", |c| c.waiting("pd-0") == "CrashLoopBackOff").await;
    for previous in [true, false] {
        assert_eq!(log(&cluster, "pd-0", previous).await.as_deref(), Ok("fatal: this build is broken\n"));
    }
    cluster.world.set_image(OLD, ImageBehaviour::Works);
    cluster.until("ready", |c| c.ready("pd-0")).await;
    assert_eq!(log(&cluster, "pd-0", false).await.as_deref(), Ok("serving\n"));
    assert_eq!(log(&cluster, "pd-0", true).await.as_deref(), Ok("fatal: this build is broken\n"));
    cluster.world.write_log(NS, "pd-0", "one\u{1b}[0m more");
    assert_eq!(log(&cluster, "pd-0", false).await.as_deref(), Ok("one\u{1b}[0m more\n"));
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::namespaced(cluster.api.client("tester"), NS);
    let params = kube::api::LogParams { limit_bytes: Some(5), ..kube::api::LogParams::default() };
    assert_eq!(pods.logs("pd-0", &params).await.expect("a log"), "start");
    assert!(pods.logs("pd-9", &params).await.is_err());
}
