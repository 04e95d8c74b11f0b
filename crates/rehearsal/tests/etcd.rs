//! etcd under the operator: what is different from PD.

#![allow(clippy::expect_used, reason = "a test that lacks something has failed")]

mod support;

use std::time::Duration;

use rstest::rstest;
use serde_json::json;
use support::{message, transfers, versions};
use windlass_rehearsal::{
    operator,
    setting::{ETCD, after},
};
use windlass_sim::{
    harness::{self, Outcome},
    scenario::{Action, Ending, Moment, Scenario, Subject, When},
    world::ImageBehaviour,
};

fn run(seed: u64, versions: (&str, &str), timeline: Vec<Moment>, ending: Ending) -> Outcome {
    let scenario = Scenario {
        seed,
        objects: ETCD.objects(3, versions.0, versions.1),
        operators: 1,
        faults: false,
        timeline,
        subject: ETCD.subject(),
        ending,
        max_leader_moves: None,
        limit: Duration::from_mins(20),
    };
    harness::run(&scenario, &[], &operator).expect("a runtime for the scenario")
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
