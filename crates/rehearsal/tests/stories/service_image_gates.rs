//! Gates of ServiceImages that are asked elsewhere, from the custom resource to what is done (E12, H41).

use std::{collections::BTreeSet, time::Duration};

use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    operator,
    stamping::{self, NAMESPACE, dicom, image, judge, objects, reference, service, service_image, subject, tier},
    trial::{self, Ending, Outcome, Scenario},
};
use windlass_sim::{
    faults::Strike,
    harness,
    journal::{Entry, Event, Note, Verb},
    scenario::{Action, Moment, Place, When},
    world::{ImageBehaviour, ServiceAnswer},
};

const SMOKE: &str = "registry.example/smoke:1";
/// Long enough for everybody to get an image, be up to date, and be reported.
const A_WHILE: u64 = 120;

fn after(seconds: u64, action: Action) -> Moment {
    Moment { when: When::After(Duration::from_secs(seconds)), action }
}

/// A ServiceImage with these gates; the resources of one tier, two at a time.
fn wanted(gates: Value) -> Value {
    let mut first = tier("", "v2", 0);
    first["maxInFlight"] = json!(2);
    let mut wanted = service_image(json!([first]));
    wanted["spec"]["gates"] = gates;
    wanted
}

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

fn here(name: &str) -> Place {
    Place { namespace: NAMESPACE.into(), pod: name.into() }
}

fn says(name: &str, status: u16, body: String) -> Action {
    Action::Service(here(name), Some(ServiceAnswer { status, body }))
}

fn measures(value: &str) -> Action {
    let series = json!([{"metric": {}, "value": [1, value]}]);
    let body = json!({"status": "success", "data": {"resultType": "vector", "result": series}});
    says("prometheus", 200, body.to_string())
}

fn mark(name: &str) -> Action {
    Action::Create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}}))
}

fn a_service(name: &str) -> Value {
    let spec = json!({"ports": [{"port": 80}]});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
}

/// A CronJob that never runs by itself.
fn cron_job() -> Value {
    let container = json!({"name": "executor", "image": SMOKE, "args": ["say", "well done"]});
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let template = json!({"spec": {"backoffLimit": 0, "template": pod}});
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "smoke", "namespace": NAMESPACE},
        "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": template},
    })
}

fn run(wanted: Value, timeline: Vec<Moment>, ending: Ending) -> Outcome {
    run_with(wanted, timeline, ending, 1)
}

/// Eight that serve from v1, somebody to ask, and then the ServiceImage.
fn scenario(wanted: Value, mut timeline: Vec<Moment>, ending: Ending, operators: u32) -> Scenario {
    let mut objects = objects(NAMES.map(|name| dicom(name, "", Some("v1"))), wanted);
    let wanted = objects.pop().expect("a ServiceImage");
    objects.extend([a_service("prometheus"), a_service("changes"), cron_job()]);
    timeline.insert(0, after(15, Action::Create(wanted)));
    Scenario { objects, timeline, ending, operators, limit: Duration::from_mins(20), ..reference(1) }
}

fn run_with(wanted: Value, timeline: Vec<Moment>, ending: Ending, operators: u32) -> Outcome {
    let scenario = scenario(wanted, timeline, ending, operators);
    let outcome = trial::run_beside(&scenario, &[], &operator, Some(&service)).expect("a runtime");
    let judged = judge(&outcome.journal, jiff::SignedDuration::from_secs(3));
    assert_eq!(judged.violations, Vec::<String>::new());
    let notes = outcome.journal.iter().filter_map(|entry| match &entry.event {
        Event::Note(note) => Some(note),
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } => None,
    });
    let refused: Vec<&Note> = notes.filter(|note| note.is_refusal()).collect();
    assert_eq!(refused, Vec::<&Note>::new());
    assert!(outcome.settled, "{}", outcome.subject["status"]);
    outcome
}

/// Where in the journal something of this name was made by a person.
fn made(outcome: &Outcome, name: &str) -> usize {
    let is = |entry: &Entry| matches!(&entry.event, Event::Write(change) if change.name == name && change.verb == Verb::Create);
    outcome.journal.iter().position(is).expect("it was made")
}

