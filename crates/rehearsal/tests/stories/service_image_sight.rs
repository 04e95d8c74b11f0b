//! What a ServiceImage can see: a watch that stands still, a kind that goes, revisions that go back, and objects that can't be read. Nothing
//! is decided from what can't be seen, and nothing is waited for without saying so.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    odd, operator,
    stamping::{NAME, dicom, image, judge, objects, one, reference, rival, service, service_image, subject, tier},
    trial::{self, Ending, Outcome, Scenario},
};
use windlass_sim::{
    journal::{Change, Event, Note, Verb},
    scenario::{Action, Moment, Subject, When},
};

/// How long a watch may say nothing before it is not believed any more, and the time that a new list takes.
const BOUND: SignedDuration = SignedDuration::from_secs(120 + 15);

fn after(seconds: u64, action: Action) -> Moment {
    Moment { when: When::After(Duration::from_secs(seconds)), action }
}

fn status(patch: &Value) -> Action {
    Action::PatchStatus { target: subject(), patch: json!({ "status": patch }) }
}

fn spec(patch: &Value) -> Action {
    Action::Patch { target: subject(), patch: json!({ "spec": patch }) }
}

/// Lists and watches of Dicoms fail, or work again.
fn unlistable(yes: bool) -> Action {
    Action::Unlistable(one("").resource, yes)
}

/// The definition of Dicoms.
fn definition() -> (Subject, Value) {
    let name = one("").resource;
    let all = objects([], Value::Null);
    let object = all.into_iter().find(|object| object["metadata"]["name"] == name).expect("the definition");
    let resource = "customresourcedefinitions.apiextensions.k8s.io".to_owned();
    (Subject { resource, namespace: String::new(), name }, object)
}

struct Told(Outcome);

/// Dicoms serve before the ServiceImage comes.
fn tell(dicoms: Vec<Value>, wanted: Value, mut timeline: Vec<Moment>, ending: Ending) -> Told {
    let mut objects = objects(dicoms, Value::Null);
    objects.pop();
    timeline.insert(0, after(15, Action::Create(wanted)));
    tell_of(objects, timeline, subject(), ending)
}

fn tell_of(objects: Vec<Value>, timeline: Vec<Moment>, subject: Subject, ending: Ending) -> Told {
    let limit = Duration::from_mins(20);
    let scenario = Scenario { objects, timeline, subject, ending, operators: 1, limit, ..reference(1) };
    let outcome = trial::run_beside(&scenario, &[], &operator, Some(&service)).expect("a runtime");
    assert_eq!(judge(&outcome.journal, BOUND).violations, Vec::<String>::new());
    assert!(outcome.settled, "{}", outcome.subject["status"]);
    Told(outcome)
}

impl Told {
    fn writes(&self, resource: String) -> impl Iterator<Item = (Timestamp, &Change)> {
        self.0.journal.iter().filter_map(move |entry| match &entry.event {
            Event::Write(change) if change.resource == resource => Some((entry.at, change)),
            Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
        })
    }

    /// The images of those that are there.
    fn images(&self) -> BTreeMap<&str, &str> {
        let mut all = BTreeMap::new();
        for (_, change) in self.writes(one("").resource) {
            all.remove(change.name.as_str());
            if let Some(object) = change.after.as_deref().filter(|_| change.verb != Verb::Delete) {
                let image = object["spec"]["image"].as_str().unwrap_or_default();
                all.insert(change.name.as_str(), image.rsplit(':').next().unwrap_or_default());
            }
        }
        all
    }

    /// What a ServiceImage said of Ready, when: status, reason and message.
    fn said(&self, name: &str) -> Vec<(Timestamp, String, String, String)> {
        let ready = |object: &Value| {
            let conditions = object.pointer("/status/conditions")?.as_array()?.clone();
            let ready = conditions.into_iter().find(|one| one["type"] == "Ready")?;
            let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
            Some((text("status"), text("reason"), text("message")))
        };
        let theirs = self.writes(subject().resource).filter(|(_, change)| change.name == name);
        let said = theirs.filter_map(|(at, change)| ready(change.after.as_deref()?).map(|(a, b, c)| (at, a, b, c)));
        said.collect()
    }

    fn reasons(&self, name: &str) -> Vec<String> {
        let mut reasons: Vec<String> = self.said(name).into_iter().map(|(_, _, reason, _)| reason).collect();
        reasons.dedup();
        reasons
    }

    /// When the watches came to stand still.
    fn fell_silent(&self) -> Timestamp {
        let silent = |event: &Event| matches!(event, Event::Note(Note::WatchesStill));
        self.0.journal.iter().find(|entry| silent(&entry.event)).expect("it was noted").at
    }

