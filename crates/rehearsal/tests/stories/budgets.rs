//! PodDisruptionBudgets of somebody else's on a whole cluster, and evictions at the worst moments (H12).

use std::time::Duration;

use crate::support::{
    FROM, TO, Tale,
    stage::{self, pass, patch, until, until_reason, until_stalled},
    three, with,
};
use serde_json::{Value, json};
use windlass_rehearsal::{
    pd,
    setting::{PD, follow},
};
use windlass_sim::{
    harness::Cluster,
    objects,
    scenario::{Action, Subject},
};

const BUDGETS: &str = "poddisruptionbudgets.policy";

/// Three members under OnDelete, and such a budget.
fn on_delete(budget: &Value) -> Vec<Value> {
    let objects = with(three(), "StatefulSet", |set| set["spec"]["updateStrategy"] = json!({"type": "OnDelete"}));
    covered(objects, budget)
}

fn covered(mut objects: Vec<Value>, spec: &Value) -> Vec<Value> {
    let metadata = json!({"name": "theirs", "namespace": pd::NAMESPACE});
    let last = objects.len() - 1;
    objects.insert(
        last,
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}),
    );
    objects
}

fn sparing(pods: u32) -> Value {
    json!({"maxUnavailable": pods, "selector": {"matchLabels": {"app": "pd"}}})
}

fn theirs() -> Subject {
    Subject { resource: BUDGETS.into(), namespace: pd::NAMESPACE.into(), name: "theirs".into() }
}

/// Whom we evicted, in order: an eviction says so on the pod before it is deleted.
fn evicted(tale: &Tale) -> Vec<String> {
    let target = |object: &Value| {
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        conditions.is_some_and(|conditions| conditions.iter().any(|one| one["reason"] == "EvictionByEvictionAPI"))
    };
    let pods = tale.our_writes(0..tale.journal.len()).filter(|change| change.resource == "pods");
    let marked = pods
        .filter(|change| change.after.as_deref().is_some_and(target) && !change.before.as_deref().is_some_and(target));
    marked.map(|change| change.name.clone()).collect()
}

fn is_done(cluster: &Cluster) -> bool {
    let subject = stage::subject(cluster);
    subject["status"]["phase"] == "UpToDate" && subject["status"]["currentVersion"] == TO
}

#[test]
fn pods_are_evicted_within_the_budget_of_somebody_else() {
    let tale = stage::play(on_delete(&sparing(1)), async |cluster| {
        until(cluster, "the end", is_done).await;
        assert!(cluster.api.get_value(BUDGETS, pd::NAMESPACE, "windlass-pd").is_none(), "two budgets on one pod");
    });
    assert_eq!(evicted(&tale).len(), 3);
    tale.ended_ready_at(TO);
}

/// Somebody evicts everybody, again and again, and cordons nothing.
#[test]
fn whoever_evicts_meanwhile_counts_on_the_same_budget() {
    let tale = stage::play(on_delete(&sparing(1)), async |cluster| {
        // A moment for the controllers after each of them, and one for the operator.
        for round in 0..60 {
            cluster.world.empty(&format!("node-{}", round % 3));
            pass(Duration::from_secs(3)).await;
        }
        until(cluster, "the end", is_done).await;
    });
    tale.ended_ready_at(TO);
}

#[test]
fn a_budget_that_lets_nobody_go_needs_a_person() {
    let tale = stage::play(on_delete(&sparing(0)), async |cluster| {
        until_stalled(cluster, "DisruptionBudgetTooTight")
            .await
            .is_stalled("DisruptionBudgetTooTight", &["theirs", "maxUnavailable to 1"]);
        patch(cluster, &theirs(), &json!({"spec": {"maxUnavailable": 1}}));
        until(cluster, "the end", is_done).await;
    });
    tale.ended_ready_at(TO);
}

