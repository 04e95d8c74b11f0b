//! PD's adapter against recorded answers, broken answers and no answers.

use std::time::Duration;

use crate::scripted::{Answering, Scripted, peer, recorded, recorded_body, recordings};
use http::Method;
use rstest::rstest;
use windlass_systems::{
    CallError, Class, Failure, Fault, Transport,
    pd::{Ready, Said, Timeouts, observe, transfer_leader},
};

const MEMBERS: &str = "/pd/api/v1/members";
const HEALTH: &str = "/pd/api/v1/health";
const READY: &str = "/pd/api/v2/ready";
const STATUS: &str = "/v3/maintenance/status";

/// A pod that answers as the recorded ones did.
fn recorded_pod() -> Scripted {
    Scripted::new()
        .on(MEMBERS, recorded("pd", "members"))
        .on(HEALTH, recorded("pd", "health"))
        .on(READY, recorded("pd", "ready of a follower"))
        .on(STATUS, recorded("etcd-gateway", "status of a follower"))
}

async fn ask(pod: &Scripted) -> Result<Said, CallError> {
    let mut answers = observe(pod, &[peer("pd-1")], &Timeouts::default()).await;
    assert_eq!(answers.len(), 1);
    let answer = answers.remove(0);
    assert_eq!(answer.pod, "pd-1");
    answer.said
}

async fn said(pod: &Scripted) -> Said {
    ask(pod).await.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test]
async fn a_healthy_cluster_is_read_as_recorded() {
    let said = said(&recorded_pod()).await;
    let names: Vec<_> = said.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["pd-0", "pd-2", "pd-1"]);
    // Past 2^53, and one past 2^63: none of them may be rounded.
    let ids: Vec<_> = said.members.iter().map(|member| member.id).collect();
    assert_eq!(ids, [7_991_701_852_439_577_752, 9_744_618_069_004_854_056, 15_232_669_664_945_107_762]);
    assert!(said.members.iter().all(|member| member.version == "v8.5.7"));
    assert!(said.members.iter().all(|member| member.host.as_deref() == Some("127.0.0.1")));
    assert!(said.members.iter().all(|member| member.leader_priority == Some(0)));
    assert_eq!(said.leader.as_deref(), Some("pd-0"));
    assert_eq!(said.etcd_leader.as_deref(), Some("pd-0"));
    assert_eq!(said.health.values().collect::<Vec<_>>(), [&true; 3]);
    assert_eq!(said.ready, Ready::Yes);
    let raft = said.raft.unwrap();
    assert_eq!((raft.applied, raft.index), (6922, 6922));
    assert_eq!(raft.leader_id, Some(1_724_046_476_911_968_945));
    assert_eq!(raft.member_id, 14_630_993_614_831_803_010);
    assert!(!raft.is_learner);
}

#[tokio::test]
async fn a_follower_tells_the_same_members() {
    let follower = recorded_pod().on(MEMBERS, recorded("pd", "members asked of a follower"));
    assert_eq!(said(&follower).await, said(&recorded_pod()).await);
}

#[tokio::test]
async fn a_dead_member_and_a_priority_are_seen() {
    let pod = recorded_pod()
        .on(MEMBERS, recorded("pd", "members with one member dead"))
        .on(HEALTH, recorded("pd", "health with one member dead"));
    let said = said(&pod).await;
    assert_eq!(said.leader.as_deref(), Some("pd-1"));
    assert_eq!(said.health.get("pd-0"), Some(&false));
    assert_eq!(said.health.get("pd-2"), Some(&true));
    let priorities: Vec<_> = said.members.iter().map(|member| member.leader_priority).collect();
    assert_eq!(priorities, [Some(0), Some(100), Some(0)]);
}

#[tokio::test]
async fn every_recorded_answer_to_a_question_we_ask_is_understood() {
    let mut understood = 0;
    for (file, name, request) in ["pd", "etcd-gateway"].into_iter().flat_map(recordings) {
        let (_, path) = request.split_once(' ').unwrap();
        if [MEMBERS, HEALTH, READY, STATUS].contains(&path) {
            said(&recorded_pod().on(path, recorded(file, &name))).await;
            understood += 1;
        }
    }
    assert_eq!(understood, 10);
}

#[rstest]
#[case::the_recorded_leader(recorded("pd", "ready of the leader"), Ready::No)]
#[case::the_recorded_follower(recorded("pd", "ready of a follower"), Ready::Yes)]
#[case::a_version_without_the_question(Answering::with(404, "404 page not found"), Ready::NotOffered)]
#[case::unavailable(Answering::with(503, ""), Ready::No)]
#[tokio::test]
async fn readiness_follows_the_status(#[case] answer: Answering, #[case] ready: Ready) {
    assert_eq!(said(&recorded_pod().on(READY, answer)).await.ready, ready);
}

