//! Clusters as people have them: init containers with the system's image, an operator that may not read nodes.

use std::{future::Future, pin::Pin};

use crate::support::{A_WHILE, FROM, TO, Tale, at, image, tell, tell_until, tell_with, three, with};
use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use windlass_rehearsal::{context, pd, trial::Ending};
use windlass_sim::{
    harness::Seat,
    scenario::{Action, When},
};

/// A set whose pods run PD's own image before PD does, and another's; the first of them follows.
fn with_init_containers(names: &Value) -> Vec<Value> {
    let objects = with(three(), "StatefulSet", |set| {
        set["spec"]["template"]["spec"]["initContainers"] =
            json!([{"name": "sysctl", "image": "busybox:1.36"}, {"name": "check", "image": image(FROM)}]);
    });
    with(objects, "QuorumCluster", |resource| resource["spec"]["workload"]["initContainers"] = names.clone())
}

/// In every template that was ever written the two images are one.
#[track_caller]
fn images_stay_together(tale: &Tale, version: &str) {
    let sets = tale.writes(0..tale.journal.len()).filter(|change| change.resource == "statefulsets.apps");
    let templates: Vec<Value> =
        sets.filter_map(|change| Some(change.after.as_deref()?["spec"]["template"]["spec"].clone())).collect();
    for template in &templates {
        assert_eq!(template["initContainers"][1]["image"], template["containers"][0]["image"]);
        assert_eq!(template["initContainers"][0]["image"], "busybox:1.36");
    }
    assert_eq!(templates.last().expect("templates")["containers"][0]["image"], image(version));
}

#[test]
fn init_containers_that_are_named_follow_the_image() {
    let tale = tell(with_init_containers(&json!(["check"])), vec![]);
    tale.ended_ready_at(TO);
    images_stay_together(&tale, TO);
}

#[test]
fn they_follow_it_back() {
    let back = at(When::Replaced(1), pd::spec(json!({"version": FROM, "policy": {"allowDowngrade": true}})));
    let tale = tell(with_init_containers(&json!(["check"])), vec![back]);
    tale.ended_ready_at(FROM);
    images_stay_together(&tale, FROM);
}

#[test]
fn one_that_is_not_there_is_named() {
    let tale = tell_until(with_init_containers(&json!(["chekc"])), vec![], Ending::Held("InvalidSpec".into()));
    tale.was_safe();
    tale.last_said(0..tale.journal.len())
        .is_stalled("InvalidSpec", &["spec.workload.initContainers", "no init container chekc", "sysctl, check"]);
}

/// The API server of an operator whose rights end at its namespaces.
fn without_nodes(client: kube::Client) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            if !request.uri().path().starts_with("/api/v1/nodes") {
                return client.send(request).await;
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden",
                "message": "nodes is forbidden: User \"windlass\" cannot get resource \"nodes\"", "code": 403,
            });
            let answer = Response::builder().status(403).header("content-type", "application/json");
            Ok(answer.body(Body::from(status.to_string().into_bytes())).expect("an answer"))
        }
    });
    kube::Client::new(service, "default")
}

fn operator(mut seat: Seat, ignores_nodes: bool) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        seat.client = without_nodes(seat.client);
        let mut context = context(seat);
        context.settings.ignore_nodes = ignores_nodes;
        windlass_operator::run(&context, std::future::pending()).await;
    })
}

#[test]
fn nodes_that_may_not_be_read_hold_and_the_way_out_is_named() {
    let ending = Ending::Held("NodeDraining".into());
    let tale = tell_with(three(), vec![], ending, &|seat| operator(seat, false));
    tale.was_safe();
    tale.last_said(0..tale.journal.len()).is_waiting("NodeDraining", &["nodes is forbidden", "--ignore-nodes"]);
}

#[test]
fn nodes_that_are_not_looked_at_hold_nobody_and_it_is_said() {
    let drain = pd::after(A_WHILE, Action::Uncordon("node-0".into()));
    let tale = tell_with(three(), vec![drain], Ending::Ready, &|seat| operator(seat, true));
    tale.ended_ready_at(TO);
    let said = tale.said(0..tale.journal.len());
    let gates = said.iter().flat_map(|spoken| spoken.status["gates"].as_array().cloned().unwrap_or_default());
    let states: Vec<Value> = gates.filter(|gate| gate["name"] == "NodeDrain").collect();
    assert!(!states.is_empty() && states.iter().all(|gate| gate["state"] == "NotAsked"), "{states:?}");
    assert!(states.iter().all(|gate| gate["message"].as_str().is_some_and(|text| text.contains("--ignore-nodes"))));
}