    fn first(&self, is: impl Fn(&Change) -> bool) -> Timestamp {
        let found = self.0.journal.iter().find(|entry| matches!(&entry.event, Event::Write(change) if is(change)));
        found.expect("it was written").at
    }
}

/// An early tier that soaks for long, so that the next one begins when the watch has stood still for longer than it may.
fn early_and_plain() -> (Vec<Value>, Value) {
    let dicoms = vec![dicom("e", "early", Some("v1")), dicom("a", "", Some("v1")), dicom("b", "", Some("v1"))];
    let mut early = tier("early", "v3", 1);
    early["canary"] = json!([{"percent": 100, "soak": "5m"}]);
    (dicoms, service_image(json!([tier("", "v2", 0), early])))
}

/// A late resource of the early tier is not seen by a watch that stands still. It must not be passed by (E3, E7).
fn a_watch_that_stands_still() {
    let (dicoms, wanted) = early_and_plain();
    let late = Action::Create(dicom("late", "early", Some("v1")));
    let told = tell(dicoms, wanted, vec![after(20, Action::StillWatches), after(5, late)], Ending::Ready);
    assert_eq!(told.images(), [("a", "v2"), ("b", "v2"), ("e", "v3"), ("late", "v3")].into());
    let stamped = |name: &'static str| {
        told.first(move |change| change.name == name && trial::is_ours(&change.user) && change.verb == Verb::Update)
    };
    assert!(stamped("late") < stamped("a"), "the late one is not passed by");
    let silent = stamped("late").duration_since(told.fell_silent());
    assert!(silent < BOUND, "a new list shows it in time: {silent}");
    assert!(!told.reasons(NAME).contains(&"WatchSilent".to_owned()), "what mends itself is told to nobody");
}

#[test]
fn a_watch_that_stands_still_is_not_believed() {
    a_watch_that_stands_still();
}

/// Where no list can be had, either, nothing is decided, and that is said; it goes on by itself.
#[test]
fn a_fleet_that_can_not_be_seen_says_so() {
    let (dicoms, wanted) = early_and_plain();
    let timeline = vec![
        after(20, Action::StillWatches),
        after(1, unlistable(true)),
        after(1, Action::Create(dicom("late", "early", Some("v1")))),
        after(900, unlistable(false)),
    ];
    let told = tell(dicoms, wanted, timeline, Ending::Ready);
    assert_eq!(told.images(), [("a", "v2"), ("b", "v2"), ("e", "v3"), ("late", "v3")].into());
    let said = told.said(NAME);
    let (at, ready, _, message) = said.iter().find(|(_, _, reason, _)| reason == "WatchSilent").expect("it is said");
    assert_eq!(ready, "False");
    assert!(message.contains("conversion webhook for Dicom failed"), "{message}");
    let silent = at.duration_since(told.fell_silent());
    assert!(silent < BOUND + SignedDuration::from_secs(30), "it is said in time: {silent}");
    let blind = told.writes(one("").resource).filter(|(when, change)| {
        let ended = told.fell_silent() + SignedDuration::from_secs(900);
        trial::is_ours(&change.user) && *when > *at && *when < ended
    });
    assert_eq!(blind.count(), 0, "nothing is written meanwhile");
    assert_eq!(
        told.reasons(NAME).iter().filter(|reason| *reason == "WatchSilent").count(),
        1,
        "{:?}",
        told.reasons(NAME)
    );
}

/// So it is where it can't be listed from the beginning.
#[test]
fn a_fleet_that_was_never_seen_says_so() {
    let (dicoms, wanted) = early_and_plain();
    let mut objects = objects(dicoms, Value::Null);
    objects.pop();
    let timeline = vec![after(5, unlistable(true)), after(10, Action::Create(wanted))];
    let told = tell_of(objects, timeline, subject(), Ending::Held("WatchSilent".into()));
    assert!(told.images().values().all(|tag| *tag == "v1"));
}

#[rstest]
#[case::at_once(None)]
#[case::while_one_stays(Some("clinic.example/records"))]
fn a_kind_that_is_deleted_midway_is_not_complete(#[case] finalizer: Option<&str>) {
    let (mut dicoms, wanted) = early_and_plain();
    if let Some(finalizer) = finalizer {
        dicoms[0]["metadata"]["finalizers"] = json!([finalizer]);
    }
    let (target, _) = definition();
    let gone = vec![after(14, Action::Delete(target))];
    let told = tell(dicoms, wanted, gone, Ending::Held("TargetNotFound".into()));
    let complete: Vec<_> = told.said(NAME).into_iter().filter(|(_, ready, ..)| ready == "True").collect();
    assert_eq!(complete, [], "nobody is up to date who is not there");
}

