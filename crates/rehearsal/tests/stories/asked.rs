//! Gates whose answer is somewhere else: objects, Prometheus, webhooks, Jobs; from the custom resource to what is done.

use std::time::Duration;

use crate::support::{
    TO, Tale,
    stage::{self, pass, patch, until_reason, until_stalled},
    three, with,
};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::pd;
use windlass_sim::{
    harness::Cluster,
    journal::{Entry, Event, Verb},
    world::{ImageBehaviour, ServiceAnswer},
};

const IMAGE: &str = "registry.example/smoke:1";

fn gated(gates: &Value, more: Vec<Value>) -> Vec<Value> {
    let mut objects = with(three(), "QuorumCluster", |resource| resource["spec"]["gates"] = gates.clone());
    // Before the QuorumCluster: what it asks must be there.
    let last = objects.len().saturating_sub(1);
    objects.splice(last..last, more);
    objects
}

fn namespace() -> String {
    pd::subject().namespace
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace()},
        "spec": {"ports": [{"port": 80}]},
    })
}

fn answers(cluster: &Cluster, name: &str, status: u16, body: &str) {
    let answer = ServiceAnswer { status, body: body.to_owned() };
    cluster.world.answer_at_service(&namespace(), name, Some(answer));
}

fn measured(value: &str) -> String {
    let series = json!([{"metric": {"job": "api"}, "value": [1, value]}]);
    json!({"status": "success", "data": {"resultType": "vector", "result": series}}).to_string()
}

/// A CronJob that never runs by itself.
fn cron_job() -> Value {
    let container = json!({"name": "executor", "image": IMAGE, "args": ["say", "well done"]});
    let pod = json!({"restartPolicy": "Never", "containers": [container]});
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "smoke", "namespace": namespace()},
        "spec": {
            "schedule": "0 0 1 1 *", "suspend": true,
            "jobTemplate": {"metadata": {"labels": {"team": "data"}}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}},
        },
    })
}

fn jobs(tale: &Tale) -> Vec<Value> {
    let made = tale.journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == "jobs.batch" && change.verb == Verb::Create => {
            change.after.as_deref().cloned()
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    made.collect()
}

/// It holds, and still does after a time in which everybody could have been replaced.
async fn holds(cluster: &Cluster, reason: &str, words: &[&str]) {
    until_reason(cluster, reason).await;
    pass(Duration::from_mins(10)).await;
    until_reason(cluster, reason).await.is_waiting(reason, words);
}

#[test]
fn a_check_holds_until_it_is_so() {
    let check = json!({"checks": [{
        "name": "no-freeze", "objects": {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "freeze=yes"},
        "cel": "objects.size() == 0",
    }]});
    let freeze = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "december", "namespace": namespace(), "labels": {"freeze": "yes"}},
    });
    let tale = stage::play(gated(&check, vec![freeze]), async |cluster| {
        holds(cluster, "CheckFailed", &["Check/no-freeze: objects.size() == 0 is not so of the 1 of kind ConfigMap"])
            .await;
        patch_labels(cluster, "december", &json!({"freeze": "no"}));
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(tale.replaced(0..tale.since(0).start), Vec::<String>::new());
    tale.ended_ready_at(TO);
}

fn patch_labels(cluster: &Cluster, name: &str, labels: &Value) {
    let subject =
        windlass_sim::scenario::Subject { resource: "configmaps".into(), namespace: namespace(), name: name.into() };
    patch(cluster, &subject, &json!({"metadata": {"labels": labels}}));
}

#[rstest]
#[case::no_such_kind("batch/v1", "Backup", "objects.size() == 0", "Check/one: ")]
#[case::a_field_that_is_not_there("v1", "ConfigMap", "objects.all(one, one.data.done == 'yes')", "there is no data")]
#[case::not_a_condition("v1", "ConfigMap", "objects", "it must yield true or false")]
#[case::another_name("v1", "ConfigMap", "pods.size() == 0", "cel: pods is not known; there is objects")]
#[case::in_no_namespace("v1", "Node", "objects.size() > 0", "Node of v1 is in no namespace")]
fn what_a_check_can_not_tell_holds(#[case] version: &str, #[case] kind: &str, #[case] cel: &str, #[case] words: &str) {
    let check = json!({"checks": [{"name": "one", "objects": {"apiVersion": version, "kind": kind}, "cel": cel}]});
    let thing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace()}});
    let tale = stage::play(gated(&check, vec![thing]), async |cluster| holds(cluster, "CheckFailed", &[words]).await);
    assert!(tale.verdict.restarts.is_empty());
}

