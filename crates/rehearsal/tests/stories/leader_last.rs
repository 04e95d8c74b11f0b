//! The order LeaderLast on a whole cluster: sets that are OnDelete, sets that become it, and templates that nobody can live on.

use std::time::Duration;

use crate::support::{
    A_WHILE, FROM, TO, Tale, image, set_image,
    stage::{self, patch, until, until_reason, until_stalled},
    tell, tell_until, three, with,
};
use serde_json::{Value, json};
use windlass_rehearsal::{pd, trial::Ending};
use windlass_sim::{
    harness::Cluster,
    scenario::{Action, Moment, Subject},
    world::ImageBehaviour,
};

const NEXT: &str = "8.5.4";
/// Long enough for the whole upgrade.
const AT_REST: Duration = Duration::from_mins(10);

fn on_delete(objects: Vec<Value>) -> Vec<Value> {
    with(objects, "StatefulSet", |set| set["spec"]["updateStrategy"] = json!({"type": "OnDelete"}))
}

fn ordered(objects: Vec<Value>, order: &str) -> Vec<Value> {
    with(objects, "QuorumCluster", |resource| {
        resource["spec"]["updateStrategy"] = json!({"rollingUpdate": {"order": order}});
    })
}

fn rolling(partition: u32) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}})
}

fn leader(ordinal: u32) -> Moment {
    pd::after(Duration::ZERO, Action::Elect(pd::pod(ordinal)))
}

/// The StatefulSet's strategies, each as often as it was written by us.
fn strategies(tale: &Tale) -> Vec<Value> {
    let writes = tale.our_writes(0..tale.journal.len()).filter(|change| change.resource == "statefulsets.apps");
    writes
        .filter_map(|change| {
            let strategy =
                |object: &Option<std::sync::Arc<Value>>| object.as_deref()?.pointer("/spec/updateStrategy").cloned();
            let (before, after) = (strategy(&change.before), strategy(&change.after));
            after.filter(|_| before != strategy(&change.after))
        })
        .collect()
}

#[test]
fn an_on_delete_set_is_upgraded_leader_last() {
    for (ordinal, order) in
        [(0, ["pd-2", "pd-1", "pd-0"]), (1, ["pd-2", "pd-0", "pd-1"]), (2, ["pd-1", "pd-0", "pd-2"])]
    {
        let tale = tell(on_delete(three()), vec![leader(ordinal)]);
        assert_eq!(tale.deleted_by_us(), order);
        assert_eq!((tale.verdict.leader_moves, tale.verdict.leader_restarts), (1, 0));
        assert_eq!((tale.strategy(), strategies(&tale)), (json!({"type": "OnDelete"}), vec![]));
        tale.ended_ready_at(TO);
    }
}

#[test]
fn the_status_tells_the_order_and_the_proof() {
    let tale = tell(on_delete(three()), vec![]);
    let told: Vec<Value> =
        tale.said(0..tale.journal.len()).iter().map(|spoken| spoken.status["upgrade"].clone()).collect();
    assert!(told.iter().any(|upgrade| upgrade["order"] == "LeaderLast" && upgrade["templateTrial"] == "Running"));
    assert!(told.iter().any(|upgrade| upgrade["templateTrial"] == "Passed"));
}

#[test]
fn a_rolling_set_becomes_on_delete_and_gets_its_strategy_back() {
    let objects = ordered(three(), "LeaderLast");
    let tale = tell(objects.clone(), vec![leader(2)]);
    assert_eq!(tale.deleted_by_us(), ["pd-1", "pd-0", "pd-2"]);
    assert_eq!(tale.verdict.leader_moves, 1);
    assert_eq!(strategies(&tale), [json!({"type": "OnDelete"})]);
    tale.ended_ready_at(TO);

    let gone = vec![pd::after(AT_REST, Action::Delete(pd::subject())), pd::after(A_WHILE, crate::support::mark())];
    let tale = tell_until(objects, gone.clone(), Ending::Ready);
    tale.was_safe();
    assert_eq!((tale.strategy(), &tale.subject), (rolling(0), &Value::Null));

    let held = with(ordered(three(), "LeaderLast"), "StatefulSet", |set| set["spec"]["updateStrategy"] = rolling(1));
    let tale = tell_until(held, gone, Ending::Ready);
    tale.was_safe();
    assert_eq!(strategies(&tale), [json!({"type": "OnDelete"}), rolling(0), rolling(1)], "concluded in between (H7)");
    assert_eq!(tale.subject, Value::Null);
}

