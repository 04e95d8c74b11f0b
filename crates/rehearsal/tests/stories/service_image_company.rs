//! ServiceImages among others: a second one on the same resources, and resources that somebody's rules keep from being written.

use std::{collections::BTreeMap, future::Future, pin::Pin, time::Duration};

use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
    discovery::ApiResource,
};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    operator,
    stamping::{
        IMAGE, NAME, NAMESPACE, PATIENCE, STAMP, TOUCHED, dicom, fill, freeze, image, judge, objects, one, reference,
        rival, service, service_image, service_without_deployed, subject, tier, webhook,
    },
    trial::{self, Ending, Outcome, Scenario},
};
use windlass_sim::{
    faults::Strike,
    harness::{Program, Seat},
    journal::{Event, Verb},
    scenario::{Action, Moment, Subject, Webhook, When},
};

fn after(seconds: u64, action: Action) -> Moment {
    Moment { when: When::After(Duration::from_secs(seconds)), action }
}

/// Dicoms that serve from v1, one in each of these zones.
fn zones(zones: &[&str]) -> Vec<Value> {
    let placed = zones.iter().enumerate().map(|(number, zone)| {
        let mut object = dicom(&format!("{zone}{number}"), "", Some("v1"));
        object["metadata"]["labels"] = json!({"zone": zone});
        object
    });
    placed.collect()
}

/// A ServiceImage of this name that wants this image, of those with these labels.
fn wants(name: &str, tag: &str, labels: Option<&str>) -> Value {
    let mut object = service_image(json!([tier("", tag, 0)]));
    object["metadata"]["name"] = json!(name);
    object["spec"]["target"]["labelSelector"] = json!(labels);
    object
}

struct Told {
    outcome: Outcome,
}

/// Dicoms serve before anything happens.
fn tell(dicoms: Vec<Value>, timeline: Vec<Moment>, subject: Subject, ending: Ending) -> Told {
    tell_beside(dicoms, timeline, subject, ending, &[], &service)
}

fn tell_beside(
    dicoms: Vec<Value>,
    mut timeline: Vec<Moment>,
    subject: Subject,
    ending: Ending,
    strikes: &[(u64, Strike)],
    service: &Program,
) -> Told {
    let mut objects = objects(dicoms, Value::Null);
    objects.pop();
    timeline.insert(0, after(15, Action::DropWatches));
    let operators = if strikes.is_empty() { 1 } else { 2 };
    let limit = Duration::from_mins(20);
    let scenario = Scenario { objects, timeline, subject, ending, operators, limit, ..reference(1) };
    let outcome = trial::run_beside(&scenario, strikes, &operator, Some(service)).expect("a runtime");
    assert_eq!(judge(&outcome.journal, PATIENCE).violations, Vec::<String>::new());
    assert!(outcome.settled, "{}", outcome.subject["status"]);
    Told { outcome }
}