#[rstest]
#[case(404)]
#[case(405)]
#[case(501)]
#[tokio::test]
async fn without_the_gateway_the_position_is_not_known(#[case] status: u16) {
    let pod = recorded_pod().on(STATUS, Answering::with(status, "404 page not found"));
    assert_eq!(said(&pod).await.raft, None);
}

#[tokio::test]
async fn the_gateway_may_write_numbers_and_leave_out_what_is_zero() {
    let plain = r#"{"header":{"member_id":18446744073709551615},"raftIndex":9007199254740993,"raftAppliedIndex":"9007199254740992","isLearner":true}"#;
    let raft = said(&recorded_pod().on(STATUS, Answering::with(200, plain))).await.raft.unwrap();
    assert_eq!(raft.member_id, u64::MAX);
    assert_eq!((raft.applied, raft.index), (9_007_199_254_740_992, 9_007_199_254_740_993));
    assert_eq!(raft.leader_id, None);
    assert!(raft.is_learner);
}

#[rstest]
#[case::left_out("")]
#[case::null(r#","leader":null,"etcd_leader":null"#)]
#[case::empty(r#","leader":{},"etcd_leader":{}"#)]
#[case::nameless(r#","leader":{"name":"","member_id":3},"etcd_leader":{"member_id":3}"#)]
#[tokio::test]
async fn no_leader_is_told_in_four_ways(#[case] leaders: &str) {
    let members = format!(r#"{{"members":[{{"name":"pd-0","member_id":3}}]{leaders}}}"#);
    let said = said(&recorded_pod().on(MEMBERS, Answering::with(200, &members))).await;
    assert_eq!((said.leader, said.etcd_leader), (None, None));
    assert_eq!(said.members[0].leader_priority, None, "without an etcd leader the server did not read it");
    assert_eq!((said.members[0].host.as_deref(), said.members[0].version.as_str()), (None, ""));
}

#[tokio::test]
async fn a_member_that_never_started_is_still_a_member() {
    let members = r#"{"members":[{"name":"pd-0","member_id":3},{"member_id":4,"peer_urls":["http://pd-1:2380"]}]}"#;
    let said = said(&recorded_pod().on(MEMBERS, Answering::with(200, members))).await;
    assert_eq!(said.members.len(), 2);
    assert_eq!((said.members[1].name.as_str(), said.members[1].id), ("", 4));
}

#[rstest]
#[case("http://pd-0.pd-peer.ns.svc:2379", Some("pd-0.pd-peer.ns.svc"))]
#[case("https://[2001:db8::1]:2379", Some("2001:db8::1"))]
#[case("not a url", None)]
#[tokio::test]
async fn the_host_is_taken_from_the_first_url(#[case] url: &str, #[case] host: Option<&str>) {
    let members =
        format!(r#"{{"members":[{{"name":"pd-0","member_id":3,"client_urls":["{url}","http://other:1"]}}]}}"#);
    let said = said(&recorded_pod().on(MEMBERS, Answering::with(200, &members))).await;
    assert_eq!(said.members[0].host.as_deref(), host);
}

#[tokio::test]
async fn null_entries_of_health_are_passed_over_and_the_worse_of_two_counts() {
    let health = r#"[null,{"name":"pd-0","health":false},{"name":"pd-0","health":true},{"name":"pd-1","health":true}]"#;
    let said = said(&recorded_pod().on(HEALTH, Answering::with(200, health))).await;
    assert_eq!(said.health.into_iter().collect::<Vec<_>>(), [("pd-0".to_owned(), false), ("pd-1".to_owned(), true)]);
}

#[rstest]
#[case::no_members(MEMBERS, r#"{"leader":{"name":"pd-0"}}"#)]
#[case::null_members(MEMBERS, r#"{"members":null}"#)]
#[case::empty_members(MEMBERS, r#"{"members":[]}"#)]
#[case::a_member_without_an_id(MEMBERS, r#"{"members":[{"name":"pd-0"}]}"#)]
#[case::an_id_past_64_bits(MEMBERS, r#"{"members":[{"name":"pd-0","member_id":18446744073709551616}]}"#)]
#[case::a_rounded_id(MEMBERS, r#"{"members":[{"name":"pd-0","member_id":7.99e18}]}"#)]
#[case::a_null_member(MEMBERS, r#"{"members":[null]}"#)]
#[case::a_leader_of_the_wrong_kind(MEMBERS, r#"{"members":[{"name":"pd-0","member_id":3}],"leader":"pd-0"}"#)]
#[case::a_web_page(MEMBERS, "<html>hello</html>")]
#[case::nothing(MEMBERS, "")]
#[case::two_answers(MEMBERS, r#"{"members":[{"name":"pd-0","member_id":3}]}{}"#)]
#[case::health_as_an_object(HEALTH, r#"{"name":"pd-0","health":true}"#)]
#[case::health_null(HEALTH, "null")]
#[case::health_without_health(HEALTH, r#"[{"name":"pd-0"}]"#)]
#[case::health_as_text(HEALTH, r#"[{"name":"pd-0","health":"true"}]"#)]
#[case::status_without_a_header(STATUS, r#"{"raftIndex":"1","raftAppliedIndex":"1"}"#)]
#[case::status_without_an_index(STATUS, r#"{"header":{"member_id":"1"},"raftAppliedIndex":"1"}"#)]
#[case::status_without_an_applied_index(STATUS, r#"{"header":{"member_id":"1"},"raftIndex":"1"}"#)]
#[case::status_negative(STATUS, r#"{"header":{"member_id":"1"},"raftIndex":"-1","raftAppliedIndex":"1"}"#)]
#[case::status_empty(STATUS, "{}")]
#[tokio::test]
async fn an_unreadable_answer_is_never_a_default(#[case] path: &str, #[case] body: &str) {
    let error = ask(&recorded_pod().on(path, Answering::with(200, body))).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Unreadable(_)), "{error}");
    assert_eq!(error.class(), Class::Garbled);
}

