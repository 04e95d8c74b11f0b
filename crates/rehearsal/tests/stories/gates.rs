//! Gates that people set, from the custom resource to what it says and does.

use std::time::Duration;

use crate::support::{
    TO, Tale,
    stage::{self, pass, patch, until, until_reason},
    three, with,
};
use serde_json::{Value, json};
use windlass_rehearsal::pd;
use windlass_sim::{harness::Cluster, scenario::Subject};

/// A time that the embedded cluster's calendar does not reach.
const NEVER: &str = "0 0 29 2 *";

fn spec_with(gates: &Value) -> Vec<Value> {
    with(three(), "QuorumCluster", |resource| resource["spec"]["gates"] = gates.clone())
}

fn subject(cluster: &Cluster) -> Value {
    let Subject { resource, namespace, name } = pd::subject();
    cluster.api.get_value(&resource, &namespace, &name).map(|object| (*object).clone()).unwrap_or_default()
}

/// What the status says of one gate.
fn gate(cluster: &Cluster, name: &str) -> Value {
    let subject = subject(cluster);
    let gates = subject["status"]["gates"].as_array().cloned().unwrap_or_default();
    gates.into_iter().find(|gate| gate["name"] == name).unwrap_or_default()
}

/// Waits until the status says this of a gate.
async fn until_gate(cluster: &Cluster, name: &str, state: &str) -> Value {
    until(cluster, &format!("{name} {state}"), |cluster| gate(cluster, name)["state"] == state).await;
    gate(cluster, name)
}

/// Nobody was until people did this, by its number.
#[track_caller]
fn nobody_was_disturbed(tale: &Tale, until: usize) {
    assert_eq!(tale.replaced(0..tale.since(until).start), Vec::<String>::new());
}

#[test]
fn outside_of_its_windows_nobody_is_taken_down_and_it_says_when_the_next_one_opens() {
    let windows = json!({"windows": [{"schedule": NEVER, "duration": "1h", "timeZone": "Europe/Berlin"}]});
    let tale = stage::play(spec_with(&windows), async |cluster| {
        let spoken = until_reason(cluster, "WindowClosed").await;
        spoken.is_waiting("WindowClosed", &["the next one opens at", "-02-29T00:00:00+01:00[Europe/Berlin]"]);
        let said = until_gate(cluster, "MaintenanceWindow", "Holding").await;
        assert_eq!(said["reason"], "WindowClosed");
        assert_eq!(gate(cluster, "QuorumSurvives")["state"], "Passed", "every gate is shown");
        assert_eq!(gate(cluster, "VersionPath")["state"], "Passed");
        pass(Duration::from_mins(10)).await;
        patch(
            cluster,
            &pd::subject(),
            &json!({"spec": {"gates": {"windows": [{"schedule": "* * * * *", "duration": "1m"}]}}}),
        );
        until_reason(cluster, "UpToDate").await;
        assert_eq!(subject(cluster)["status"]["gates"], Value::Null, "there is nothing to hold");
    });
    nobody_was_disturbed(&tale, 0);
    tale.ended_ready_at(TO);
}

