//! The StatefulSet controller's facts, one by one.

use crate::world_support::{Cluster, NEW, NS, OLD, image, set_of};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};
use windlass_sim::journal::{Event, Verb};
use windlass_sim::world::ImageBehaviour;

fn parallel(replicas: i64) -> Value {
    let mut set = set_of(replicas);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set
}

fn on_delete(replicas: i64) -> Value {
    let mut set = set_of(replicas);
    set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    set
}

#[tokio::test(start_paused = true)]
async fn pods_come_up_in_order_with_identity_claims_and_status() {
    let cluster = Cluster::with(1, set_of(3)).await;
    let created: Vec<String> = cluster
        .journal
        .entries()
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Write(change) if change.resource == "pods" && change.verb == Verb::Create => {
                Some(change.name.clone())
            }
            Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
        })
        .collect();
    assert_eq!(created, ["pd-0", "pd-1", "pd-2"]);
    let pod = cluster.pod("pd-1").expect("pd-1");
    assert_eq!(pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"], "pd-1");
    assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(pod["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(pod["spec"]["hostname"], "pd-1");
    assert_eq!(pod["spec"]["subdomain"], "pd-peer");
    assert_eq!(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "data-pd-1");
    let claim = cluster.api.get_value("persistentvolumeclaims", NS, "data-pd-1").expect("a claim");
    assert_eq!(claim["status"]["phase"], "Bound");
    for count in ["/replicas", "/readyReplicas", "/availableReplicas", "/currentReplicas", "/updatedReplicas"] {
        assert_eq!(cluster.status(count), json!(3), "{count}");
    }
    assert_eq!(cluster.status("/observedGeneration"), cluster.set()["metadata"]["generation"]);
    assert_eq!(cluster.status("/currentRevision"), cluster.status("/updateRevision"));
    assert_eq!(cluster.status("/collisionCount"), json!(0));
}

#[tokio::test(start_paused = true)]
async fn a_partition_holds_the_lower_ordinals_even_when_they_restart() {
    let cluster = Cluster::with(2, set_of(3)).await;
    let mut patch = image(NEW);
    patch["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": 2}});
    cluster.patch(&patch);
    cluster.until("pd-2 new", |c| c.image("pd-2") == NEW && c.ready("pd-2")).await;
    cluster.pass(60).await;
    assert_eq!((cluster.image("pd-0").as_str(), cluster.image("pd-1").as_str()), (OLD, OLD));
    let before = cluster.uid("pd-0");
    cluster.delete_pod("pd-0");
    cluster.until("pd-0 back", |c| c.uid("pd-0") != before && c.ready("pd-0")).await;
    assert_eq!(cluster.image("pd-0"), OLD);
    cluster.pass(5).await;
    assert_ne!(cluster.status("/currentRevision"), cluster.status("/updateRevision"));
    assert_eq!(cluster.status("/updatedReplicas"), json!(1));
    assert_eq!(cluster.status("/currentReplicas"), json!(2));
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_goes_from_the_top_one_ready_pod_at_a_time_and_moves_the_current_revision() {
    let cluster = Cluster::with(3, set_of(3)).await;
    let first = cluster.status("/currentRevision");
    cluster.patch(&image(NEW));
    cluster
        .until("all new", |c| {
            c.status("/currentRevision") == c.status("/updateRevision")
                && c.status("/updatedReplicas") == json!(3)
                && c.status("/currentRevision") != first
        })
        .await;
    let marked: Vec<String> = cluster
        .journal
        .entries()
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Write(change) if change.resource == "pods" && change.verb == Verb::Delete => {
                Some(change.name.clone())
            }
            Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
        })
        .collect();
    assert_eq!(marked, ["pd-2", "pd-1", "pd-0"]);
    for truth in cluster.journal.entries().iter().filter_map(|entry| match &entry.event {
        Event::Quorum(truth) => Some(truth),
        Event::Write(_) | Event::Verb { .. } | Event::Note(_) => None,
    }) {
        assert_eq!(truth.members.len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn on_delete_replaces_nothing_by_itself_and_never_moves_the_current_revision() {
    let cluster = Cluster::with(4, on_delete(3)).await;
    let first = cluster.status("/currentRevision");
    cluster.patch(&image(NEW));
    cluster.pass(60).await;
    for pod in ["pd-0", "pd-1", "pd-2"] {
        assert_eq!(cluster.image(pod), OLD);
    }
    for pod in ["pd-0", "pd-1", "pd-2"] {
        cluster.delete_pod(pod);
        cluster.until("new pod", |c| c.image(pod) == NEW && c.ready(pod)).await;
    }
    cluster.pass(60).await;
    assert_eq!(cluster.status("/updatedReplicas"), json!(3));
    assert_eq!(cluster.status("/currentRevision"), first);
    // A partition on such a set, written while a pod is away, brings that pod back on the first template.
    cluster.world.freeze_controllers(cluster.clock.elapsed() + std::time::Duration::from_secs(20));
    cluster.delete_pod("pd-0");
    cluster.patch(&json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}}}));
    cluster.pass(30).await;
    cluster.until("pd-0 back", |c| c.ready("pd-0")).await;
    assert_eq!(cluster.image("pd-0"), OLD);
}

