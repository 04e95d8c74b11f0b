//! The simulated PD against what a real one answered.

use std::time::Duration;

use crate::world_support::{Cluster, NEW, NS, set_of};
use http::Method;
use serde_json::{Value, json};
use windlass_sim::journal::Event;
use windlass_sim::world::BadAnswer;

fn recorded(file: &str, name: &str) -> (u16, Value) {
    let recording: Value = serde_json::from_str(file).expect("a recording");
    let exchange =
        recording["exchanges"].as_array().expect("exchanges").iter().find(|exchange| exchange["name"] == name);
    let exchange = exchange.expect("the exchange");
    (u16::try_from(exchange["status"].as_u64().expect("a status")).expect("small"), exchange["response"].clone())
}

fn pd(name: &str) -> (u16, Value) {
    recorded(include_str!("../../../../recordings/pd.json"), name)
}

/// What an answer is made of: names and kinds of fields, not their values.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(shape).collect()),
        Value::Null => json!("null"),
        Value::Bool(_) => json!("bool"),
        Value::Number(number) => json!(if number.is_u64() { "u64" } else { "number" }),
        Value::String(_) => json!("string"),
    }
}

async fn cluster(seed: u64) -> Cluster {
    let mut set = set_of(3);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!(NEW);
    Cluster::with(seed, set).await
}

#[tokio::test(start_paused = true)]
async fn reads_have_the_recorded_shapes_and_texts() {
    let cluster = cluster(1).await;
    let (leader, follower) = (cluster.leader(), cluster.follower());
    for (name, path, pod) in [
        ("members", "/pd/api/v1/members", &leader),
        ("members asked of a follower", "/pd/api/v1/members", &follower),
        ("health", "/pd/api/v1/health", &leader),
        ("leader", "/pd/api/v1/leader", &follower),
    ] {
        let (status, body) = cluster.ask(pod, Method::GET, path).await;
        let (wanted, recorded) = pd(name);
        assert_eq!(status, wanted, "{name}");
        assert_eq!(shape(&body), shape(&recorded), "{name}");
    }
    for (name, path) in [
        ("version", "/pd/api/v1/version"),
        ("ping", "/pd/api/v1/ping"),
        ("readyz", "/readyz"),
        ("ready of a follower", "/pd/api/v2/ready"),
    ] {
        assert_eq!(cluster.ask(&follower, Method::GET, path).await, pd(name), "{name}");
    }
    let (_, members) = cluster.ask(&leader, Method::GET, "/pd/api/v1/members").await;
    let ids: Vec<u64> = members["members"]
        .as_array()
        .expect("members")
        .iter()
        .filter_map(|member| member["member_id"].as_u64())
        .collect();
    assert!(ids.iter().all(|id| *id > 1 << 53) && ids.is_sorted());
    assert_eq!(members["members"][0]["binary_version"], "v8.5.7");
}

