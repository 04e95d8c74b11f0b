//! What is told and what is written: one event per act and per new reason, and nothing at all at rest.

use std::{collections::BTreeMap, time::Duration};

use crate::support::{A_WHILE, FROM, TO, Tale, at, mark, set, tell, three, with};
use serde_json::{Value, json};
use windlass_plan::Reason;
use windlass_rehearsal::{pd, trial::is_ours};
use windlass_sim::{
    journal::Event,
    scenario::{Action, When},
};

/// What is over in a moment is not told.
const MOMENTARY: [Reason; 6] = [
    Reason::ControllerBehind,
    Reason::AwaitingReplacement,
    Reason::AwaitingConclusion,
    Reason::AwaitingHandOver,
    Reason::StaleView,
    Reason::TakingOver,
];
/// Told of a whole upgrade, not of an act or a wait.
const FINISHED: &str = "UpgradeCompleted";

/// How often each reason was new, from what the QuorumCluster said.
fn new_reasons(tale: &Tale) -> BTreeMap<String, usize> {
    let said: Vec<_> =
        tale.said(0..tale.journal.len()).into_iter().map(|spoken| (spoken.reason, spoken.message)).collect();
    let is_act = |reason: &str| {
        ["Written", "Held", "Over", "ReplacementAllowed", "Withdrawn", "Back", "Released", "Locked", "Deleted"]
            .iter()
            .any(|end| reason.ends_with(end))
    };
    let mut counts = BTreeMap::new();
    let mut before = (String::from("NotSeen"), String::new());
    for (reason, message) in said {
        // Two acts in a row are two, a wait that goes on is one.
        let new = if is_act(&reason) && reason != "AwaitingHandOver" {
            (&reason, &message) != (&before.0, &before.1)
        } else {
            reason != before.0
        };
        if new
            && reason != "UpToDate"
            && reason != "NotSeen"
            && !MOMENTARY.iter().any(|momentary| momentary.name() == reason)
        {
            *counts.entry(reason.clone()).or_default() += 1;
        }
        before = (reason, message);
    }
    counts
}

/// Every act and every new reason has exactly one event.
#[track_caller]
fn each_is_told_once(tale: &Tale) {
    let mut told: BTreeMap<String, usize> =
        tale.events(0..tale.journal.len()).into_iter().map(|(reason, notes)| (reason, notes.len())).collect();
    told.remove(FINISHED);
    assert_eq!(told, new_reasons(tale));
}

#[test]
fn an_upgrade_is_told_act_by_act() {
    let tale = tell(three(), vec![]);
    tale.ended_ready_at(TO);
    each_is_told_once(&tale);
    let told = tale.events(0..tale.journal.len());
    for (reason, count) in [
        ("TemplateWritten", 1),
        ("EvictionsHeld", 1),
        ("ReplacementAllowed", 3),
        ("EvictionsReleased", 1),
        ("RolloutLocked", 1),
        (FINISHED, 1),
    ] {
        assert_eq!(told[reason].len(), count, "{reason}");
    }
    let transfer = |event: &Event| matches!(event, Event::Verb { user, what, .. } if is_ours(user) && what.contains("/leader/transfer/"));
    assert_eq!(told["HandOver"].len(), tale.journal.iter().filter(|entry| transfer(&entry.event)).count());
    assert_eq!(told[FINISHED], [format!("all members run {TO}")]);
}

#[test]
fn a_hold_is_told_once_however_long_it_lasts() {
    let objects = with(three(), "QuorumCluster", |resource| resource["spec"]["image"] = json!("PingCAP/pd:8.5"));
    let tale = tell(objects, vec![pd::after(Duration::from_hours(2), pd::spec(json!({"image": null})))]);
    tale.ended_ready_at(TO);
    let told = tale.events(tale.before_all());
    assert_eq!(told.keys().collect::<Vec<_>>(), ["InvalidSpec"]);
    assert_eq!(told["InvalidSpec"].len(), 1);
    assert!(told["InvalidSpec"][0].contains("correct the field that the message names"));
    each_is_told_once(&tale);
}

