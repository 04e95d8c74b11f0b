//! Images that don't start, and members that no pod backs.

use std::time::Duration;

use crate::support::{
    FROM, TO, Tale, image,
    stage::{self, pass, patch, until_reason, until_stalled},
    three,
};
use serde_json::json;
use windlass_rehearsal::pd;
use windlass_sim::{harness::Cluster, scenario::Subject, world::ImageBehaviour};

/// The new image behaves like this until it is mended, and so does the pod that waits for it. The spec stays as it is.
fn until_mended(behaviour: ImageBehaviour, reason: &str, late_reason: &str, words: &[&str]) -> Tale {
    let tale = stage::play(three(), async |cluster| {
        cluster.world.set_image(&image(TO), behaviour);
        until_reason(cluster, reason).await.is_waiting(reason, &["pd-2"]);
        let spoken = until_stalled(cluster, late_reason).await;
        spoken.is_stalled(late_reason, &["the time for pd-2 is up"]);
        spoken.is_stalled(late_reason, words);
        pass(Duration::from_mins(5)).await;
        cluster.world.set_image(&image(TO), ImageBehaviour::Works);
        // What starts and never serves does not end by itself.
        cluster.world.crash_process(pd::NAMESPACE, "pd-2");
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(tale.replaced(tale.between(0, 1)), ["pd-2"], "no second member is risked on it");
    assert_eq!(tale.deleted_by_us(), Vec::<String>::new(), "nothing was asked for that would make it another");
    tale.ended_ready_at(TO);
    tale
}

#[test]
fn an_image_that_cannot_be_pulled() {
    let words = ["container pd", &image(TO), "not found", "let the nodes pull the image"];
    until_mended(ImageBehaviour::CannotPull, "ImagePullFailed", "ImagePullFailed", &words);
}

#[test]
fn an_image_whose_process_ends_at_once() {
    let words =
        ["container pd", &image(TO), "exit code 1", "restarts", "its log: kubectl logs -n tikv pd-2 -c pd --previous"];
    until_mended(ImageBehaviour::Crashes, "CrashLooping", "CrashLooping", &words);
}

#[test]
fn an_image_whose_process_takes_too_much_memory() {
    let words = ["exit code 137", "OOMKilled"];
    until_mended(ImageBehaviour::OutOfMemory, "CrashLooping", "CrashLooping", &words);
}

#[test]
fn an_image_whose_container_cannot_be_made() {
    let words = ["CreateContainerConfigError", "secret \"pd\" not found"];
    until_mended(ImageBehaviour::Misconfigured, "ContainerConfigError", "ContainerConfigError", &words);
}

#[test]
fn an_image_whose_process_never_serves() {
    let words = ["pod pd-2 is not ready; its log: kubectl logs -n tikv pd-2 -c pd"];
    until_mended(ImageBehaviour::NeverReady, "PodNotReady", "DeadlineExceeded", &words);
}

#[test]
fn an_image_whose_name_is_none_stalls_at_once() {
    let tale = stage::play(three(), async |cluster| {
        cluster.world.set_image(&image(TO), ImageBehaviour::BadName);
        let spoken = until_reason(cluster, "ImageUnusable").await;
        spoken.is_stalled("ImageUnusable", &["pd-2", &image(TO), "parse", "correct the image"]);
        patch(cluster, &pd::subject(), &json!({"spec": {"image": "mirror.example/pd:v8.5.3"}}));
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(tale.deleted_by_us(), ["pd-2"]);
    tale.ended_ready_at(TO);
}

#[test]
fn a_trouble_is_told_when_it_shows_and_when_a_person_is_needed() {
    let tale = until_mended(ImageBehaviour::CannotPull, "ImagePullFailed", "ImagePullFailed", &[]);
    assert_eq!(tale.events(0..tale.journal.len())["ImagePullFailed"].len(), 2);
}

/// The new image can't be pulled, and the old one is wanted again.
async fn given_up(cluster: &Cluster) {
    cluster.world.set_image(&image(TO), ImageBehaviour::CannotPull);
    until_stalled(cluster, "ImagePullFailed").await;
    patch(cluster, &pd::subject(), &json!({"spec": {"version": FROM}}));
}

#[test]
fn an_image_that_cannot_be_pulled_is_given_up_without_a_person() {
    let tale = stage::play(three(), async |cluster| {
        given_up(cluster).await;
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(tale.deleted_by_us(), ["pd-2"]);
    tale.ended_ready_at(FROM);
}

#[test]
fn an_image_that_cannot_be_pulled_is_given_up_once_a_person_deletes_the_pod() {
    let tale = stage::play(three(), async |cluster| {
        given_up(cluster).await;
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
            &["members that have no pod: pd-9", "remove members that are gone for good"],
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
        spoken.is_stalled("MembersDoNotMatch", &["pods that are no members: pd-1", "let every pod join"]);
        pass(Duration::from_mins(3)).await;
        // It joins again when it starts again.
        cluster.world.crash_process(pd::NAMESPACE, "pd-1");
        until_reason(cluster, "UpToDate").await;
    });
    tale.touched_nothing(tale.between(0, 1));
    tale.ended_ready_at(TO);
}
