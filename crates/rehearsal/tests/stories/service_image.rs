//! ServiceImages on the embedded cluster, one test for each requirement that can be seen there (E1–E13).

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    operator,
    stamping::{
        self, PATIENCE, dicom, image, judge, objects, reference, reference_service, service, service_image, subject,
        tier,
    },
    trial::{self, Ending, Outcome, Scenario},
};
use windlass_sim::{
    api::Api,
    clock::Clock,
    faults::Strike,
    harness::{self, Program},
    journal::{Event, Journal, Verb},
    scenario::{Action, Moment, Subject, When},
    world::ImageBehaviour,
};

fn after(seconds: u64, action: Action) -> Moment {
    Moment { when: When::After(Duration::from_secs(seconds)), action }
}

fn patch(name: &str, patch: Value) -> Action {
    Action::Patch { target: stamping::one(name), patch }
}

fn spec(patch: &Value) -> Action {
    Action::Patch { target: subject(), patch: json!({ "spec": patch }) }
}

/// The source document's example: everybody on v1, earlyAccess on v2.
fn document() -> Vec<Value> {
    let dicoms = [
        dicom("a", "", Some("v1")),
        dicom("b", "unheard-of", Some("v1")),
        dicom("e", "earlyAccess", Some("v2")),
        dicom("f", "earlyAccess", Some("v2")),
    ];
    objects(dicoms, service_image(json!([tier("", "v2", 0), tier("earlyAccess", "v3", 1)])))
}

/// Dicoms serve before the ServiceImage comes.
fn run_until(objects: Vec<Value>, timeline: Vec<Moment>, ending: Ending) -> Outcome {
    run_beside(objects, timeline, ending, &service)
}

/// The same with another controller behind them.
fn run_beside(objects: Vec<Value>, mut timeline: Vec<Moment>, ending: Ending, service: &Program) -> Outcome {
    let mut objects = objects;
    let wanted = objects.pop().expect("a ServiceImage");
    timeline.insert(0, after(15, Action::Create(wanted)));
    let scenario = Scenario { objects, timeline, ending, operators: 1, limit: Duration::from_mins(20), ..reference(1) };
    let outcome = trial::run_beside(&scenario, &[], &operator, Some(service)).expect("a runtime");
    assert_eq!(judge(&outcome.journal, PATIENCE).violations, Vec::<String>::new());
    assert!(outcome.settled, "{}", outcome.subject["status"]);
    outcome
}

fn run(objects: Vec<Value>, timeline: Vec<Moment>) -> Outcome {
    run_until(objects, timeline, Ending::Ready)
}

/// The last state of every Dicom.
fn dicoms(outcome: &Outcome) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for entry in &outcome.journal {
        let Event::Write(change) = &entry.event else { continue };
        if change.resource == stamping::one("").resource {
            match (&change.after, change.verb) {
                (_, Verb::Delete) | (None, _) => all.remove(&change.name),
                (Some(object), _) => all.insert(change.name.clone(), (**object).clone()),
            };
        }
    }
    all
}

fn images(outcome: &Outcome) -> BTreeMap<String, String> {
    let image = |object: &Value| object.pointer("/spec/image").and_then(Value::as_str).unwrap_or_default().to_owned();
    dicoms(outcome).iter().map(|(name, object)| (name.clone(), image(object))).collect()
}

/// All states of the ServiceImage.
fn states(outcome: &Outcome) -> Vec<Value> {
    let states = outcome.journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == subject().resource => change.after.as_deref().cloned(),
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    states.collect()
}

fn condition(object: &Value, type_: &str) -> String {
    let conditions = object["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|one| one["type"] == type_);
    found.and_then(|one| one["status"].as_str()).unwrap_or("absent").to_owned()
}

/// Why it waits.
fn reason(status: &Value) -> String {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|one| one["type"] == "Ready");
    ready.and_then(|one| one["reason"].as_str()).unwrap_or_default().to_owned()
}

fn tier_status<'a>(state: &'a Value, name: &str) -> &'a Value {
    let tiers = state["status"]["tierStatus"].as_array().map(Vec::as_slice).unwrap_or_default();
    tiers.iter().find(|tier| tier["upgradeTier"] == name).unwrap_or(&Value::Null)
}

