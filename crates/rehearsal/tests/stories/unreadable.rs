//! What the API server takes and we can't read: it is held with a reason of its own, a permit that stands is taken back, and nobody else
//! notices.

use std::time::Duration;

use crate::support::{
    TO, Tale,
    stage::{self, partition, pass, patch, permit_stands, until, until_reason, until_stalled},
    three,
};
use serde_json::{Value, json};
use windlass_rehearsal::{odd, pd};
use windlass_sim::harness::Cluster;

fn spec(cluster: &Cluster, spec: &Value) {
    patch(cluster, &pd::subject(), &json!({ "spec": spec }));
}

fn status(cluster: &Cluster, status: &Value) {
    stage::patch_status(cluster, &pd::subject(), &json!({ "status": status }));
}

#[test]
fn one_that_cannot_be_read_harms_nobody_else() {
    let mut odd = pd::quorum_cluster("odd", TO);
    odd["spec"]["workload"]["statefulSet"] = json!("another");
    odd["spec"]["gates"] = odd::gates("Soak");
    let mut objects = three();
    // It is the older one.
    let last = objects.pop().expect("a QuorumCluster");
    objects.extend([odd, last]);
    let tale = stage::play(objects, async |cluster| {
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
    let said = tale.said_of("odd", 0..tale.journal.len()).pop().expect("it was told");
    said.is_stalled("Unreadable", &["spec.gates.overrides[0].until", "correct the field"]);
    assert_eq!(tale.events(0..tale.journal.len())["Unreadable"].len(), 1);
}

#[test]
fn one_that_becomes_unreadable_is_held_and_goes_on_when_it_is_mended() {
    let tale = stage::play(three(), async |cluster| {
        permit_stands(cluster).await;
        spec(cluster, &json!({"gates": odd::gates("Soak")}));
        let said = until_stalled(cluster, "Unreadable").await;
        assert!(said.status["upgrade"]["targetVersion"] == TO, "what was there is still there: {}", said.status);
        until(cluster, "the permit is taken back", |cluster| partition(cluster) == json!(3)).await;
        pass(Duration::from_mins(6)).await;
        spec(cluster, &json!({"gates": {"overrides": []}}));
        until_reason(cluster, "UpToDate").await;
    });
    let (from, ..) = tale.first_said(pd::NAME, |said| said.reason == "Unreadable").expect("it was said");
    let (to, ..) = tale.first_said(pd::NAME, |said| said.reason == "UpToDate").expect("it was done");
    let mended = tale.journal[from..to].iter().rposition(
        |entry| matches!(&entry.event, windlass_sim::journal::Event::Write(change) if change.user == "user"),
    );
    let held = from..from + mended.expect("a person mended it");
    assert_eq!(tale.replaced(held), Vec::<String>::new(), "nobody is replaced meanwhile");
    tale.ended_ready_at(TO);
}

/// Something of the status can't be read while a permit stands.
fn with_status(odd: &Value) -> Tale {
    stage::play(three(), async |cluster| {
        permit_stands(cluster).await;
        status(cluster, odd);
        pass(Duration::from_mins(10)).await;
    })
}

fn an_upgrade_that_cannot_be_read() {
    let tale = with_status(&json!({"upgrade": {"startedAt": odd::TIME}}));
    assert_eq!(tale.replaced(0..tale.journal.len()), Vec::<String>::new());
    assert_eq!(tale.strategy()["rollingUpdate"]["partition"], 3);
    let said = tale.last_said(0..tale.journal.len());
    said.is_stalled("Unreadable", &["status.upgrade.startedAt", "--subresource=status"]);
    assert_eq!(said.status["upgrade"]["startedAt"], odd::TIME, "it stays as it is");
    tale.was_safe();
}

#[test]
fn an_upgrade_that_cannot_be_read_is_not_none() {
    an_upgrade_that_cannot_be_read();
}

/// The record's version is a text that the schema takes.
#[test]
fn an_upgrade_that_makes_no_sense_is_not_none() {
    let tale = with_status(&json!({"upgrade": {"targetVersion": "newest"}}));
    assert_eq!(tale.replaced(0..tale.journal.len()), Vec::<String>::new());
    assert_eq!(tale.strategy()["rollingUpdate"]["partition"], 3);
    tale.last_said(0..tale.journal.len()).is_stalled("Unreadable", &["status.upgrade.targetVersion"]);
}

/// Whoever acted may still be writing: it is waited for and touched, as at every take-over, and then all goes on by itself.
fn a_claim_that_cannot_be_read() {
    let tale = stage::play(three(), async |cluster| {
        permit_stands(cluster).await;
        status(cluster, &json!({"operator": {"since": odd::TIME}}));
        until_reason(cluster, "UpToDate").await;
    });
    let touched = |change: &&windlass_sim::journal::Change| {
        let mark = |object: &Option<std::sync::Arc<Value>>| {
            object
                .as_deref()
                .and_then(|object| object.pointer("/metadata/annotations/windlass.dev~1touched-by").cloned())
        };
        change.resource == "statefulsets.apps" && mark(&change.before) != mark(&change.after)
    };
    assert_eq!(tale.our_writes(tale.since(0)).filter(touched).count(), 1);
    tale.ended_ready_at(TO);
}

#[test]
fn a_claim_that_cannot_be_read_is_not_settled() {
    a_claim_that_cannot_be_read();
}

/// What people read is written anew, and keeps nobody from anything.
#[test]
fn conditions_that_cannot_be_read_are_said_anew() {
    let odd =
        json!({"type": "Ready", "status": "True", "reason": "Odd", "message": "", "lastTransitionTime": odd::TIME});
    let tale = stage::play(three(), async |cluster| {
        permit_stands(cluster).await;
        status(cluster, &json!({"conditions": [odd]}));
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

/// Who wrote what, and when, is kept with every object, in the answers to our own writes, too: one that landed must not look like one that
/// failed, or what stands would stand for ever.
#[test]
fn who_wrote_it_last_need_not_be_readable() {
    let managed = odd::managed_fields("windlass.dev/v1alpha1");
    let tale = stage::play(three(), async |cluster| {
        permit_stands(cluster).await;
        patch(cluster, &pd::subject(), &json!({"metadata": {"managedFields": managed}}));
        spec(cluster, &json!({"paused": true}));
        until(cluster, "the permit is taken back", |cluster| partition(cluster) == json!(3)).await;
        spec(cluster, &json!({"paused": false}));
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

/// Somebody's loop sets the partition back while nobody can read what is wanted: held once, by name, and left alone from then on. The controllers
/// stand still, so that each write is seen.
fn a_loop_while_something_cannot_be_read(odd: impl Fn(&Cluster), told: &str) {
    let tale = stage::play(three(), async |cluster| {
        permit_stands(cluster).await;
        cluster.world.freeze_controllers(cluster.clock.elapsed() + Duration::from_mins(30));
        odd(cluster);
        until(cluster, "the permit is taken back", |cluster| partition(cluster) == json!(3)).await;
        for _ in 0..12 {
            let theirs = json!({"updateStrategy": {"rollingUpdate": {"partition": 0}}});
            patch(cluster, &pd::workload(), &json!({ "spec": theirs }));
            pass(Duration::from_secs(40)).await;
        }
    });
    let from = tale.journal.iter().position(
        |entry| matches!(&entry.event, windlass_sim::journal::Event::Write(change) if change.resource == "statefulsets.apps" && change.user == "user" && change.before.is_some()),
    );
    let sets = tale.touched(from.expect("somebody wrote it")..tale.journal.len());
    let sets = sets.iter().filter(|what| what.starts_with("statefulsets")).count();
    assert_eq!(sets, 1, "held once");
    let status = &tale.last_said(0..tale.journal.len()).status;
    let contest = status.pointer(told).unwrap_or_else(|| panic!("nothing at {told}: {status}"));
    assert_eq!((&contest["holds"], &contest["held"]), (&json!(1), &json!(true)));
    assert_ne!(contest["by"], "somebody", "{contest}");
}

fn a_loop_while_the_spec_cannot_be_read() {
    a_loop_while_something_cannot_be_read(
        |cluster| spec(cluster, &json!({"gates": odd::gates("Soak")})),
        "/upgrade/contest",
    );
}

fn a_loop_while_the_record_cannot_be_read() {
    a_loop_while_something_cannot_be_read(
        |cluster| status(cluster, &json!({"upgrade": {"startedAt": odd::TIME}})),
        "/contest",
    );
}

#[test]
fn a_loop_is_not_fought_while_something_cannot_be_read() {
    a_loop_while_the_spec_cannot_be_read();
    a_loop_while_the_record_cannot_be_read();
}

#[test]
fn one_that_cannot_be_read_can_be_deleted() {
    let tale = stage::play(three(), async |cluster| {
        permit_stands(cluster).await;
        spec(cluster, &json!({"gates": odd::gates("Soak")}));
        stage::delete(cluster, &pd::subject());
        until(cluster, "it is gone", |cluster| stage::subject(cluster).is_null()).await;
        pass(Duration::from_mins(10)).await;
    });
    assert_eq!(tale.replaced(0..tale.journal.len()), Vec::<String>::new());
    assert_eq!(tale.strategy()["rollingUpdate"]["partition"], 3);
    tale.was_safe();
}

/// The older of two on one StatefulSet has it, also if it can't be read.
#[test]
fn one_that_cannot_be_read_still_has_its_stateful_set() {
    let mut older = pd::quorum_cluster("older", TO);
    older["spec"]["gates"] = odd::gates("Soak");
    let mut objects = three();
    let last = objects.pop().expect("a QuorumCluster");
    objects.extend([older, last]);
    let tale = stage::play(objects, async |cluster| {
        until_stalled(cluster, "AlreadyManaged").await;
        pass(Duration::from_mins(3)).await;
    });
    tale.touched_nothing(0..tale.journal.len());
    tale.last_said(0..tale.journal.len()).is_stalled("AlreadyManaged", &["managed by QuorumCluster older"]);
}

#[rstest::rstest]
#[case(windlass_plan::bug::Bug::UnreadableIsNothing, an_upgrade_that_cannot_be_read)]
#[case(windlass_plan::bug::Bug::StrategyFought, a_loop_while_the_spec_cannot_be_read)]
#[case(windlass_plan::bug::Bug::StrategyFought, a_loop_while_the_record_cannot_be_read)]
#[case(windlass_plan::bug::Bug::UnreadableIsSettled, a_claim_that_cannot_be_read)]
fn it_is_noticed(#[case] bug: windlass_plan::bug::Bug, #[case] story: fn()) {
    crate::support::is_noticed(bug, story);
}