/// What we replaced of a strategy comes back as it was, whatever is in it; the rest of it is never touched.
#[test]
fn all_of_a_strategy_comes_back() {
    let found = rolling(1);
    let own = |objects| with(objects, "StatefulSet", |set| set["spec"]["updateStrategy"] = found.clone());
    let gone = vec![pd::after(AT_REST, Action::Delete(pd::subject())), pd::after(A_WHILE, crate::support::mark())];
    for (order, on_the_way) in [("LeaderLast", json!({"type": "OnDelete"})), ("ReverseOrdinal", rolling(3))] {
        let tale = tell_until(ordered(own(three()), order), gone.clone(), Ending::Ready);
        tale.was_safe();
        let said = tale.last_said(tale.before_all()).status.clone();
        assert_eq!((said["phase"].as_str(), &said["adopted"]["strategy"]), (Some("UpToDate"), &found));
        assert!(strategies(&tale).contains(&on_the_way), "{:?}", strategies(&tale));
        assert_eq!((tale.strategy(), &tale.subject), (found.clone(), &Value::Null));
    }
}

/// The version is withdrawn when the strategy has been switched for it and the controller stands still: partition 0 does not stay.
#[test]
fn a_switch_that_is_withdrawn_is_put_back() {
    let timeline = vec![
        pd::after(Duration::from_mins(1), Action::FreezeControllers(Duration::from_mins(1))),
        pd::after(Duration::ZERO, pd::spec(json!({"version": TO}))),
        pd::after(Duration::from_secs(30), pd::spec(json!({"version": FROM}))),
        pd::after(Duration::from_mins(2), crate::support::mark()),
    ];
    let tale = tell(ordered(on_delete(pd::objects(3, FROM, FROM)), "ReverseOrdinal"), timeline);
    assert_eq!(strategies(&tale), [rolling(0), json!({"type": "OnDelete"})]);
    tale.ended_ready_at(FROM);
    assert_eq!(tale.verdict.restarts, Vec::<String>::new());
}

/// The resource can't be read any more when the strategy has been switched and the controller stands still: nobody would mind partition 0.
fn a_switch_while_the_spec_cannot_be_read() {
    let odd = json!({"gates": windlass_rehearsal::odd::gates("Soak")});
    let timeline = vec![
        pd::after(Duration::from_mins(1), Action::FreezeControllers(Duration::from_mins(5))),
        pd::after(Duration::ZERO, pd::spec(json!({"version": TO}))),
        pd::after(Duration::from_secs(30), pd::spec(odd)),
        pd::after(Duration::from_mins(1), crate::support::mark()),
    ];
    let objects = ordered(on_delete(pd::objects(3, FROM, FROM)), "ReverseOrdinal");
    let tale = tell_until(objects, timeline, Ending::Held("Unreadable".into()));
    assert_eq!(strategies(&tale), [rolling(0), json!({"type": "OnDelete"})]);
    assert_eq!(tale.verdict.restarts, Vec::<String>::new());
}

#[test]
fn a_switch_is_put_back_when_the_spec_cannot_be_read() {
    a_switch_while_the_spec_cannot_be_read();
}

#[test]
fn a_switch_that_is_left_standing_is_noticed() {
    crate::support::is_noticed(windlass_plan::bug::Bug::SwitchLeftStanding, a_switch_while_the_spec_cannot_be_read);
}

