//! An upgrade of OpenBao as its status tells it, from the snapshot to the end, with the operator killed on the way (D1, D2, D5).

use std::time::Duration;

use crate::support::{Spoken, Tale};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    operator,
    setting::{OPENBAO, after},
    trial::{self, Scenario},
};
use windlass_sim::{
    journal::{Change, Event, Note},
    scenario::{Action, Moment, When},
};

const REPLICAS: u64 = 3;

/// The upgrade with its snapshot; its operator is killed when the first member is being replaced.
fn tell(seed: u64) -> Tale {
    let mut scenario = OPENBAO.snapshot(seed);
    scenario.timeline.extend([
        Moment { when: When::Replaced(1), action: Action::KillOperator(0) },
        after(Duration::from_secs(1), Action::DropWatches),
    ]);
    let outcome = trial::run(&Scenario { operators: 1, ..scenario }, &[], &operator).expect("a runtime");
    assert_eq!(outcome.fault(), None);
    Tale::new(outcome.journal, outcome.verdict, outcome.subject)
}

fn said(tale: &Tale) -> Vec<Spoken> {
    let mut said = tale.said_of(OPENBAO.name, 0..tale.journal.len());
    // Before it looks the operator makes the resource its own.
    said.retain(|spoken| spoken.reason != "NotSeen");
    said
}

fn condition<'a>(spoken: &'a Spoken, kind: &str) -> &'a Value {
    let conditions = spoken.status["conditions"].as_array().expect("conditions");
    conditions.iter().find(|condition| condition["type"] == kind).map_or(&Value::Null, |condition| &condition["status"])
}

/// Our writes to the StatefulSet, with their places in the journal.
fn writes(tale: &Tale) -> impl Iterator<Item = (usize, &Change)> {
    tale.journal.iter().enumerate().filter_map(|(index, entry)| match &entry.event {
        Event::Write(change) if change.resource == "statefulsets.apps" && trial::is_ours(&change.user) => {
            Some((index, change))
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    })
}

fn dedup<T: PartialEq>(mut values: Vec<T>) -> Vec<T> {
    values.dedup();
    values
}

#[rstest]
fn phase_and_condition_say_that_it_is_under_way_as_long_as_it_is(#[values(1, 2, 3)] seed: u64) {
    let tale = tell(seed);
    for spoken in said(&tale) {
        let under_way = !spoken.status["upgrade"].is_null();
        assert_eq!(*condition(&spoken, "Upgrading"), if under_way { "True" } else { "False" }, "{}", spoken.message);
        if under_way {
            assert_eq!(spoken.status["phase"], "Upgrading", "{}", spoken.message);
        }
    }
    let phases: Vec<Value> = said(&tale).iter().map(|spoken| spoken.status["phase"].clone()).collect();
    assert_eq!(dedup(phases), ["Waiting", "Upgrading", "UpToDate"]);
}

#[rstest]
fn everything_is_recorded_and_held_before_the_first_member_goes(#[values(1, 2, 3)] seed: u64) {
    let tale = tell(seed);
    let stored = tale.journal.iter().position(|entry| match &entry.event {
        Event::Note(note) => matches!(note, Note::SnapshotStored { .. }),
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } => false,
    });
    let begun = tale.first_said(OPENBAO.name, |spoken| !spoken.status["upgrade"].is_null()).expect("it began");
    let (first, held) = writes(&tale).find(|(_, change)| spec(change, true) != spec(change, false)).expect("a write");
    assert!(stored.expect("a snapshot") < begun.0 && begun.0 < first, "snapshot, record, StatefulSet");
    assert_eq!(begun.2.status["upgrade"]["targetVersion"], OPENBAO.reference.1);
    assert_eq!(begun.2.status["upgrade"]["currentPartition"], REPLICAS);
    // One write brings the template and holds everybody.
    let spec = spec(held, true);
    assert_eq!(spec["updateStrategy"]["rollingUpdate"]["partition"], REPLICAS);
    assert_eq!(spec["template"]["spec"]["containers"][0]["image"], OPENBAO.image(OPENBAO.reference.1));
}

fn spec(change: &Change, after: bool) -> Value {
    let object = if after { &change.after } else { &change.before };
    object.as_deref().map(|object| object["spec"].clone()).unwrap_or_default()
}

#[rstest]
fn the_partition_goes_down_by_one_and_completed_pods_grow(#[values(1, 2, 3)] seed: u64) {
    let tale = tell(seed);
    let partition = |(_, change): (usize, &Change)| {
        spec(change, true)["updateStrategy"]["rollingUpdate"]["partition"].as_u64().unwrap_or_default()
    };
    // Parked at the end.
    assert_eq!(dedup(writes(&tale).map(partition).collect()), [3, 2, 1, 0, 3]);
    let upgrades: Vec<Value> = said(&tale).iter().map(|spoken| spoken.status["upgrade"].clone()).collect();
    let upgrades: Vec<&Value> = upgrades.iter().filter(|upgrade| !upgrade.is_null()).collect();
    let partitions: Vec<u64> =
        upgrades.iter().map(|upgrade| upgrade["currentPartition"].as_u64().unwrap_or_default()).collect();
    assert_eq!(dedup(partitions), [3, 2, 1, 0, 3]);
    let completed = dedup(upgrades.iter().map(|upgrade| upgrade["completedPods"].clone()).collect());
    let pods = ["openbao-0", "openbao-1", "openbao-2"];
    assert_eq!(completed, [json!([]), json!(pods[2..]), json!(pods[1..]), json!(pods)]);
    // One upgrade from beginning to end, whoever carries it on.
    assert_eq!(dedup(upgrades.iter().map(|upgrade| upgrade["startedAt"].clone()).collect()).len(), 1);
    let terms: Vec<Value> = said(&tale).iter().map(|spoken| spoken.status["operator"]["term"].clone()).collect();
    assert!(dedup(terms).len() > 1, "its operator was killed");
}

#[rstest]
fn at_the_end_the_version_is_set_and_the_upgrade_is_gone(#[values(1, 2, 3)] seed: u64) {
    let tale = tell(seed);
    let (from, to) = OPENBAO.reference;
    let versions: Vec<Value> = said(&tale).iter().map(|spoken| spoken.status["currentVersion"].clone()).collect();
    assert_eq!(dedup(versions), [json!(from), json!(to)]);
    let status = &tale.subject["status"];
    assert_eq!((&status["phase"], &status["upgrade"]), (&json!("UpToDate"), &Value::Null));
    assert_eq!(status["currentVersion"], to);
}