#[test]
fn an_analysis_holds_while_values_are_bad_or_missing() {
    let analysis = json!({"analysis": [{
        "name": "errors", "prometheus": {"name": "prometheus", "port": 9090}, "query": "errors", "cel": "value < 0.1",
        "consecutiveFailures": 3, "interval": "10s",
    }]});
    let tale = stage::play(gated(&analysis, vec![service("prometheus")]), async |cluster| {
        holds(cluster, "AnalysisFailed", &["Analysis/errors: Service", "refused the connection"]).await;
        answers(cluster, "prometheus", 200, &measured("0.5"));
        holds(cluster, "AnalysisFailed", &["the value is 0.5 of {job=\"api\"}, and value < 0.1 is wanted"]).await;
        answers(cluster, "prometheus", 200, &measured("NaN"));
        holds(cluster, "AnalysisFailed", &["the value is NaN"]).await;
        answers(cluster, "prometheus", 200, &measured("0.05"));
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

#[test]
fn services_of_other_namespaces_are_not_asked() {
    let analysis = json!({"analysis": [{
        "name": "errors", "prometheus": {"name": "prometheus", "namespace": "monitoring", "port": 9090}, "query": "up",
        "cel": "value == 1",
    }]});
    let tale = stage::play(gated(&analysis, vec![]), async |cluster| {
        holds(cluster, "AnalysisFailed", &["--allow-service monitoring/prometheus"]).await;
    });
    assert!(tale.verdict.restarts.is_empty());
}

#[rstest]
#[case::before_it_begins("BeforeUpgrade")]
#[case::before_every_member("BeforeEachMember")]
#[case::before_it_is_done("AfterUpgrade")]
fn a_webhook_has_its_say(#[case] when: &str) {
    let hooks = json!({"hooks": [{
        "name": "freeze", "when": when, "webhook": {"name": "changes", "port": 80, "path": "/may"},
    }]});
    let tale = stage::play(gated(&hooks, vec![service("changes")]), async |cluster| {
        answers(cluster, "changes", 500, "");
        holds(cluster, "AwaitingHook", &["Hook/freeze: ", "answered 500 to POST /may"]).await;
        answers(cluster, "changes", 409, r#"{"message": "not before Monday"}"#);
        holds(cluster, "AwaitingHook", &["says no: not before Monday"]).await;
        answers(cluster, "changes", 200, "");
        until_reason(cluster, "UpToDate").await;
    });
    let asked =
        tale.journal.iter().position(|entry| matches!(&entry.event, Event::Verb { what, .. } if what == "POST /may"));
    let first = asked.expect("it was asked");
    assert_eq!(tale.replaced(0..first).len(), if when == "AfterUpgrade" { 3 } else { 0 });
    tale.ended_ready_at(TO);
}

#[test]
fn a_webhook_is_asked_about_every_member() {
    let hook =
        json!({"name": "ask", "when": "BeforeEachMember", "webhook": {"name": "changes", "port": 80, "path": "/may"}});
    let tale = stage::play(gated(&json!({"hooks": [hook]}), vec![service("changes")]), async |cluster| {
        answers(cluster, "changes", 200, "");
        until_reason(cluster, "UpToDate").await;
    });
    let asked = |entry: &Entry| matches!(&entry.event, Event::Verb { what, .. } if what == "POST /may");
    let mut from = 0;
    for count in 1..=3 {
        let upto =
            (from..tale.journal.len()).find(|upto| tale.replaced(0..*upto).len() == count).expect("it was replaced");
        let times = tale.journal[from..upto].iter().filter(|entry| asked(entry)).count();
        assert!(times > 0, "the yes of the one before counted for member {count}");
        from = upto;
    }
    tale.ended_ready_at(TO);
}

#[rstest]
#[case::before("BeforeUpgrade", 0)]
#[case::after("AfterUpgrade", 3)]
fn a_job_runs_once_and_is_waited_for(#[case] when: &str, #[case] replaced: usize) {
    let hooks = json!({"hooks": [{"name": "smoke", "when": when, "job": {"cronJob": "smoke"}}]});
    let tale = stage::play(gated(&hooks, vec![cron_job()]), async |cluster| {
        cluster.world.set_image(IMAGE, ImageBehaviour::CannotPull);
        holds(cluster, "AwaitingHook", &["Hook/smoke: Job windlass-hook-", "has not completed yet"]).await;
        cluster.world.set_image(IMAGE, ImageBehaviour::Works);
        until_reason(cluster, "UpToDate").await;
    });
    let made = jobs(&tale);
    assert_eq!(made.len(), 1);
    assert_eq!(made[0]["metadata"]["labels"]["team"], "data");
    assert_eq!(made[0]["metadata"]["ownerReferences"][0]["uid"], tale.subject["metadata"]["uid"]);
    let begun = tale.journal.iter().position(|entry| {
        matches!(&entry.event, Event::Write(change) if change.resource == "jobs.batch" && change.verb == Verb::Create)
    });
    assert_eq!(tale.replaced(0..begun.expect("it was made")).len(), replaced);
    tale.ended_ready_at(TO);
}

#[rstest]
#[case::before("BeforeUpgrade")]
#[case::after("AfterUpgrade")]
fn a_job_that_fails_calls_a_person_and_runs_again_when_asked(#[case] when: &str) {
    let hooks = json!({"hooks": [{"name": "smoke", "when": when, "job": {"cronJob": "smoke"}}]});
    let tale = stage::play(gated(&hooks, vec![cron_job()]), async |cluster| {
        cluster.world.set_image(IMAGE, ImageBehaviour::Crashes);
        let spoken = until_stalled(cluster, "HookFailed").await;
        assert!(spoken.message.contains("has failed: BackoffLimitExceeded"), "{}", spoken.message);
        pass(Duration::from_mins(10)).await;
        cluster.world.set_image(IMAGE, ImageBehaviour::Works);
        patch(cluster, &pd::subject(), &json!({"spec": {"requests": {"retry": "once more"}}}));
        until_reason(cluster, "UpToDate").await;
    });
    assert_eq!(jobs(&tale).len(), 2);
    tale.ended_ready_at(TO);
}

#[test]
fn a_hook_that_failed_can_be_set_aside() {
    let hooks = json!({"hooks": [{"name": "smoke", "when": "AfterUpgrade", "job": {"cronJob": "smoke"}}]});
    let tale = stage::play(gated(&hooks, vec![cron_job()]), async |cluster| {
        cluster.world.set_image(IMAGE, ImageBehaviour::Crashes);
        until_stalled(cluster, "HookFailed").await;
        let aside = json!([{"gate": "Hook/smoke", "until": "2100-01-01T00:00:00Z"}]);
        patch(cluster, &pd::subject(), &json!({"spec": {"gates": {"overrides": aside}}}));
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

#[test]
fn a_cron_job_that_is_not_there_is_named() {
    let hooks = json!({"hooks": [{"name": "smoke", "when": "BeforeUpgrade", "job": {"cronJob": "smoke"}}]});
    let tale = stage::play(gated(&hooks, vec![]), async |cluster| {
        holds(cluster, "AwaitingHook", &["Hook/smoke: there is no CronJob smoke"]).await;
    });
    assert!(jobs(&tale).is_empty() && tale.verdict.restarts.is_empty());
}
