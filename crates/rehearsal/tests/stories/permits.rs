//! A permit that stands is taken back as soon as anything speaks against it, whatever else is wrong: Kubernetes may use it at any
//! moment, and here it is kept from doing so for five minutes.

use std::time::Duration;

use crate::support::{
    TO, Tale, image,
    stage::{self, pass, patch, permit_stands, until_reason},
    three,
};
use serde_json::{Value, json};
use windlass_rehearsal::pd;
use windlass_sim::harness::Cluster;

/// Something is done while the permit stands; then Kubernetes would be free to use it.
fn while_a_permit_stands(act: impl Fn(&Cluster)) -> Tale {
    while_a_permit_stands_on(three(), act)
}

fn while_a_permit_stands_on(objects: Vec<Value>, act: impl Fn(&Cluster)) -> Tale {
    stage::play(objects, async |cluster| {
        permit_stands(cluster).await;
        act(cluster);
        pass(Duration::from_mins(10)).await;
    })
}

fn spec(cluster: &Cluster, spec: &Value) {
    patch(cluster, &pd::subject(), &json!({"spec": spec}));
}

#[test]
fn it_is_taken_back_when_somebody_pauses() {
    let tale = while_a_permit_stands(|cluster| spec(cluster, &json!({"paused": true})));
    assert_eq!(tale.replaced(0..tale.journal.len()), Vec::<String>::new());
    assert_eq!(tale.events(0..tale.journal.len())["PermitTakenBack"].len(), 1);
    tale.was_safe();
}

#[test]
fn it_is_taken_back_when_the_spec_cannot_be_read_any_more() {
    let tale = while_a_permit_stands(|cluster| spec(cluster, &json!({"image": "PingCAP/pd:8.5"})));
    assert_eq!(tale.replaced(0..tale.journal.len()), Vec::<String>::new());
    tale.last_said(0..tale.journal.len()).is_stalled("InvalidSpec", &["spec.image"]);
    tale.was_safe();
}

#[test]
fn the_leader_is_not_replaced_because_the_spec_cannot_be_read() {
    let tale = while_a_permit_stands(|cluster| {
        spec(cluster, &json!({"image": "PingCAP/pd:8.5"}));
        cluster.world.pd(pd::NAMESPACE, pd::NAME).force_leader("pd-2");
    });
    tale.was_safe();
}

#[test]
fn it_is_taken_back_when_somebody_changes_the_image() {
    let containers = json!([{"name": "pd", "image": image("8.5.1"), "ports": [{"containerPort": 2379}]}]);
    let tale = while_a_permit_stands(|cluster| {
        patch(cluster, &pd::workload(), &json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    });
    assert_eq!(tale.replaced(0..tale.journal.len()), Vec::<String>::new(), "nobody asked for that image");
    tale.last_said(0..tale.journal.len()).is_stalled("TemplateChanged", &["v8.5.1", "put the template back"]);
}

#[test]
fn it_is_taken_back_when_the_quorum_cluster_is_deleted() {
    let tale = while_a_permit_stands(|cluster| stage::delete(cluster, &pd::subject()));
    assert_eq!(tale.replaced(0..tale.journal.len()), Vec::<String>::new());
    assert_eq!(tale.strategy()["rollingUpdate"]["partition"], 3);
    assert_eq!(tale.subject, Value::Null, "it is gone");
    tale.was_safe();
}

#[test]
fn it_is_taken_back_when_the_quorum_cluster_is_deleted_although_its_spec_cannot_be_read() {
    let tale = while_a_permit_stands(|cluster| {
        spec(cluster, &json!({"image": "PingCAP/pd:8.5"}));
        stage::delete(cluster, &pd::subject());
    });
    assert_eq!(tale.replaced(0..tale.journal.len()), Vec::<String>::new());
    assert_eq!(tale.subject, Value::Null, "it is gone");
    tale.was_safe();
}

#[test]
fn it_is_given_again_when_all_is_well() {
    let tale = stage::play(three(), async |cluster| {
        permit_stands(cluster).await;
        spec(cluster, &json!({"paused": true}));
        until_reason(cluster, "Paused").await;
        spec(cluster, &json!({"paused": false}));
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}