impl Told {
    fn writes<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = &'a windlass_sim::journal::Change> {
        self.outcome.journal.iter().filter_map(move |entry| match &entry.event {
            Event::Write(change) if change.resource == resource => Some(change),
            Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
        })
    }

    /// The last state of every Dicom.
    fn dicoms(&self) -> BTreeMap<&str, &Value> {
        let resource = one("").resource;
        let mut all = BTreeMap::new();
        for entry in &self.outcome.journal {
            let Event::Write(change) = &entry.event else { continue };
            let is_one = change.resource == resource && change.verb != Verb::Delete;
            if let Some(object) = change.after.as_deref().filter(|_| is_one) {
                all.insert(change.name.as_str(), object);
            }
        }
        all
    }

    fn images(&self) -> BTreeMap<&str, &str> {
        self.dicoms().into_iter().map(|(name, object)| (name, tag(object))).collect()
    }

    /// When somebody wrote to it first, who it was not that made it.
    fn first_write(&self, subject: &Subject) -> jiff::Timestamp {
        let is_it = |event: &Event| match event {
            Event::Write(change) => {
                let of_it = change.resource == subject.resource && change.name == subject.name;
                of_it && (change.resource != one("").resource || trial::is_ours(&change.user))
            }
            Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => false,
        };
        self.outcome.journal.iter().find(|entry| is_it(&entry.event)).expect("a write").at
    }

    /// How often we gave each an image.
    fn stamps(&self) -> BTreeMap<String, usize> {
        let resource = one("").resource;
        let mut stamps = BTreeMap::new();
        for change in self.writes(&resource).filter(|change| trial::is_ours(&change.user)) {
            let image = |object: Option<&Value>| object.map(|object| object["spec"]["image"].clone());
            if image(change.before.as_deref()) != image(change.after.as_deref()) {
                *stamps.entry(change.name.clone()).or_default() += 1;
            }
        }
        stamps
    }

    /// What a ServiceImage said, each time in other words.
    fn said(&self, name: &str) -> Vec<(String, String)> {
        let resource = subject().resource;
        let ready = |object: &Value| {
            let conditions = object.pointer("/status/conditions")?.as_array()?.clone();
            let ready = conditions.into_iter().find(|one| one["type"] == "Ready")?;
            Some((ready["reason"].as_str()?.to_owned(), ready["message"].as_str()?.to_owned()))
        };
        let ours = self.writes(&resource).filter(|change| change.name == name);
        let mut said: Vec<_> = ours.filter_map(|change| ready(change.after.as_deref()?)).collect();
        said.dedup();
        said
    }

    fn status(&self) -> &Value {
        &self.outcome.subject["status"]
    }
}

fn tag(dicom: &Value) -> &str {
    dicom["spec"]["image"].as_str().and_then(|image| image.rsplit(':').next()).unwrap_or_default()
}

#[test]
fn of_two_on_the_same_resources_the_younger_is_refused_and_says_who_has_them() {
    let timeline = vec![
        after(0, Action::Create(wants(NAME, "v2", None))),
        after(60, Action::Create(wants("another", "v3", None))),
    ];
    let told = tell(zones(&["a", "b"]), timeline, rival("another"), Ending::Held("ResourcesTaken".into()));
    assert_eq!(told.images(), [("a0", "v2"), ("b1", "v2")].into());
    assert_eq!(told.stamps(), [("a0".to_owned(), 1), ("b1".to_owned(), 1)].into(), "nobody duels");
    let (_, message) = told.said("another").pop().expect("words");
    assert!(message.contains(" and one more belong to ServiceImage dicom, which is older"), "{message}");
    assert_eq!(told.status()["tierStatus"][0]["taken"], 2);
}

#[test]
fn the_younger_takes_over_when_the_older_is_deleted() {
    let timeline = vec![
        after(0, Action::Create(wants(NAME, "v2", None))),
        after(2, Action::Create(wants("another", "v3", None))),
        after(60, Action::Delete(subject())),
    ];
    let told = tell(zones(&["a", "b"]), timeline, rival("another"), Ending::Ready);
    assert_eq!(told.images(), [("a0", "v3"), ("b1", "v3")].into());
    assert_eq!(told.stamps(), [("a0".to_owned(), 2), ("b1".to_owned(), 2)].into());
}

#[test]
fn of_two_of_one_second_the_first_by_name_has_them() {
    let both = |first: &str, second: &str| {
        let timeline = vec![
            after(0, Action::Create(wants(first, "v2", None))),
            after(0, Action::Create(wants(second, "v2", None))),
        ];
        tell(zones(&["a"]), timeline, rival("m"), Ending::Held("ResourcesTaken".into()))
    };
    both("l", "m");
    both("m", "l");
}

#[test]
fn two_with_selectors_that_nobody_matches_both_of_work_side_by_side() {
    let timeline = vec![
        after(0, Action::Create(wants(NAME, "v2", Some("zone in (a, c)")))),
        after(2, Action::Create(wants("another", "v3", Some("zone=b,zone!=a")))),
    ];
    let told = tell(zones(&["a", "b", "c"]), timeline, rival("another"), Ending::Ready);
    assert_eq!(told.images(), [("a0", "v2"), ("b1", "v3"), ("c2", "v2")].into());
    assert_eq!(told.said(NAME).pop().map(|(reason, _)| reason).as_deref(), Some("UpToDate"));
}

