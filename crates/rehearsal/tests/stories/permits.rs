//! A permit that stands is taken back as soon as anything speaks against it, whatever else is wrong: Kubernetes may use it at any
//! moment, and here it is kept from doing so for five minutes.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::support::{
    TO, Tale, image, is_noticed,
    stage::{self, pass, patch, permit_stands, until, until_reason},
    three,
};
use http::{Method, Request};
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
    client::Body,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_plan::bug::Bug;
use windlass_rehearsal::{operator, pd};
use windlass_sim::{
    harness::{Cluster, Seat},
    world::BadAnswer,
};

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
    assert_eq!(tale.events(0..tale.journal.len())["ReplacementWithdrawn"].len(), 1);
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

/// What the StatefulSet's controller does in the very moment in which the partition is raised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    /// It writes its status.
    Speaks,
    /// It writes its status, and the pod is gone that the permit is for.
    Replaces,
}

/// Then, with a member that is silent: when the partition was raised, and the partition half a minute later.
fn raised_while_the_controller_is_busy(meanwhile: Meanwhile) -> (Vec<Instant>, Value) {
    let (controller, raised_at) = (Rc::new(RefCell::new(None)), Arc::new(Mutex::new(Vec::new())));
    let partition = RefCell::new(Value::Null);
    let program = {
        let (controller, raised_at) = (controller.clone(), raised_at.clone());
        move |seat: Seat| {
            let controller: Client = controller.borrow().clone().expect("the controller's client");
            operator(Seat { client: interrupted(seat.client, controller, meanwhile, raised_at.clone()), ..seat })
        }
    };
    let tale = stage::play_beside(
        three(),
        &program,
        |cluster| *controller.borrow_mut() = Some(cluster.api.client("statefulset-controller")),
        async |cluster| {
            permit_stands(cluster).await;
            cluster.world.break_answers(pd::NAMESPACE, "pd-0", Some(BadAnswer::Nothing));
            until(cluster, "the permit is taken back", |_| !raised_at.lock().expect("nobody panicked").is_empty())
                .await;
            pass(Duration::from_secs(30)).await;
            partition.replace(stage::partition(cluster));
        },
    );
    tale.was_safe();
    let raised_at = raised_at.lock().expect("nobody panicked").clone();
    (raised_at, partition.take())
}

/// Whoever looks at all members again before the second try gives Kubernetes seconds.
fn the_controllers_status_is_in_the_way() {
    let (raised_at, partition) = raised_while_the_controller_is_busy(Meanwhile::Speaks);
    let [first, second] = raised_at[..] else { panic!("raised at {raised_at:?}") };
    assert!(second - first < Duration::from_millis(500), "{:?} later", second - first);
    assert_eq!(partition, 3);
}

/// Held by the partition, the pod that is made next would be made from the template before.
fn the_pod_was_let_go_meanwhile() {
    let (raised_at, partition) = raised_while_the_controller_is_busy(Meanwhile::Replaces);
    assert_eq!((raised_at.len(), partition), (1, json!(2)), "the permit was used");
}

/// The operator's client, where this one is busy right before the partition is raised for the first time. When it is raised is noted.
fn interrupted(
    client: Client,
    controller: Client,
    meanwhile: Meanwhile,
    raised_at: Arc<Mutex<Vec<Instant>>>,
) -> Client {
    let send = move |request: Request<Body>| {
        let (client, controller, raised_at) = (client.clone(), controller.clone(), raised_at.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let on_set = parts.method == Method::PATCH && parts.uri.path().ends_with("/statefulsets/pd");
            let text = String::from_utf8_lossy(&body);
            let raises =
                text.contains("/updateStrategy/rollingUpdate/partition\",\"value\":3") && !text.contains("/image");
            if on_set && raises {
                let tries = {
                    let mut raised_at = raised_at.lock().expect("nobody panicked");
                    raised_at.push(Instant::now());
                    raised_at.len()
                };
                if tries == 1 {
                    if meanwhile == Meanwhile::Replaces {
                        let pods: Api<Pod> = Api::namespaced(controller.clone(), pd::NAMESPACE);
                        pods.delete("pd-2", &DeleteParams::default().grace_period(0)).await?;
                    }
                    let sets: Api<StatefulSet> = Api::namespaced(controller, pd::NAMESPACE);
                    let now = json!({"status": {"collisionCount": 7}});
                    sets.patch_status("pd", &PatchParams::default(), &Patch::Merge(now)).await?;
                }
            }
            client.send(Request::from_parts(parts, Body::from(body))).await
        }
    };
    Client::new(tower::service_fn(send), "default")
}

#[test]
fn it_is_taken_back_at_once_where_the_controllers_status_was_in_the_way() {
    the_controllers_status_is_in_the_way();
}

#[test]
fn it_is_left_where_the_pod_was_let_go_meanwhile() {
    the_pod_was_let_go_meanwhile();
}

#[test]
fn a_partition_that_is_raised_only_after_another_look_is_noticed() {
    is_noticed(Bug::HoldWaitsForALook, the_controllers_status_is_in_the_way);
}

#[test]
fn a_partition_that_is_raised_blindly_is_noticed() {
    is_noticed(Bug::HeldBlindly, the_pod_was_let_go_meanwhile);
}