/// Others of their names are others.
#[test]
fn a_kind_that_comes_back_is_looked_after_again() {
    let (dicoms, wanted) = early_and_plain();
    let (target, object) = definition();
    let back = dicoms.iter().cloned().map(|one| after(1, Action::Create(one)));
    let mut timeline = vec![after(14, Action::Delete(target)), after(30, Action::Create(object))];
    timeline.extend(back);
    let told = tell(dicoms, wanted, timeline, Ending::Ready);
    assert_eq!(told.images(), [("a", "v2"), ("b", "v2"), ("e", "v3")].into());
    assert!(told.reasons(NAME).contains(&"TargetNotFound".to_owned()));
}

/// The same while nobody hears of it.
#[test]
fn a_kind_that_is_replaced_behind_a_watch_that_stands_still_is_looked_after_again() {
    let (dicoms, wanted) = early_and_plain();
    let (target, object) = definition();
    let back = dicoms.iter().cloned().map(|one| after(1, Action::Create(one)));
    let mut timeline =
        vec![after(20, Action::StillWatches), after(1, Action::Delete(target)), after(2, Action::Create(object))];
    timeline.extend(back);
    let told = tell(dicoms, wanted, timeline, Ending::Ready);
    assert_eq!(told.images(), [("a", "v2"), ("b", "v2"), ("e", "v3")].into());
}

fn set_image(name: &str, tag: &str) -> Action {
    Action::Patch { target: one(name), patch: json!({"spec": {"image": image(tag)}}) }
}

/// Half of it has its image; then etcd is as it was before that (H4).
#[test]
fn h4_what_a_restored_etcd_has_lost_is_done_again() {
    let dicoms = (0..6).map(|number| dicom(&format!("d{number}"), "", Some("v1"))).collect();
    let mut all = tier("", "v2", 0);
    all["maxInFlight"] = json!(1);
    let restore = after(60, Action::Restore(Duration::from_secs(40)));
    let told = tell(dicoms, service_image(json!([all])), vec![restore], Ending::Ready);
    let lost = told.writes(one("").resource).filter(|(_, change)| {
        let image =
            |object: &Option<std::sync::Arc<Value>>| object.as_deref().map(|object| object["spec"]["image"].clone());
        change.user == "etcd-restore" && image(&change.before) != image(&change.after)
    });
    assert!(lost.count() > 0, "somebody is on v1 again");
    assert!(told.images().values().all(|tag| *tag == "v2"), "{:?}", told.images());
}

/// Where nothing of ours was lost, what is written afterwards still has lower revisions than what was seen before, and is seen (H4).
#[test]
fn h4_what_is_written_after_a_restore_is_seen() {
    let dicoms = (0..3).map(|number| dicom(&format!("d{number}"), "", Some("v1"))).collect();
    let noise = |number: u64| {
        let patch = json!({"metadata": {"annotations": {"noise": number.to_string()}}});
        after(if number == 0 { 45 } else { 1 }, Action::Patch { target: one("d0"), patch })
    };
    let mut timeline: Vec<Moment> = (0..40).map(noise).collect();
    timeline.push(after(1, Action::Restore(Duration::from_secs(42))));
    timeline.push(after(3, set_image("d0", "v1")));
    timeline.push(after(180, Action::Uncordon("nobody".into())));
    let told = tell(dicoms, service_image(json!([tier("", "v2", 0)])), timeline, Ending::Ready);
    assert!(told.images().values().all(|tag| *tag == "v2"), "{:?}", told.images());
}

#[test]
fn a_resource_with_odd_metadata_harms_nobody_and_gets_its_image() {
    let managed = odd::managed_fields("examples.windlass.dev/v1");
    let odd = Action::Patch { target: one("odd"), patch: json!({"metadata": {"managedFields": managed}}) };
    let mut objects = objects([dicom("odd", "", Some("v1")), dicom("a", "", Some("v1"))], Value::Null);
    objects.pop();
    let wanted = service_image(json!([tier("", "v2", 0)]));
    let timeline = vec![after(10, odd), after(5, Action::Create(wanted))];
    let told = tell_of(objects, timeline, subject(), Ending::Ready);
    let stored = told.writes(one("").resource).filter(|(_, change)| {
        let managed = change.after.as_deref().and_then(|object| object.pointer("/metadata/managedFields"));
        managed.is_some_and(|all| all.to_string().contains(odd::LAST_DAY))
    });
    let notes = told.0.journal.iter().filter_map(|entry| match &entry.event {
        Event::Note(note) => Some(note.to_string()),
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } => None,
    });
    assert!(stored.count() > 0, "the API server stores it: {:?}", notes.collect::<Vec<_>>());
    assert_eq!(told.images(), [("a", "v2"), ("odd", "v2")].into());
}