#[test]
fn a_resource_that_both_select_belongs_to_the_older_and_the_rest_goes_on() {
    let timeline = vec![
        after(0, Action::Create(wants(NAME, "v2", Some("zone=a")))),
        after(2, Action::Create(wants("another", "v3", None))),
    ];
    let told = tell(zones(&["a", "b"]), timeline, rival("another"), Ending::Held("ResourcesTaken".into()));
    assert_eq!(told.images(), [("a0", "v2"), ("b1", "v3")].into());
    let (_, message) = told.said("another").pop().expect("words");
    assert!(message.contains("clinic/a0 belongs to ServiceImage dicom"), "{message}");
}

#[test]
fn one_that_changes_its_labels_changes_hands() {
    let relabel = Action::Patch { target: one("b1"), patch: json!({"metadata": {"labels": {"zone": "a"}}}) };
    let timeline = vec![
        after(0, Action::Create(wants(NAME, "v2", Some("zone=a")))),
        after(2, Action::Create(wants("another", "v3", None))),
        after(60, relabel),
    ];
    let told = tell(zones(&["a", "b"]), timeline, subject(), Ending::Ready);
    assert_eq!(told.images(), [("a0", "v2"), ("b1", "v2")].into());
    assert_eq!(told.stamps()["b1"], 2);
}

fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| entry["manager"].as_str())
        .filter(|name| name.starts_with("windlass-stamp"))
        .collect()
}

#[test]
fn another_path_leaves_what_is_at_the_old_one() {
    let elsewhere =
        Action::Patch { target: subject(), patch: json!({"spec": {"target": {"imagePath": ".spec.sidecar"}}}) };
    let timeline = vec![after(0, Action::Create(wants(NAME, "v2", None))), after(60, elsewhere)];
    let told = tell(zones(&["a"]), timeline, subject(), Ending::Ready);
    let dicom = told.dicoms()["a0"];
    assert_eq!((&dicom["spec"]["image"], &dicom["spec"]["sidecar"]), (&json!(image("v2")), &json!(image("v2"))));
    assert_eq!(managers(dicom).len(), 2, "each path has its own: {:?}", managers(dicom));
}

#[test]
fn one_that_is_created_anew_is_another_and_removes_nothing() {
    let mut other = wants(NAME, "v3", None);
    other["spec"]["target"]["imagePath"] = json!(".spec.sidecar");
    let timeline = vec![
        after(0, Action::Create(wants(NAME, "v2", None))),
        after(60, Action::Delete(subject())),
        after(5, Action::Create(other)),
    ];
    let told = tell(zones(&["a"]), timeline, subject(), Ending::Ready);
    let dicom = told.dicoms()["a0"];
    assert_eq!((&dicom["spec"]["image"], &dicom["spec"]["sidecar"]), (&json!(image("v2")), &json!(image("v3"))));
    assert_eq!(managers(dicom).len(), 2);
    let stamped = dicom["metadata"]["annotations"]["windlass.dev/stamped"].as_str().unwrap_or_default();
    let uid = told.outcome.subject["metadata"]["uid"].as_str().expect("a uid");
    assert!(stamped.contains(uid), "{stamped}");
}

/// What an operator wrote before each ServiceImage had a manager of its own; then the service.
fn stamped_before(seat: Seat) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let kind = ApiResource::erase::<dicom::Dicom>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(seat.client.clone(), NAMESPACE, &kind);
        let stamped = json!({"image": image("v1"), "at": seat.clock.now(), "round": 1}).to_string();
        let applied = json!({
            "apiVersion": "examples.windlass.dev/v1", "kind": "Dicom",
            "metadata": {"name": "a0", "annotations": {"windlass.dev/stamped": stamped}},
            "spec": {"image": image("v1"), "sidecar": "written earlier"},
        });
        let params = PatchParams::apply("windlass-stamp").force();
        api.patch("a0", &params, &Patch::Apply(&applied)).await.expect("applied");
        service(seat).await;
    })
}