/// How often we wrote an image on this one.
fn stamps(outcome: &Outcome, name: &str) -> usize {
    let image = |object: &Option<std::sync::Arc<Value>>| {
        object.as_deref().and_then(|object| object.pointer("/spec/image")).cloned()
    };
    let ours = |event: &Event| match event {
        Event::Write(change) => {
            trial::is_ours(&change.user)
                && change.resource == stamping::one("").resource
                && change.name == name
                && image(&change.before) != image(&change.after)
        }
        Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => false,
    };
    outcome.journal.iter().filter(|entry| ours(&entry.event)).count()
}

#[test]
fn e1_the_documents_example_passes_through_the_documents_status() {
    let outcome = run(document(), vec![]);
    let like_the_document = |state: &Value| {
        let (plain, early) = (tier_status(state, ""), tier_status(state, "earlyAccess"));
        condition(&state["status"], "Complete") == "False"
            && condition(&state["status"], "InProgress") == "True"
            && state["status"]["currentPriority"] == 1
            && plain["newDeploymentImage"] == image("v1")
            && (condition(plain, "Complete"), condition(plain, "InProgress")) == ("False".into(), "False".into())
            && early["newDeploymentImage"] == image("v2")
            && (condition(early, "Complete"), condition(early, "InProgress")) == ("False".into(), "True".into())
    };
    assert!(states(&outcome).iter().any(like_the_document), "{:#?}", states(&outcome));
    let end = &outcome.subject;
    assert_eq!(condition(&end["status"], "Complete"), "True");
    assert_eq!(end["status"]["observedGeneration"], end["metadata"]["generation"]);
    assert_eq!(tier_status(end, "")["newDeploymentImage"], image("v2"));
    assert_eq!(tier_status(end, "earlyAccess")["newDeploymentImage"], image("v3"));
    let expected = [("a", "v2"), ("b", "v2"), ("e", "v3"), ("f", "v3")];
    assert_eq!(images(&outcome), expected.map(|(name, tag)| (name.to_owned(), image(tag))).into());
}

#[test]
fn e2_a_tier_without_an_image_uses_the_default() {
    let dicoms = [dicom("a", "early", Some("v1"))];
    let outcome = run(objects(dicoms, service_image(json!([{"upgradeTier": "early"}]))), vec![]);
    assert_eq!(images(&outcome)["a"], image("v2"));
}

#[test]
fn e3_e4_a_failure_halts_what_comes_after_and_is_named() {
    let broken = service_image(json!([tier("", "v2", 0), tier("early", "v3-broken", 1)]));
    let dicoms = [dicom("a", "", Some("v1")), dicom("e", "early", Some("v1"))];
    let outcome = run_until(objects(dicoms, broken), vec![], Ending::Held("ResourceFailed".into()));
    assert_eq!(images(&outcome)["a"], image("v1"), "nobody below is touched");
    let message = outcome.subject.pointer("/status/conditions/2/message").and_then(Value::as_str).unwrap_or_default();
    assert!(message.contains("clinic/e failed: it can't run"), "{message}");
    assert_eq!(condition(&outcome.subject["status"], "Stalled"), "True");
}

#[test]
fn e4_a_failure_that_does_not_halt_is_counted_and_passed_by() {
    let broken = service_image(json!([tier("", "v2", 0), tier("early", "v3-broken", 1)]));
    let mut early = dicom("e", "early", Some("v1"));
    early["spec"]["failureHaltsUpdate"] = json!(false);
    let outcome = run(objects([dicom("a", "", Some("v1")), early], broken), vec![]);
    assert_eq!(images(&outcome)["a"], image("v2"));
    assert_eq!(tier_status(&outcome.subject, "early")["ignored"], 1);
}

#[test]
fn e4_a_manual_image_is_left_alone() {
    let mut objects = document();
    for object in objects.iter_mut().filter(|object| object["metadata"]["name"] == "e") {
        object["spec"]["manuallySpecifiedImage"] = json!(true);
    }
    let outcome = run(objects, vec![]);
    assert_eq!(images(&outcome)["e"], image("v2"));
    assert_eq!(tier_status(&outcome.subject, "earlyAccess")["manual"], 1);
}