/// Deleted while the switch has not been concluded.
#[test]
fn a_switch_is_put_back_when_the_resource_goes() {
    let timeline = vec![
        pd::after(Duration::from_mins(1), Action::FreezeControllers(Duration::from_mins(1))),
        pd::after(Duration::ZERO, pd::spec(json!({"version": TO}))),
        pd::after(Duration::from_secs(30), Action::Delete(pd::subject())),
        pd::after(Duration::from_mins(2), crate::support::mark()),
    ];
    let tale = tell_until(ordered(on_delete(pd::objects(3, FROM, FROM)), "ReverseOrdinal"), timeline, Ending::Ready);
    tale.was_safe();
    assert_eq!((tale.strategy(), &tale.subject), (json!({"type": "OnDelete"}), &Value::Null));
}

/// The set was upgraded by hand before, so that its current revision is one that nobody runs.
#[test]
fn an_on_delete_set_is_rolled_by_its_partition_where_that_is_asked_for() {
    let (objects, resource) =
        crate::support::without(ordered(on_delete(pd::objects(3, "8.1.2", TO)), "ReverseOrdinal"), "QuorumCluster");
    let by_hand = |ordinal: u32| {
        let pod = Subject { resource: "pods".into(), namespace: pd::NAMESPACE.into(), name: format!("pd-{ordinal}") };
        pd::after(Duration::from_mins(1), Action::Delete(pod))
    };
    let begin = vec![
        pd::after(Duration::from_secs(10), set_image(&image(FROM))),
        by_hand(0),
        by_hand(1),
        by_hand(2),
        pd::after(Duration::from_mins(1), Action::Create(resource)),
    ];
    let tale = tell(objects.clone(), begin.clone());
    assert_eq!(strategies(&tale).first(), Some(&rolling(0)));
    assert_eq!(strategies(&tale).get(1), Some(&rolling(3)));
    assert_eq!((tale.deleted_by_us(), tale.strategy()), (vec![], rolling(3)));
    tale.ended_ready_at(TO);

    let gone = vec![pd::after(AT_REST, Action::Delete(pd::subject())), pd::after(A_WHILE, crate::support::mark())];
    let tale = tell_until(objects, [begin, gone].concat(), Ending::Ready);
    tale.was_safe();
    assert_eq!((tale.strategy(), &tale.subject), (json!({"type": "OnDelete"}), &Value::Null), "what it was");
}

#[test]
fn a_half_upgraded_on_delete_set_waits_for_a_person_and_is_then_finished() {
    let (objects, resource) = crate::support::without(on_delete(three()), "QuorumCluster");
    let pod = Subject { resource: "pods".into(), namespace: pd::NAMESPACE.into(), name: "pd-1".into() };
    let tale = tell(
        objects,
        vec![
            pd::after(Duration::from_secs(10), set_image(&image(TO))),
            pd::after(Duration::from_secs(5), Action::Delete(pod)),
            pd::after(Duration::from_mins(1), Action::Create(resource)),
            pd::after(A_WHILE, pd::spec(json!({"requests": {"resume": "monday"}}))),
        ],
    );
    tale.last_said(tale.between(2, 3)).is_stalled("RolloutPending", &["pd-0, pd-2 not replaced yet"]);
    tale.touched_nothing(tale.between(2, 3));
    assert_eq!(tale.deleted_by_us().len(), 2, "the one that was done is left alone");
    tale.ended_ready_at(TO);
}

// Deletion in the middle (H40).

fn template(tale: &Tale) -> Value {
    tale.newest("statefulsets.apps", pd::NAME)
        .and_then(|set| set.pointer("/spec/template/spec/containers/0/image"))
        .cloned()
        .unwrap_or_default()
}

fn until_image(cluster: &Cluster, wanted: &str) -> bool {
    let set = cluster.api.get_value("statefulsets.apps", pd::NAMESPACE, pd::NAME);
    set.is_some_and(|set| set.pointer("/spec/template/spec/containers/0/image") == Some(&json!(wanted)))
}