#[tokio::test(start_paused = true)]
async fn transfers_answer_as_recorded_and_show_within_a_second() {
    let cluster = cluster(2).await;
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let path = |name: &str| format!("/pd/api/v1/leader/transfer/{name}");
    assert_eq!(cluster.ask(&leader, Method::POST, &path("nobody")).await, pd("transfer to an unknown member"));
    assert_eq!(cluster.ask(&leader, Method::POST, &path(&leader)).await, pd("transfer to the leader itself"));
    cluster.pass(1).await;
    assert_eq!(cluster.leader(), leader);
    assert_eq!(cluster.ask(&follower, Method::POST, &path(&follower)).await, pd("transfer"));
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(cluster.leader(), follower);
    let verbs: Vec<bool> = cluster
        .journal
        .entries()
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Verb { changed, user, .. } => {
                assert_eq!(user, "tester");
                Some(*changed)
            }
            Event::Write(_) | Event::Quorum(_) | Event::Note(_) => None,
        })
        .collect();
    assert_eq!(verbs, [false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_member_shows_in_health_and_cannot_be_transferred_to() {
    let cluster = cluster(3).await;
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let crash = || {
        cluster.world.crash_process(NS, &follower);
    };
    for _ in 0..4 {
        crash();
        cluster.pass(3).await;
    }
    let (status, health) = cluster.ask(&leader, Method::GET, "/pd/api/v1/health").await;
    assert_eq!((status, shape(&health)), (200, shape(&pd("health with one member dead").1)));
    let dead: Vec<&Value> =
        health.as_array().expect("a list").iter().filter(|member| member["health"] == false).collect();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0]["name"], follower.as_str());
    let began = cluster.clock.elapsed();
    let answer = cluster.ask(&leader, Method::POST, &format!("/pd/api/v1/leader/transfer/{follower}")).await;
    assert_eq!(answer, pd("resign"));
    assert!(cluster.clock.elapsed() >= began + Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_priority_takes_leadership_back_within_a_minute_and_shows_in_members() {
    let cluster = cluster(4).await;
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let body = json!({"leader-priority": 100});
    let path = format!("/pd/api/v1/members/name/{follower}");
    let answer = cluster.dial(&leader, Method::POST, &path, body).await.expect("an answer");
    assert_eq!(serde_json::from_slice::<Value>(answer.body()).expect("json"), pd("leader-priority").1);
    let (_, members) = cluster.ask(&leader, Method::GET, "/pd/api/v1/members").await;
    let priorities: Vec<&Value> = members["members"]
        .as_array()
        .expect("members")
        .iter()
        .filter_map(|member| member.get("leader_priority"))
        .collect();
    assert_eq!(priorities, [&json!(100)]);
    cluster.pass(12).await;
    assert_eq!(cluster.leader(), leader);
    cluster.pass(60).await;
    assert_eq!(cluster.leader(), follower);
}

#[tokio::test(start_paused = true)]
async fn a_lost_leader_is_replaced_after_the_election_time_out() {
    let cluster = cluster(5).await;
    let leader = cluster.leader();
    cluster.world.hang_process(NS, &leader, Duration::from_secs(30));
    assert_eq!(cluster.world.pd(NS, "pd").leader(), None);
    cluster.pass(2).await;
    assert_eq!(cluster.world.pd(NS, "pd").leader(), None);
    cluster.pass(5).await;
    assert_ne!(cluster.leader(), leader);
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_there_is_no_leader_and_forwarding_fails() {
    let cluster = cluster(6).await;
    let names = cluster.names();
    for name in &names[..2] {
        cluster.world.hang_process(NS, name, Duration::from_mins(1));
    }
    cluster.pass(10).await;
    assert_eq!(cluster.world.pd(NS, "pd").leader(), None);
    assert_eq!(cluster.ask(&names[2], Method::GET, "/pd/api/v1/members").await.0, 503);
    let truth = cluster.world.truths();
    assert_eq!(truth[0].members.iter().filter(|member| member.healthy).count(), 1);
    cluster.pass(60).await;
    assert!(cluster.world.pd(NS, "pd").leader().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_embedded_etcd_shows_how_far_a_restarted_member_is_behind() {
    let cluster = cluster(7).await;
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let position = async |pod: &str| {
        let (status, body) = cluster.ask(pod, Method::POST, "/v3/maintenance/status").await;
        assert_eq!(status, 200);
        body["raftAppliedIndex"].as_str().and_then(|index| index.parse::<u64>().ok()).expect("an index")
    };
    let (_, body) = cluster.ask(&leader, Method::POST, "/v3/maintenance/status").await;
    let (_, mut etcd) = recorded(include_str!("../../../../recordings/etcd-gateway.json"), "status of the leader");
    for newer in ["storageVersion", "downgradeInfo"] {
        etcd.as_object_mut().expect("an object").remove(newer);
    }
    assert_eq!(shape(&body), shape(&etcd));
    cluster.world.hang_process(NS, &follower, Duration::from_secs(20));
    tokio::time::sleep(Duration::from_millis(20_010)).await;
    let behind = position(&follower).await;
    assert!(behind + 100 < position(&leader).await);
    cluster.pass(10).await;
    let (there, here) = (position(&leader).await, position(&follower).await);
    assert!(here >= there);
}

#[tokio::test(start_paused = true)]
async fn ready_is_unknown_to_old_versions_and_false_while_a_new_leader_loads() {
    let old = Cluster::with(8, set_of(1)).await;
    assert_eq!(old.ask("pd-0", Method::GET, "/pd/api/v2/ready").await.0, 404);
    let cluster = cluster(9).await;
    let follower = cluster.follower();
    cluster.ask(&follower, Method::POST, &format!("/pd/api/v1/leader/transfer/{follower}")).await;
    cluster.until("moved", |c| c.leader() == follower).await;
    assert_eq!(cluster.ask(&follower, Method::GET, "/pd/api/v2/ready").await.0, 500);
    cluster.pass(5).await;
    assert_eq!(cluster.ask(&follower, Method::GET, "/pd/api/v2/ready").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn members_can_be_removed_and_ghosts_count_against_the_majority() {
    let cluster = cluster(10).await;
    let handle = cluster.world.pd(NS, "pd");
    handle.add_ghost_member("pd-9");
    assert_eq!(cluster.world.truths()[0].members.len(), 4);
    let leader = cluster.leader();
    let (status, body) = cluster.ask(&leader, Method::DELETE, "/pd/api/v1/members/name/pd-9").await;
    assert_eq!((status, body), (200, json!("removed, pd: pd-9")));
    assert_eq!(cluster.ask(&leader, Method::DELETE, "/pd/api/v1/members/name/pd-9").await.0, 404);
    handle.force_leader("pd-1");
    assert_eq!(cluster.leader(), "pd-1");
}

#[tokio::test(start_paused = true)]
async fn spoiled_answers_leave_the_truth_alone() {
    let cluster = cluster(11).await;
    let pod = cluster.follower();
    let before = cluster.world.truths();
    let ask = async || cluster.dial(&pod, Method::GET, "/pd/api/v1/members", Value::Null).await;
    cluster.world.break_answers(NS, &pod, Some(BadAnswer::Garbage));
    assert!(serde_json::from_slice::<Value>(ask().await.expect("an answer").body()).is_err());
    cluster.world.break_answers(NS, &pod, Some(BadAnswer::Status500));
    assert_eq!(ask().await.expect("an answer").status(), 500);
    cluster.world.break_answers(NS, &pod, Some(BadAnswer::Empty));
    assert!(ask().await.expect("an answer").body().is_empty());
    cluster.world.break_answers(NS, &pod, Some(BadAnswer::Refused));
    assert_eq!(ask().await.expect_err("refused").kind(), std::io::ErrorKind::ConnectionRefused);
    cluster.world.break_answers(NS, &pod, Some(BadAnswer::Nothing));
    assert_eq!(ask().await.expect_err("silence").kind(), std::io::ErrorKind::TimedOut);
    cluster.world.break_answers(NS, &pod, None);
    assert_eq!(ask().await.expect("an answer").status(), 200);
    assert_eq!(cluster.world.truths(), before);
}

#[tokio::test(start_paused = true)]
async fn an_old_address_leads_nowhere() {
    let cluster = cluster(12).await;
    let address = cluster.pod("pd-2").expect("the pod")["status"]["podIP"].as_str().expect("an address").to_owned();
    let before = cluster.uid("pd-2");
    cluster.delete_pod("pd-2");
    cluster.until("replaced", |c| c.uid("pd-2") != before && c.ready("pd-2")).await;
    let request = http::Request::builder().uri(format!("http://{address}:2379/pd/api/v1/ping"));
    let error = cluster.world.dial("tester", request.body(bytes::Bytes::new()).expect("a request")).await;
    assert_eq!(error.expect_err("silence").kind(), std::io::ErrorKind::TimedOut);
}
