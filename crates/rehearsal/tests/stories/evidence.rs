//! What decisions rest on: it is gathered in time also where somebody does not answer, and where it is not, that is said.

use std::{pin::Pin, time::Duration};

use crate::support::{
    TO, Tale, is_noticed,
    stage::{self, partition, pass, until_at_last, until_reason},
    three, with,
};
use rstest::rstest;
use serde_json::json;
use windlass_operator::Settings;
use windlass_plan::bug::Bug;
use windlass_rehearsal::{
    context, pd,
    setting::{ETCD, OPENBAO, PD, Setting},
};
use windlass_sim::{
    faults::Odds,
    harness::{Cluster, Seat},
    journal::{Befell, Event, Note},
};

fn ready(cluster: &Cluster) -> bool {
    let conditions = stage::subject(cluster)["status"]["conditions"].clone();
    conditions[0]["status"] == "True" && conditions[0]["reason"] == "UpToDate"
}

/// A process that hangs answers nobody for as long as it lives. It is down, so its turn comes first, and it comes although everybody who
/// looks waits for it.
#[test]
fn a_member_that_hangs_does_not_keep_itself_from_being_replaced() {
    let objects = with(three(), "StatefulSet", |set| set["spec"]["updateStrategy"] = json!({"type": "OnDelete"}));
    let objects = with(objects, "QuorumCluster", |resource| resource["spec"]["paused"] = json!(true));
    let tale = stage::play(objects, async |cluster| {
        cluster.world.elect(pd::NAMESPACE, pd::NAME, "pd-0");
        cluster.world.hang_process(pd::NAMESPACE, "pd-1", Duration::from_hours(24));
        pass(Duration::from_mins(1)).await;
        stage::patch(cluster, &pd::subject(), &json!({"spec": {"paused": false}}));
        until_at_last(cluster, "everybody is upgraded", ready).await;
    });
    assert_eq!(tale.verdict.restarts.first().map(String::as_str), Some("pd-1"), "whoever is down goes first");
    tale.ended_ready_at(TO);
}

/// An operator for which all evidence is too old as soon as it has it.
fn hasty(seat: Seat) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let mut context = context(seat);
        context.settings = Settings { evidence_age: Duration::ZERO, ..context.settings };
        windlass_operator::run(&context, std::future::pending()).await;
    })
}

#[test]
fn evidence_that_is_too_old_is_told_and_nothing_rests_on_it() {
    let tale = stage::play_with(three(), &hasty, async |cluster| {
        let said = until_reason(cluster, "EvidenceTooOld").await;
        said.is_waiting("EvidenceTooOld", &["looking took longer than 0ns, most of it for"]);
        pass(Duration::from_mins(10)).await;
        until_reason(cluster, "EvidenceTooOld").await;
        assert_eq!(partition(cluster), json!(3), "everything is held");
        let upgrade = stage::subject(cluster)["status"]["upgrade"].clone();
        assert!(
            upgrade["pendingHandover"].is_null() && upgrade["stage"].is_null(),
            "what was not tried is not recorded: {upgrade}"
        );
    });
    assert!(tale.verdict.restarts.is_empty());
}

/// Every second write to the set, a pod or a budget arrives when the operator has given up waiting for its answer: nothing is decided until it
/// can't land any more, and the job is done all the same (H1).
#[test]
fn nothing_is_decided_while_an_unanswered_write_may_land() {
    let odds = Odds { unanswered: 2, ..Odds::default() };
    let tale = stage::play_at(three(), &windlass_rehearsal::operator, odds, async |cluster| {
        until_at_last(cluster, "everybody is upgraded", ready).await;
    });
    let late = tale
        .journal
        .iter()
        .filter(|entry| matches!(&entry.event, Event::Note(Note::Process { what: Befell::Late { .. }, .. })));
    assert!(late.count() > 0, "every write was answered");
    assert_eq!(tale.verdict.violations, Vec::<String>::new(), "nothing was done too soon");
    tale.ended_ready_at(TO);
}

#[test]
fn a_forgotten_write_is_noticed() {
    is_noticed(Bug::UnansweredForgotten, nothing_is_decided_while_an_unanswered_write_may_land);
}

#[test]
fn steps_that_rest_on_old_evidence_are_noticed() {
    is_noticed(Bug::OldEvidenceActs, evidence_that_is_too_old_is_told_and_nothing_rests_on_it);
}

/// Thousands of entries a second: no follower is ever within a hundred of where the leader is (H18).
#[rstest]
#[case::pd(PD, 3_000)]
#[case::etcd(ETCD, 3_000)]
// Above two hundred its own autopilot calls followers unhealthy.
#[case::openbao(OPENBAO, 150)]
fn a_busy_quorum_is_upgraded(#[case] setting: Setting, #[case] per_second: u64) {
    let (from, to) = setting.reference;
    let tale: Tale = stage::play(setting.objects(3, from, to), async |cluster| {
        cluster.world.busy(setting.namespace, setting.name, per_second);
        until_at_last(cluster, "everybody is upgraded", ready).await;
    });
    assert_eq!(tale.verdict.restarts.len(), 3);
    tale.was_safe();
}

/// Watches only wake: every pass reads what it decides from live. Where they stand still, a resource is looked at as often as one at rest,
/// and an upgrade goes its way as before, more slowly.
#[test]
fn a_quorum_whose_watches_stand_still_is_looked_at_all_the_same() {
    let objects = with(three(), "QuorumCluster", |resource| resource["spec"]["paused"] = json!(true));
    let idle = Settings::default().idle_recheck;
    let tale = stage::play(objects, async |cluster| {
        until_reason(cluster, "Paused").await;
        pass(Duration::from_mins(1)).await;
        cluster.api.still_watches("windlass");
        let begun = cluster.clock.elapsed();
        stage::patch(cluster, &pd::subject(), &json!({"spec": {"paused": false}}));
        let template = |cluster: &Cluster| {
            let set = cluster.api.get_value("statefulsets.apps", pd::NAMESPACE, pd::NAME);
            set.is_some_and(|set| set.pointer("/spec/template").is_some_and(|one| one.to_string().contains(TO)))
        };
        until_at_last(cluster, "it is begun", template).await;
        let took = cluster.clock.elapsed().saturating_sub(begun);
        assert!(took < idle * 2, "it is seen after {took:?}");
        cluster.api.still_watches("windlass");
        until_at_last(cluster, "everybody is upgraded", ready).await;
    });
    tale.ended_ready_at(TO);
}