#[test]
fn a_detour_is_told_step_by_step() {
    let wrong = set(&json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 7}}}}));
    // Everything held, so that nothing moves before Windlass does.
    let mend = set(&json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 3}}}}));
    let resume = pd::spec(json!({"requests": {"resume": "it-is-over"}}));
    let soon = Duration::from_secs(1);
    let tale = tell(three(), vec![at(When::Permitted(1), wrong), pd::after(A_WHILE, mend), pd::after(soon, resume)]);
    tale.ended_ready_at(TO);
    each_is_told_once(&tale);
}

#[test]
fn a_pause_is_told_once() {
    let timeline = vec![
        at(When::Replaced(1), pd::spec(json!({"paused": true}))),
        pd::after(A_WHILE, pd::spec(json!({"paused": false}))),
    ];
    let tale = tell(three(), timeline);
    tale.ended_ready_at(TO);
    each_is_told_once(&tale);
}

#[test]
fn events_are_of_the_new_group_and_regard_the_resource() {
    let tale = tell(three(), vec![]);
    let events: Vec<&Value> = tale
        .our_writes(0..tale.journal.len())
        .filter(|change| change.resource.starts_with("events"))
        .filter_map(|change| change.after.as_deref())
        .collect();
    let sent = tale.calls.iter().filter(|call| *call == "POST /apis/events.k8s.io/v1/namespaces/tikv/events").count();
    assert_eq!((sent, sent > 0), (events.len(), true));
    for event in events {
        // They are kept in the core group's shape.
        let regarding = &event["involvedObject"];
        assert_eq!((&regarding["kind"], &regarding["name"]), (&json!("QuorumCluster"), &json!("pd")));
        assert_eq!(regarding["uid"], tale.subject["metadata"]["uid"]);
        assert_eq!(event["type"], "Normal", "nothing was wrong: {event}");
        for field in ["eventTime", "action", "reason", "reportingInstance"] {
            assert!(event[field].is_string(), "{field} of {event}");
        }
    }
}

/// Our writes other than the lease's renewals.
fn written(tale: &Tale, span: std::ops::Range<usize>) -> Vec<String> {
    let kept = tale.our_writes(span).filter(|change| change.resource != "leases.coordination.k8s.io");
    kept.map(|change| format!("{} {}", change.resource, change.name)).collect()
}

#[test]
fn an_idle_hour_makes_no_write() {
    let timeline = vec![
        pd::after(Duration::from_mins(10), mark()),
        pd::after(Duration::from_hours(1), Action::DropWatches),
        pd::after(Duration::from_mins(5), pd::spec(json!({"paused": false}))),
    ];
    let tale = tell(three(), timeline);
    assert_eq!(tale.last_said(tale.before_all()).reason, "UpToDate");
    assert_eq!(written(&tale, tale.since(0)), Vec::<String>::new());
    tale.ended_ready_at(TO);
}

#[test]
fn an_hour_of_holding_makes_no_write() {
    let timeline = vec![
        pd::after(Duration::from_mins(2), mark()),
        pd::after(Duration::from_hours(1), pd::spec(json!({"policy": {"acceptDowntime": true}}))),
    ];
    let tale = tell(pd::objects(2, FROM, TO), timeline);
    assert_eq!(tale.last_said(tale.before_all()).reason, "TooFewMembers");
    assert_eq!(written(&tale, tale.between(0, 1)), Vec::<String>::new());
    tale.ended_ready_at(TO);
}

#[test]
fn no_status_is_written_that_is_there_already() {
    let tale = tell(three(), vec![]);
    for change in
        tale.our_writes(0..tale.journal.len()).filter(|change| change.resource == "quorumclusters.windlass.dev")
    {
        let part = |object: Option<&Value>| {
            object.map(|object| (object["status"].clone(), object["metadata"]["finalizers"].clone()))
        };
        assert_ne!(part(change.before.as_deref()), part(change.after.as_deref()));
    }
}

#[test]
fn the_version_stays_until_all_members_have_left_it() {
    let tale = tell(three(), vec![]);
    tale.ended_ready_at(TO);
    for spoken in tale.said(0..tale.journal.len()).iter().filter(|spoken| spoken.status["members"].is_array()) {
        let members = spoken.status["members"].as_array().expect("members");
        let all_new = members.iter().all(|member| member["version"] == TO);
        assert_eq!(spoken.status["currentVersion"] == TO, all_new && members.len() == 3, "{}", spoken.status);
    }
}
