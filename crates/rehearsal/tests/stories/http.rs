//! A described system under the operator: etcd, in the words of the documented example.

use std::time::Duration;

use crate::support::{message, transfers, versions};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    operator,
    setting::{HTTP, after},
    trial::{self, Ending, Outcome, Scenario},
};
use windlass_sim::{
    scenario::{Action, Moment},
    world::BadAnswer,
};

fn scenario(seed: u64) -> Scenario {
    Scenario { operators: 1, ..HTTP.reference(seed) }
}

fn run(scenario: &Scenario) -> Outcome {
    trial::run(scenario, &[], &operator).expect("a runtime for the scenario")
}

/// What is wrong with the resource until it is mended.
fn described(change: impl Fn(&mut Value), timeline: Vec<Moment>, ending: Ending) -> Outcome {
    let mut scenario = Scenario { timeline, ending, ..scenario(1) };
    for object in scenario.objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
        change(&mut object["spec"]["system"]["http"]);
    }
    run(&scenario)
}

#[rstest]
fn it_is_upgraded_with_the_fewest_moves(#[values(1, 2, 3)] seed: u64) {
    let outcome = run(&scenario(seed));
    assert_eq!(outcome.fault(), None);
    assert_eq!(versions(&outcome), ["v3.6.16"; 3]);
    assert_eq!(outcome.verdict.restarts, ["etcd-2", "etcd-1", "etcd-0"]);
    assert!((1..=2).contains(&transfers(&outcome)), "{}", transfers(&outcome));
    assert_eq!(outcome.verdict.leader_restarts, 0);
}

#[test]
fn a_leader_that_does_not_go_is_not_restarted() {
    // etcd refuses to hand over to nobody in particular, so this asks in vain.
    let spoil =
        |http: &mut Value| http["handOver"] = json!({"path": "/v3/maintenance/transfer-leadership", "body": "{}"});
    let outcome = described(spoil, vec![], Ending::Held("DeadlineExceeded".into()));
    assert_eq!(outcome.verdict.leader_restarts, 0);
    assert_eq!(transfers(&outcome), 0);
}

#[rstest]
#[case::cel("version", "body.", "spec.system.http.version.cel")]
#[case::name("health", "boddy.health", "boddy is not known")]
#[case::function("leader", "now()", "now() is not known")]
fn an_expression_that_cannot_be_used_is_said_before_anything_is_asked_or_written(
    #[case] field: &str,
    #[case] cel: &str,
    #[case] words: &str,
) {
    let outcome = described(|http| http[field]["cel"] = json!(cel), vec![], Ending::Held("InvalidSpec".into()));
    assert_eq!(outcome.fault(), None);
    assert!(message(&outcome).contains(words), "{}", message(&outcome));
    assert!(outcome.verdict.restarts.is_empty());
    assert_eq!(outcome.subject.pointer("/status/upgrade"), None);
    let asked = outcome.calls.iter().filter(|call| call.contains("/v3/") || call.ends_with("/health")).count();
    assert_eq!(asked, 0, "{:?}", outcome.calls);
}

#[rstest]
#[case::wrong_kind("health", "body.health", "spec.system.http.health: ")]
#[case::missing("version", "body.release", "there is no release")]
#[case::no_number("position", "int(body.version)", "spec.system.http.position: ")]
#[case::no_list("members", "body.header", "spec.system.http.members: ")]
fn an_expression_that_yields_nothing_blocks_and_is_named(#[case] field: &str, #[case] cel: &str, #[case] words: &str) {
    let outcome = described(|http| http[field]["cel"] = json!(cel), vec![], Ending::Held("MembersUnknown".into()));
    assert_eq!(outcome.fault(), None);
    assert!(message(&outcome).contains(words), "{}", message(&outcome));
    assert!(outcome.verdict.restarts.is_empty());
}

#[rstest]
fn a_pod_that_answers_nonsense_is_waited_for(
    #[values(BadAnswer::Garbage, BadAnswer::Status500, BadAnswer::Empty, BadAnswer::Refused)] how: BadAnswer,
) {
    let (place, long) = (HTTP.pod(1), Duration::from_mins(3));
    let timeline = vec![
        after(Duration::ZERO, Action::Answers(place.clone(), Some(how))),
        after(long, Action::Answers(place, None)),
    ];
    let outcome = run(&Scenario { timeline, max_leader_moves: None, ..scenario(1) });
    assert_eq!(outcome.fault(), None);
    assert_eq!(versions(&outcome), ["v3.6.16"; 3]);
    assert_eq!(outcome.verdict.leader_restarts, 0);
}