#[test]
fn what_was_stamped_before_there_was_a_manager_for_each_keeps_its_fields() {
    let timeline = vec![after(0, Action::Create(wants(NAME, "v2", None)))];
    let told = tell_beside(zones(&["a"]), timeline, subject(), Ending::Ready, &[], &stamped_before);
    let dicom = told.dicoms()["a0"];
    let expected = (&json!(image("v2")), &json!("written earlier"));
    assert_eq!((&dicom["spec"]["image"], &dicom["spec"]["sidecar"]), expected);
}

/// The first of three can't be written.
fn three(halts: bool) -> Vec<Value> {
    let mut dicoms = zones(&["a", "b", "c"]);
    for dicom in &mut dicoms {
        dicom["spec"]["failureHaltsUpdate"] = json!(halts);
    }
    dicoms
}

#[rstest]
#[case::annotations_at_their_limit(fill("a0", true), "Too long")]
#[case::a_policy_that_denies_stamps(freeze("a0", &[IMAGE]), "denied request: /spec/image may not change")]
#[case::one_that_denies_everything(freeze("a0", &[IMAGE, "/metadata/annotations"]), "denied request")]
#[case::a_webhook_that_hangs(webhook("a0", Some(Webhook::Hangs), ""), "no answer in time")]
#[case::a_webhook_that_hangs_at_stamps(webhook("a0", Some(Webhook::Hangs), STAMP), "no answer in time")]
#[case::a_webhook_that_goes_wrong(webhook("a0", Some(Webhook::Breaks), ""), "replace operation does not apply")]
#[case::a_webhook_that_goes_wrong_at_stamps(webhook("a0", Some(Webhook::Breaks), STAMP), "does not apply")]
fn one_that_can_not_be_written_harms_only_itself(#[case] bad: Action, #[case] why: &str) {
    let later = Action::Patch { target: subject(), patch: json!({"spec": {"tiers": [tier("", "v3", 0)]}}) };
    let timeline = vec![after(0, bad), after(1, Action::Create(wants(NAME, "v2", None))), after(60, later)];
    let told = tell(three(false), timeline, subject(), Ending::Ready);
    assert_eq!(told.images(), [("a0", "v1"), ("b1", "v3"), ("c2", "v3")].into(), "later changes arrive, too");
    let status = told.status();
    assert_eq!((&status["tierStatus"][0]["ignored"], &status["refused"][0]["name"]), (&json!(1), &json!("a0")));
    let message = status["refused"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains(why), "{message}");
}

#[test]
fn e4_one_that_can_not_be_written_halts_where_it_says_so_and_goes_on_by_itself() {
    let timeline = vec![
        after(0, fill("a0", true)),
        after(1, Action::Create(wants(NAME, "v2", None))),
        after(120, fill("a0", false)),
    ];
    let told = tell(three(true), timeline, subject(), Ending::Ready);
    assert_eq!(told.images(), [("a0", "v2"), ("b1", "v2"), ("c2", "v2")].into());
    let said = told.said(NAME);
    let refused: Vec<&String> =
        said.iter().filter(|(reason, _)| reason == "StampRefused").map(|(_, message)| message).collect();
    assert!(refused.first().is_some_and(|message| message.contains("clinic/a0 can't be given its image")), "{said:?}");
    assert_eq!(said.last().map(|(reason, _)| reason.as_str()), Some("UpToDate"), "{said:?}");
}

/// Writes to one are not answered, and a limit of one at once is there: it has its time, then it counts as failed and the others go on.
fn one_of_a_narrow_tier_is_never_answered() {
    let mut wanted = wants(NAME, "v2", None);
    wanted["spec"]["tiers"][0]["maxInFlight"] = json!(1);
    let bad = webhook("a0", Some(Webhook::Hangs), "");
    let timeline = vec![after(0, bad), after(1, Action::Create(wanted))];
    let told = tell(three(false), timeline, subject(), Ending::Ready);
    assert_eq!(told.images(), [("a0", "v1"), ("b1", "v2"), ("c2", "v2")].into());
    assert_eq!(reserved(told.status()), ["a0"], "until a touch of it is answered");
}