#[test]
fn an_override_is_shown_and_goes_on() {
    let gates = json!({
        "windows": [{"schedule": NEVER, "duration": "1h"}],
        "overrides": [{"gate": "MaintenanceWindow", "until": "2100-01-01T00:00:00Z"}],
    });
    let tale = stage::play(spec_with(&gates), async |cluster| {
        let said = until_gate(cluster, "MaintenanceWindow", "Overridden").await;
        let message = said["message"].as_str().unwrap_or_default();
        assert!(
            message.starts_with("overridden until 2100-01-01T00:00:00Z: no maintenance window is open"),
            "{message}"
        );
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

#[test]
fn an_override_that_has_ended_counts_no_more() {
    let gates = json!({
        "windows": [{"schedule": NEVER, "duration": "1h"}],
        "overrides": [{"gate": "MaintenanceWindow", "until": "2001-01-01T00:00:00Z"}],
    });
    let tale = stage::play(spec_with(&gates), async |cluster| {
        until_gate(cluster, "MaintenanceWindow", "Holding").await;
        pass(Duration::from_mins(10)).await;
        patch(cluster, &pd::subject(), &json!({"spec": {"gates": {"windows": []}}}));
        until_reason(cluster, "UpToDate").await;
    });
    nobody_was_disturbed(&tale, 0);
    tale.ended_ready_at(TO);
}

#[test]
fn an_upgrade_waits_for_its_approval_and_an_old_one_does_not_count() {
    let objects = with(spec_with(&json!({"approval": {"mode": "BeforeUpgrade"}})), "QuorumCluster", |resource| {
        // Left over from another time: nothing was asked when it came.
        resource["spec"]["requests"] = json!({"approve": "in-march"});
    });
    let tale = stage::play(objects, async |cluster| {
        until_reason(cluster, "AwaitingApproval").await.is_waiting("AwaitingApproval", &[TO, "spec.requests.approve"]);
        pass(Duration::from_mins(5)).await;
        let status = subject(cluster)["status"].clone();
        assert_eq!(status["requests"]["approve"], "in-march", "handled, for nothing");
        assert_eq!(status["approval"]["asked"]["targetVersion"], TO);
        assert_eq!(status["upgrade"], Value::Null, "nothing has begun");
        patch(cluster, &pd::subject(), &json!({"spec": {"requests": {"approve": "in-may"}}}));
        until_reason(cluster, "UpToDate").await;
        assert_eq!(subject(cluster)["status"]["approval"], Value::Null);
    });
    tale.touched_nothing(tale.before_all());
    tale.ended_ready_at(TO);
}

#[test]
fn each_hand_over_waits_for_its_approval() {
    let tale = stage::play(spec_with(&json!({"approval": {"mode": "BeforeEachHandOver"}})), async |cluster| {
        let mut approved = Vec::new();
        loop {
            until(cluster, "a question, or the end", |cluster| {
                let status = subject(cluster)["status"].clone();
                status["approval"]["asked"] != Value::Null
                    || status["phase"] == "UpToDate" && status["currentVersion"] == TO
            })
            .await;
            let Some(leader) = subject(cluster)["status"]["approval"]["asked"]["handOver"].as_str().map(str::to_owned)
            else {
                break;
            };
            patch(cluster, &pd::subject(), &json!({"spec": {"requests": {"approve": format!("{}", approved.len())}}}));
            approved.push(leader.clone());
            until(cluster, "another question, or none", |cluster| {
                subject(cluster)["status"]["approval"]["asked"]["handOver"] != leader.as_str()
            })
            .await;
        }
        assert!(!approved.is_empty() && approved.len() <= 2, "{approved:?}");
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

#[test]
fn a_lock_holds_until_it_is_taken_off() {
    for locked in [pd::workload(), pd::subject()] {
        let lock = |by: Value| json!({"metadata": {"annotations": {"windlass.dev/locked-by": by}}});
        let paused = with(three(), "QuorumCluster", |resource| resource["spec"]["paused"] = json!(true));
        let tale = stage::play(paused, async |cluster| {
            patch(cluster, &locked, &lock(json!("a restore")));
            patch(cluster, &pd::subject(), &json!({"spec": {"paused": false}}));
            until_reason(cluster, "Locked").await.is_waiting("Locked", &["pd is locked by a restore", "locked-by"]);
            pass(Duration::from_mins(5)).await;
            patch(cluster, &locked, &lock(Value::Null));
            until_reason(cluster, "UpToDate").await;
        });
        nobody_was_disturbed(&tale, 2);
        tale.ended_ready_at(TO);
    }
}

#[test]
fn a_cordoned_node_under_a_waiting_upgrade_is_shown() {
    let tale = stage::play(three(), async |cluster| {
        // Closed when it has begun: before, nothing is written, and nodes are of no interest.
        until(cluster, "an upgrade", |cluster| !subject(cluster)["status"]["upgrade"].is_null()).await;
        let closed = json!({"windows": [{"schedule": NEVER, "duration": "1h"}]});
        patch(cluster, &pd::subject(), &json!({"spec": {"gates": closed}}));
        until_gate(cluster, "NodeDrain", "Passed").await;
        cluster.world.drain("node-1");
        let said = until_gate(cluster, "NodeDrain", "Holding").await;
        let message = said["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("node node-1 under pd-"), "{message}");
        // Evictions are not held, so the drain is through soon, and the node is nobody's any more.
        until_gate(cluster, "NodeDrain", "Passed").await;
        cluster.world.uncordon("node-1");
        patch(cluster, &pd::subject(), &json!({"spec": {"gates": {"windows": []}}}));
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

#[test]
fn a_soak_is_kept_in_the_record() {
    let objects = with(three(), "QuorumCluster", |resource| resource["spec"]["upgrade"] = json!({"soak": "10m"}));
    let tale = stage::play(objects, async |cluster| {
        let spoken = until_reason(cluster, "Soaking").await;
        spoken.is_waiting("Soaking", &["pd-2 was replaced and must have been well until"]);
        let upgrade = subject(cluster)["status"]["upgrade"].clone();
        assert_eq!(upgrade["healthySince"][0]["pod"], "pd-2");
        assert_eq!(upgrade["durations"][0]["pod"], "pd-2");
        pass(Duration::from_mins(9)).await;
        assert_eq!(stage::partition(cluster), json!(2), "it is not over");
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}