#[tokio::test(start_paused = true)]
async fn without_a_rolling_update_block_as_many_pods_are_held_as_are_current() {
    let mut set = set_of(3);
    set["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
    let cluster = Cluster::with(15, set).await;
    let first = cluster.status("/currentRevision");
    cluster.patch(&image(NEW));
    cluster.until("rolled", |c| c.status("/currentRevision") != first).await;
    assert_eq!(cluster.image("pd-0"), NEW);
}

#[tokio::test(start_paused = true)]
async fn a_revert_reuses_the_equal_revision_and_renumbers_it() {
    let cluster = Cluster::with(5, set_of(1)).await;
    let first = cluster.status("/updateRevision");
    cluster.patch(&image(NEW));
    cluster.until("second revision", |c| c.status("/updateRevision") != first && c.ready("pd-0")).await;
    cluster.pass(30).await;
    cluster.patch(&image(OLD));
    cluster.until("first revision", |c| c.status("/updateRevision") == first).await;
    let revisions = cluster.api.list_values("controllerrevisions.apps", NS);
    let mut numbers: Vec<(Value, Value)> =
        revisions.iter().map(|r| (r["revision"].clone(), r["metadata"]["name"].clone())).collect();
    numbers.sort_by_key(|(number, _)| number.as_i64());
    assert_eq!(numbers.len(), 2);
    assert_eq!(numbers.iter().map(|(number, _)| number.as_i64()).collect::<Vec<_>>(), [Some(2), Some(3)]);
    assert_eq!(numbers[1].1, first);
}

#[tokio::test(start_paused = true)]
async fn a_broken_pod_is_not_replaced_after_the_template_is_repaired() {
    let cluster = Cluster::with(6, set_of(3)).await;
    let broken = "registry.example/pingcap/pd:v0.0.0";
    cluster.world.set_image(broken, ImageBehaviour::CannotPull);
    cluster.patch(&image(broken));
    cluster.until("stuck", |c| c.waiting("pd-2") == "ImagePullBackOff").await;
    cluster.patch(&image(NEW));
    cluster.pass(300).await;
    assert_eq!(cluster.image("pd-2"), broken);
    assert_eq!(cluster.image("pd-1"), OLD);
    cluster.delete_pod("pd-2");
    cluster.until("repaired", |c| c.image("pd-0") == NEW && c.ready("pd-0")).await;
}

#[tokio::test(start_paused = true)]
async fn parallel_rolls_past_a_sick_lower_ordinal() {
    let cluster = Cluster::with(7, parallel(3)).await;
    cluster.world.hang_process(NS, "pd-0", std::time::Duration::from_hours(1));
    cluster.until("pd-0 sick", |c| !c.ready("pd-0")).await;
    cluster.patch(&image(NEW));
    cluster.until("pd-2 new", |c| c.image("pd-2") == NEW && c.ready("pd-2")).await;
    cluster.until("pd-1 new", |c| c.image("pd-1") == NEW).await;
}

#[tokio::test(start_paused = true)]
async fn in_order_a_sick_lower_ordinal_stops_the_roll() {
    let cluster = Cluster::with(8, set_of(3)).await;
    cluster.world.hang_process(NS, "pd-0", std::time::Duration::from_hours(1));
    cluster.until("pd-0 sick", |c| !c.ready("pd-0")).await;
    cluster.patch(&image(NEW));
    cluster.pass(300).await;
    assert_eq!(cluster.image("pd-2"), OLD);
}

#[tokio::test(start_paused = true)]
async fn the_partition_counts_from_the_first_ordinal() {
    let mut set = set_of(3);
    set["spec"]["ordinals"] = json!({"start": 5});
    let cluster = Cluster::with(9, set).await;
    assert_eq!(cluster.names(), ["pd-5", "pd-6", "pd-7"]);
    let held = cluster.uid("pd-5");
    let mut patch = image(NEW);
    patch["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": 1}});
    cluster.patch(&patch);
    cluster.until("pd-6 new", |c| c.image("pd-6") == NEW && c.ready("pd-6")).await;
    cluster.pass(60).await;
    assert_eq!((cluster.image("pd-5").as_str(), cluster.image("pd-7").as_str()), (OLD, NEW));
    assert_eq!(cluster.uid("pd-5"), held, "a held pod is left alone");
}

