//! What people and bad luck do in the middle of an upgrade: it stops, says why, moves nothing, and goes on once it is mended.

use std::time::Duration;

use crate::support::{A_WHILE, FROM, TO, Tale, at, image, set, set_image, tell, three};
use serde_json::{Value, json};
use windlass_rehearsal::pd;
use windlass_sim::{
    scenario::{Action, When},
    world::BadAnswer,
};

/// Something goes wrong when the first permit is given, and is mended after a while.
fn wrong_at_first_permit(wrong: Action, mend: Action) -> Tale {
    let tale = tell(three(), vec![at(When::Permitted(1), wrong), pd::after(A_WHILE, mend)]);
    tale.moved_nothing(tale.between(0, 1));
    tale.ended_ready_at(TO);
    tale
}

#[test]
fn the_strategy_becomes_on_delete() {
    let wrong = set(&json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}));
    let mend = set(&json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}}));
    let tale = wrong_at_first_permit(wrong, mend);
    let words = ["somebody set the update strategy to OnDelete", "partition 2", "put the update strategy back"];
    tale.last_said(tale.between(0, 1)).is_stalled("StrategyChanged", &words);
}

fn partition(partition: u32) -> Action {
    set(&json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}}))
}

#[test]
fn the_partition_becomes_one_that_nobody_of_us_wrote() {
    let tale = wrong_at_first_permit(partition(7), partition(2));
    let words = ["somebody set the partition to 7", "this upgrade had set it to 2", "put the update strategy back"];
    tale.last_said(tale.between(0, 1)).is_stalled("StrategyChanged", &words);
}

#[test]
fn evictions_are_let_through_while_a_person_is_waited_for() {
    let tale = wrong_at_first_permit(partition(7), partition(2));
    assert_eq!(tale.touched(tale.between(0, 1)), ["poddisruptionbudgets.policy windlass-pd"]);
}

#[test]
fn the_image_becomes_one_that_nobody_asked_for() {
    let timeline = vec![
        at(When::Permitted(1), Action::FreezeControllers(Duration::from_secs(1))),
        at(When::Replaced(1), set_image(&image("8.5.1"))),
        pd::after(A_WHILE, set_image(&image(TO))),
    ];
    let tale = tell(three(), timeline);
    // Before Kubernetes sees it everybody is held: it would let go whoever is at or above the partition.
    let sets = tale.touched(tale.between(1, 2)).into_iter().filter(|what| what.starts_with("statefulsets"));
    assert_eq!(sets.count(), 1);
    assert_eq!(tale.replaced(tale.between(1, 2)), Vec::<String>::new());
    let words = ["somebody set the image to registry.example/pingcap/pd:v8.5.1", &image(TO), "put the template back"];
    tale.last_said(tale.between(1, 2)).is_stalled("TemplateChanged", &words);
    tale.ended_ready_at(TO);
}

#[test]
fn the_image_in_the_spec_becomes_one_that_cannot_be_parsed() {
    let tale = wrong_at_first_permit(pd::spec(json!({"image": "PingCAP/pd:8.5"})), pd::spec(json!({"image": null})));
    tale.last_said(tale.between(0, 1))
        .is_stalled("InvalidSpec", &["spec.image", "correct the field that the message names"]);
}

#[test]
fn evictions_are_let_through_while_the_spec_cannot_be_read() {
    let tale = wrong_at_first_permit(pd::spec(json!({"image": "PingCAP/pd:8.5"})), pd::spec(json!({"image": null})));
    assert_eq!(tale.touched(tale.between(0, 1)), ["poddisruptionbudgets.policy windlass-pd"]);
}

#[test]
fn paused_and_resumed() {
    let timeline = vec![
        at(When::Replaced(1), pd::spec(json!({"paused": true}))),
        pd::after(A_WHILE, pd::spec(json!({"paused": false}))),
    ];
    let tale = tell(three(), timeline);
    tale.moved_nothing(tale.between(0, 1));
    assert_eq!(tale.replaced(tale.between(0, 1)), Vec::<String>::new());
    let spoken = tale.last_said(tale.between(0, 1));
    assert_eq!(
        (spoken.ready.as_str(), spoken.reconciling.as_str(), spoken.stalled.as_str()),
        ("False", "False", "False")
    );
    assert_eq!((spoken.reason.as_str(), &spoken.status["phase"]), ("Paused", &json!("Paused")));
    assert!(spoken.message.contains("set spec.paused to false"), "{}", spoken.message);
    tale.ended_ready_at(TO);
}

#[test]
fn one_member_answers_garbage() {
    let timeline = vec![
        at(When::Replaced(1), Action::Answers(pd::pod(0), Some(BadAnswer::Garbage))),
        // Within the deadlines of the member that is being replaced.
        pd::after(Duration::from_mins(1), Action::Answers(pd::pod(0), None)),
    ];
    let tale = tell(three(), timeline);
    tale.moved_nothing(tale.between(0, 1));
    tale.last_said(tale.between(0, 1)).is_waiting("MembersUnknown", &["pd-0", "goes on as soon as all members answer"]);
    tale.ended_ready_at(TO);
}

#[test]
fn a_member_wants_to_lead() {
    let timeline = vec![
        pd::after(Duration::ZERO, Action::Priority(pd::pod(2), 10)),
        pd::after(Duration::from_mins(4), Action::Priority(pd::pod(2), 0)),
    ];
    let tale = tell(three(), timeline);
    assert_eq!(tale.replaced(tale.between(0, 1)), Vec::<String>::new());
    let words = ["pd-2 has leader-priority 10", "set the member's leader-priority no higher"];
    tale.last_said(tale.between(0, 1)).is_stalled("LeaderPriority", &words);
    tale.ended_ready_at(TO);
}

/// A version that the image does not contain, until the spec says otherwise.
fn mislabelled(mend: Value) -> Tale {
    let objects =
        crate::support::with(three(), "QuorumCluster", |resource| resource["spec"]["image"] = json!(image("8.5.1")));
    let tale = tell(objects, vec![pd::after(Duration::from_mins(6), pd::spec(mend))]);
    assert_eq!(tale.replaced(tale.before_all()), ["pd-2"], "no second member is risked on it");
    let words = ["pd-2", "runs 8.5.1", "8.5.3 was asked for"];
    tale.last_said(tale.before_all()).is_stalled("VersionMismatch", &words);
    tale
}

#[test]
fn a_version_that_the_image_does_not_contain_until_the_version_is_corrected() {
    mislabelled(json!({"version": "8.5.1"})).ended_ready_at("8.5.1");
}

#[test]
fn a_version_that_the_image_does_not_contain_until_the_image_is_corrected() {
    mislabelled(json!({"image": image(TO)})).ended_ready_at(TO);
}

#[test]
fn a_version_that_the_image_does_not_contain_until_the_old_one_is_wanted_again() {
    mislabelled(json!({"version": FROM, "image": image(FROM)})).ended_ready_at(FROM);
}