/// Who got v2 there.
fn stamped(journal: &[Entry]) -> BTreeSet<&str> {
    let has =
        |object: Option<&Value>| object.and_then(|object| object.pointer("/spec/image")) == Some(&json!(image("v2")));
    let stamped = journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == stamping::one("").resource => {
            (has(change.after.as_deref()) && !has(change.before.as_deref())).then_some(change.name.as_str())
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    stamped.collect()
}

/// Everything that was said of it there, as reason and message.
fn said(journal: &[Entry]) -> Vec<(String, String)> {
    let said = journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == subject().resource => {
            let conditions = change.after.as_deref()?.pointer("/status/conditions")?.as_array()?;
            let ready = conditions.iter().find(|one| one["type"] == "Ready")?;
            let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
            Some((text("reason"), text("message")))
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    said.collect()
}

#[track_caller]
fn was_told(journal: &[Entry], reason: &str, words: &str) {
    let told = said(journal);
    assert!(told.iter().any(|(why, message)| why == reason && message.contains(words)), "{told:#?}");
}

fn asked(journal: &[Entry], path: &str) -> usize {
    journal.iter().filter(|entry| matches!(&entry.event, Event::Verb { what, .. } if what.starts_with(path))).count()
}

fn jobs(outcome: &Outcome) -> Vec<&Value> {
    let jobs = outcome.journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == "jobs.batch" && change.verb == Verb::Create => {
            change.after.as_deref()
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    jobs.collect()
}

fn errors() -> Value {
    let prometheus = json!({"name": "prometheus", "port": 9090});
    json!({"name": "errors", "prometheus": prometheus, "query": "errors", "cel": "value < 0.1", "interval": "5s"})
}

#[test]
fn e12_a_tiers_analysis_that_turns_bad_stops_the_march_until_it_is_good_again() {
    let mut wanted = wanted(json!({"namespace": NAMESPACE}));
    wanted["spec"]["tiers"][0]["analysis"] = json!([errors()]);
    let timeline = vec![
        // Before anybody asks, everything is well. What is new is settled after ten seconds.
        after(0, measures("0.01")),
        after(17, measures("0.5")),
        after(20, mark("stopped")),
        after(A_WHILE, mark("good-again")),
        after(0, measures("0.02")),
    ];
    let outcome = run(wanted, timeline, Ending::Ready);
    let (stopped, again) = (made(&outcome, "stopped"), made(&outcome, "good-again"));
    let first = stamped(&outcome.journal[..stopped]);
    assert!(!first.is_empty() && first.len() < NAMES.len(), "half way: {first:?}");
    assert_eq!(stamped(&outcome.journal[stopped..again]), BTreeSet::new());
    was_told(&outcome.journal[..again], "AnalysisFailed", "Analysis/errors@: the value is 0.5");
    assert_eq!(stamped(&outcome.journal), BTreeSet::from(NAMES));
}

#[test]
fn e12_a_tier_is_not_done_while_its_analysis_is_bad() {
    let mut wanted = wanted(json!({"namespace": NAMESPACE}));
    wanted["spec"]["tiers"] = json!([tier("", "v2", 0)]);
    wanted["spec"]["tiers"][0]["analysis"] = json!([errors()]);
    // All eight at once, and then it shows.
    let timeline = vec![after(0, measures("0.01")), after(12, measures("0.5"))];
    let outcome = run(wanted, timeline, Ending::Held("AnalysisFailed".into()));
    assert_eq!(stamped(&outcome.journal), BTreeSet::from(NAMES));
    assert_eq!(outcome.subject["status"]["tierStatus"][0]["newDeploymentImage"], image("v1"), "nothing is proven");
}

#[test]
fn e12_a_check_holds_until_it_is_so() {
    let check = json!({
        "name": "no-freeze", "objects": {"apiVersion": "v1", "kind": "ConfigMap", "name": "freeze"},
        "cel": "objects.size() == 0",
    });
    let wanted = wanted(json!({"namespace": NAMESPACE, "checks": [check]}));
    let freeze = windlass_sim::scenario::Subject {
        resource: "configmaps".into(),
        namespace: NAMESPACE.into(),
        name: "freeze".into(),
    };
    let mut timeline = vec![after(A_WHILE, mark("over")), after(0, Action::Delete(freeze))];
    timeline.insert(0, after(0, Action::Create(dicom("new", "", None))));
    timeline.insert(0, after(0, mark("freeze")));
    // The freeze is there before the ServiceImage is looked at.
    let outcome = run(wanted, timeline, Ending::Ready);
    let over = made(&outcome, "over");
    assert_eq!(stamped(&outcome.journal[..over]), BTreeSet::new());
    was_told(&outcome.journal[..over], "CheckFailed", "Check/no-freeze: objects.size() == 0 is not so of the 1");
    let new = |entry: &Entry| matches!(&entry.event, Event::Write(change) if change.name == "new" && trial::is_ours(&change.user));
    assert!(outcome.journal[..over].iter().any(new), "a new one gets its image all the same (E5)");
}

#[test]
fn e12_who_does_not_answer_blocks_and_does_not_keep_new_ones_waiting() {
    let wanted = wanted(json!({"namespace": NAMESPACE, "analysis": [errors()]}));
    let timeline =
        vec![after(30, Action::Create(dicom("new", "", None))), after(A_WHILE, mark("over")), after(0, measures("0"))];
    let outcome = run(wanted, timeline, Ending::Ready);
    let over = made(&outcome, "over");
    assert_eq!(stamped(&outcome.journal[..over]), BTreeSet::new());
    was_told(&outcome.journal[..over], "AnalysisFailed", "Analysis/errors: Service clinic/prometheus");
    let new = |entry: &Entry| matches!(&entry.event, Event::Write(change) if change.name == "new" && trial::is_ours(&change.user));
    assert!(outcome.journal[..over].iter().any(new));
}

#[rstest]
#[case::before("BeforeUpgrade", 0)]
#[case::after("AfterUpgrade", NAMES.len())]
fn e12_a_webhook_has_its_say(#[case] when: &str, #[case] changed: usize) {
    let webhook = json!({"name": "changes", "port": 80, "path": "/may"});
    let hook = json!({"name": "ask", "when": when, "webhook": webhook});
    let timeline = vec![
        after(0, says("changes", 409, r#"{"message": "not before Monday"}"#.into())),
        after(A_WHILE, mark("monday")),
        after(0, says("changes", 200, String::new())),
        after(A_WHILE, mark("late")),
    ];
    let outcome = run(wanted(json!({"namespace": NAMESPACE, "hooks": [hook]})), timeline, Ending::Ready);
    let monday = made(&outcome, "monday");
    assert_eq!(stamped(&outcome.journal[..monday]).len(), changed);
    was_told(&outcome.journal[..monday], "AwaitingHook", "says no: not before Monday");
    let count = asked(&outcome.journal[..monday], "POST /may");
    assert!((2..=20).contains(&count), "about every ten seconds, whatever else happens: {count}");
    let late = made(&outcome, "late");
    assert_eq!(asked(&outcome.journal[late..], "POST /may"), 0, "nobody is asked when all of it is done");
    assert_eq!(stamped(&outcome.journal), BTreeSet::from(NAMES));
}

#[rstest]
#[case::before("BeforeUpgrade", 0)]
#[case::after("AfterUpgrade", NAMES.len())]
fn e12_a_job_runs_once_and_is_waited_for(#[case] when: &str, #[case] changed: usize) {
    let hook = json!({"name": "smoke", "when": when, "job": {"cronJob": "smoke"}});
    let timeline = vec![
        after(0, Action::Image(SMOKE.into(), ImageBehaviour::CannotPull)),
        after(A_WHILE, mark("mended")),
        after(0, Action::Image(SMOKE.into(), ImageBehaviour::Works)),
    ];
    let outcome = run_with(wanted(json!({"namespace": NAMESPACE, "hooks": [hook]})), timeline, Ending::Ready, 2);
    let mended = made(&outcome, "mended");
    assert_eq!(stamped(&outcome.journal[..mended]).len(), changed);
    was_told(&outcome.journal[..mended], "AwaitingHook", "has not completed yet");
    let jobs = jobs(&outcome);
    assert_eq!(jobs.len(), 1);
    let owner = &jobs[0]["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("ServiceImage"), &outcome.subject["metadata"]["uid"]));
    assert_eq!(outcome.subject["status"]["intents"], Value::Null);
}

#[test]
fn e12_a_job_that_fails_calls_a_person_and_runs_again_when_asked() {
    let hook = json!({"name": "smoke", "when": "BeforeUpgrade", "job": {"cronJob": "smoke"}});
    let retry = Action::Patch { target: subject(), patch: json!({"spec": {"requests": {"retry": "once more"}}}) };
    let timeline = vec![
        after(0, Action::Image(SMOKE.into(), ImageBehaviour::Crashes)),
        after(A_WHILE, mark("mended")),
        after(0, Action::Image(SMOKE.into(), ImageBehaviour::Works)),
        after(0, retry),
    ];
    let outcome = run(wanted(json!({"namespace": NAMESPACE, "hooks": [hook]})), timeline, Ending::Ready);
    was_told(&outcome.journal[..made(&outcome, "mended")], "HookFailed", "has failed: BackoffLimitExceeded");
    assert_eq!(jobs(&outcome).len(), 2);
}

#[test]
fn h41_a_namespace_that_nobody_allowed_is_not_asked_in() {
    let check = json!({"name": "one", "objects": {"apiVersion": "v1", "kind": "ConfigMap"}, "cel": "true"});
    let hook = json!({"name": "smoke", "when": "BeforeUpgrade", "job": {"cronJob": "smoke"}});
    let gates = json!({"namespace": "kube-system", "checks": [check], "hooks": [hook]});
    let outcome = run(wanted(gates), vec![], Ending::Held("GatesNotAllowed".into()));
    was_told(&outcome.journal, "GatesNotAllowed", "--allow-gates-in");
    assert_eq!((stamped(&outcome.journal), jobs(&outcome).len()), (BTreeSet::new(), 0));
    let looked = |call: &&String| call.contains("/namespaces/kube-system/") && !call.contains("/leases");
    assert_eq!(outcome.calls.iter().filter(looked).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn h41_services_of_other_namespaces_are_not_asked() {
    let mut analysis = errors();
    analysis["prometheus"]["namespace"] = json!("monitoring");
    let gates = json!({"namespace": NAMESPACE, "analysis": [analysis]});
    let outcome = run(wanted(gates), vec![], Ending::Held("AnalysisFailed".into()));
    was_told(&outcome.journal, "AnalysisFailed", "--allow-service monitoring/prometheus");
    assert_eq!(stamped(&outcome.journal), BTreeSet::new());
}

#[rstest]
#[case::checks(json!({"checks": [{"name": "one", "objects": {"apiVersion": "v1", "kind": "ConfigMap"}, "cel": "true"}]}))]
#[case::analysis(json!({"analysis": [errors()]}))]
#[case::hooks(json!({"hooks": [{"name": "ask", "when": "AfterUpgrade", "job": {"cronJob": "smoke"}}]}))]
fn h41_gates_that_ask_nowhere_are_refused(#[case] gates: Value) {
    let refused = refusal(wanted(gates));
    assert!(refused.contains("ask somewhere: set namespace"), "{refused}");
}

#[test]
fn h41_a_tiers_analysis_that_asks_nowhere_is_refused() {
    let mut wanted = wanted(json!({}));
    wanted["spec"]["tiers"][0]["analysis"] = json!([errors()]);
    let refused = refusal(wanted);
    assert!(refused.contains("set gates.namespace"), "{refused}");
}

#[test]
fn e12_h6_whatever_crashes_each_hooks_job_is_made_once() {
    let hook = |name: &str, when: &str| json!({"name": name, "when": when, "job": {"cronJob": "smoke"}});
    let hooks = json!([hook("first", "BeforeUpgrade"), hook("last", "AfterUpgrade")]);
    let scenario = scenario(wanted(json!({"namespace": NAMESPACE, "hooks": hooks})), vec![], Ending::Ready, 2);
    let run = |strikes: &[(u64, Strike)]| {
        let outcome = trial::run_beside(&scenario, strikes, &operator, Some(&service)).expect("a runtime");
        let judged = judge(&outcome.journal, jiff::SignedDuration::from_secs(10));
        assert_eq!((judged.violations, outcome.settled), (vec![], true), "{strikes:?}: {}", outcome.subject["status"]);
        let names: Vec<String> = jobs(&outcome).iter().map(|job| job["metadata"]["name"].to_string()).collect();
        assert_eq!(names.len(), 2, "{strikes:?}: {names:?}");
        assert_eq!(stamped(&outcome.journal), BTreeSet::from(NAMES), "{strikes:?}");
        outcome
    };
    let calls = run(&[]).calls;
    let starts = calls.iter().enumerate().filter(|(_, call)| call.starts_with("POST") && call.contains("/jobs"));
    let starts: Vec<u64> = starts.map(|(number, _)| number as u64).collect();
    assert_eq!(starts.len(), 2, "{calls:#?}");
    // The Job's own request, the record before it, and whatever comes right after.
    for point in starts.iter().flat_map(|start| start.saturating_sub(2)..=start.saturating_add(2)) {
        for strike in [Strike::KillBefore, Strike::KillAfter, Strike::FreezeUntilTakenOver] {
            run(&[(point, strike)]);
        }
    }
}

/// Why the API server does not take it.
fn refusal(wanted: Value) -> String {
    let cluster = harness::Cluster::new(1);
    let mut objects = objects([], wanted);
    let wanted = objects.pop().expect("a ServiceImage");
    for object in objects {
        cluster.api.create_value("user", object).expect("an object that the API takes");
    }
    format!("{:?}", cluster.api.create_value("user", wanted).expect_err("it must be refused"))
}
