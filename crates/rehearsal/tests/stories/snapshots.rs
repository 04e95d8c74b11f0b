//! A snapshot before an upgrade: taken by a Job, waited for, and nothing begins without it (D2, H6).

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    crash, operator,
    setting::{ETCD, EXECUTOR, OPENBAO, Setting, after},
    trial::{self, Ending, Outcome, Scenario},
};
use windlass_sim::{
    journal::{Event, Verb},
    scenario::{Action, Moment},
    world::{BadAnswer, ImageBehaviour},
};

fn run(scenario: &Scenario) -> Outcome {
    trial::run(scenario, &[], &operator).expect("a runtime for the scenario")
}

/// The upgrade with its snapshot, with this on its way.
fn told(setting: &Setting, timeline: Vec<Moment>, ending: Ending) -> Outcome {
    let mut scenario = setting.snapshot(1);
    scenario.timeline.extend(timeline);
    run(&Scenario { ending, operators: 1, ..scenario })
}

fn held(reason: &str) -> Ending {
    Ending::Held(reason.to_owned())
}

fn message(outcome: &Outcome) -> &str {
    outcome.subject.pointer("/status/conditions/0/message").and_then(Value::as_str).unwrap_or_default()
}

/// The Jobs as they were made.
fn jobs(outcome: &Outcome) -> Vec<Value> {
    let made = outcome.journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == "jobs.batch" && change.verb == Verb::Create => {
            change.after.as_deref().cloned()
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    made.collect()
}

/// What was recorded of the upgrade that is under way, the first time.
fn recorded(outcome: &Outcome) -> Value {
    let upgrade = outcome.journal.iter().find_map(|entry| match &entry.event {
        Event::Write(change) => change.after.as_deref()?.pointer("/status/upgrade/snapshot").cloned(),
        Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    upgrade.expect("an upgrade with a snapshot")
}

#[rstest]
fn an_upgrade_begins_with_its_snapshot(#[values(ETCD, OPENBAO)] setting: Setting, #[values(1, 2, 3)] seed: u64) {
    let outcome = run(&setting.snapshot(seed));
    assert_eq!(outcome.fault(), None);
    assert_eq!(jobs(&outcome).len(), 1);
    let snapshot = recorded(&outcome);
    assert_eq!(snapshot["size"], 20_480);
    let place = snapshot["location"].as_str().unwrap_or_default();
    assert!(place.starts_with(&format!("volume backups/nightly/{}-", setting.name)), "{place}");
    assert_eq!(crash::end_state(&outcome)["version"], setting.reference.1);
}

#[test]
fn the_job_can_do_nothing_but_what_it_is_for() {
    let outcome = run(&OPENBAO.snapshot(1));
    let job = jobs(&outcome).remove(0);
    let uid = &outcome.subject["metadata"]["uid"];
    assert_eq!(job["metadata"]["name"], format!("windlass-snapshot-{}-1", uid.as_str().unwrap_or_default()));
    assert_eq!((&job["metadata"]["ownerReferences"][0]["uid"], &job["spec"]["backoffLimit"]), (uid, &json!(0)));
    assert_eq!(job["spec"]["activeDeadlineSeconds"], 600);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(
        (&pod["automountServiceAccountToken"], &pod["serviceAccountName"]),
        (&json!(false), &json!("windlass-executor"))
    );
    // Whoever runs the members gets to see this token, and the API server refuses it.
    let account = pod["volumes"].as_array().into_iter().flatten().find(|volume| volume["name"] == "account");
    let token = account.map(|volume| &volume["projected"]["sources"][0]["serviceAccountToken"]);
    assert_eq!(token.map(|token| &token["audience"]), Some(&json!("windlass/secrets/openbao")));
    let container = &pod["containers"][0];
    assert_eq!(
        (&container["image"], &container["securityContext"]["readOnlyRootFilesystem"]),
        (&json!(EXECUTOR), &json!(true))
    );
    let arguments: Vec<&str> = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert!(arguments.starts_with(&["executor", "snapshot", "--system=OpenBao"]), "{arguments:?}");
    // The leader is asked first.
    assert!(
        arguments.iter().any(|argument| argument.starts_with("--member=openbao-0=openbao-0.openbao.secrets.svc:8200@"))
    );
    assert!(arguments[3].starts_with("--member=openbao-0="), "{arguments:?}");
}

/// A user of etcd is mounted, and nobody else gets to see it.
#[test]
fn the_job_logs_in_as_the_resource_says() {
    let mut scenario = ETCD.snapshot(1);
    for object in scenario.objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
        object["spec"]["system"]["auth"] = json!({"passwordSecret": "etcd-user", "allowPlaintext": true});
    }
    scenario.objects.push(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "etcd-user", "namespace": ETCD.namespace},
        "stringData": {"username": "root", "password": "correct horse"},
    }));
    let outcome = run(&scenario);
    // Authentication is not enabled: nobody needs a token, and all goes well without one.
    assert_eq!(outcome.fault(), None);
    let pod = jobs(&outcome).remove(0)["spec"]["template"]["spec"].clone();
    let mounted = pod["volumes"].as_array().into_iter().flatten().find(|volume| volume["name"] == "user");
    assert_eq!(mounted.map(|volume| &volume["secret"]["secretName"]), Some(&json!("etcd-user")));
    let arguments = pod["containers"][0]["args"].to_string();
    assert!(arguments.contains("--user-folder=/windlass/user") && !arguments.contains("horse"), "{arguments}");
}