#[tokio::test(start_paused = true)]
async fn a_set_waits_min_ready_seconds_between_pods() {
    let mut set = set_of(2);
    set["spec"]["minReadySeconds"] = json!(30);
    let cluster = Cluster::start(10);
    cluster.api.create_value("admin", set).expect("a set");
    cluster.until("pd-0 ready", |c| c.ready("pd-0")).await;
    cluster.pass(27).await;
    assert!(cluster.pod("pd-1").is_none());
    assert_eq!(cluster.status("/availableReplicas"), json!(0));
    cluster.until("pd-1", |c| c.pod("pd-1").is_some()).await;
    cluster.until("available", |c| c.status("/availableReplicas") == json!(2)).await;
}

#[tokio::test(start_paused = true)]
async fn scaling_down_takes_the_highest_pods_one_by_one_before_any_update() {
    let cluster = Cluster::with(11, set_of(5)).await;
    let mut patch = image(NEW);
    patch["spec"]["replicas"] = json!(3);
    cluster.patch(&patch);
    cluster.until("scaled", |c| c.names().len() == 3).await;
    for pod in ["pd-0", "pd-1", "pd-2"] {
        assert_eq!(cluster.image(pod), OLD);
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_controller_uses_an_old_permit_much_later() {
    let cluster = Cluster::with(12, set_of(3)).await;
    let until = cluster.clock.elapsed() + std::time::Duration::from_mins(5);
    cluster.world.freeze_controllers(until);
    cluster.patch(&image(NEW));
    cluster.pass(290).await;
    assert_eq!(cluster.image("pd-2"), OLD);
    assert_ne!(cluster.status("/observedGeneration"), cluster.set()["metadata"]["generation"]);
    cluster.pass(60).await;
    assert_eq!(cluster.image("pd-2"), NEW);
}

#[tokio::test(start_paused = true)]
async fn history_beyond_the_limit_is_deleted_and_a_lost_current_revision_lets_held_pods_come_up_new() {
    let mut set = set_of(2);
    set["spec"]["revisionHistoryLimit"] = json!(1);
    let cluster = Cluster::with(13, set).await;
    for tag in ["v8.5.2", "v8.5.3", "v8.5.4"] {
        let wanted = format!("registry.example/pingcap/pd:{tag}");
        cluster.patch(&image(&wanted));
        cluster.until("rolled", |c| c.image("pd-0") == wanted && c.ready("pd-0") && c.ready("pd-1")).await;
        cluster.pass(10).await;
    }
    assert_eq!(cluster.api.list_values("controllerrevisions.apps", NS).len(), 2);

    let mut patch = image(NEW);
    patch["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": 2}});
    cluster.patch(&patch);
    cluster.pass(10).await;
    let current = cluster.status("/currentRevision");
    let name = current.as_str().expect("a revision");
    cluster.api.delete::<ControllerRevision>("admin", NS, name, &DeleteParams::default()).expect("a deletion");
    cluster.delete_pod("pd-0");
    cluster.until("pd-0 new", |c| c.image("pd-0") == NEW).await;
}

#[tokio::test(start_paused = true)]
async fn orphaned_pods_are_adopted_by_the_next_set_of_their_name() {
    let cluster = Cluster::with(14, set_of(3)).await;
    let before = cluster.uid("pd-0");
    let options = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    cluster.api.delete::<StatefulSet>("admin", NS, "pd", &options).expect("a deletion");
    cluster.until("gone", |c| c.api.get_value("statefulsets.apps", NS, "pd").is_none()).await;
    cluster.pass(10).await;
    assert_eq!(cluster.names().len(), 3);
    cluster.api.create_value("admin", set_of(3)).expect("a set");
    cluster.until("adopted", |c| c.status("/readyReplicas") == json!(3)).await;
    assert_eq!(cluster.uid("pd-0"), before);
}
