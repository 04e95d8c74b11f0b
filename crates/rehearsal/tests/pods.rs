//! Images that don't start, and members that no pod backs.

mod support;

use std::time::Duration;

use serde_json::json;
use support::{
    FROM, TO, Tale, image,
    stage::{self, pass, patch, until_reason},
    three,
};
use windlass_rehearsal::pd;
use windlass_sim::{harness::Cluster, scenario::Subject, world::ImageBehaviour};

/// The new image behaves like this until it is mended, and so does the pod that waits for it.
fn until_mended(behaviour: ImageBehaviour, trouble: &str) -> Tale {
    let tale = stage::play(three(), async |cluster| {
        cluster.world.set_image(&image(TO), behaviour);
        let spoken = until_reason(cluster, "PodNotReady").await;
        spoken.is_waiting("PodNotReady", &["pd-2", "kubectl describe the pod"]);
        let spoken = until_reason(cluster, "DeadlineExceeded").await;
        spoken.is_stalled(
            "DeadlineExceeded",
            &["the time for pd-2 is up", trouble, "delete the pod if it can't become well"],
        );
        pass(Duration::from_mins(5)).await;
        cluster.world.set_image(&image(TO), ImageBehaviour::Works);
        // What starts and never serves does not end by itself.
        cluster.world.crash_process(pd::NAMESPACE, "pd-2");
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(tale.replaced(tale.between(0, 1)), ["pd-2"], "no second member is risked on it");
    tale.ended_ready_at(TO);
    tale
}

#[test]
fn an_image_that_cannot_be_pulled() {
    until_mended(ImageBehaviour::CannotPull, "ImagePullBackOff");
}

#[test]
fn an_image_whose_process_ends_at_once() {
    until_mended(ImageBehaviour::Crashes, "last exit code 1");
}

#[test]
fn an_image_whose_process_never_serves() {
    until_mended(ImageBehaviour::NeverReady, "pod pd-2 is not ready");
}

/// The new image can't be pulled, and the old one is wanted again.
async fn given_up(cluster: &Cluster) {
    cluster.world.set_image(&image(TO), ImageBehaviour::CannotPull);
    until_reason(cluster, "DeadlineExceeded").await;
    patch(cluster, &pd::subject(), &json!({"spec": {"version": FROM}}));
}

#[test]
#[ignore = "a pod that never was ready can't be replaced by lowering the partition, and nothing else is tried"]
fn an_image_that_cannot_be_pulled_is_given_up_without_a_person() {
    let tale = stage::play(three(), async |cluster| {
        given_up(cluster).await;
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(FROM);
}

#[test]
fn an_image_that_cannot_be_pulled_is_given_up_once_a_person_deletes_the_pod() {
    let tale = stage::play(three(), async |cluster| {
        given_up(cluster).await;
        pass(Duration::from_mins(5)).await;
        stage::delete(
            cluster,
            &Subject { resource: "pods".into(), namespace: pd::NAMESPACE.into(), name: "pd-2".into() },
        );
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(FROM);
}

#[test]
fn a_member_that_no_process_ever_backed() {
    let tale = stage::play(three(), async |cluster| {
        let quorum = cluster.world.pd(pd::NAMESPACE, pd::NAME);
        quorum.add_ghost_member("pd-9");
        let spoken = until_reason(cluster, "MembersDoNotMatch").await;
        spoken.is_stalled(
            "MembersDoNotMatch",
            &["members that have no pod: pd-9", "remove the members that have no pod"],
        );
        pass(Duration::from_mins(3)).await;
        quorum.remove_member("pd-9");
        until_reason(cluster, "UpToDate").await;
    });
    tale.touched_nothing(tale.between(0, 1));
    tale.ended_ready_at(TO);
}

#[test]
fn a_pod_that_is_no_member() {
    let tale = stage::play(three(), async |cluster| {
        let quorum = cluster.world.pd(pd::NAMESPACE, pd::NAME);
        quorum.remove_member("pd-1");
        let spoken = until_reason(cluster, "MembersDoNotMatch").await;
        spoken.is_stalled("MembersDoNotMatch", &["pods that are no members: pd-1", "let the missing pods join"]);
        pass(Duration::from_mins(3)).await;
        // It joins again when it starts again.
        cluster.world.crash_process(pd::NAMESPACE, "pd-1");
        until_reason(cluster, "UpToDate").await;
    });
    tale.touched_nothing(tale.between(0, 1));
    tale.ended_ready_at(TO);
}
