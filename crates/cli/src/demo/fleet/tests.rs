//! Pictures of fleets: what they say, and that they fit.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rstest::rstest;
use serde_json::{Value, json};

use super::{
    map::Standing,
    picture::{Mark, Picture},
};

/// A resource of a tier with this image, up to date with it or not.
fn resource(name: &str, tier: &str, image: &str, ready: bool) -> Arc<Value> {
    Arc::new(json!({
        "metadata": {"name": name, "generation": 1, "labels": {"upgrade-tier": tier}},
        "spec": {"image": image},
        "status": {"observedGeneration": 1, "conditions": [{"type": "UpToDate", "status": if ready { "True" } else { "False" }}]},
    }))
}

fn condition(type_: &str, holds: bool, reason: &str, message: &str) -> Value {
    let (status, time) = (if holds { "True" } else { "False" }, "2026-01-01T00:00:00Z");
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": time})
}

/// A tier's status: complete, in progress, and why.
fn said(tier: &str, complete: bool, going: bool, reason: &str) -> Value {
    let conditions = [condition("Complete", complete, reason, ""), condition("InProgress", going, reason, "")];
    json!({"upgradeTier": tier, "image": "v2", "conditions": conditions})
}

/// Two tiers, the first of which is on its way.
fn fleet(tiers: &[Value], reason: &str, message: &str) -> Value {
    json!({
        "metadata": {"name": "dicom", "generation": 2},
        "spec": {
            "target": {"group": "examples.windlass.dev", "version": "v1", "kind": "Dicom"},
            "defaultImage": "v2",
            "tiers": [{"upgradeTier": "", "priority": 0}, {"upgradeTier": "early", "priority": 1}],
        },
        "status": {
            "observedGeneration": 2,
            "tierStatus": tiers,
            "conditions": [condition("Ready", false, reason, message)],
        },
    })
}

/// So many of the first tier are up to date, one is on its way, and nobody of the second has begun.
fn half_way(done: usize, all: usize) -> Vec<Arc<Value>> {
    let early = (0..all).map(|number| {
        let image = if number <= done { "v2" } else { "v1" };
        resource(&format!("e{number:03}"), "early", image, number != done)
    });
    early.chain((0..all / 2).map(|number| resource(&format!("o{number:03}"), "", "v1", true))).collect()
}

fn plain(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
}

const LONG: &str = "tier early: the first 2 of 20 are up to date, and must stay so until 2026-01-01T00:00:44.18Z";

#[rstest]
#[case(80)]
#[case(81)]
#[case(100)]
#[case(120)]
#[case(200)]
fn a_picture_fits_and_keeps_its_height(#[case] width: usize) {
    let going = [said("early", false, true, "AwaitingResources"), said("", false, false, "Waiting")];
    let at = |done: usize, message: &str| {
        let picture = Picture::of(&fleet(&going, "AwaitingResources", message), &half_way(done, 83), "Dicom v1 → v2");
        plain(&picture.lines(Duration::from_secs(754), 1.0, width))
    };
    let (first, later) = (at(0, "short"), at(40, &format!("{LONG}, {LONG}, {LONG}, {LONG}")));
    assert_eq!(first.len(), later.len(), "a picture that changes its height jumps");
    for line in first.iter().chain(&later) {
        assert!(line.chars().count() <= width, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn the_cells_and_the_counts_say_the_same() {
    let going = [said("early", false, true, "InFlightLimit"), said("", false, false, "Waiting")];
    let message = "tier early: 1 are on their way, and no more may be; 7 are to come; raise maxInFlight";
    let picture = Picture::of(&fleet(&going, "InFlightLimit", message), &half_way(12, 20), "Dicom v1 → v2");
    let lines = plain(&picture.map(80));
    let row = |name: &str| lines.iter().find(|line| line.trim_start().starts_with(name)).cloned().unwrap_or_default();
    assert!(row("early").contains(" ████████████▒······· "), "{}", row("early"));
    assert!(row("early").contains(" 12/20   1 in flight limit"), "{}", row("early"));
    assert!(row("(empty)").contains(" ·········· "), "{}", row("(empty)"));
    assert!(row("(empty)").ends_with(" 0/10     its turn"), "{}", row("(empty)"));
    assert!(lines.iter().any(|line| line.contains("█ 12 up to date  ▒ 1 on the way  · 17 old")), "{lines:?}");
    let waits = plain(&picture.waits(80)).join("\n");
    assert!(waits.contains("no more may be") && !waits.contains("raise"), "{waits}");
}

#[test]
fn a_halt_is_told_with_what_to_do_about_it() {
    let mut stalled = fleet(&[said("early", false, true, "ResourceFailed")], "ResourceFailed", "e failed; look at it");
    let conditions = stalled.pointer_mut("/status/conditions").and_then(Value::as_array_mut).unwrap();
    conditions.push(condition("Stalled", true, "ResourceFailed", ""));
    let picture = Picture::of(&stalled, &half_way(0, 4), "");
    assert!(plain(&picture.waits(80)).join("\n").contains("e failed; look at it"));
    let news = picture.news(&mut BTreeSet::new());
    assert_eq!(news, ["tier early is halted: 0 of 4 are up to date"]);
}

#[test]
fn each_thing_is_told_once() {
    let mut told: BTreeSet<(String, Mark)> = BTreeSet::new();
    let mut tell = |done: usize, early: Value, other: Value| {
        Picture::of(&fleet(&[early, other], "", ""), &half_way(done, 10), "").news(&mut told)
    };
    let waits = || said("", false, false, "Waiting");
    let begun = tell(0, said("early", false, true, "Stamping"), waits());
    assert_eq!(begun, ["tier early begins: 10 resources"]);
    assert_eq!(tell(1, said("early", false, true, "AwaitingResources"), waits()), Vec::<String>::new());
    let soaking = tell(1, said("early", false, true, "Soaking"), waits());
    assert_eq!(soaking, ["tier early soaks: 1 of 10 go first"]);
    assert_eq!(tell(2, said("early", false, true, "Stamping"), waits()), Vec::<String>::new());
    let half = tell(6, said("early", false, true, "Stamping"), waits());
    assert_eq!(half, ["tier early goes on: 6 of 10 are up to date"]);
    let next = tell(10, said("early", true, false, "UpToDate"), said("", false, true, "Stamping"));
    assert_eq!(next, ["tier early is up to date: 10 of 10", "the empty tier begins: 5 resources"]);
}

#[test]
fn what_was_said_of_the_image_before_is_no_news() {
    let mut before = said("early", true, false, "UpToDate");
    before["image"] = json!("v1");
    let picture = Picture::of(&fleet(&[before], "", ""), &half_way(0, 4), "");
    assert_eq!(picture.news(&mut BTreeSet::new()), Vec::<String>::new());
    assert!(!picture.is_done());
}

#[test]
fn it_is_done_when_the_operator_says_so_and_it_is_true() {
    let mut fleet = fleet(&[], "UpToDate", "");
    let conditions = fleet.pointer_mut("/status/conditions").and_then(Value::as_array_mut).unwrap();
    conditions.push(condition("Complete", true, "UpToDate", ""));
    let all = |ready: bool| vec![resource("a", "early", "v2", true), resource("b", "", "v2", ready)];
    assert!(Picture::of(&fleet, &all(true), "").is_done());
    let lied = Picture::of(&fleet, &all(false), "");
    assert!(lied.is_complete && !lied.is_done());
    assert_eq!(lied.count(Standing::Moving), 1);
    fleet["metadata"]["generation"] = json!(3);
    assert!(!Picture::of(&fleet, &all(true), "").is_done(), "said of the spec before");
}