fn reserved(status: &Value) -> Vec<&str> {
    let batch = status["batch"].as_array().map(Vec::as_slice).unwrap_or_default();
    batch.iter().filter_map(|one| one["name"].as_str()).collect()
}

#[test]
fn e4_one_that_is_never_answered_does_not_hold_a_narrow_tier_up() {
    one_of_a_narrow_tier_is_never_answered();
}

#[test]
fn e4_one_that_is_answered_again_gets_its_image() {
    let mut wanted = wants(NAME, "v2", None);
    wanted["spec"]["tiers"][0]["progressDeadline"] = json!("2m");
    let timeline = vec![
        after(0, webhook("a0", Some(Webhook::Hangs), "")),
        after(1, Action::Create(wanted)),
        after(300, webhook("a0", None, "")),
    ];
    let told = tell(three(true), timeline, subject(), Ending::Ready);
    assert_eq!(told.images(), [("a0", "v2"), ("b1", "v2"), ("c2", "v2")].into());
    assert_eq!(reserved(told.status()), [""; 0]);
    let said = told.said(NAME);
    assert!(said.iter().any(|(reason, words)| reason == "StampRefused" && words.contains("clinic/a0")), "{said:?}");
}

/// Nothing that is written to any of them is answered for a while: that is nobody's failure.
#[test]
fn e4_an_api_server_that_answers_nothing_for_a_while_is_nobodys_failure() {
    let all = ["a0", "b1", "c2"];
    let mut timeline: Vec<Moment> = all.iter().map(|name| after(0, webhook(name, Some(Webhook::Breaks), ""))).collect();
    timeline.push(after(1, Action::Create(wants(NAME, "v2", None))));
    let mends =
        all.iter().enumerate().map(|(number, name)| (if number == 0 { 300 } else { 0 }, webhook(name, None, "")));
    timeline.extend(mends.map(|(seconds, mend)| after(seconds, mend)));
    let told = tell(three(false), timeline, subject(), Ending::Ready);
    assert_eq!(told.images(), [("a0", "v2"), ("b1", "v2"), ("c2", "v2")].into());
    let resource = subject().resource;
    let states: Vec<&Value> = told.writes(&resource).filter_map(|change| change.after.as_deref()).collect();
    let failed = |state: &&&Value| state["status"]["tierStatus"][0]["ignored"].as_i64().is_some_and(|count| count > 0);
    assert_eq!(states.iter().filter(failed).count(), 0, "nobody failed");
    let named = states.iter().any(|state| state["status"]["refused"].as_array().is_some_and(|all| all.len() == 3));
    assert!(named, "and they are named");
}

/// A stamp gets no answer, and a policy refuses its touch. The policy goes, and the stamp lands when nobody waits for it any more.
fn a_touch_is_refused_while_a_stamp_may_land() {
    let mut wanted = wants(NAME, "v2", None);
    wanted["spec"]["tiers"][0]["maxInFlight"] = json!(1);
    let reference = tell(three(false), vec![after(1, Action::Create(wanted.clone()))], subject(), Ending::Ready);
    let first = "b1";
    let (created, stamped) = (reference.first_write(&subject()), reference.first_write(&one(first)));
    let frozen = |fields: &[&str]| freeze(first, fields);
    let timeline = vec![
        after(1, Action::Create(wanted)),
        Moment {
            when: When::After(stamped.duration_since(created).unsigned_abs() + Duration::from_secs(2)),
            action: frozen(&[IMAGE, "/metadata/annotations"]),
        },
        after(5, frozen(&[])),
    ];
    let strikes = [(first_stamp(&reference), Strike::Late(Duration::from_secs(8)))];
    let told = tell_beside(three(false), timeline, subject(), Ending::Ready, &strikes, &service);
    assert_eq!(told.images(), [("a0", "v2"), ("b1", "v2"), ("c2", "v2")].into());
}