#[test]
fn deleted_in_the_middle_nothing_moves_any_more() {
    let tale = stage::play(on_delete(three()), async |cluster| {
        let proven = |cluster: &Cluster| {
            let subject = cluster.api.get_value("quorumclusters.windlass.dev", pd::NAMESPACE, pd::NAME);
            subject.is_some_and(|subject| subject.pointer("/status/upgrade/templateTrial") == Some(&json!("Passed")))
        };
        until(cluster, "a member that serves", proven).await;
        stage::delete(cluster, &pd::subject());
        stage::pass(A_WHILE).await;
    });
    tale.was_safe();
    assert!(tale.deleted_by_us().len() <= 2, "{:?}", tale.deleted_by_us());
    assert_eq!((template(&tale), tale.strategy()), (json!(image(TO)), json!({"type": "OnDelete"})));
    assert_eq!(tale.subject, Value::Null);
}

#[test]
fn deleted_before_anybody_serves_the_template_is_put_back() {
    let tale = stage::play(on_delete(three()), async |cluster| {
        until(cluster, "the template", |cluster| until_image(cluster, &image(TO))).await;
        stage::delete(cluster, &pd::subject());
        stage::pass(A_WHILE).await;
    });
    tale.was_safe();
    assert_eq!((template(&tale), &tale.subject), (json!(image(FROM)), &Value::Null));
}

// A template that nobody can live on (H21).

fn broken(behaviour: ImageBehaviour, story: impl AsyncFnOnce(&Cluster)) -> Tale {
    stage::play(on_delete(three()), async |cluster| {
        cluster.world.set_image(&image(TO), behaviour);
        until(cluster, "the template", |cluster| until_image(cluster, &image(TO))).await;
        until(cluster, "the old template", |cluster| until_image(cluster, &image(FROM))).await;
        story(cluster).await;
        until_reason(cluster, "UpToDate").await;
    })
}

#[test]
fn a_broken_template_is_put_back_and_whoever_is_lost_comes_back_well() {
    let tale = broken(ImageBehaviour::Crashes, async |cluster| {
        let told = until_stalled(cluster, "TemplateReverted").await;
        for word in ["the template of 8.5.0 was put back", "nobody has served", "spec.requests.resume"] {
            assert!(told.message.contains(word), "{}", told.message);
        }
        let leader = cluster.world.truths().iter().flat_map(|truth| truth.members.clone()).find(|member| member.leader);
        let leader = leader.expect("a leader").pod;
        let other = ["pd-0", "pd-1", "pd-2"].into_iter().find(|pod| {
            let made = cluster.api.get_value("pods", pd::NAMESPACE, pod);
            *pod != leader
                && made.is_some_and(|made| made.pointer("/spec/containers/0/image") == Some(&json!(image(FROM))))
        });
        let other = Subject {
            resource: "pods".into(),
            namespace: pd::NAMESPACE.into(),
            name: other.expect("an old one").into(),
        };
        stage::delete(cluster, &other);
        stage::pass(Duration::from_mins(1)).await;
        let back = cluster.api.get_value("pods", pd::NAMESPACE, &other.name).expect("it is back");
        assert_eq!(back.pointer("/spec/containers/0/image"), Some(&json!(image(FROM))));
        patch(cluster, &pd::subject(), &json!({"spec": {"version": NEXT}}));
    });
    tale.ended_ready_at(NEXT);
    assert_eq!(tale.deleted_by_us().len(), 4, "the broken one once more");
}

#[test]
fn a_broken_template_is_reverted_at_once() {
    let tale = broken(ImageBehaviour::CannotPull, async |cluster| {
        patch(cluster, &pd::subject(), &json!({"spec": {"version": FROM}}));
    });
    tale.ended_ready_at(FROM);
    let deleted = tale.deleted_by_us();
    assert_eq!((deleted.len(), deleted.first()), (2, deleted.last()), "the broken one alone");
}

#[test]
fn a_template_that_works_after_all_is_written_again() {
    let tale = broken(ImageBehaviour::CannotPull, async |cluster| {
        stage::pass(Duration::from_mins(1)).await;
        cluster.world.set_image(&image(TO), ImageBehaviour::Works);
    });
    tale.ended_ready_at(TO);
    assert_eq!(tale.deleted_by_us().len(), 3, "nobody twice");
}