/// A ServiceImage of each zone.
fn neighbours() -> (Vec<Value>, Value, Value) {
    let zoned = |name: &str, zone: &str| {
        let mut object = dicom(name, "", Some("v1"));
        object["metadata"]["labels"] = json!({"zone": zone});
        object
    };
    let wants = |name: &str, zone: &str| {
        let mut object = service_image(json!([tier("", "v2", 0)]));
        object["metadata"]["name"] = json!(name);
        object["spec"]["target"]["labelSelector"] = json!(format!("zone={zone}"));
        object
    };
    let dicoms = (0..3).flat_map(|number| [zoned(&format!("a{number}"), "a"), zoned(&format!("b{number}"), "b")]);
    (dicoms.collect(), wants(NAME, "a"), wants("neighbour", "b"))
}

fn odd_gates() -> Value {
    json!({"gates": odd::gates("MaintenanceWindow")})
}

#[test]
fn a_service_image_that_can_not_be_read_is_held_and_its_neighbour_goes_on() {
    let (dicoms, mut odd, neighbour) = neighbours();
    odd["spec"]["gates"] = odd_gates()["gates"].clone();
    let mut objects = objects(dicoms, Value::Null);
    objects.pop();
    let timeline =
        vec![after(15, Action::Create(odd)), after(1, Action::Create(neighbour)), after(60, Action::Compact)];
    let told = tell_of(objects, timeline, rival("neighbour"), Ending::Ready);
    let images = told.images();
    assert!(["b0", "b1", "b2"].iter().all(|name| images[name] == "v2"), "{images:?}");
    assert!(["a0", "a1", "a2"].iter().all(|name| images[name] == "v1"), "{images:?}");
    let (_, ready, reason, message) = told.said(NAME).pop().expect("it was told");
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "Unreadable"));
    assert!(message.contains("spec.gates.overrides[0].until") && message.contains("correct the field"), "{message}");
}

/// It is held where it stands, also with a batch reserved, and goes on when it is mended.
#[rstest]
#[case::spec(spec(&odd_gates()), Some(spec(&json!({"gates": {"overrides": []}}))))]
#[case::status(status(&json!({"retriedAt": odd::TIME})), Some(status(&json!({"retriedAt": null}))))]
// Whoever acted may still be writing: it is waited for and touched, as at every take-over, and then all goes on by itself.
#[case::a_claim(status(&json!({"operator": {"since": odd::TIME}})), None)]
fn a_service_image_that_becomes_unreadable_goes_on_when_it_is_mended(
    #[case] odd: Action,
    #[case] mend: Option<Action>,
) {
    let (dicoms, mut wanted, _) = neighbours();
    wanted["spec"]["tiers"][0]["maxInFlight"] = json!(1);
    let held = mend.is_some();
    let mut timeline = vec![Moment { when: When::After(Duration::from_millis(11_200)), action: odd }];
    timeline.extend(mend.map(|mend| after(120, mend)));
    let told = tell(dicoms, wanted, timeline, Ending::Ready);
    let images = told.images();
    assert!(["a0", "a1", "a2"].iter().all(|name| images[name] == "v2"), "{images:?}");
    assert!(["b0", "b1", "b2"].iter().all(|name| images[name] == "v1"), "{images:?}");
    let said = told.said(NAME);
    let from = said.iter().find(|(_, _, reason, _)| reason == "Unreadable").map(|(at, ..)| *at);
    assert_eq!(from.is_some(), held, "{:?}", told.reasons(NAME));
    if let Some(from) = from {
        let to = from + SignedDuration::from_secs(110);
        let ours = |(at, change): &(Timestamp, &Change)| trial::is_ours(&change.user) && *at > from && *at < to;
        assert_eq!(told.writes(one("").resource).filter(ours).count(), 0, "nothing is written meanwhile");
    }
}

#[rstest]
#[case(windlass_plan::bug::Bug::DeadWatchBelieved, a_watch_that_stands_still)]
fn it_is_noticed(#[case] bug: windlass_plan::bug::Bug, #[case] story: fn()) {
    crate::support::is_noticed(bug, story);
}
