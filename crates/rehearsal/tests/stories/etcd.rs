//! etcd under the operator: what is different from PD.

use std::time::Duration;

use crate::support::{message, transfers, versions};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    operator,
    setting::{ETCD, after},
    trial::{self, Ending, Outcome, Scenario},
};
use windlass_sim::{
    journal::{Change, Event},
    scenario::{Action, Moment, Subject, When},
    world::ImageBehaviour,
};

fn run(seed: u64, versions: (&str, &str), timeline: Vec<Moment>, ending: Ending) -> Outcome {
    run_on(ETCD.objects(3, versions.0, versions.1), seed, timeline, ending)
}

fn run_on(objects: Vec<Value>, seed: u64, timeline: Vec<Moment>, ending: Ending) -> Outcome {
    let scenario = Scenario {
        seed,
        objects,
        operators: 1,
        faults: false,
        timeline,
        subject: ETCD.subject(),
        ending,
        max_leader_moves: None,
        limit: Duration::from_mins(20),
    };
    trial::run(&scenario, &[], &operator).expect("a runtime for the scenario")
}

fn held(reason: &str) -> Ending {
    Ending::Held(reason.to_owned())
}

#[rstest]
fn a_minor_release_is_passed_with_the_fewest_moves(#[values(1, 2, 3, 4)] seed: u64) {
    let outcome = run(seed, ETCD.reference, vec![], Ending::Ready);
    assert_eq!(outcome.fault(), None);
    assert_eq!(versions(&outcome), ["v3.6.16"; 3]);
    assert_eq!(outcome.verdict.restarts, ["etcd-2", "etcd-1", "etcd-0"]);
    assert!((1..=2).contains(&transfers(&outcome)), "{}", transfers(&outcome));
    assert_eq!(outcome.verdict.leader_restarts, 0);
}

#[rstest]
#[case::skipped(("3.4.34", "3.6.16"), "go to 3.5 before 3.6.16")]
#[case::before_the_doorstep(("3.5.20", "3.6.16"), "3.5.26 or later")]
fn a_way_that_does_not_exist_is_not_begun(#[case] versions: (&str, &str), #[case] words: &str) {
    let outcome = run(1, versions, vec![], held("UnsupportedPath"));
    assert_eq!(outcome.fault(), None);
    assert!(message(&outcome).contains(words), "{}", message(&outcome));
    assert!(outcome.verdict.restarts.is_empty());
    assert_eq!(outcome.subject.pointer("/status/upgrade"), None);
}

#[test]
fn half_way_there_is_a_way_back() {
    let back = Moment { when: When::Replaced(2), action: ETCD.spec(json!({"version": "3.5.35"})) };
    let allow = ETCD.spec(json!({"policy": {"allowDowngrade": true}}));
    let timeline = vec![Moment { when: When::After(Duration::ZERO), action: allow }, back];
    let outcome = run(1, ETCD.reference, timeline, Ending::Ready);
    assert_eq!(outcome.fault(), None);
    assert_eq!(versions(&outcome), ["v3.5.35"; 3]);
}

#[test]
fn once_the_last_member_was_replaced_there_is_none() {
    let back = ETCD.spec(json!({"version": "3.5.35", "policy": {"allowDowngrade": true}}));
    let timeline = vec![Moment { when: When::Replaced(3), action: back }];
    let outcome = run(1, ETCD.reference, timeline, held("UnsupportedPath"));
    assert_eq!(outcome.fault(), None);
    assert_eq!(versions(&outcome), ["v3.6.16"; 3]);
    assert!(message(&outcome).contains("enable its downgrade to 3.5 first"), "{}", message(&outcome));
}

/// The new version led for a moment; then both of its members are lost and can't pull their image, and with them the quorum. Another version
/// is asked for. Held on the old template, the member that had led would come back as the old version: whoever asks must allow that, or
/// mend the image.
#[test]
fn a_member_that_has_led_does_not_come_back_as_the_old_version() {
    let permitted = |action| Moment { when: When::Permitted(2), action };
    let broken = |how| Action::Image(ETCD.image("3.5.26"), how);
    let lost = Subject { resource: "pods".into(), namespace: ETCD.namespace.into(), name: "etcd-1".into() };
    let timeline = vec![
        after(Duration::ZERO, Action::Elect(ETCD.pod(1))),
        permitted(Action::Delete(lost)),
        permitted(Action::Pressure(ETCD.pod(2))),
        after(Duration::from_millis(900), broken(ImageBehaviour::CannotPull)),
        after(Duration::from_mins(1), ETCD.spec(json!({"version": "3.5.35"}))),
        after(Duration::from_secs(90), broken(ImageBehaviour::Works)),
    ];
    for seed in 1..=9 {
        let outcome = run(seed, ("3.4.34", "3.5.26"), timeline.clone(), Ending::Ready);
        assert_eq!(outcome.fault(), None, "seed {seed}");
        assert_eq!(versions(&outcome), ["v3.5.35"; 3]);
    }
}