#[test]
fn h1_a_touch_that_is_refused_settles_no_stamp_that_may_still_land() {
    a_touch_is_refused_while_a_stamp_may_land();
}

/// Whoever stamps it stands still, and whoever takes over can't touch it: it goes on with the others. What was sent lands late.
fn a_late_stamp_of_one_that_could_not_be_touched() {
    let timeline = |then: Vec<Moment>| {
        let mut timeline = vec![after(1, Action::Create(wants(NAME, "v2", None)))];
        timeline.extend(then);
        timeline
    };
    let alone = || three(false).into_iter().take(1).collect::<Vec<_>>();
    let at = first_stamp(&tell(alone(), timeline(vec![]), subject(), Ending::Ready));
    let strikes = [(at, Strike::Freeze(Duration::from_secs(50)))];
    let then = vec![after(20, webhook("a0", Some(Webhook::Hangs), "")), after(39, webhook("a0", None, ""))];
    let told = tell_beside(alone(), timeline(then), subject(), Ending::Ready, &strikes, &service);
    assert_eq!(told.images(), [("a0", "v2")].into());
}

#[test]
fn h1_one_that_can_not_be_touched_stays_reserved_for_a_successor() {
    a_late_stamp_of_one_that_could_not_be_touched();
}

/// It is replaced by one without an image while no ServiceImage is there, and the next one of that name has another uid.
fn one_that_lost_the_image_of_another_service_image() {
    let mut next = wants(NAME, "v3", None);
    next["spec"]["tiers"][0]["maxInFlight"] = json!(1);
    let gone = |action| Moment { when: When::Gone(subject(), Duration::from_secs(1)), action };
    let timeline = vec![
        after(1, Action::Create(wants(NAME, "v2", None))),
        after(300, Action::Delete(subject())),
        gone(Action::Patch { target: one("c2"), patch: json!({"spec": {"image": null}}) }),
        after(10, Action::Create(next)),
    ];
    let told = tell_beside(three(false), timeline, subject(), Ending::Ready, &[], &service_without_deployed);
    assert_eq!(told.images(), [("a0", "v3"), ("b1", "v3"), ("c2", "v3")].into());
}

#[test]
fn h2_one_that_lost_the_image_of_another_service_image_waits_for_its_turn() {
    one_that_lost_the_image_of_another_service_image();
}

#[test]
fn one_that_is_deleted_stays_while_a_write_to_a_resource_may_still_arrive() {
    let timeline = vec![
        after(0, webhook("a0", Some(Webhook::Hangs), "")),
        after(1, Action::Create(wants(NAME, "v2", None))),
        after(60, Action::Delete(subject())),
        after(60, webhook("a0", None, "")),
        Moment { when: When::Gone(subject(), Duration::from_secs(1)), action: Action::Create(wants(NAME, "v3", None)) },
    ];
    let told = tell(three(false), timeline, subject(), Ending::Ready);
    assert_eq!(told.images(), [("a0", "v3"), ("b1", "v3"), ("c2", "v3")].into());
    let said = told.said(NAME);
    let kept = said.iter().find(|(_, words)| words.contains("may still be on its way"));
    assert!(kept.is_some_and(|(reason, words)| reason == "StampRefused" && words.contains("clinic/a0")), "{said:?}");
}

/// Which of an operator's calls is its first stamp.
fn first_stamp(told: &Told) -> u64 {
    let is_stamp = |call: &String| call.starts_with("PATCH") && call.contains("/dicoms/");
    told.outcome.calls.iter().position(is_stamp).expect("a stamp") as u64
}

