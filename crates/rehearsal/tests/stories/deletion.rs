//! The QuorumCluster is deleted: the StatefulSet is left in order, and nothing is stuck.

use std::time::Duration;

use crate::support::{A_WHILE, FROM, TO, Tale, at, set, tell_until, three, with};
use serde_json::{Value, json};
use windlass_rehearsal::{pd, trial::Ending};
use windlass_sim::{
    journal::Verb,
    scenario::{Action, Moment, When},
};

const FINALIZER: &str = "windlass.dev/restore";

/// Runs the timeline, and then a while longer for whatever might still move.
fn tell(objects: Vec<Value>, timeline: Vec<Moment>) -> Tale {
    let tale =
        tell_until(objects, [timeline, vec![pd::after(A_WHILE, crate::support::mark())]].concat(), Ending::Ready);
    tale.was_safe();
    tale
}

fn delete_after(delay: Duration) -> Moment {
    pd::after(delay, Action::Delete(pd::subject()))
}

/// Long enough for the whole upgrade.
const AT_REST: Duration = Duration::from_mins(10);

#[track_caller]
fn is_gone(tale: &Tale) {
    assert_eq!(tale.subject, Value::Null);
    assert_eq!(tale.newest("poddisruptionbudgets.policy", "windlass-pd"), None, "what belongs to it goes with it");
}

fn rolling(partition: u32) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}})
}

#[test]
fn at_rest_the_strategy_becomes_what_it_was() {
    let tale = tell(three(), vec![delete_after(AT_REST)]);
    assert_eq!(tale.last_said(tale.before_all()).reason, "UpToDate");
    assert_eq!(tale.strategy(), rolling(0));
    assert_eq!(tale.replaced(tale.since(0)), Vec::<String>::new());
    is_gone(&tale);
}

#[test]
fn a_set_that_is_scaled_up_at_rest_is_held_again() {
    let scaled = pd::after(AT_REST, set(&json!({"spec": {"replicas": 4}})));
    let tale = tell(three(), vec![scaled.clone()]);
    assert_eq!(tale.strategy(), rolling(4));
    assert_eq!(tale.last_said(0..tale.journal.len()).reason, "UpToDate");
    let tale = tell(three(), vec![scaled, delete_after(A_WHILE)]);
    assert_eq!(tale.strategy(), rolling(0));
    is_gone(&tale);
}

#[test]
fn at_rest_a_partition_of_ones_own_comes_back() {
    let objects = with(three(), "StatefulSet", |set| set["spec"]["updateStrategy"] = rolling(1));
    let tale = tell(objects, vec![delete_after(AT_REST)]);
    assert_eq!(tale.last_said(tale.before_all()).reason, "UpToDate");
    assert_eq!(tale.strategy(), rolling(1));
    is_gone(&tale);
}

#[test]
fn at_rest_the_strategy_stays_where_that_is_wanted() {
    let objects = with(three(), "QuorumCluster", |resource| resource["spec"]["deletionPolicy"] = json!("Retain"));
    let tale = tell(objects, vec![delete_after(AT_REST)]);
    assert_eq!(tale.strategy(), rolling(3));
    is_gone(&tale);
}

#[test]
fn at_rest_the_strategy_comes_back_although_the_spec_cannot_be_read() {
    let tale =
        tell(three(), vec![pd::after(AT_REST, pd::spec(json!({"image": "PingCAP/pd:8.5"}))), delete_after(A_WHILE)]);
    assert_eq!(tale.strategy(), rolling(0));
    is_gone(&tale);
}

#[test]
fn at_rest_the_strategy_comes_back_although_the_set_is_scaled_to_nothing() {
    let tale = tell(three(), vec![pd::after(AT_REST, set(&json!({"spec": {"replicas": 0}}))), delete_after(A_WHILE)]);
    assert_eq!(tale.strategy(), rolling(0));
    is_gone(&tale);
}

#[test]
fn in_the_middle_nothing_moves_any_more() {
    let tale = tell(three(), vec![at(When::Replaced(1), Action::Delete(pd::subject()))]);
    assert_eq!(tale.replaced(0..tale.journal.len()), ["pd-2"]);
    assert_eq!(tale.strategy(), rolling(2), "what is done stays done");
    is_gone(&tale);
}

#[test]
fn in_the_middle_another_quorum_cluster_can_take_over() {
    let timeline = vec![
        at(When::Replaced(1), Action::Delete(pd::subject())),
        pd::after(Duration::from_mins(2), Action::Create(pd::quorum_cluster(pd::NAME, TO))),
        pd::after(Duration::from_mins(1), pd::spec(json!({"requests": {"resume": "go on"}}))),
    ];
    let tale = crate::support::tell(three(), timeline);
    tale.last_said(tale.between(1, 2)).is_stalled("RolloutPending", &["pd-0, pd-1 not replaced yet"]);
    tale.ended_ready_at(TO);
}

#[test]
fn without_a_stateful_set_it_is_not_stuck() {
    let tale = tell(three(), vec![pd::after(AT_REST, Action::Delete(pd::workload())), delete_after(A_WHILE)]);
    tale.last_said(tale.between(0, 1)).is_stalled("WorkloadNotFound", &["there is no StatefulSet pd"]);
    assert_eq!(tale.subject, Value::Null);
}

#[test]
fn in_the_middle_without_a_stateful_set_it_is_not_stuck() {
    let tale = tell(three(), vec![at(When::Replaced(1), Action::Delete(pd::workload())), delete_after(A_WHILE)]);
    assert_eq!(tale.subject, Value::Null);
}

#[test]
fn what_was_never_touched_is_let_go_at_once() {
    let tale = tell(pd::objects(3, FROM, FROM), vec![delete_after(A_WHILE)]);
    tale.touched_nothing(0..tale.journal.len());
    assert_eq!(tale.subject, Value::Null);
}

#[test]
fn the_finalizer_comes_before_the_first_write_and_goes_after_the_last() {
    let tale = tell(three(), vec![delete_after(AT_REST)]);
    let ours: Vec<_> = tale.our_writes(0..tale.journal.len()).collect();
    let position = |what: &dyn Fn(&windlass_sim::journal::Change) -> bool| ours.iter().position(|change| what(change));
    let guarded = |change: &windlass_sim::journal::Change| {
        let finalizers = change
            .after
            .as_deref()
            .and_then(|after| after.pointer("/metadata/finalizers"))
            .cloned()
            .unwrap_or_default();
        change.resource == "quorumclusters.windlass.dev" && finalizers == json!([FINALIZER])
    };
    let workload = |change: &windlass_sim::journal::Change| change.resource == "statefulsets.apps";
    assert!(position(&guarded) < position(&workload));
    let gone =
        ours.iter().position(|change| change.resource == "quorumclusters.windlass.dev" && change.verb == Verb::Delete);
    assert!(gone > ours.iter().rposition(|change| workload(change)));
    assert!(gone.is_some());
}