/// An etcd of three whose authentication is enabled, with these users, after a while; and then the next minor release is asked for.
fn with_authentication(seed: u64, user: Option<(&str, &str)>, then: Vec<Moment>, ending: Ending) -> Outcome {
    let (from, to) = ETCD.reference;
    let mut objects = ETCD.objects(3, from, from);
    if let Some((name, password)) = user {
        let resource = objects.iter_mut().find(|object| object["kind"] == "QuorumCluster").expect("a resource");
        resource["spec"]["system"]["auth"] = json!({"passwordSecret": "etcd-user", "allowPlaintext": true});
        objects.push(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
            "metadata": {"name": "etcd-user", "namespace": ETCD.namespace},
            "stringData": {"username": name, "password": password},
        }));
    }
    let tell = |path: &str, body: Value| Action::Tell { whom: ETCD.pod(0), path: format!("/v3/auth/{path}"), body };
    let mut timeline = vec![
        after(Duration::from_secs(20), tell("user/add", json!({"name": "root", "password": "correct horse"}))),
        after(Duration::ZERO, tell("user/add", json!({"name": "guest", "password": "guest"}))),
        after(Duration::ZERO, tell("user/grant", json!({"user": "root", "role": "root"}))),
        after(Duration::ZERO, tell("enable", json!({}))),
        after(Duration::from_mins(7), ETCD.spec(json!({"version": to}))),
    ];
    timeline.extend(then);
    run_on(objects, seed, timeline, ending)
}

/// Every member that is replaced has forgotten the token that the others know.
#[rstest]
fn where_authentication_is_enabled_a_user_asks(#[values(1, 2, 3)] seed: u64) {
    let outcome = with_authentication(seed, Some(("root", "correct horse")), vec![], Ending::Ready);
    assert_eq!(outcome.fault(), None);
    assert_eq!((versions(&outcome), outcome.verdict.leader_restarts), (vec!["v3.6.16".to_owned(); 3], 0));
    let ours = |change: &&Change| trial::is_ours(&change.user);
    let writes = outcome.journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) => Some(change),
        Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    for change in writes.filter(ours) {
        let written = change.after.as_deref().map(ToString::to_string).unwrap_or_default();
        assert!(!written.contains("correct horse"), "{written}");
    }
}

#[rstest]
#[case::nobody(None, "user name is empty")]
#[case::a_wrong_password(Some(("root", "wrong")), "authentication failed")]
fn who_may_not_ask_is_told_so(#[case] user: Option<(&str, &str)>, #[case] words: &str) {
    let outcome = with_authentication(1, user, vec![], held("TokenRefused"));
    assert_eq!(outcome.fault(), None);
    assert!(message(&outcome).contains(words), "{}", message(&outcome));
    assert!(outcome.verdict.restarts.is_empty());
}

/// Every user may read, and only root may hand over: the leader stays, and so does its pod.
#[test]
fn who_may_only_read_replaces_no_leader() {
    let outcome = with_authentication(1, Some(("guest", "guest")), vec![], held("HandOverFailed"));
    assert_eq!(outcome.fault(), None);
    for words in ["to hand leadership over 4 times", "permission denied"] {
        assert!(message(&outcome).contains(words), "{}", message(&outcome));
    }
    assert_eq!(outcome.verdict.leader_restarts, 0);
}

#[test]
fn it_goes_on_when_the_password_is_right() {
    let secret = Subject { resource: "secrets".into(), namespace: ETCD.namespace.into(), name: "etcd-user".into() };
    let mend = Action::Patch { target: secret, patch: json!({"data": {"password": "Y29ycmVjdCBob3JzZQ=="}}) };
    let user = Some(("root", "wrong"));
    let outcome = with_authentication(1, user, vec![after(Duration::from_mins(3), mend)], Ending::Ready);
    assert_eq!(outcome.fault(), None);
    assert_eq!(versions(&outcome), ["v3.6.16"; 3]);
}

/// A learner in another set's pod.
fn learner() -> Action {
    let body = json!({"peerURLs": ["http://mirror-0.mirror.registry.svc:2380"], "isLearner": true});
    Action::Tell { whom: ETCD.pod(0), path: "/v3/cluster/member/add".into(), body }
}

#[test]
fn a_learner_holds_an_upgrade_until_somebody_says_that_it_stays() {
    let (from, to) = ETCD.reference;
    let first =
        vec![after(Duration::from_secs(20), learner()), after(Duration::ZERO, ETCD.spec(json!({"version": to})))];
    let outcome = run(1, (from, from), first.clone(), held("MembersDoNotMatch"));
    assert_eq!(outcome.fault(), None);
    assert!(message(&outcome).contains("spec.policy.acceptNonVoters"), "{}", message(&outcome));
    assert!(outcome.verdict.restarts.is_empty());
    let mut timeline = first;
    timeline.push(after(Duration::from_mins(2), ETCD.spec(json!({"policy": {"acceptNonVoters": true}}))));
    let outcome = run(1, (from, from), timeline, Ending::Ready);
    assert_eq!(outcome.fault(), None);
    assert_eq!(outcome.verdict.restarts, ["etcd-2", "etcd-1", "etcd-0"]);
}
