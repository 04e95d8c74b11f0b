//! etcd twice, by its own adapter and as docs/examples/http-etcd.yaml describes it: what is known must be the same.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't be set up fails")]

#[path = "../../systems/tests/adapters/scripted/mod.rs"]
mod scripted;

use std::net::IpAddr;

use rstest::rstest;
use scripted::{Answering, Scripted, peer, recorded};
use windlass_api::{QuorumCluster, translate};
use windlass_operator::members::{
    describe,
    place::{Place, Seen},
    system,
};
use windlass_plan::{Fact, MemberName, Quorum};
use windlass_systems::{Timeouts, etcd, http};

const STATUS: &str = "/v3/maintenance/status";
const MEMBERS: &str = "/v3/cluster/member/list";
const HEALTH: &str = "/health";
const TRANSFER: &str = "/v3/maintenance/transfer-leadership";

fn example() -> QuorumCluster {
    serde_saphyr::from_str(include_str!("../../../docs/examples/http-etcd.yaml")).unwrap()
}

fn described() -> http::System {
    describe::system(&example().spec.system).unwrap().unwrap()
}

fn places() -> Vec<Place> {
    (0..3)
        .map(|index| Place {
            pod: format!("etcd-{index}"),
            dns: format!("etcd-{index}.etcd.ns.svc"),
            address: Some(IpAddr::from([10, 0, 0, index])),
        })
        .collect()
}

/// A pod that answers as recorded.
fn pod(version: &str, status: &str, members: &str, health: &str) -> Scripted {
    let said = |what: &str| recorded("etcd", &format!("{version}: {what}"));
    Scripted::new().on(STATUS, said(status)).on(MEMBERS, said(members)).on(HEALTH, said(health))
}

/// What both know of pods that answer so.
async fn both(pods: &[(&str, Scripted)]) -> (Seen, Seen) {
    let (mut own, mut generic) = (Vec::new(), Vec::new());
    let (system, timeouts) = (described(), Timeouts::default());
    for (name, pod) in pods {
        own.extend(etcd::observe(pod, &[peer(name)], None, &timeouts).await);
        generic.extend(http::observe(&system, pod, &[peer(name)], None, &timeouts).await);
    }
    (system::etcd::facts::seen(&own, &places()), system::http::facts::seen(&generic, &places()))
}

/// The recorded leader's pod and a follower's, by the names in the recorded list of members.
fn names(version: &str) -> (&'static str, &'static str) {
    match version {
        "3.5.35" => ("etcd-1", "etcd-2"),
        _ => ("etcd-2", "etcd-0"),
    }
}

#[rstest]
#[tokio::test]
async fn a_healthy_cluster_is_the_same(#[values("3.5.35", "3.6.16")] version: &str) {
    let (leader, follower) = names(version);
    let (own, generic) = both(&[
        (leader, pod(version, "status of the leader", "members", "health")),
        (follower, pod(version, "status of a follower", "members", "health")),
    ])
    .await;
    assert_eq!(own.quorum.leader, Fact::Known(MemberName::new(leader)));
    assert_eq!(own.quorum.size(), 3);
    // Nothing that a person describes tells a term.
    assert!(own.quorum.term.is_some() && generic.quorum.term.is_none());
    assert_eq!(Quorum { term: None, ..own.quorum }, generic.quorum);
    // Only who answers tells its id; nobody hands over to one that does not.
    for name in [leader, follower].map(MemberName::new) {
        assert_eq!(own.ids[&name], generic.ids[&name]);
    }
}

#[rstest]
#[case::an_alarm("status with an alarm", "members", "health with an alarm")]
#[case::no_leader("status without a leader", "members without a leader", "health without a leader")]
#[case::no_credentials("status without credentials", "members without credentials", "health without credentials")]
#[tokio::test]
async fn so_is_one_that_is_not(
    #[case] status: &str,
    #[case] members: &str,
    #[case] health: &str,
    #[values("3.5.35", "3.6.16")] version: &str,
) {
    let (leader, follower) = names(version);
    let (own, generic) = both(&[
        (leader, pod(version, status, members, health)),
        (follower, pod(version, "status of a follower", "members", "health")),
    ])
    .await;
    let healthy = |seen: &Seen| {
        let members = seen.quorum.members.known()?;
        Some(members.values().map(|member| member.healthy.known().copied()).collect::<Vec<_>>())
    };
    assert_eq!(healthy(&own), healthy(&generic));
    assert_eq!(own.quorum.leader.known(), generic.quorum.leader.known());
    assert_ne!(healthy(&own), Some(vec![Some(true); 3]));
}

