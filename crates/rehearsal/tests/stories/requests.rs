//! What people ask for once, and templates that somebody else writes: from the custom resource to what it says and does.

use crate::support::{
    FROM, TO, image, set_image,
    stage::{self, patch, until_reason, until_stalled},
    tell, three, with,
};
use serde_json::{Value, json};
use windlass_rehearsal::{
    pd,
    setting::{PD, follow},
};
use windlass_sim::{harness::Cluster, scenario::Action, world::ImageBehaviour};

fn subject(cluster: &Cluster) -> Value {
    let subject = pd::subject();
    let found = cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name);
    found.map(|object| (*object).clone()).unwrap_or_default()
}

fn ask(cluster: &Cluster, request: &str, token: &str) {
    patch(cluster, &pd::subject(), &json!({"spec": {"requests": {request: token}}}));
}

/// The second member waits, so that there is a half way.
fn soaking() -> Vec<Value> {
    with(three(), "QuorumCluster", |resource| resource["spec"]["upgrade"] = json!({"soak": "1h"}))
}

#[test]
fn a_person_stops_an_upgrade_takes_it_back_and_tries_it_again() {
    let tale = stage::play(soaking(), async |cluster| {
        until_reason(cluster, "Soaking").await;
        ask(cluster, "abort", "at-nine");
        until_stalled(cluster, "Aborted").await.is_stalled("Aborted", &[TO, "spec.requests.retry"]);
        let status = subject(cluster)["status"].clone();
        assert_eq!(status["requests"]["abort"], "at-nine", "handled");
        assert_eq!(status["abandoned"], json!({"version": TO, "image": image(TO), "outcome": "Stopped"}));
        ask(cluster, "rollback", "at-ten");
        until_stalled(cluster, "RolledBack").await.is_stalled("RolledBack", &[TO, "spec.requests.retry"]);
        assert_eq!(subject(cluster)["status"]["currentVersion"], FROM);
        patch(cluster, &pd::subject(), &json!({"spec": {"upgrade": {"soak": "0s"}, "requests": {"retry": "at-noon"}}}));
        until_reason(cluster, "UpToDate").await;
        assert_eq!(subject(cluster)["status"]["abandoned"], Value::Null);
    });
    assert_eq!(tale.replaced(0..tale.journal.len()), ["pd-2", "pd-2", "pd-2", "pd-1", "pd-0"]);
    tale.ended_ready_at(TO);
}

#[test]
fn at_a_deadline_everybody_goes_back_and_it_says_so() {
    let objects = with(three(), "QuorumCluster", |resource| resource["spec"]["onDeadline"] = json!("RollBack"));
    let tale = stage::play(objects, async |cluster| {
        cluster.world.set_image(&image(TO), ImageBehaviour::Crashes);
        until_stalled(cluster, "RolledBack").await;
        assert_eq!(subject(cluster)["status"]["currentVersion"], FROM);
    });
    tale.was_safe();
    assert_eq!(tale.replaced(0..tale.journal.len()), ["pd-2", "pd-2"], "and the broken one by us");
}

/// Git writes the template, and the template is never ours.
#[test]
fn pods_follow_a_template_that_somebody_else_writes() {
    let mut objects = with(three(), "StatefulSet", |set| set["spec"]["updateStrategy"] = json!({"type": "OnDelete"}));
    follow(&mut objects);
    let tale = tell(objects, vec![pd::after(std::time::Duration::from_mins(1), set_image(&image(TO)))]);
    assert_eq!(tale.deleted_by_us().len(), 3);
    let templates = tale.our_writes(0..tale.journal.len()).filter(|change| {
        let template = |object: &Option<std::sync::Arc<Value>>| object.as_deref()?.pointer("/spec/template").cloned();
        change.resource == "statefulsets.apps" && template(&change.before) != template(&change.after)
    });
    assert_eq!(templates.count(), 0);
    assert_eq!(tale.verdict.leader_moves, 1);
}

#[test]
fn a_set_that_kubernetes_would_roll_by_itself_is_refused_before_anything_changes() {
    let mut objects = three();
    follow(&mut objects);
    let tale = stage::play(objects, async |cluster| {
        let said = until_stalled(cluster, "UnsupportedStrategy").await;
        said.is_stalled("UnsupportedStrategy", &["trigger Template needs the update strategy OnDelete"]);
    });
    tale.touched_nothing(0..tale.journal.len());
}

/// A tag that is no version tells nobody what the image contains.
#[test]
fn a_template_without_a_version_asks_for_one() {
    let mut objects = with(three(), "StatefulSet", |set| set["spec"]["updateStrategy"] = json!({"type": "OnDelete"}));
    follow(&mut objects);
    let tale = stage::play(objects, async |cluster| {
        until_reason(cluster, "UpToDate").await;
        let Action::Patch { target, patch: edit } = set_image("registry.example/pingcap/pd:stable") else { return };
        patch(cluster, &target, &edit);
        until_stalled(cluster, "InvalidSpec").await.is_stalled("InvalidSpec", &["spec.version", "is no version"]);
        let Action::Patch { target, patch: edit } = PD.edit(TO) else { return };
        patch(cluster, &target, &edit);
        until_reason(cluster, "UpToDate").await;
    });
    tale.was_safe();
}
