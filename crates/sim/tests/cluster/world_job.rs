//! The Job controller with kubelets: from a Job to the words of the container that did its work.

use std::sync::Arc;

use crate::world_support::{Cluster, NS};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};
use windlass_sim::world::ImageBehaviour;

const IMAGE: &str = "registry.example/windlass:1";

/// A Job whose pod says this and ends.
fn job(spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "task", "namespace": NS},
        "spec": {
            "backoffLimit": 0,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "executor", "image": IMAGE, "args": ["say", "done"]}],
            }},
        },
    });
    for (key, value) in spec.as_object().expect("fields of a spec") {
        job["spec"][key] = value.clone();
    }
    job
}

fn start(seed: u64, spec: &Value, image: ImageBehaviour) -> Cluster {
    let cluster = Cluster::start(seed);
    cluster.world.set_image(IMAGE, image);
    cluster.api.create_value("admin", job(spec)).expect("a Job");
    cluster
}

fn task(cluster: &Cluster) -> Option<Arc<Value>> {
    cluster.api.get_value("jobs.batch", NS, "task")
}

fn words(cluster: &Cluster) -> Vec<String> {
    let task = task(cluster);
    let conditions = task.as_ref().and_then(|job| job.pointer("/status/conditions")?.as_array().cloned());
    let said = |condition: Value| format!("{} {}", condition["type"].as_str().unwrap_or(""), condition["reason"]);
    conditions.unwrap_or_default().into_iter().map(said).collect()
}

fn pods(cluster: &Cluster) -> Vec<Arc<Value>> {
    cluster.api.list_values("pods", NS)
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_once_and_leaves_its_words() {
    let cluster = start(1, &json!({}), ImageBehaviour::Works);
    cluster.until("an end", |c| words(c).len() == 2).await;
    assert_eq!(words(&cluster), ["SuccessCriteriaMet \"CompletionsReached\"", "Complete \"CompletionsReached\""]);
    let status = task(&cluster).expect("the Job")["status"].clone();
    assert_eq!((&status["succeeded"], &status["ready"], status.get("active")), (&json!(1), &json!(0), None));
    assert!(status["completionTime"].is_string());
    let pods = pods(&cluster);
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0]["status"]["phase"], "Succeeded");
    let ended = &pods[0]["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(
        (&ended["message"], &ended["exitCode"], &ended["reason"]),
        (&json!("done"), &json!(0), &json!("Completed"))
    );
    assert_eq!(pods[0]["metadata"].get("finalizers"), None);
    assert_eq!(pods[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "task");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fails_is_the_end_where_nobody_may_try_again() {
    let cluster = start(2, &json!({}), ImageBehaviour::Crashes);
    cluster.until("an end", |c| words(c).len() == 2).await;
    assert_eq!(words(&cluster), ["FailureTarget \"BackoffLimitExceeded\"", "Failed \"BackoffLimitExceeded\""]);
    assert_eq!((task(&cluster).expect("the Job")["status"]["failed"].clone(), pods(&cluster).len()), (json!(1), 1));
}

#[tokio::test(start_paused = true)]
async fn the_next_pod_waits_longer_after_each_failure() {
    let cluster = start(3, &json!({"backoffLimit": 2}), ImageBehaviour::Crashes);
    let began = cluster.clock.elapsed();
    cluster.until("an end", |c| words(c).len() == 2).await;
    assert_eq!(pods(&cluster).len(), 3);
    // Ten seconds after the first, twenty after the second.
    assert!(
        (30..60).contains(&cluster.clock.elapsed().saturating_sub(began).as_secs()),
        "{:?}",
        cluster.clock.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_what_hangs_and_the_last_word_waits_for_the_pod() {
    let cluster = start(4, &json!({"activeDeadlineSeconds": 30}), ImageBehaviour::NeverReady);
    cluster.until("a first word", |c| !words(c).is_empty()).await;
    assert_eq!(words(&cluster), ["FailureTarget \"DeadlineExceeded\""]);
    assert_eq!(pods(&cluster).len(), 1, "it is on its way out");
    cluster.until("the last word", |c| words(c).len() == 2).await;
    assert!(pods(&cluster).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_with_its_pods_some_time_after_its_end() {
    let cluster = start(5, &json!({"ttlSecondsAfterFinished": 60}), ImageBehaviour::Works);
    cluster.until("an end", |c| words(c).len() == 2).await;
    cluster.pass(50).await;
    assert!(task(&cluster).is_some());
    cluster.until("nothing left", |c| task(c).is_none() && pods(c).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods() {
    let cluster = start(6, &json!({"suspend": true}), ImageBehaviour::Works);
    cluster.pass(20).await;
    assert_eq!((words(&cluster), pods(&cluster).len()), (vec!["Suspended \"JobSuspended\"".to_owned()], 0));
    cluster.api.merge::<Job>("admin", NS, "task", &json!({"spec": {"suspend": false}})).expect("a patch");
    cluster.until("an end", |c| words(c).iter().any(|word| word.starts_with("Complete"))).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_leaves_its_pods_unless_it_is_told_otherwise() {
    let cluster = start(7, &json!({}), ImageBehaviour::NeverReady);
    cluster.until("a pod", |c| pods(c).len() == 1).await;
    cluster.api.delete::<Job>("admin", NS, "task", &DeleteParams::default()).expect("a deletion");
    cluster.until("the Job gone", |c| task(c).is_none()).await;
    cluster.pass(20).await;
    let orphan = pods(&cluster).remove(0);
    assert_eq!((orphan["metadata"].get("ownerReferences"), orphan["metadata"].get("finalizers")), (None, None));

    let cluster = start(8, &json!({}), ImageBehaviour::NeverReady);
    cluster.until("a pod", |c| pods(c).len() == 1).await;
    let options = DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    cluster.api.delete::<Job>("admin", NS, "task", &options).expect("a deletion");
    cluster.until("nothing left", |c| task(c).is_none() && pods(c).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_somebody_deletes_has_failed() {
    let cluster = start(9, &json!({"backoffLimit": 1}), ImageBehaviour::NeverReady);
    cluster.until("a pod", |c| pods(c).len() == 1).await;
    let first = pods(&cluster)[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    cluster.api.delete::<Pod>("admin", NS, &first, &DeleteParams::default()).expect("a deletion");
    let is_another = |pod: &Arc<Value>| pod["metadata"]["name"] != first.as_str();
    cluster.until("another pod", |c| pods(c).iter().any(is_another)).await;
    assert_eq!(task(&cluster).expect("the Job")["status"]["failed"], 1);
}