#[rstest]
#[tokio::test]
async fn a_hand_over_is_the_same_request(#[values("3.5.35", "3.6.16")] version: &str) {
    let pod = Scripted::new().on(TRANSFER, recorded("etcd", &format!("{version}: transfer")));
    etcd::transfer_leader(&pod, &peer("etcd-0"), 7, None, &Timeouts::default()).await.unwrap();
    http::hand_over(&described(), &pod, &peer("etcd-0"), "7", None, &Timeouts::default()).await.unwrap();
    let requests = pod.requests();
    assert_eq!((requests[0].body.clone(), &requests[0].headers), (requests[1].body.clone(), &requests[1].headers));
}

#[tokio::test]
async fn every_request_of_the_example_is_sent_once() {
    let pod = pod("3.6.16", "status of a follower", "members", "health").on(TRANSFER, Answering::Refusing);
    http::observe(&described(), &pod, &[peer("etcd-0")], None, &Timeouts::default()).await;
    assert_eq!(pod.requests().len(), 3);
}

#[test]
fn the_example_names_its_target() {
    let example = example();
    let want = translate::want(
        &example.spec,
        &system::capabilities(&example.spec.system),
        "registry.example/coreos/etcd:v3.5.35",
    )
    .unwrap();
    assert!(want.names_target);
    assert_eq!(want.target.image, "registry.example/coreos/etcd:v3.6.16");
}

/// In the shape that Consul's documentation shows.
fn consul(state: &str) -> Scripted {
    let own = format!(
        r#"{{"Config": {{"NodeName": "consul-server-0", "NodeID": "9d754d17", "Server": true, "Version": "1.21.5"}},
            "Stats": {{"raft": {{"state": "{state}", "applied_index": "45832"}}}}}}"#
    );
    let health = r#"{"Healthy": false, "FailureTolerance": 0, "Servers": [
        {"ID": "e349749b", "Name": "consul-server-0", "Healthy": true, "Voter": true},
        {"ID": "e36ee410", "Name": "consul-server-1", "Healthy": false, "Voter": true}]}"#;
    let servers = r#"{"Servers": [
        {"ID": "e349749b", "Node": "consul-server-0", "Leader": true, "Voter": true},
        {"ID": "e36ee410", "Node": "consul-server-1", "Leader": false, "Voter": true},
        {"ID": "09cfc046", "Node": "consul-server-2", "Leader": false, "Voter": false}], "Index": 22}"#;
    Scripted::new()
        .on("/v1/agent/self", Answering::with(200, &own))
        .on("/v1/operator/autopilot/health", Answering::with(429, health))
        .on("/v1/operator/raft/configuration", Answering::with(200, servers))
        .on("/v1/operator/raft/transfer-leader", Answering::with(200, "{}"))
}

#[rstest]
#[case::leads("consul-server-0", "Leader", http::Leader::Itself, true)]
#[case::follows("consul-server-1", "Follower", http::Leader::Another, false)]
#[tokio::test]
async fn the_other_example_reads_what_is_documented(
    #[case] name: &str,
    #[case] state: &str,
    #[case] leader: http::Leader,
    #[case] healthy: bool,
) {
    let example: QuorumCluster =
        serde_saphyr::from_str(include_str!("../../../docs/examples/http-consul.yaml")).unwrap();
    assert!(system::capabilities(&example.spec.system).hand_over.names_target());
    let system = describe::system(&example.spec.system).unwrap().unwrap();
    let (pod, timeouts) = (consul(state), Timeouts::default());
    let answers = http::observe(&system, &pod, &[peer(name)], None, &timeouts).await;
    let expected = http::Said {
        healthy,
        leader,
        version: "1.21.5".into(),
        position: Some(45832),
        id: "9d754d17".into(),
        members: Some(vec!["consul-server-0".into(), "consul-server-1".into()]),
    };
    assert_eq!(answers[0].said, Ok(expected));
    http::hand_over(&system, &pod, &peer(name), "e36ee410", None, &timeouts).await.unwrap();
    assert_eq!(pod.requests().len(), 4);
}