#[rstest]
#[case(MEMBERS, "pd", "members")]
#[case(MEMBERS, "pd", "members with one member dead")]
#[case(HEALTH, "pd", "health")]
#[case(STATUS, "etcd-gateway", "status of the leader")]
#[case(STATUS, "etcd-gateway", "status of the new leader")]
#[tokio::test]
async fn every_truncation_of_an_answer_is_an_error(#[case] path: &str, #[case] file: &str, #[case] name: &str) {
    let whole = recorded_body(file, name);
    assert!(ask(&recorded_pod().on(path, Answering::with(200, &whole))).await.is_ok());
    for end in 0..whole.len() {
        let answer = ask(&recorded_pod().on(path, Answering::with(200, &whole[..end]))).await;
        assert!(matches!(answer.unwrap_err().failure(), Failure::Unreadable(_)), "cut at {end}");
    }
}

#[tokio::test]
async fn every_damaged_byte_gives_an_answer_or_an_error() {
    let whole = recorded_body("etcd-gateway", "status of a follower");
    for index in 0..whole.len() {
        for byte in [0, b'"', b'{', b'9', b'-', 0xff] {
            let mut damaged = whole.clone().into_bytes();
            damaged[index] = byte;
            // Neither outcome is wrong for every byte; a panic is.
            let _ = ask(&recorded_pod().on(STATUS, Answering::bytes(200, damaged))).await;
        }
    }
}

#[tokio::test]
async fn one_failed_read_makes_the_whole_answer_unknown_and_says_which() {
    let pod = recorded_pod().on(HEALTH, Answering::with(500, "\"no leader\"\n"));
    let error = ask(&pod).await.unwrap_err();
    assert_eq!(error.to_string(), "pd-1 answered 500 to GET /pd/api/v1/health: no leader");
    assert_eq!(error.class(), Class::Refused);
    let pod = recorded_pod().on(STATUS, Answering::with(503, r#"{"code":14,"message":"connection error"}"#));
    let error = ask(&pod).await.unwrap_err();
    assert_eq!(error.to_string(), "pd-1 answered 503 to POST /v3/maintenance/status: connection error");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let error = ask(&recorded_pod().on(MEMBERS, Answering::with(307, ""))).await.unwrap_err();
    assert_eq!(error.to_string(), "pd-1 answered 307 to GET /pd/api/v1/members");
}

#[rstest]
#[case::refused(Answering::Refusing, "pd-1 refused the connection for GET /pd/api/v1/members", Class::Unreachable)]
#[case::silent(Answering::Silent, "pd-1 did not answer GET /pd/api/v1/members in time", Class::Unreachable)]
#[case::untrusted(
    Answering::Failing(Fault::Untrusted("wrong name".into())),
    "no trusted connection to pd-1 for GET /pd/api/v1/members: wrong name",
    Class::Untrusted
)]
#[case::huge(
    Answering::bytes(200, vec![b' '; 1024 * 1024 + 1]),
    "pd-1 answered GET /pd/api/v1/members with more than 1048576 bytes",
    Class::Garbled
)]
#[tokio::test(start_paused = true)]
async fn a_missing_answer_says_why(#[case] answer: Answering, #[case] message: &str, #[case] class: Class) {
    let error = ask(&recorded_pod().on(MEMBERS, answer)).await.unwrap_err();
    assert_eq!(error.to_string(), message);
    assert_eq!(error.class(), class);
    assert_eq!(error.pod(), "pd-1");
}

