//! StatefulSets as they are found: half upgraded, too small, with budgets of their own.

use std::time::Duration;

use crate::support::{A_WHILE, FROM, TO, Tale, image, set, tell, three, without};
use serde_json::{Value, json};
use windlass_rehearsal::pd;
use windlass_sim::scenario::{Action, Moment, Subject};

/// Somebody has brought one of three members to `reached` by hand before a QuorumCluster comes that wants [`TO`].
fn half_upgraded(reached: &str, rest: Vec<Moment>) -> Tale {
    let (objects, resource) = without(three(), "QuorumCluster");
    let containers = json!([{"name": "pd", "image": image(reached), "ports": [{"containerPort": 2379}]}]);
    let by_hand = set(&json!({"spec": {
        "updateStrategy": {"rollingUpdate": {"partition": 2}}, "template": {"spec": {"containers": containers}},
    }}));
    let begin =
        vec![pd::after(Duration::from_secs(10), by_hand), pd::after(Duration::from_mins(1), Action::Create(resource))];
    tell(objects, [begin, rest].concat())
}

fn resume(token: &str) -> Moment {
    pd::after(A_WHILE, pd::spec(json!({"requests": {"resume": token}})))
}

#[test]
fn a_half_upgraded_set_waits_for_a_person_and_is_then_finished() {
    let tale = half_upgraded(TO, vec![resume("monday")]);
    tale.touched_nothing(tale.between(1, 2));
    let spoken = tale.last_said(tale.between(1, 2));
    let words =
        ["a rollout that Windlass did not begin is half done: pd-0, pd-1 not replaced yet", "spec.requests.resume"];
    spoken.is_stalled("RolloutPending", &words);
    assert_eq!(spoken.status["requests"], Value::Null, "nothing was handled yet");
    tale.ended_ready_at(TO);
    assert_eq!(tale.subject["status"]["requests"]["resume"], "monday");
    assert_eq!(tale.verdict.restarts, ["pd-1", "pd-0"], "the one that was done is left alone");
}

#[test]
fn the_version_is_first_told_when_all_agree() {
    let tale = half_upgraded(TO, vec![resume("monday")]);
    let told: Vec<Value> =
        tale.said(0..tale.journal.len()).iter().map(|spoken| spoken.status["currentVersion"].clone()).collect();
    assert_eq!(told.first(), Some(&Value::Null));
    assert!(told.iter().all(|version| *version == Value::Null || version == TO), "{told:?}");
    for spoken in tale.said(0..tale.journal.len()).iter().filter(|spoken| spoken.status["currentVersion"] == TO) {
        let members = spoken.status["members"].as_array().expect("members");
        assert!(members.iter().all(|member| member["version"] == TO), "{members:?}");
    }
}

#[test]
fn a_set_that_is_half_way_to_another_version_is_finished_and_then_goes_on() {
    half_upgraded("8.5.1", vec![resume("monday")]).ended_ready_at(TO);
}

#[test]
fn a_half_upgraded_set_gets_its_own_partition_back() {
    let tale =
        half_upgraded(TO, vec![resume("monday"), pd::after(Duration::from_mins(10), Action::Delete(pd::subject()))]);
    tale.was_safe();
    assert_eq!(tale.strategy(), json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}));
}

#[test]
fn an_old_request_asks_for_nothing() {
    let tale = half_upgraded(TO, vec![resume("monday"), pd::after(Duration::from_mins(10), crate::support::mark())]);
    let handled = tale.subject["status"]["requests"]["resume"].clone();
    assert_eq!(handled, tale.subject["spec"]["requests"]["resume"]);
    tale.touched_nothing(tale.since(3));
    tale.ended_ready_at(TO);
}

