//! A new image that is broken, and a spec that is mended while the first member waits for it (H44).

use std::time::Duration;

use crate::support::{
    FROM, TO, Tale, image,
    stage::{self, pass, patch, until, until_reason, until_stalled},
    three, with,
};
use serde_json::{Value, json};
use windlass_rehearsal::pd;
use windlass_sim::{harness::Cluster, scenario::Subject, world::ImageBehaviour};

const NEXT: &str = "8.5.4";

fn elsewhere() -> Value {
    json!({"image": "mirror.example/pingcap/pd:v8.5.3"})
}

/// The new image behaves like this; as soon as that shows, this is asked for.
async fn mended(cluster: &Cluster, behaviour: ImageBehaviour, reason: &str, spec: &Value) {
    cluster.world.set_image(&image(TO), behaviour);
    until_reason(cluster, reason).await;
    patch(cluster, &pd::subject(), &json!({ "spec": spec }));
}

fn mend(objects: Vec<Value>, behaviour: ImageBehaviour, reason: &str, spec: &Value) -> Tale {
    let tale = stage::play(objects, async |cluster| {
        mended(cluster, behaviour, reason, spec).await;
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(tale.replaced(tale.between(0, 1)), ["pd-2"], "no second member is risked on it");
    tale
}

#[test]
fn a_crash_looping_image_is_left_for_the_next_version() {
    let tale = mend(three(), ImageBehaviour::Crashes, "CrashLooping", &json!({"version": NEXT}));
    assert_eq!(tale.deleted_by_us(), ["pd-2"]);
    assert_eq!(tale.replaced(tale.since(1)), ["pd-2", "pd-1", "pd-0"], "each once more at most");
    tale.ended_ready_at(NEXT);
}

#[test]
fn an_image_that_cannot_be_pulled_is_left_for_a_mirror() {
    let tale = mend(three(), ImageBehaviour::CannotPull, "ImagePullFailed", &elsewhere());
    assert_eq!(tale.deleted_by_us(), ["pd-2"]);
    tale.ended_ready_at(TO);
}

#[test]
fn a_broken_member_is_reverted_at_once() {
    let tale = mend(three(), ImageBehaviour::Crashes, "CrashLooping", &json!({"version": FROM}));
    assert_eq!(
        (tale.deleted_by_us(), tale.replaced(tale.since(1))),
        (vec!["pd-2".to_owned()], vec!["pd-2".to_owned()])
    );
    tale.ended_ready_at(FROM);
}

/// Kubernetes itself replaces a permitted pod here, ready or not: whoever is first.
#[test]
fn a_set_that_is_managed_in_parallel_is_mended_too() {
    let parallel = || with(three(), "StatefulSet", |set| set["spec"]["podManagementPolicy"] = json!("Parallel"));
    mend(parallel(), ImageBehaviour::Crashes, "CrashLooping", &json!({"version": NEXT})).ended_ready_at(NEXT);
    mend(parallel(), ImageBehaviour::Crashes, "CrashLooping", &json!({"version": FROM})).ended_ready_at(FROM);
}

#[test]
fn a_mend_that_is_broken_too_is_mended_again() {
    let tale = stage::play(three(), async |cluster| {
        cluster.world.set_image(&image(NEXT), ImageBehaviour::Crashes);
        mended(cluster, ImageBehaviour::CannotPull, "ImagePullFailed", &json!({"version": NEXT})).await;
        until_stalled(cluster, "CrashLooping").await;
        patch(cluster, &pd::subject(), &json!({"spec": {"version": FROM}}));
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(tale.deleted_by_us(), ["pd-2", "pd-2"]);
    tale.ended_ready_at(FROM);
}

#[test]
fn a_broken_pod_that_a_person_deletes_meanwhile() {
    let tale = stage::play(three(), async |cluster| {
        mended(cluster, ImageBehaviour::CannotPull, "ImagePullFailed", &elsewhere()).await;
        stage::delete(cluster, &pod("pd-2"));
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

fn pod(name: &str) -> Subject {
    Subject { resource: "pods".into(), namespace: pd::NAMESPACE.into(), name: name.into() }
}

#[test]
fn a_pause_holds_the_mend() {
    let tale = stage::play(three(), async |cluster| {
        let spec = json!({"version": NEXT, "paused": true});
        mended(cluster, ImageBehaviour::Crashes, "CrashLooping", &spec).await;
        until_reason(cluster, "Paused").await;
        pass(Duration::from_mins(3)).await;
        patch(cluster, &pd::subject(), &json!({"spec": {"paused": false}}));
        until_reason(cluster, "UpToDate").await;
    });
    tale.touched_nothing(tale.between(1, 2));
    tale.ended_ready_at(NEXT);
}

#[test]
fn another_member_that_is_down_holds_the_mend() {
    let tale = stage::play(three(), async |cluster| {
        cluster.world.set_image(&image(TO), ImageBehaviour::Crashes);
        until_reason(cluster, "CrashLooping").await;
        cluster.world.hang_process(pd::NAMESPACE, "pd-1", Duration::from_mins(4));
        pass(Duration::from_secs(30)).await;
        patch(cluster, &pd::subject(), &json!({"spec": {"version": NEXT}}));
        pass(Duration::from_mins(2)).await;
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(NEXT);
}

/// Drains ask again and again, our budget refuses, and the broken pod is replaced all the same: it is deleted, not evicted.
#[test]
fn drains_in_the_middle_of_a_mend_take_nobody() {
    let tale = stage::play(three(), async |cluster| {
        cluster.world.set_image(&image(TO), ImageBehaviour::Crashes);
        until_reason(cluster, "CrashLooping").await;
        for node in ["node-0", "node-1", "node-2"] {
            cluster.world.drain(node);
        }
        pass(Duration::from_mins(1)).await;
        for node in ["node-0", "node-1", "node-2"] {
            cluster.world.uncordon(node);
        }
        patch(cluster, &pd::subject(), &json!({"spec": {"version": NEXT}}));
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(tale.replaced(tale.between(1, 4)), Vec::<String>::new(), "nobody is evicted");
    assert_eq!(tale.deleted_by_us(), ["pd-2"]);
    tale.ended_ready_at(NEXT);
}

/// All nodes are cordoned when the first member is replaced, and somebody said that this is no reason to wait.
#[test]
fn a_pod_that_no_node_takes_is_named_and_goes_on_when_one_does() {
    let objects = with(three(), "QuorumCluster", |resource| {
        resource["spec"]["gates"] = json!({"overrides": [{"gate": "NodeDrain", "until": "2100-01-01T00:00:00Z"}]});
    });
    let tale = stage::play(objects, async |cluster| {
        let held = |cluster: &Cluster| {
            cluster.api.get_value("poddisruptionbudgets.policy", pd::NAMESPACE, "windlass-pd").is_some()
        };
        until(cluster, "evictions are held", held).await;
        for node in ["node-0", "node-1", "node-2"] {
            cluster.world.drain(node);
        }
        let words = ["pd-2", "nodes are available", "make room for the pod"];
        until_reason(cluster, "Unschedulable").await.is_waiting("Unschedulable", &words);
        until_stalled(cluster, "Unschedulable").await;
        cluster.world.uncordon("node-1");
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

/// The template changes and the image stays: nobody is replaced for it unasked.
#[test]
fn a_template_edit_that_leaves_the_image_alone_is_reported() {
    let edit = json!({"spec": {"template": {"metadata": {"annotations": {"somebody": "was here"}}}}});
    let tale = stage::play(three(), async |cluster| {
        until(cluster, "the first member", |cluster| stage::partition(cluster) == json!(2)).await;
        until(cluster, "the second member", |cluster| stage::partition(cluster) == json!(1)).await;
        patch(cluster, &pd::workload(), &edit);
        until_stalled(cluster, "TemplateChanged")
            .await
            .is_stalled("TemplateChanged", &["not its image", "requests.resume"]);
        pass(Duration::from_mins(3)).await;
        patch(cluster, &pd::subject(), &json!({"spec": {"requests": {"resume": "1"}}}));
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}