#[rstest]
#[case::image_is_not_there(Action::Image(EXECUTOR.into(), ImageBehaviour::CannotPull), "Job was active longer than")]
#[case::it_hangs(Action::Image(EXECUTOR.into(), ImageBehaviour::NeverReady), "Job was active longer than")]
#[case::it_crashes(Action::Image(EXECUTOR.into(), ImageBehaviour::Crashes), "BackoffLimitExceeded")]
fn a_snapshot_that_fails_holds_until_a_person_asks_again(#[case] broken: Action, #[case] said: &str) {
    let broken = vec![after(Duration::ZERO, broken)];
    let outcome = told(&ETCD, broken.clone(), held("SnapshotFailed"));
    assert_eq!(outcome.fault(), None);
    assert!(message(&outcome).contains(said), "{}", message(&outcome));
    assert!(outcome.verdict.restarts.is_empty() && outcome.subject["status"]["upgrade"].is_null());

    let mut timeline = broken;
    timeline.extend([
        after(Duration::from_mins(15), Action::Image(EXECUTOR.into(), ImageBehaviour::Works)),
        after(Duration::ZERO, ETCD.spec(json!({"requests": {"resume": "once more"}}))),
    ]);
    let outcome = told(&ETCD, timeline, Ending::Ready);
    assert_eq!(outcome.fault(), None);
    assert_eq!(jobs(&outcome).len(), 2, "one for each attempt");
    assert_eq!(outcome.subject["status"]["requests"]["resume"], "once more");
}

#[test]
fn what_the_executor_says_is_told() {
    let silent = |ordinal| after(Duration::ZERO, Action::Answers(ETCD.pod(ordinal), Some(BadAnswer::Refused)));
    let speaks = |ordinal| after(Duration::ZERO, Action::Answers(ETCD.pod(ordinal), None));
    // They answer while the Job is asked for, and not when it asks.
    let mut timeline = vec![after(Duration::ZERO, Action::Image(EXECUTOR.into(), ImageBehaviour::CannotPull))];
    timeline.extend([after(Duration::from_mins(1), Action::Image(EXECUTOR.into(), ImageBehaviour::Works))]);
    timeline.extend([silent(0), silent(1), silent(2)]);
    timeline.push(after(Duration::from_mins(3), Action::DropWatches));
    timeline.extend([speaks(0), speaks(1), speaks(2)]);
    let outcome = told(&ETCD, timeline, held("SnapshotFailed"));
    assert_eq!(outcome.fault(), None);
    assert!(message(&outcome).contains("no member gives a snapshot (Unreachable)"), "{}", message(&outcome));
}

#[test]
fn a_job_of_somebody_elses_is_not_believed() {
    let mut scenario = ETCD.foreign_job(1);
    scenario.timeline.pop();
    let outcome = run(&Scenario { ending: held("SnapshotFailed"), ..scenario });
    assert_eq!(outcome.fault(), None);
    assert!(message(&outcome).contains("does not belong to this QuorumCluster"), "{}", message(&outcome));
    assert!(outcome.verdict.restarts.is_empty());
}

#[test]
fn another_version_waits_for_the_job_that_runs() {
    let timeline = vec![
        after(Duration::ZERO, Action::Image(EXECUTOR.into(), ImageBehaviour::NeverReady)),
        after(Duration::from_secs(20), ETCD.spec(json!({"version": "3.6.17"}))),
        after(Duration::ZERO, Action::Image(EXECUTOR.into(), ImageBehaviour::Works)),
    ];
    let outcome = told(&ETCD, timeline, Ending::Ready);
    assert_eq!(outcome.fault(), None);
    assert_eq!(jobs(&outcome).len(), 2, "the first one ran into its deadline, the second is for the new version");
    assert_eq!(crash::end_state(&outcome)["version"], "3.6.17");
}
