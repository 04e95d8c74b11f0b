//! Somebody else writes image or strategy of the StatefulSet (H39): it is told before anything is written, and half way there is no duel.

use std::time::Duration;

use crate::support::{A_WHILE, FROM, TO, Tale, at, image, tell, tell_until, three, without};
use serde_json::{Value, json};
use windlass_rehearsal::{pd, trial::Ending};
use windlass_sim::scenario::{Action, Moment, When};

const ARGO: &str = "argocd-controller";

fn apply(spec: &Value) -> Action {
    let part = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": spec});
    Action::Apply { target: pd::workload(), manager: ARGO.into(), part }
}

/// The strategy as it was before.
fn strategy() -> Action {
    apply(&json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}))
}

/// The image as it was before.
fn old_image() -> Action {
    apply(&json!({"template": {"spec": {"containers": [{"name": "pd", "image": image(FROM)}]}}}))
}

/// Every three seconds for a minute, from the first member on.
fn again_and_again(write: &Action) -> Vec<Moment> {
    let mut timeline = vec![at(When::Replaced(1), write.clone())];
    timeline.extend((0..20).map(|_| pd::after(Duration::from_secs(3), write.clone())));
    timeline
}

/// How often we wrote the StatefulSet since something of the timeline.
fn written(tale: &Tale, since: usize) -> usize {
    tale.touched(tale.since(since)).iter().filter(|what| what.starts_with("statefulsets")).count()
}

#[test]
fn an_owner_that_writes_again_is_named_before_anything_is_written() {
    let (objects, resource) = without(three(), "QuorumCluster");
    let timeline = vec![
        pd::after(Duration::ZERO, old_image()),
        pd::after(Duration::from_secs(1), Action::Create(resource)),
        pd::after(A_WHILE, pd::spec(json!({"policy": {"acceptOwners": [ARGO]}}))),
    ];
    let tale = tell(objects, timeline);
    let told = tale.said(0..tale.journal.len()).into_iter().find(|spoken| spoken.reason == "FieldOwned");
    let words =
        ["argocd-controller (Apply) owns the image", "RespectIgnoreDifferences=true", "spec.trigger to Template"];
    told.expect("it is told").is_stalled("FieldOwned", &words);
    // Nothing of the workload was touched before the owner was accepted.
    let accepted = tale.writes(0..tale.journal.len()).position(|change| {
        change
            .after
            .as_deref()
            .is_some_and(|object| object.pointer("/spec/policy/acceptOwners/0") == Some(&json!(ARGO)))
    });
    let first = tale
        .writes(0..tale.journal.len())
        .position(|change| change.resource == "statefulsets.apps" && windlass_rehearsal::trial::is_ours(&change.user));
    assert!(first > accepted, "written before it was accepted: {first:?}, {accepted:?}");
    tale.ended_ready_at(TO);
}

#[test]
fn a_partition_that_is_set_back_again_and_again_is_held_once() {
    let tale = tell_until(three(), again_and_again(&strategy()), Ending::Held("FieldOwned".into()));
    tale.was_safe();
    assert!(written(&tale, 0) <= 1, "{:?}", tale.touched(tale.since(0)));
    assert_eq!(tale.verdict.leader_restarts, 0);
    tale.last_said(tale.since(0))
        .is_stalled("FieldOwned", &["argocd-controller (Apply)", "set the update strategy back"]);
}

#[test]
fn it_goes_on_when_a_person_says_that_the_loop_has_ended() {
    let mut timeline = again_and_again(&strategy());
    timeline.push(pd::after(A_WHILE, pd::spec(json!({"requests": {"resume": "it has ended"}}))));
    tell(three(), timeline).ended_ready_at(TO);
}

#[test]
fn an_image_that_is_set_back_again_and_again_is_not_fought_over() {
    let mut timeline = again_and_again(&old_image());
    timeline.push(pd::after(A_WHILE, pd::spec(json!({"version": FROM}))));
    let tale = tell(three(), timeline);
    let told = tale.said(0..tale.journal.len()).into_iter().rfind(|spoken| spoken.reason == "TemplateChanged");
    told.expect("it is told").is_stalled("TemplateChanged", &["argocd-controller (Apply)", &image(FROM)]);
    assert_eq!(tale.verdict.leader_restarts, 0);
    assert!(written(&tale, 0) <= 6, "{:?}", tale.touched(tale.since(0)));
    tale.ended_ready_at(FROM);
}
