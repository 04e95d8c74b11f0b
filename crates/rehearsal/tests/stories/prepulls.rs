//! The new image is pulled on the nodes before anybody stops, and where it can't be, nobody was taken down (ADR 0012).

use std::time::Duration;

use crate::support::{
    TO, Tale, image,
    stage::{self, pass, patch, until_reason, until_stalled},
    three, with,
};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    crash, operator, pd,
    setting::{ETCD, PD, Setting},
    trial::{self, Outcome, Scenario},
};
use windlass_sim::{
    faults::Strike,
    harness::Cluster,
    journal::{Change, Entry, Event, Verb},
    world::ImageBehaviour,
};

fn pulling() -> Vec<Value> {
    with(three(), "QuorumCluster", |resource| resource["spec"]["upgrade"] = json!({"prePull": true}))
}

fn writes(journal: &[Entry]) -> impl Iterator<Item = &Change> {
    journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change) => Some(change),
        Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    })
}

/// The Jobs as they were made, in order.
fn jobs(journal: &[Entry]) -> Vec<Value> {
    let made = writes(journal).filter(|change| change.resource == "jobs.batch" && change.verb == Verb::Create);
    made.filter_map(|change| change.after.as_deref().cloned()).collect()
}

fn nodes(jobs: &[Value]) -> Vec<&str> {
    jobs.iter().filter_map(|job| job["spec"]["template"]["spec"]["nodeName"].as_str()).collect()
}

/// Where in the journal the first one of these is.
fn first(journal: &[Entry], is: impl Fn(&Change) -> bool) -> usize {
    let found = journal.iter().position(|entry| matches!(&entry.event, Event::Write(change) if is(change)));
    found.expect("such a write")
}

fn template_written(journal: &[Entry]) -> usize {
    first(journal, |change| {
        let image = |object: Option<&Value>| {
            object.and_then(|object| object.pointer("/spec/template/spec/containers/0/image")).cloned()
        };
        change.resource == "statefulsets.apps"
            && change.before.is_some()
            && image(change.before.as_deref()) != image(change.after.as_deref())
    })
}

fn run(scenario: &Scenario) -> Outcome {
    trial::run(scenario, &[], &operator).expect("a runtime for the scenario")
}

#[rstest]
fn every_node_has_the_image_before_anything_is_written(#[values(PD, ETCD)] setting: Setting) {
    let outcome = run(&setting.pre_pull(2));
    assert_eq!(outcome.fault(), None);
    let made = jobs(&outcome.journal);
    assert_eq!(nodes(&made), ["node-0", "node-1", "node-2"]);
    let ended = |change: &Change| {
        let conditions = change.after.as_deref().and_then(|job| job.pointer("/status/conditions")).cloned();
        change.resource == "jobs.batch" && conditions.is_some_and(|it| it.to_string().contains("Complete"))
    };
    assert!(first(&outcome.journal, ended) < template_written(&outcome.journal), "it is waited for");
    let uid = &outcome.subject["metadata"]["uid"];
    assert!(made.iter().all(|job| job["metadata"]["ownerReferences"][0]["uid"] == *uid));
    assert_eq!(crash::end_state(&outcome)["version"], setting.reference.1);
}

#[test]
fn nothing_is_left_behind() {
    let mut left = (usize::MAX, usize::MAX);
    let tale = stage::play(pulling(), async |cluster| {
        until_reason(cluster, "UpToDate").await;
        pass(Duration::from_hours(2)).await;
        let jobs = cluster.api.list_values("jobs.batch", pd::NAMESPACE).len();
        left = (jobs, cluster.api.list_values("pods", pd::NAMESPACE).len());
    });
    assert_eq!(left, (0, 3), "Jobs and pods");
    assert_eq!(jobs(&tale.journal).len(), 3, "nobody is asked twice");
    tale.ended_ready_at(TO);
}

#[test]
fn where_nobody_asks_nothing_is_pulled() {
    assert_eq!(jobs(&run(&PD.reference(2)).journal), Vec::<Value>::new());
}

/// Nothing of the workload was written before the timeline did that.
#[track_caller]
fn nothing_has_begun(tale: &Tale, until: usize) {
    tale.touched_nothing(0..tale.since(until).start);
}