#[tokio::test(start_paused = true)]
async fn a_slow_health_is_waited_for_longer_than_a_slow_list() {
    let slow = |seconds| Answering::Late(Duration::from_secs(seconds), Box::new(recorded("pd", "health")));
    assert!(ask(&recorded_pod().on(HEALTH, slow(7))).await.is_ok());
    let error = ask(&recorded_pod().on(HEALTH, slow(9))).await.unwrap_err();
    assert_eq!(error.failure(), &Failure::TimedOut);
    let late = Answering::Late(Duration::from_secs(4), Box::new(recorded("pd", "members")));
    assert_eq!(ask(&recorded_pod().on(MEMBERS, late)).await.unwrap_err().failure(), &Failure::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn every_pod_is_asked_itself_and_a_silent_one_holds_up_no_other() {
    let peers = [peer("pd-2"), peer("pd-0"), peer("pd-1")];
    let cluster = recorded_pod().silence("pd-0");
    let begin = tokio::time::Instant::now();
    let answers = observe(&cluster, &peers, &Timeouts::default()).await;
    assert!(begin.elapsed() <= Timeouts::default().health, "the pods are asked at once");
    let pods: Vec<_> = answers.iter().map(|answer| answer.pod.as_str()).collect();
    assert_eq!(pods, ["pd-2", "pd-0", "pd-1"]);
    assert_eq!(answers.iter().map(|answer| answer.said.is_ok()).collect::<Vec<_>>(), [true, false, true]);
    for pod in ["pd-0", "pd-1", "pd-2"] {
        let asked: Vec<_> = cluster.requests().into_iter().filter(|request| request.pod == pod).collect();
        assert_eq!(asked.len(), 4);
        assert!(asked.iter().all(|request| request.headers["PD-Allow-follower-handle"] == "true"));
    }
}

#[tokio::test]
async fn nobody_to_ask_gives_no_answers() {
    assert!(observe(&recorded_pod(), &[], &Timeouts::default()).await.is_empty());
}

#[tokio::test]
async fn a_transfer_is_one_request_to_the_leaders_own_pod() {
    let pod = Scripted::new().on("/pd/api/v1/leader/transfer/pd-1", recorded("pd", "transfer"));
    transfer_leader(&pod, &peer("pd-0"), "pd-1", &Timeouts::default()).await.unwrap();
    let requests = pod.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].pod.as_str(), &requests[0].method), ("pd-0", &Method::POST));
    assert!(!requests[0].headers.contains_key("PD-Allow-follower-handle"));
}

#[tokio::test]
async fn a_transfer_to_the_leader_itself_is_a_success_of_the_server() {
    let pod = Scripted::new().on("/pd/api/v1/leader/transfer/pd-0", recorded("pd", "transfer to the leader itself"));
    transfer_leader(&pod, &peer("pd-0"), "pd-0", &Timeouts::default()).await.unwrap();
}

#[rstest]
#[case(
    recorded("pd", "transfer to an unknown member"),
    "pd-0 answered 500 to POST /pd/api/v1/leader/transfer/pd-1: no valid pd to transfer etcd leader"
)]
#[case(
    recorded("pd", "resign"),
    "pd-0 answered 500 to POST /pd/api/v1/leader/transfer/pd-1: [PD:etcd:ErrEtcdMoveLeader]etcdserver: request timed out, leader transfer took too long: etcdserver: request timed out, leader transfer took too long"
)]
#[case(Answering::with(404, ""), "pd-0 answered 404 to POST /pd/api/v1/leader/transfer/pd-1")]
#[case(Answering::Silent, "pd-0 did not answer POST /pd/api/v1/leader/transfer/pd-1 in time")]
#[tokio::test(start_paused = true)]
async fn a_failed_transfer_is_told_in_the_servers_words(#[case] answer: Answering, #[case] message: &str) {
    let pod = Scripted::new().on("/pd/api/v1/leader/transfer/pd-1", answer);
    let error = transfer_leader(&pod, &peer("pd-0"), "pd-1", &Timeouts::default()).await.unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn the_futures_can_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let pod = recorded_pod();
    let transport: &dyn Transport = &pod;
    let (peers, timeouts) = ([peer("pd-0")], Timeouts::default());
    is_send(&observe(transport, &peers, &timeouts));
    is_send(&transfer_leader(transport, &peers[0], "pd-1", &timeouts));
}