#[test]
fn e5_a_new_one_gets_the_old_image_until_its_tier_is_done() {
    let mut objects = document();
    if let Some(wanted) = objects.last_mut() {
        wanted["spec"]["tiers"][1]["canary"] = json!([{"percent": 50, "soak": "2m"}]);
    }
    let early = after(30, Action::Create(dicom("n", "earlyAccess", None)));
    let late = after(400, Action::Create(dicom("m", "earlyAccess", None)));
    let outcome = run(objects, vec![early, late]);
    let first = outcome.journal.iter().find_map(|entry| match &entry.event {
        Event::Write(change) if change.name == "n" => {
            change.after.as_deref().and_then(|object| object.pointer("/spec/image")).cloned()
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    assert_eq!(first, Some(json!(image("v2"))), "the old one while the tier is on its way");
    assert_eq!((images(&outcome)["n"].clone(), images(&outcome)["m"].clone()), (image("v3"), image("v3")));
    assert_eq!(stamps(&outcome, "m"), 1, "the new one at once");
}

#[test]
fn e6_the_claim_is_on_the_service_image_before_anything_is_stamped() {
    let outcome = run(document(), vec![]);
    let first = states(&outcome).iter().find(|state| state.pointer("/status/operator").is_some()).cloned();
    let first = first.expect("a claim");
    assert_eq!(first.pointer("/status/operator/term"), Some(&json!(1)));
    assert!(first.pointer("/status/batch").is_none(), "nothing is reserved yet");
    for name in ["a", "b", "e", "f"] {
        assert_eq!(stamps(&outcome, name), 1);
    }
}

#[test]
fn e7_a_late_one_and_a_change_of_tier_take_a_tier_back() {
    let late = after(240, Action::Create(dicom("late", "earlyAccess", Some("v1"))));
    let moved = after(240, patch("a", json!({"metadata": {"labels": {"upgrade-tier": "earlyAccess"}}})));
    let outcome = run(document(), vec![late, moved]);
    assert_eq!((images(&outcome)["late"].clone(), images(&outcome)["a"].clone()), (image("v3"), image("v3")));
    let told: Vec<String> =
        states(&outcome).iter().map(|state| condition(tier_status(state, "earlyAccess"), "Complete")).collect();
    let mut changes = told.clone();
    changes.dedup();
    assert_eq!(changes.iter().filter(|state| *state == "True").count(), 3, "done three times: {changes:?}");
}

#[test]
fn e8_a_wait_right_after_an_edit_does_not_see_the_old_answer() {
    let outcome =
        run(document(), vec![after(240, spec(&json!({"paused": true}))), after(5, spec(&json!({"paused": false})))]);
    for state in states(&outcome) {
        for one in state["status"]["conditions"].as_array().into_iter().flatten() {
            // What kubectl compares: a condition speaks of a generation, and counts only for that one.
            assert!(one["observedGeneration"].is_i64() || one["reason"] == "NotSeen", "{one}");
        }
    }
}

#[test]
fn e9_the_reference_service_takes_a_fleet_along_with_real_deployments() {
    let outcome = run_beside(document(), vec![], Ending::Ready, &reference_service);
    let mut running = BTreeMap::new();
    for entry in &outcome.journal {
        if let Event::Write(change) = &entry.event
            && change.resource == "deployments.apps"
            && let Some(deployment) = change.after.as_deref()
        {
            let image = deployment.pointer("/spec/template/spec/containers/0/image").cloned();
            let available = deployment.pointer("/status/availableReplicas").cloned();
            running.insert(change.name.clone(), (image, available));
        }
    }
    let expected = [("a", "v2"), ("b", "v2"), ("e", "v3"), ("f", "v3")];
    let expected = expected.map(|(name, tag)| (name.to_owned(), (Some(json!(image(tag))), Some(json!(1)))));
    assert_eq!(running, expected.into());
}

#[test]
fn e11_another_image_half_way_supersedes_the_first() {
    let mut objects = document();
    if let Some(wanted) = objects.last_mut() {
        wanted["spec"]["tiers"][1]["maxInFlight"] = json!(1);
    }
    let tiers = json!([tier("", "v2", 0), tier("earlyAccess", "v4", 1)]);
    let outcome = run(objects, vec![after(4, spec(&json!({ "tiers": tiers })))]);
    assert_eq!((images(&outcome)["e"].clone(), images(&outcome)["f"].clone()), (image("v4"), image("v4")));
    let both = stamps(&outcome, "e") + stamps(&outcome, "f");
    assert!(both <= 3, "one of them never got the image that was dropped: {both}");
}

/// One that nobody waits for below, and this many that shall have v3, beside the reference service.
fn archives(count: usize) -> Vec<Value> {
    let early = (0..count).map(|number| dicom(&format!("e{number}"), "early", Some("v1")));
    let tiers = json!([tier("", "v2", 0), tier("early", "v3", 1)]);
    objects([dicom("a", "", Some("v1"))].into_iter().chain(early), service_image(tiers))
}

fn behaves(tag: &str, behaviour: ImageBehaviour) -> Action {
    Action::Image(image(tag), behaviour)
}

/// What it said with this reason, each time in other words.
fn messages(outcome: &Outcome, reason: &str) -> Vec<String> {
    let conditions = |state: &Value| state["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let said = states(outcome).into_iter().flat_map(|state| conditions(&state));
    let said = said.filter(|one| one["type"] == "Ready" && one["reason"] == reason);
    let mut said: Vec<String> = said.filter_map(|one| one["message"].as_str().map(str::to_owned)).collect();
    said.dedup();
    said
}

/// How long after its creation the ServiceImage was Stalled, if it ever was.
fn stalled_after(outcome: &Outcome) -> Option<SignedDuration> {
    let states = outcome.journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == subject().resource => Some((entry.at, change.after.as_deref()?)),
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    let mut states = states.collect::<Vec<_>>().into_iter();
    let created = states.next()?.0;
    let stalled = states.find(|(_, state)| condition(&state["status"], "Stalled") == "True")?;
    Some(stalled.0.duration_since(created))
}

#[test]
fn e12_an_image_that_nobody_can_pull_stalls_long_before_the_deadline() {
    let refused = vec![after(0, behaves("v3", ImageBehaviour::CannotPull))];
    let outcome = run_beside(archives(3), refused, Ending::Held("ImagePullFailed".into()), &reference_service);
    let said = messages(&outcome, "ImagePullFailed").pop().expect("a message");
    let all = format!("tier early: all (3 of 3 that were looked at) can't pull {}; such as pod e", image("v3"));
    assert!(said.starts_with(&all), "{said}");
    assert!(
        said.contains(" of clinic/e") && said.contains(": container dicom: ") && said.contains("not found"),
        "{said}"
    );
    let took = stalled_after(&outcome).expect("it stalled");
    assert!(took < SignedDuration::from_mins(1), "{took}, and a resource may take ten minutes");
    assert_eq!(images(&outcome)["a"], image("v1"), "nobody below is touched");
}

#[test]
fn e12_it_goes_on_by_itself_when_the_image_is_there() {
    let timeline =
        vec![after(0, behaves("v3", ImageBehaviour::CannotPull)), after(120, behaves("v3", ImageBehaviour::Works))];
    let mut objects = archives(3);
    if let Some(wanted) = objects.last_mut() {
        wanted["spec"]["tiers"][1]["maxInFlight"] = json!(1);
    }
    let outcome = run_beside(objects, timeline, Ending::Ready, &reference_service);
    assert!(!messages(&outcome, "ImagePullFailed").is_empty());
    assert!(stalled_after(&outcome).is_some());
    assert_eq!((images(&outcome)["a"].clone(), images(&outcome)["e2"].clone()), (image("v2"), image("v3")));
}

#[test]
fn e12_it_goes_on_with_another_image() {
    let tiers = json!([tier("", "v2", 0), tier("early", "v4", 1)]);
    let timeline = vec![after(0, behaves("v3", ImageBehaviour::BadName)), after(60, spec(&json!({ "tiers": tiers })))];
    let outcome = run_beside(archives(2), timeline, Ending::Ready, &reference_service);
    assert!(!messages(&outcome, "ImageUnusable").is_empty(), "{:?}", states(&outcome).last());
    assert_eq!(images(&outcome)["e1"], image("v4"));
}

#[test]
fn e12_a_successor_looks_for_itself_before_it_changes_anybody() {
    let mut objects = archives(4);
    if let Some(wanted) = objects.last_mut() {
        wanted["spec"]["tiers"][1]["maxInFlight"] = json!(1);
    }
    // The limit goes, and so does the operator that knew: without a look of its own the next one would change everybody.
    let timeline = vec![
        after(0, behaves("v3", ImageBehaviour::CannotPull)),
        after(60, spec(&json!({"tiers": [tier("", "v2", 0), tier("early", "v3", 1)]}))),
        after(0, Action::KillOperator(0)),
        after(60, spec(&json!({"paused": false}))),
    ];
    let outcome = run_beside(objects, timeline, Ending::Held("ImagePullFailed".into()), &reference_service);
    let stamped = images(&outcome).values().filter(|image| **image == self::image("v3")).count();
    assert_eq!(stamped, 1, "{:?}", images(&outcome));
}

#[test]
fn e12_some_who_cannot_pull_are_told_from_all_and_halt_nothing() {
    let pullable = |yes| Action::Pullable { node: "node-1".into(), image: image("v3"), yes };
    let outcome = run_beside(
        archives(6),
        vec![after(0, pullable(false)), after(120, pullable(true))],
        Ending::Ready,
        &reference_service,
    );
    let said = messages(&outcome, "AwaitingResources");
    let some = format!("that were looked at) can't pull {}, and ", image("v3"));
    assert!(said.iter().any(|said| said.contains("; some (") && said.contains(&some)), "{said:#?}");
    assert_eq!(stalled_after(&outcome), None);
}

#[rstest]
#[case::shown(true, "; last line of its log: \"fatal: this build is broken\"")]
#[case::not_shown(false, "; its log: kubectl logs -n clinic e")]
fn e12_h41_a_process_that_keeps_ending_is_told_with_its_log_where_that_is_allowed(
    #[case] shown: bool,
    #[case] words: &str,
) {
    let mut objects = archives(2);
    if let Some(wanted) = objects.last_mut() {
        wanted["spec"]["showLogs"] = json!(shown);
    }
    let crashes = vec![after(0, behaves("v3", ImageBehaviour::Crashes))];
    let outcome = run_beside(objects, crashes, Ending::Held("CrashLooping".into()), &reference_service);
    let said = messages(&outcome, "CrashLooping").pop().expect("a message");
    assert!(said.starts_with("tier early: all (2 of 2 that were looked at) can't keep "), "{said}");
    assert!(said.contains("exit code 1") && said.contains(words), "{said}");
    let everything: Vec<String> = states(&outcome).iter().map(ToString::to_string).collect();
    assert_eq!(everything.iter().any(|state| state.contains("this build is broken")), shown);
    let took = stalled_after(&outcome).expect("it stalled");
    assert!(took < SignedDuration::from_mins(5), "{took}");
}

#[test]
fn e12_a_kind_whose_pods_nobody_can_find_waits_for_its_deadline() {
    let mut objects = archives(2);
    if let Some(wanted) = objects.last_mut() {
        wanted["spec"]["target"]["podSelector"] = json!("self.status.labels");
    }
    let refused = vec![after(0, behaves("v3", ImageBehaviour::CannotPull))];
    let outcome = run_beside(objects, refused, Ending::Held("ResourceFailed".into()), &reference_service);
    assert_eq!(messages(&outcome, "ImagePullFailed"), Vec::<String>::new());
    let everything: Vec<String> = states(&outcome).iter().map(ToString::to_string).collect();
    assert!(!everything.iter().any(|state| state.contains("that were looked at")));
}

#[test]
fn e13_a_field_that_somebody_sets_back_is_reported_and_not_fought_over() {
    let meddle: Vec<Moment> = (0..20).map(|_| after(20, patch("a", json!({"spec": {"image": image("v1")}})))).collect();
    let outcome = run_until(document(), meddle, Ending::Held("FieldContested".into()));
    assert_eq!(stamps(&outcome, "a"), 3);
}

#[test]
fn h41_a_kind_that_nobody_allowed_is_not_touched() {
    let mut objects = document();
    if let Some(wanted) = objects.last_mut() {
        wanted["spec"]["target"] = json!({"group": "apps", "version": "v1", "kind": "StatefulSet"});
    }
    run_until(objects, vec![], Ending::Held("TargetNotAllowed".into()));
}

#[test]
fn e13_only_the_namespaces_with_these_labels_are_changed() {
    let mut wanted = service_image(json!([tier("", "v2", 0)]));
    wanted["spec"]["target"]["namespaceSelector"] = json!("team=imaging");
    let clinic = Subject { resource: "namespaces".into(), namespace: String::new(), name: stamping::NAMESPACE.into() };
    let label = Action::Patch { target: clinic, patch: json!({"metadata": {"labels": {"team": "imaging"}}}) };
    let objects = objects([dicom("a", "", Some("v1")), dicom("b", "", Some("v1"))], wanted);
    let outcome = run(objects, vec![after(60, label)]);
    assert_eq!(images(&outcome), [("a", "v2"), ("b", "v2")].map(|(name, tag)| (name.to_owned(), image(tag))).into());
    let position = |is: &dyn Fn(&windlass_sim::journal::Change) -> bool| {
        outcome.journal.iter().position(|entry| matches!(&entry.event, Event::Write(change) if is(change)))
    };
    let labelled = position(&|change| change.resource == "namespaces" && change.verb == Verb::Update);
    let stamped = position(&|change| trial::is_ours(&change.user) && change.resource == stamping::one("").resource);
    assert!(labelled.is_some() && labelled < stamped, "{labelled:?} {stamped:?}");
}

#[test]
fn a_kind_whose_definition_appears_later_is_looked_after_then() {
    let mut objects = document();
    let at = objects.iter().position(|object| object["metadata"]["name"] == "dicoms.examples.windlass.dev");
    let definition = objects.remove(at.expect("the definition"));
    objects.retain(|object| object["kind"] != "Dicom");
    let timeline = vec![after(30, Action::Create(definition)), after(5, Action::Create(dicom("a", "", Some("v1"))))];
    let outcome = run(objects, timeline);
    assert_eq!(images(&outcome)["a"], image("v2"));
    let held = states(&outcome).iter().any(|state| {
        state["status"]["conditions"].as_array().into_iter().flatten().any(|one| one["reason"] == "TargetNotFound")
    });
    assert!(held);
}

#[test]
fn one_that_is_deleted_half_way_holds_nobody_up() {
    let gone = Action::Delete(stamping::one("e"));
    let outcome = run(document(), vec![after(1, gone)]);
    assert!(!dicoms(&outcome).contains_key("e"));
    assert_eq!(images(&outcome)["a"], image("v2"));
}

/// The definition of Dicoms, which takes no image longer than this; none for any.
fn definition(longest: Option<usize>) -> Value {
    let mut definition = objects([], Value::Null)
        .into_iter()
        .find(|object| object["metadata"]["name"] == "dicoms.examples.windlass.dev")
        .expect("the definition");
    if let Some(longest) = longest {
        let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["spec"]["properties"]["image"]["maxLength"] = json!(longest);
    }
    definition
}

#[test]
fn a_refused_stamp_is_tried_again_and_the_refusal_stays_until_one_succeeds() {
    let mut objects = objects([dicom("a", "", Some("v1"))], service_image(json!([tier("", "v2-with-a-long-tag", 0)])));
    for object in &mut objects {
        if object["metadata"]["name"] == "dicoms.examples.windlass.dev" {
            *object = definition(Some(image("v2").len()));
        }
    }
    let definitions = "customresourcedefinitions.apiextensions.k8s.io";
    let target =
        Subject { resource: definitions.into(), namespace: String::new(), name: "dicoms.examples.windlass.dev".into() };
    let mended = Action::Patch { target, patch: json!({"spec": definition(None)["spec"]}) };
    let outcome = run(objects, vec![after(120, mended)]);
    assert_eq!(images(&outcome)["a"], image("v2-with-a-long-tag"));
    let mut told: Vec<String> = states(&outcome).iter().map(|state| reason(&state["status"])).collect();
    let tries = states(&outcome).iter().filter(|state| state.pointer("/status/batch/0").is_some()).count();
    assert!(tries > 3, "it is tried again: {tries}");
    told.dedup();
    assert_eq!(told.iter().filter(|reason| *reason == "StampRefused").count(), 1, "{told:?}");
    let after: Vec<&String> = told.iter().skip_while(|reason| *reason != "StampRefused").skip(1).collect();
    assert_eq!(after.last().map(|reason| reason.as_str()), Some("UpToDate"), "{told:?}");
}

/// A cluster in which nobody plays the service.
fn nobody(_: harness::Seat) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(std::future::pending())
}

#[test]
fn e4_resources_that_say_nothing_are_not_changed_and_nothing_is_complete() {
    let outcome = run_beside(document(), vec![], Ending::Held("ContractNotSeen".into()), &nobody);
    assert_eq!(["a", "b", "e", "f"].map(|name| stamps(&outcome, name)), [0; 4]);
    let said = messages(&outcome, "ContractNotSeen").pop().expect("a message");
    let words = "tier earlyAccess: none of its 2 resources says how it is, such as clinic/";
    assert!(said.starts_with(words) && said.contains("no condition UpToDate; let the controller"), "{said}");
    assert!(states(&outcome).iter().all(|state| condition(&state["status"], "Complete") != "True"));
}

#[test]
fn e4_a_kind_that_never_says_deployed_goes_tier_by_tier() {
    let outcome = run_beside(document(), vec![], Ending::Ready, &stamping::service_without_deployed);
    let order: Vec<String> = outcome
        .journal
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Write(change) if trial::is_ours(&change.user) && change.resource == stamping::one("").resource => {
                Some(change.name.clone())
            }
            Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
        })
        .collect();
    assert!(order[..2].iter().all(|name| ["e", "f"].contains(&name.as_str())) && order.len() == 4, "{order:?}");
}

/// It is deleted and another one of its name created, which waits as for a predecessor that it can't name.
fn recreated(another: Value, then: Option<Moment>) {
    let mut timeline = vec![after(60, Action::Delete(subject())), after(1, Action::Create(another))];
    timeline.extend(then);
    let outcome = run(document(), timeline);
    let claims: Vec<Value> =
        states(&outcome).iter().filter_map(|state| state.pointer("/status/operator").cloned()).collect();
    let mut seen: Vec<(Value, Value)> =
        claims.iter().map(|one| (one["term"].clone(), one["predecessorDone"].clone())).collect();
    seen.dedup();
    assert_eq!(
        seen,
        [(json!(1), json!(false)), (json!(1), json!(true)), (json!(1), json!(false)), (json!(1), json!(true))]
    );
}

/// Half way through its tier it has v2; then somebody replaces it by one without an image, and the operator starts anew.
fn one_that_lost_its_image_before_a_restart() {
    let mut half = tier("", "v2", 0);
    half["canary"] = json!([{"percent": 50, "soak": "5m"}]);
    let objects = objects([dicom("a", "", Some("v1")), dicom("b", "", Some("v1"))], service_image(json!([half])));
    let service = &stamping::service_without_deployed;
    let undisturbed = run_beside(objects.clone(), vec![], Ending::Ready, service);
    let first = undisturbed.journal.iter().find_map(|entry| match &entry.event {
        Event::Write(change) if trial::is_ours(&change.user) && change.resource == stamping::one("").resource => {
            Some(change.name.clone())
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    let first = first.expect("one goes first");
    let lost = vec![after(60, patch(&first, json!({"spec": {"image": null}}))), after(0, Action::KillOperator(0))];
    let outcome = run_beside(objects, lost, Ending::Ready, service);
    assert_eq!(images(&outcome), ["a", "b"].map(|name| (name.to_owned(), image("v2"))).into());
    let went_back = outcome.journal.iter().any(|entry| match &entry.event {
        Event::Write(change) if change.name == first && trial::is_ours(&change.user) => {
            change.after.as_deref().is_some_and(|object| object["spec"]["image"] == image("v1"))
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => false,
    });
    assert!(!went_back, "it goes forward only");
}

#[test]
fn e5_one_that_lost_its_image_before_a_restart_goes_forward_only() {
    one_that_lost_its_image_before_a_restart();
}

#[test]
fn forgetting_that_one_had_an_image_is_caught() {
    crate::support::is_noticed(windlass_plan::bug::Bug::LostImageForgotten, one_that_lost_its_image_before_a_restart);
}

#[test]
fn h1_another_service_image_of_that_name_is_not_settled_by_being_new() {
    recreated(document().pop().expect("a ServiceImage"), None);
}

/// The same where it can't be read at first, which is mended before what was sent for the first one has landed.
#[test]
fn h1_nor_by_being_unreadable_at_first() {
    let mut another = document().pop().expect("a ServiceImage");
    another["spec"]["gates"] = windlass_rehearsal::odd::gates("MaintenanceWindow");
    recreated(another, Some(after(2, spec(&json!({"gates": {"overrides": []}})))));
}

#[test]
fn taking_a_new_claim_for_settled_is_caught() {
    use crate::support::is_noticed;
    use windlass_plan::bug::Bug;
    is_noticed(Bug::RecreatedIsSettled, h1_another_service_image_of_that_name_is_not_settled_by_being_new);
    is_noticed(Bug::RecreatedIsSettled, h1_nor_by_being_unreadable_at_first);
}

/// One leaves the selector between the last look at it and the write, while watches break off. How often it was written to since.
fn stamps_after_leaving(seed: u64) -> usize {
    let mut wanted = service_image(json!([tier("", "v2", 0)]));
    wanted["spec"]["target"]["labelSelector"] = json!("managed!=no");
    let objects = objects([dicom("a", "", Some("v1"))], wanted.clone());
    let scenario = |leaves: Vec<Moment>| Scenario {
        seed,
        faults: seed > 0,
        objects: objects[..objects.len() - 1].to_vec(),
        timeline: [after(15, Action::Create(wanted.clone()))].into_iter().chain(leaves).collect(),
        operators: 1,
        limit: Duration::from_mins(20),
        ..reference(1)
    };
    let undisturbed = trial::run_beside(&scenario(vec![]), &[], &operator, Some(&service)).expect("a runtime");
    let wrote = |resource: &str, ours: bool| {
        let is_it = |event: &Event| matches!(event, Event::Write(change) if change.resource == resource && trial::is_ours(&change.user) == ours);
        undisturbed.journal.iter().find(|entry| is_it(&entry.event)).expect("a write").at
    };
    let pause = wrote(&stamping::one("").resource, true).duration_since(wrote(&subject().resource, false));
    let mut calls = undisturbed.calls.iter();
    let number = calls.position(|call| call.starts_with("PATCH") && call.contains("/dicoms/a")).expect("a stamp");
    let pause = Duration::try_from(pause).expect("later") + Duration::from_secs(1);
    let unseen = Moment { when: When::After(pause), action: Action::DropWatches };
    let leaves = Moment {
        when: When::After(Duration::from_millis(200)),
        action: patch("a", json!({"metadata": {"labels": {"managed": "no"}}})),
    };
    let freeze = Strike::Freeze(Duration::from_secs(3));
    let scenario = scenario(vec![unseen, leaves]);
    let outcome = trial::run_beside(&scenario, &[(number as u64, freeze)], &operator, Some(&service));
    let outcome = outcome.expect("a runtime");
    let left = |object: &Value| object.pointer("/metadata/labels/managed") == Some(&json!("no"));
    let stamped = |event: &Event| match event {
        Event::Write(change) => {
            let (before, after) = (change.before.as_deref(), change.after.as_deref());
            let image = |object: Option<&Value>| object.and_then(|object| object.pointer("/spec/image")).cloned();
            trial::is_ours(&change.user) && before.is_some_and(left) && image(before) != image(after)
        }
        Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => false,
    };
    outcome.journal.iter().filter(|entry| stamped(&entry.event)).count()
}

#[test]
fn one_that_leaves_the_selector_while_it_is_written_to_is_left_alone() {
    for seed in 0..SEEDS_OF_LEAVING {
        assert_eq!(stamps_after_leaving(seed), 0, "seed {seed}");
    }
}

/// As many as it takes to show the mistake.
const SEEDS_OF_LEAVING: u64 = 60;

#[test]
fn stamping_what_has_left_the_selector_is_caught() {
    use windlass_plan::bug::{Bug, plant};
    let caught = (0..SEEDS_OF_LEAVING).find(|seed| {
        plant(Some(Bug::UnselectedStamped));
        let stamps = stamps_after_leaving(*seed);
        plant(None);
        stamps > 0
    });
    println!("caught by seed {caught:?}");
    assert!(caught.is_some());
}

#[test]
fn e1_the_documents_own_yaml_is_answered_with_what_to_add() {
    let api = Api::new(Clock::start(), Journal::default());
    for object in objects([], Value::Null).into_iter().filter(|object| !object.is_null()) {
        api.create_value("user", object).expect("an object that the API takes");
    }
    let documents = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServiceImage",
        "metadata": {"name": "dicom-serviceimage-prod", "labels": {"service": "dicom"}},
        "spec": {"tiers": [
            {"upgradeTier": "", "image": "ouracr.azurecr.io/dicom-service:v2", "priority": 0},
            {"upgradeTier": "earlyAccess", "image": "ouracr.azurecr.io/dicom-service:v3", "priority": 1},
        ]},
    });
    let refused = api.create_value("user", documents.clone()).expect_err("it says nothing of what gets the image");
    let said = format!("{refused:?}");
    assert!(
        said.contains("spec.target")
            && said.contains("target: {group: examples.windlass.dev, version: v1, kind: Dicom}"),
        "{said}"
    );
    let mut whole = documents;
    whole["spec"]["target"] = json!({"group": "examples.windlass.dev", "version": "v1", "kind": "Dicom"});
    api.create_value("user", whole).expect("with that it is taken");
}

#[test]
fn the_reference_ends_and_breaks_no_rule() {
    let outcome = trial::run_beside(&reference(1), &[], &operator, Some(&service)).expect("a runtime");
    let judgement = judge(&outcome.journal, PATIENCE);
    assert_eq!(judgement.violations, Vec::<String>::new());
    assert!(outcome.settled, "{}", outcome.subject["status"]);
    assert!(judgement.stamps >= 13, "{judgement:?}");
}