/// What it keeps healthy may be the pods of the other set.
#[test]
fn a_budget_over_two_sets_is_none_for_either() {
    let everything =
        json!({"maxUnavailable": 1, "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}});
    let mut all = on_delete(&everything);
    let mut other = objects::pd(pd::NAMESPACE, "other", 3, &crate::support::image(FROM));
    all.append(&mut other);
    let tale = stage::play(all, async |cluster| {
        until_stalled(cluster, "DisruptionBudgetTooLoose")
            .await
            .is_stalled("DisruptionBudgetTooLoose", &["counts 6 pods", "has 3"]);
        stage::delete(cluster, &theirs());
        until(cluster, "the end", is_done).await;
    });
    assert_eq!(evicted(&tale), Vec::<String>::new(), "our own budget holds");
    tale.was_safe();
}

#[test]
fn a_budget_over_some_of_the_pods_is_none() {
    let label = "statefulset.kubernetes.io/pod-name";
    let one = json!({"maxUnavailable": 1, "selector": {"matchLabels": {label: "pd-0"}}});
    stage::play(on_delete(&one), async |cluster| {
        until_stalled(cluster, "DisruptionBudgetTooLoose")
            .await
            .is_stalled("DisruptionBudgetTooLoose", &["theirs", "not all"]);
        stage::delete(cluster, &theirs());
        until(cluster, "the end", is_done).await;
    })
    .ended_ready_at(TO);
}

/// The controller deletes without asking it.
#[test]
fn a_budget_that_spares_one_is_not_enough_where_kubernetes_replaces_the_pods() {
    let tale = stage::play(covered(three(), &sparing(1)), async |cluster| {
        until_stalled(cluster, "DisruptionBudgetTooLoose")
            .await
            .is_stalled("DisruptionBudgetTooLoose", &["theirs", "LeaderLast"]);
        pass(Duration::from_mins(1)).await;
        patch(cluster, &theirs(), &json!({"spec": {"maxUnavailable": 0}}));
        until(cluster, "the end", is_done).await;
    });
    tale.touched_nothing(tale.before_all());
    tale.ended_ready_at(TO);
}

#[test]
fn a_node_that_an_autoscaler_takes_away_holds_the_upgrade() {
    an_autoscaler_takes_a_node_away();
}

#[test]
fn a_taint_that_is_not_heeded_is_noticed() {
    crate::support::is_noticed(windlass_plan::bug::Bug::TaintsIgnored, an_autoscaler_takes_a_node_away);
}

/// Somebody's template begins the upgrade while a node is taken away, within a budget of theirs: the look that finds it looked at no node yet.
#[test]
fn a_rollout_does_not_begin_while_a_node_is_emptied() {
    let mut objects = PD.evicted(1).objects;
    follow(&mut objects);
    let tainted = |taints: Value| json!({"spec": {"taints": taints}});
    let tale = stage::play(objects, async |cluster| {
        until_reason(cluster, "UpToDate").await;
        let taint = json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": "1"}]);
        stage::patch_node(cluster, "node-0", &tainted(taint));
        pass(Duration::from_mins(5)).await;
        let Action::Patch { target, patch } = PD.edit(TO) else { return };
        stage::patch(cluster, &target, &patch);
        until_reason(cluster, "NodeDraining").await;
        pass(Duration::from_mins(3)).await;
        assert_eq!(stage::subject(cluster)["status"]["upgrade"]["completedPods"], json!([]), "nobody goes");
        stage::patch_node(cluster, "node-0", &tainted(Value::Null));
        until_reason(cluster, "UpToDate").await;
    });
    let said = tale.first_said(pd::NAME, |said| said.reason == "NodeDraining").expect("it was said");
    assert_eq!(tale.replaced(0..said.0), Vec::<String>::new());
    tale.ended_ready_at(TO);
}

#[test]
fn a_node_that_is_not_looked_at_is_noticed() {
    crate::support::is_noticed(
        windlass_plan::bug::Bug::NodesNotAwaited,
        a_rollout_does_not_begin_while_a_node_is_emptied,
    );
}

fn an_autoscaler_takes_a_node_away() {
    let tainted = |taints: Value| json!({"spec": {"taints": taints}});
    let tale = stage::play(three(), async |cluster| {
        until(cluster, "the first member to go", |cluster| stage::partition(cluster) == json!(2)).await;
        let taint = json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": "1"}]);
        stage::patch_node(cluster, "node-0", &tainted(taint));
        let said = until_reason(cluster, "NodeDraining").await;
        said.is_waiting("NodeDraining", &["node-0", "ToBeDeletedByClusterAutoscaler"]);
        pass(Duration::from_mins(3)).await;
        assert!(stage::partition(cluster).as_u64() >= Some(2), "nobody else goes");
        stage::patch_node(cluster, "node-0", &tainted(Value::Null));
        until(cluster, "the end", is_done).await;
    });
    tale.ended_ready_at(TO);
}

/// Longer than a pod has to get ready: the deadline allows for it.
#[test]
fn every_member_is_ready_for_as_long_as_its_set_asks() {
    let objects = with(three(), "StatefulSet", |set| {
        set["spec"]["minReadySeconds"] = json!(120);
        set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    });
    let objects = with(objects, "QuorumCluster", |resource| {
        resource["spec"]["upgrade"] = json!({"deadlines": {"ready": "1m"}});
    });
    let tale = stage::play(objects, async |cluster| {
        until_reason(cluster, "PodNotReady").await;
        stage::until_at_last(cluster, "the end", is_done).await;
    });
    let said = tale.said(0..tale.journal.len());
    assert!(said.iter().all(|spoken| spoken.stalled != "True"), "{said:?}");
    let deleted = tale.our_writes(0..tale.journal.len()).filter(|change| change.resource == "pods");
    assert!(deleted.count() >= 3);
    tale.ended_ready_at(TO);
}
