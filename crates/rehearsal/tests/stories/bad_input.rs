//! What people get wrong before anything has begun: each gives a condition that says what is wrong and what to do, nothing is
//! written to the workload meanwhile, and it goes on by itself once it is mended.

use std::time::Duration;

use crate::support::{A_WHILE, FROM, Spoken, TO, Tale, image, set, tell, three, with, without};
use serde_json::{Value, json};
use windlass_rehearsal::pd;
use windlass_sim::{
    scenario::{Action, Subject},
    world::BadAnswer,
};

/// Wrong from the beginning and mended after a while: what was said last before that, after all else was found to be right.
fn wrong_until(objects: Vec<Value>, mend: Action) -> Spoken {
    let tale = tell(objects, vec![pd::after(A_WHILE, mend)]);
    tale.touched_nothing(tale.before_all());
    tale.ended_ready_at(TO);
    tale.last_said(tale.before_all())
}

fn spec_with(change: impl Fn(&mut Value)) -> Vec<Value> {
    with(three(), "QuorumCluster", |resource| change(&mut resource["spec"]))
}

#[test]
fn an_image_that_cannot_be_parsed() {
    let objects = spec_with(|spec| spec["image"] = json!("PingCAP/pd:v8.5.3"));
    let spoken = wrong_until(objects, pd::spec(json!({"image": null})));
    spoken.is_stalled("InvalidSpec", &["spec.image", "correct the field that the message names"]);
}

#[test]
fn a_version_that_looks_like_one_and_is_none() {
    let objects = spec_with(|spec| spec["version"] = json!("08.5.3"));
    let spoken = wrong_until(objects, pd::spec(json!({"version": TO})));
    spoken.is_stalled("InvalidSpec", &["spec.version", "correct the field that the message names"]);
}

#[test]
fn a_deadline_that_looks_like_a_duration_and_is_none() {
    let objects = spec_with(|spec| spec["upgrade"] = json!({"deadlines": {"ready": "5m99999999999999999999h"}}));
    let spoken = wrong_until(objects, pd::spec(json!({"upgrade": {"deadlines": {"ready": "5m"}}})));
    spoken.is_stalled("InvalidSpec", &["spec.upgrade.deadlines.ready", "correct the field that the message names"]);
}

#[test]
fn a_window_on_a_day_that_no_year_has() {
    let objects = spec_with(|spec| spec["gates"] = json!({"windows": [{"schedule": "0 2 30 2 *", "duration": "1h"}]}));
    let spoken = wrong_until(objects, pd::spec(json!({"gates": {"windows": []}})));
    spoken.is_stalled("InvalidSpec", &["spec.gates.windows[0].schedule", "there is no such date"]);
}

#[test]
fn a_window_in_a_time_zone_that_nobody_knows() {
    let window = json!({"schedule": "0 2 * * *", "duration": "1h", "timeZone": "Europe/Bielefeld"});
    let objects = spec_with(|spec| spec["gates"] = json!({"windows": [window]}));
    let spoken = wrong_until(objects, pd::spec(json!({"gates": {"windows": []}})));
    spoken.is_stalled("InvalidSpec", &["spec.gates.windows[0].timeZone", "Europe/Bielefeld"]);
}

/// A resource that is older than the schema's rule: nobody but OpenBao and Vault gets to see a token (H41).
#[test]
fn a_login_at_a_system_that_takes_no_token() {
    let auth = |spec: &mut Value| spec["system"]["auth"] = json!({"kubernetes": {"role": "windlass"}});
    let objects = with(spec_with(auth), "CustomResourceDefinition", |crd| {
        let system = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/system";
        // Of the one that has a system.
        if let Some(system) = crd.pointer_mut(system).and_then(Value::as_object_mut) {
            system.remove("x-kubernetes-validations").expect("its rules");
        }
    });
    let tale = tell(objects, vec![pd::after(A_WHILE, pd::spec(json!({"system": {"auth": null}})))]);
    tale.touched_nothing(tale.before_all());
    tale.ended_ready_at(TO);
    let spoken = tale.last_said(tale.before_all());
    spoken.is_stalled("InvalidSpec", &["spec.system.auth", "the type Pd takes none"]);
    assert!(!tale.calls.iter().any(|call| call.contains("login")), "{:?}", tale.calls);
}

/// The same without TLS: whoever listens to the network would have the token (H41).
#[test]
fn h41_a_login_that_everybody_can_listen_to() {
    everybody_can_listen();
}