#[rstest]
#[case::the_touch(&[TOUCHED], "v3")]
#[case::the_stamp(&[IMAGE], "v1")]
#[case::both(&[IMAGE, TOUCHED], "v1")]
#[case::every_annotation(&["/metadata/annotations"], "v1")]
fn h1_a_touch_that_is_refused_is_not_the_end_and_no_late_stamp_lands(#[case] frozen: &[&str], #[case] tag: &str) {
    let dicoms = || {
        let mut dicoms = zones(&["a"]);
        dicoms[0]["spec"]["failureHaltsUpdate"] = json!(false);
        dicoms
    };
    // That the late one misses is the judge's to say. A policy comes while the stamp is on its way, and another image is wanted when somebody
    // else has taken over.
    let timeline = |frozen: &[&str]| {
        let other = Action::Patch { target: subject(), patch: json!({"spec": {"tiers": [tier("", "v3", 0)]}}) };
        vec![after(1, Action::Create(wants(NAME, "v2", None))), after(20, freeze("a0", frozen)), after(60, other)]
    };
    let at = first_stamp(&tell(dicoms(), timeline(&[]), subject(), Ending::Ready));
    let strikes = [(at, Strike::FreezeUntilTakenOver)];
    let told = tell_beside(dicoms(), timeline(frozen), subject(), Ending::Ready, &strikes, &service);
    assert_eq!(told.images(), [("a0", tag)].into());
}

/// A policy lets nobody change what a ServiceImage has reserved, or lets them again.
fn batch_frozen(yes: bool) -> Action {
    let fields = if yes { vec!["/status/batch".to_owned()] } else { Vec::new() };
    Action::FreezeFields { target: subject(), fields }
}

/// Whoever reserved it is gone, and what is reserved can't be taken out of the status any more.
fn reserved_for_good(then: Vec<Moment>, ending: Ending) -> Told {
    let timeline = |then: Vec<Moment>| {
        let mut timeline = vec![after(1, Action::Create(wants(NAME, "v2", None)))];
        timeline.extend(then);
        timeline
    };
    let at = first_stamp(&tell(zones(&["a"]), timeline(vec![]), subject(), Ending::Ready));
    let strikes = [(at, Strike::KillBefore)];
    tell_beside(zones(&["a"]), timeline(then), subject(), ending, &strikes, &service)
}

#[test]
fn one_that_is_deleted_is_let_go_once_nothing_is_on_its_way_whatever_its_status_takes() {
    let then = vec![
        after(15, batch_frozen(true)),
        after(0, Action::Delete(subject())),
        Moment { when: When::Gone(subject(), Duration::from_secs(1)), action: batch_frozen(false) },
        after(0, Action::Create(wants(NAME, "v3", None))),
    ];
    let told = reserved_for_good(then, Ending::Ready);
    assert_eq!(told.images(), [("a0", "v3")].into());
}

#[test]
fn a_record_that_is_refused_after_a_take_over_is_told() {
    let told = reserved_for_good(vec![after(15, batch_frozen(true))], Ending::Held("ApiServerRefused".into()));
    let (_, message) = told.said(NAME).pop().expect("words");
    assert!(message.contains("/status/batch may not change"), "{message}");
}

#[test]
fn bugs_that_only_others_bring_to_light_are_caught() {
    use crate::support::is_noticed;
    use windlass_plan::bug::Bug;
    is_noticed(Bug::SharedFieldManager, another_path_leaves_what_is_at_the_old_one);
    is_noticed(Bug::UnansweredStopsAll, one_of_a_narrow_tier_is_never_answered);
    is_noticed(Bug::UnsettledForgotten, one_of_a_narrow_tier_is_never_answered);
    is_noticed(Bug::UnsettledForgotten, a_late_stamp_of_one_that_could_not_be_touched);
    is_noticed(Bug::UnansweredForEver, one_of_a_narrow_tier_is_never_answered);
    is_noticed(Bug::RefusalSettles, a_touch_is_refused_while_a_stamp_may_land);
    is_noticed(Bug::LostImageForgotten, one_that_lost_the_image_of_another_service_image);
    is_noticed(Bug::RefusedStopsAll, || one_that_can_not_be_written_harms_only_itself(fill("a0", true), "Too long"));
}