#[test]
fn a_node_that_cannot_pull_is_named_and_nobody_is_taken_down() {
    let tale = stage::play(pulling(), async |cluster| {
        cluster.world.set_pullable("node-1", &image(TO), false);
        let spoken = until_reason(cluster, "ImageNotPullable").await;
        let words = ["can't be pulled on node node-1: ", &image(TO), "not found", "spec.requests.retry", "ImagePulled"];
        spoken.is_waiting("ImageNotPullable", &words);
        let spoken = until_stalled(cluster, "ImageNotPullable").await;
        spoken.is_stalled("ImageNotPullable", &words);
        pass(Duration::from_mins(5)).await;
        cluster.world.set_pullable("node-1", &image(TO), true);
        until_reason(cluster, "UpToDate").await;
    });
    nothing_has_begun(&tale, 1);
    assert_eq!(jobs(&tale.journal).len(), 3, "the node tries again by itself");
    tale.ended_ready_at(TO);
}

#[test]
fn an_image_that_nobody_has_stops_nobody_and_another_one_is_begun_at_once() {
    let tale = stage::play(pulling(), async |cluster| {
        cluster.world.set_image(&image(TO), ImageBehaviour::CannotPull);
        until_stalled(cluster, "ImageNotPullable")
            .await
            .is_stalled("ImageNotPullable", &["node-0", "node-1", "node-2"]);
        patch(cluster, &pd::subject(), &json!({"spec": {"version": "8.5.4"}}));
        until_reason(cluster, "UpToDate").await;
    });
    nothing_has_begun(&tale, 1);
    assert_eq!(jobs(&tale.journal).len(), 6);
    tale.ended_ready_at("8.5.4");
}

#[test]
fn a_person_who_says_retry_is_heard_at_once() {
    let broken = async |cluster: &Cluster| {
        cluster.world.set_pullable("node-2", &image(TO), false);
        until_stalled(cluster, "ImageNotPullable").await;
        cluster.world.set_pullable("node-2", &image(TO), true);
    };
    let tale = stage::play(pulling(), async |cluster| {
        broken(cluster).await;
        let began = cluster.clock.elapsed();
        patch(cluster, &pd::subject(), &json!({"spec": {"requests": {"retry": "now"}}}));
        until_reason(cluster, "TemplateWritten").await;
        assert!(cluster.clock.elapsed() < began + Duration::from_secs(30));
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

#[test]
fn an_override_goes_on_without_the_image() {
    let tale = stage::play(pulling(), async |cluster| {
        cluster.world.set_pullable("node-1", &image(TO), false);
        until_reason(cluster, "ImageNotPullable").await;
        let aside = json!([{"gate": "ImagePulled", "until": "2100-01-01T00:00:00Z"}]);
        patch(cluster, &pd::subject(), &json!({"spec": {"gates": {"overrides": aside}}}));
        until_reason(cluster, "ImagePullFailed").await;
        cluster.world.set_pullable("node-1", &image(TO), true);
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

#[test]
fn the_image_of_a_template_that_somebody_else_writes_is_pulled_first() {
    let mut scenario = PD.template(1);
    for object in scenario.objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
        object["spec"]["upgrade"] = json!({"prePull": true});
    }
    let outcome = run(&scenario);
    assert_eq!(outcome.fault(), None);
    assert_eq!(jobs(&outcome.journal).len(), 3);
    let goes = |change: &Change| {
        let marked =
            |object: Option<&Value>| object.is_some_and(|it| it.pointer("/metadata/deletionTimestamp").is_some());
        change.resource == "pods" && change.name.starts_with("pd-") && marked(change.after.as_deref())
    };
    let last_job = outcome.journal.iter().rposition(|entry| {
        matches!(&entry.event, Event::Write(change) if change.resource == "jobs.batch" && change.verb == Verb::Create)
    });
    assert!(last_job.expect("a Job") < first(&outcome.journal, goes));
}

/// Struck at each of its requests for a Job: the next one asks for those that are missing, and for no other, and what comes late misses.
#[rstest]
fn an_operator_that_is_killed_or_frozen_meanwhile_asks_nobody_twice(
    #[values(0, 1, 2)] job: usize,
    #[values(Strike::KillBefore, Strike::KillAfter, Strike::FreezeUntilTakenOver)] how: Strike,
) {
    let scenario = PD.pre_pull(1);
    let calls = run(&scenario).calls;
    let mut asks = calls.iter().zip(0..).filter(|(call, _)| call.starts_with("POST") && call.ends_with("/jobs"));
    let (_, call) = asks.nth(job).expect("one for each node");
    let outcome = trial::run(&scenario, &[(call, how)], &operator).expect("a runtime for the scenario");
    assert_eq!(outcome.fault(), None);
    assert_eq!(nodes(&jobs(&outcome.journal)), ["node-0", "node-1", "node-2"]);
    assert_eq!(crash::end_state(&outcome)["version"], PD.reference.1);
}