#[test]
fn a_login_in_plain_text_is_noticed() {
    crate::support::is_noticed(windlass_plan::bug::Bug::PlaintextLogin, everybody_can_listen);
}

fn everybody_can_listen() {
    let setting = windlass_rehearsal::setting::OPENBAO;
    let mut scenario = setting.reference(1);
    for object in &mut scenario.objects {
        if object["kind"] == "QuorumCluster" {
            object["spec"]["system"]["auth"] = json!({"kubernetes": {"role": "windlass"}});
        }
        let system = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/system";
        if let Some(system) = object.pointer_mut(system).and_then(Value::as_object_mut) {
            system.remove("x-kubernetes-validations").expect("its rules");
        }
    }
    scenario.ending = windlass_rehearsal::trial::Ending::Held("InvalidSpec".to_owned());
    let outcome = windlass_rehearsal::trial::run(&scenario, &[], &windlass_rehearsal::operator).expect("a runtime");
    assert_eq!(outcome.fault(), None);
    let said = crate::support::message(&outcome);
    assert!(said.contains("without tls") && said.contains("auth.allowPlaintext"), "{said}");
    assert!(!outcome.calls.iter().any(|call| call.contains("login")), "{:?}", outcome.calls);
}

#[test]
fn a_stateful_set_whose_own_image_cannot_be_parsed() {
    let objects = with(three(), "StatefulSet", |set| {
        set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("PingCAP/PD:v8.5.0");
    });
    let spoken = wrong_until(objects, pd::spec(json!({"image": image(TO)})));
    spoken.is_stalled("InvalidSpec", &["the StatefulSet's image", "correct the field that the message names"]);
}

#[test]
fn a_stateful_set_that_does_not_exist() {
    let (objects, workload) = without(three(), "StatefulSet");
    let spoken = wrong_until(objects, Action::Create(workload));
    spoken.is_stalled("WorkloadNotFound", &["there is no StatefulSet pd", "create the StatefulSet"]);
}

/// Three members whose container has another name than the QuorumCluster says.
fn misnamed_container() -> Vec<Value> {
    with(three(), "StatefulSet", |set| set["spec"]["template"]["spec"]["containers"][0]["name"] = json!("main"))
}