/// So few members that none can be spared, until somebody accepts that.
fn no_spare_member(members: u32, words: &str) {
    let accepted = pd::spec(json!({"policy": {"acceptDowntime": true}}));
    let tale = tell(pd::objects(members, FROM, TO), vec![pd::after(A_WHILE, accepted)]);
    tale.touched_nothing(tale.before_all());
    tale.last_said(tale.before_all())
        .is_stalled("TooFewMembers", &[words, "scale to three members, or set spec.policy.acceptDowntime"]);
    tale.ended_ready_at(TO);
}

#[test]
fn one_member_is_not_taken_down_unasked() {
    no_spare_member(1, "with 1 member none can be spared");
}

#[test]
fn of_two_members_none_is_taken_down_unasked() {
    no_spare_member(2, "with 2 members none can be spared");
}

#[test]
fn two_members_become_three_instead() {
    let tale = tell(pd::objects(2, FROM, TO), vec![pd::after(A_WHILE, set(&json!({"spec": {"replicas": 3}})))]);
    tale.touched_nothing(tale.before_all());
    tale.ended_ready_at(TO);
}

#[test]
fn going_back_is_refused_until_it_is_allowed() {
    let allowed = pd::spec(json!({"policy": {"allowDowngrade": true}}));
    let tale = tell(pd::objects(3, TO, FROM), vec![pd::after(A_WHILE, allowed)]);
    tale.touched_nothing(tale.before_all());
    let words = ["8.5.3 runs, and 8.5.0 is older", "spec.policy.allowDowngrade"];
    tale.last_said(tale.before_all()).is_stalled("DowngradeNotAllowed", &words);
    tale.ended_ready_at(FROM);
}

fn budget(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": pd::NAMESPACE},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}},
    })
}

#[test]
fn a_budget_that_covers_the_pods_is_used_and_no_second_one_is_made() {
    let mut objects = three();
    objects.push(budget("theirs", &json!({"app": "pd"})));
    let tale = tell(objects, vec![]);
    tale.ended_ready_at(TO);
    let ours = tale.touched(0..tale.journal.len()).into_iter().filter(|what| what.starts_with("poddisruptionbudgets"));
    assert_eq!(ours.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_budget_that_covers_other_pods_is_not_used() {
    let mut objects = three();
    objects.push(budget("elsewhere", &json!({"app": "tikv"})));
    let tale = tell(objects, vec![]);
    tale.ended_ready_at(TO);
    let ours = tale.touched(0..tale.journal.len()).into_iter().filter(|what| what.starts_with("poddisruptionbudgets"));
    assert_eq!(ours.collect::<Vec<_>>(), ["poddisruptionbudgets.policy windlass-pd"; 2], "held and let go");
}

#[test]
fn a_budget_that_allows_too_much_holds_the_upgrade_until_it_leaves_a_majority() {
    let mut loose = budget("loose", &json!({"app": "pd"}));
    loose["spec"]["maxUnavailable"] = json!(3);
    let mut objects = three();
    objects.push(loose);
    let target = Subject {
        resource: "poddisruptionbudgets.policy".into(),
        namespace: pd::NAMESPACE.into(),
        name: "loose".into(),
    };
    let mend = Action::Patch { target, patch: json!({"spec": {"maxUnavailable": 0}}) };
    let tale = tell(objects, vec![pd::after(Duration::from_mins(3), mend)]);
    let words =
        ["PodDisruptionBudget loose keeps 0 of 3 pods healthy", "change the PodDisruptionBudget as the message says"];
    tale.last_said(tale.before_all()).is_stalled("DisruptionBudgetTooLoose", &words);
    assert_eq!(tale.replaced(tale.before_all()), Vec::<String>::new());
    tale.ended_ready_at(TO);
}

#[test]
fn a_set_that_is_there_already_is_not_touched() {
    let tale = tell(pd::objects(3, TO, TO), vec![]);
    tale.touched_nothing(0..tale.journal.len());
    assert_eq!(tale.subject["metadata"]["finalizers"], Value::Null);
    tale.ended_ready_at(TO);
}