#[test]
fn a_container_that_does_not_exist_until_the_stateful_set_gets_it() {
    let containers = json!([{"name": "pd", "image": image(FROM), "ports": [{"containerPort": 2379}]}]);
    let mend = set(&json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    let spoken = wrong_until(misnamed_container(), mend);
    spoken.is_stalled(
        "ContainerNotFound",
        &["StatefulSet pd has no container pd; it has main", "names the right container"],
    );
}

#[test]
fn a_container_that_does_not_exist_until_another_quorum_cluster_names_the_right_one() {
    let mut right = pd::quorum_cluster(pd::NAME, TO);
    right["spec"]["workload"]["container"] = json!("main");
    let mends = vec![
        pd::after(A_WHILE, Action::Delete(pd::subject())),
        pd::after(Duration::from_secs(1), Action::Create(right)),
    ];
    let tale = tell(misnamed_container(), mends);
    tale.touched_nothing(tale.before_all());
    tale.last_said(tale.before_all()).is_stalled("ContainerNotFound", &["no container pd"]);
    tale.ended_ready_at(TO);
}

#[test]
fn no_replicas() {
    let objects = with(three(), "StatefulSet", |set| set["spec"]["replicas"] = json!(0));
    let spoken = wrong_until(objects, set(&json!({"spec": {"replicas": 3}})));
    spoken.is_stalled("NoReplicas", &["StatefulSet pd is scaled to 0", "scale the StatefulSet up"]);
}

#[test]
fn a_member_without_a_pod() {
    let objects = with(pd::objects(4, FROM, TO), "QuorumCluster", |resource| resource["spec"]["paused"] = json!(true));
    let timeline = vec![
        pd::after(Duration::from_secs(10), set(&json!({"spec": {"replicas": 3}}))),
        pd::after(Duration::from_secs(30), pd::spec(json!({"paused": false}))),
        pd::after(A_WHILE, set(&json!({"spec": {"replicas": 4}}))),
    ];
    let tale = tell(objects, timeline);
    tale.touched_nothing(0..tale.between(1, 2).end);
    let spoken = tale.last_said(tale.between(1, 2));
    spoken
        .is_stalled("MembersDoNotMatch", &["members that have no pod: pd-3", "remove members that are gone for good"]);
    tale.ended_ready_at(TO);
}

#[test]
fn a_stateful_set_that_is_being_deleted_and_comes_again() {
    let (objects, workload) = without(three(), "StatefulSet");
    let mut held = workload.clone();
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let objects =
        with([objects, vec![held]].concat(), "QuorumCluster", |resource| resource["spec"]["paused"] = json!(true));
    let timeline = vec![
        pd::after(Duration::from_secs(10), Action::Delete(pd::workload())),
        pd::after(Duration::from_secs(1), pd::spec(json!({"paused": false}))),
        pd::after(A_WHILE, set(&json!({"metadata": {"finalizers": null}}))),
        pd::after(A_WHILE, Action::Create(workload)),
    ];
    let tale = tell(objects, timeline);
    tale.touched_nothing(0..tale.between(2, 3).end);
    let deleting = tale.last_said(tale.between(1, 2));
    deleting.is_stalled(
        "WorkloadDeleting",
        &["StatefulSet pd is being deleted", "nothing is done to a StatefulSet that is being deleted"],
    );
    tale.last_said(tale.between(2, 3)).is_stalled("WorkloadNotFound", &["there is no StatefulSet pd"]);
    tale.ended_ready_at(TO);
}

#[test]
fn two_quorum_clusters_on_one_stateful_set() {
    let mut objects = with(three(), "QuorumCluster", |resource| resource["spec"]["version"] = json!(FROM));
    objects.push(pd::quorum_cluster("rival", TO));
    let rival = Subject { name: "rival".into(), ..pd::subject() };
    let timeline = vec![
        pd::after(A_WHILE, Action::Delete(rival)),
        pd::after(Duration::from_secs(5), pd::spec(json!({"version": TO}))),
    ];
    let tale = tell(objects, timeline);
    tale.touched_nothing(tale.before_all());
    let spoken = tale.said_of("rival", tale.before_all()).pop().expect("it was told");
    spoken.is_stalled("AlreadyManaged", &["managed by QuorumCluster pd", "delete this QuorumCluster"]);
    tale.ended_ready_at(TO);
}

#[test]
fn the_younger_of_two_takes_over_when_the_older_one_is_deleted() {
    let mut objects = with(three(), "QuorumCluster", |resource| resource["metadata"]["name"] = json!("older"));
    objects
        .iter_mut()
        .filter(|object| object["kind"] == "QuorumCluster")
        .for_each(|older| older["spec"]["version"] = json!(FROM));
    let older = Subject { name: "older".into(), ..pd::subject() };
    objects.push(pd::quorum_cluster(pd::NAME, TO));
    let tale = tell(objects, vec![pd::after(A_WHILE, Action::Delete(older))]);
    tale.touched_nothing(tale.before_all());
    tale.last_said(tale.before_all()).is_stalled("AlreadyManaged", &["managed by QuorumCluster older"]);
    tale.ended_ready_at(TO);
}

/// All three answer like this for a while.
fn everyone_answers(how: BadAnswer) -> Tale {
    let everyone = |how: Option<BadAnswer>| (0..3).map(move |ordinal| Action::Answers(pd::pod(ordinal), how));
    let break_off = everyone(Some(how)).map(|action| pd::after(Duration::ZERO, action));
    let mend = (0..)
        .zip(everyone(None))
        .map(|(number, action)| pd::after(if number == 0 { A_WHILE } else { Duration::ZERO }, action));
    let tale = tell(three(), break_off.chain(mend).collect());
    tale.touched_nothing(0..tale.between(2, 3).end);
    tale.ended_ready_at(TO);
    tale
}

#[test]
fn pd_answers_garbage() {
    let tale = everyone_answers(BadAnswer::Garbage);
    tale.last_said(tale.between(2, 3)).is_waiting("MembersUnknown", &["pd-0", "goes on as soon as all members answer"]);
}

#[test]
fn pd_answers_500() {
    let tale = everyone_answers(BadAnswer::Status500);
    tale.last_said(tale.between(2, 3)).is_waiting("MembersUnknown", &["500", "goes on as soon as all members answer"]);
}

#[test]
fn pd_does_not_answer() {
    for how in [BadAnswer::Nothing, BadAnswer::Refused, BadAnswer::Empty] {
        let tale = everyone_answers(how);
        tale.last_said(tale.between(2, 3))
            .is_waiting("MembersUnknown", &["pd-0", "goes on as soon as all members answer"]);
    }
}
