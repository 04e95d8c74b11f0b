//! etcd's adapter against recorded answers, broken answers and no answers.

use std::time::Duration;

use crate::scripted::{Answering, Scripted, peer, recorded, recorded_body, recordings};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::Method;
use ring::digest::{SHA256, digest};
use rstest::rstest;
use windlass_systems::{
    CallError, Class, Failure, Password, Secret, Timeouts, Transport,
    etcd::{
        Health, Login, Said, login, observe,
        snapshot::{Snapshot, SnapshotError, save},
        transfer_leader, wants_another_token,
    },
};

const STATUS: &str = "/v3/maintenance/status";
const MEMBERS: &str = "/v3/cluster/member/list";
const HEALTH: &str = "/health";
const VERSION: &str = "/version";
const TRANSFER: &str = "/v3/maintenance/transfer-leadership";
const SNAPSHOT: &str = "/v3/maintenance/snapshot";

fn said_by(version: &str, what: &str) -> Answering {
    recorded("etcd", &format!("{version}: {what}"))
}

/// A pod that answers as a recorded follower did.
fn follower(version: &str) -> Scripted {
    Scripted::new()
        .on(STATUS, said_by(version, "status of a follower"))
        .on(MEMBERS, said_by(version, "members"))
        .on(HEALTH, said_by(version, "health"))
        .on(VERSION, said_by(version, "version"))
}

async fn ask(pod: &Scripted) -> Result<Said, CallError> {
    let mut answers = observe(pod, &[peer("etcd-1")], None, &Timeouts::default()).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0).said
}

async fn said(pod: &Scripted) -> Said {
    ask(pod).await.unwrap_or_else(|error| panic!("{error}"))
}

#[rstest]
#[case("3.5.35", 646_650_834_589_750_086, 11_217_253_672_926_327_294)]
#[case("3.6.16", 11_217_253_672_926_327_294, 7_246_657_044_119_924_209)]
#[tokio::test]
async fn a_healthy_cluster_is_read_as_recorded(#[case] version: &str, #[case] leader: u64, #[case] own: u64) {
    let Said { status, health, members, cluster_version: _ } = said(&follower(version)).await;
    // Past 2^53, and one past 2^63: none of them may be rounded.
    assert_eq!((status.member_id, status.leader_id), (own, Some(leader)));
    assert_eq!((status.version.as_str(), status.index, status.applied), (version, 8, 8));
    assert!(!status.is_learner && status.alarms.is_empty() && status.downgrade.is_none());
    assert_eq!(health, Health::Yes);
    let members = members.unwrap();
    assert_eq!(members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["etcd-1", "etcd-0", "etcd-2"]);
    assert!(members.iter().all(|member| member.hosts == ["127.0.0.1"] && !member.is_learner));
}

#[rstest]
#[tokio::test]
async fn no_leader_is_read_as_none(#[values("3.5.35", "3.6.16")] version: &str) {
    let pod = Scripted::new()
        .on(STATUS, said_by(version, "status without a leader"))
        .on(MEMBERS, said_by(version, "members without a leader"))
        .on(HEALTH, said_by(version, "health without a leader"));
    let said = said(&pod).await;
    assert_eq!(said.status.leader_id, None);
    assert!(said.status.alarms.is_empty(), "that there is no leader is no alarm");
    assert_eq!(said.health, Health::No("RAFT NO LEADER".into()));
    assert_eq!(said.members.unwrap().len(), 3, "a member lists what it has applied, quorum or not");
}

#[rstest]
#[tokio::test]
async fn an_alarm_is_told(#[values("3.5.35", "3.6.16")] version: &str) {
    let pod = follower(version)
        .on(STATUS, said_by(version, "status with an alarm"))
        .on(HEALTH, said_by(version, "health with an alarm"));
    let said = said(&pod).await;
    assert!(said.status.alarms[0].contains("alarm:NOSPACE"), "{:?}", said.status.alarms);
    assert_eq!(said.health, Health::No("ALARM NOSPACE".into()));
}

#[rstest]
#[tokio::test]
async fn a_learner_says_what_it_is_and_lists_nobody(#[values("3.5.35", "3.6.16")] version: &str) {
    let pod = Scripted::new()
        .on(STATUS, said_by(version, "status of a learner"))
        .on(MEMBERS, said_by(version, "members asked of a learner"))
        .on(HEALTH, said_by(version, "health of a learner"));
    let said = said(&pod).await;
    assert!(said.status.is_learner);
    assert_eq!((said.members, said.health), (None, Health::Yes));
}

#[rstest]
#[tokio::test]
async fn a_learner_that_never_started_is_still_listed(#[values("3.5.35", "3.6.16")] version: &str) {
    let pod = follower(version).on(MEMBERS, said_by(version, "members with a learner that never started"));
    let members = said(&pod).await.members.unwrap();
    let learners: Vec<_> = members.iter().filter(|member| member.is_learner).collect();
    assert_eq!((members.len(), learners.len()), (4, 1));
    assert_eq!((learners[0].name.as_str(), learners[0].hosts.as_slice()), ("", &["127.0.0.1".to_owned()][..]));
}

#[rstest]
#[tokio::test]
async fn missing_credentials_are_a_class_of_their_own(#[values("3.5.35", "3.6.16")] version: &str) {
    let pod = Scripted::new()
        .on(STATUS, said_by(version, "status without credentials"))
        .on(MEMBERS, said_by(version, "members without credentials"))
        .on(HEALTH, said_by(version, "health without credentials"));
    let error = ask(&pod).await.unwrap_err();
    assert_eq!(error.class(), Class::Denied);
    assert_eq!(
        error.to_string(),
        "etcd-1 asks for credentials: 400 to POST /v3/maintenance/status: etcdserver: user name is empty"
    );
    let pod = Scripted::new().on(TRANSFER, said_by(version, "transfer without credentials"));
    let error = transfer_leader(&pod, &peer("etcd-0"), 1, None, &Timeouts::default()).await.unwrap_err();
    assert_eq!(error.class(), Class::Denied);
}

#[rstest]
#[case(401, r#"{"code":16,"message":"etcdserver: invalid auth token"}"#)]
#[case(403, r#"{"code":7,"message":"etcdserver: permission denied"}"#)]
#[tokio::test]
async fn a_status_about_credentials_is_in_that_class_too(#[case] code: u16, #[case] body: &str) {
    let error = ask(&follower("3.6.16").on(STATUS, Answering::with(code, body))).await.unwrap_err();
    assert_eq!(error.class(), Class::Denied);
}

#[rstest]
#[case::no_version(STATUS, r#"{"header":{"member_id":"1"},"raftIndex":"1","raftAppliedIndex":"1"}"#)]
#[case::no_header(STATUS, r#"{"version":"3.6.0","raftIndex":"1","raftAppliedIndex":"1"}"#)]
#[case::no_index(STATUS, r#"{"version":"3.6.0","header":{"member_id":"1"},"raftAppliedIndex":"1"}"#)]
#[case::status_empty(STATUS, "{}")]
#[case::no_members(MEMBERS, r#"{"header":{}}"#)]
#[case::no_id(MEMBERS, r#"{"members":[{"name":"etcd-0"}]}"#)]
#[case::a_null_member(MEMBERS, r#"{"members":[null]}"#)]
#[case::a_web_page(MEMBERS, "<html>hello</html>")]
#[case::health_without_health(HEALTH, r#"{"reason":""}"#)]
#[case::health_as_a_bool(HEALTH, r#"{"health":true}"#)]
#[case::health_empty(HEALTH, "")]
#[tokio::test]
async fn an_unreadable_answer_is_never_a_default(#[case] path: &str, #[case] body: &str) {
    let error = ask(&follower("3.6.16").on(path, Answering::with(200, body))).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Unreadable(_)), "{error}");
}

#[rstest]
#[case(STATUS, "status of the leader")]
#[case(MEMBERS, "members")]
#[case(HEALTH, "health")]
#[tokio::test]
async fn every_truncation_of_an_answer_is_an_error(#[case] path: &str, #[case] name: &str) {
    let whole = recorded_body("etcd", &format!("3.6.16: {name}"));
    for end in 0..whole.len() {
        let answer = ask(&follower("3.6.16").on(path, Answering::with(200, &whole[..end]))).await;
        assert!(matches!(answer.unwrap_err().failure(), Failure::Unreadable(_)), "cut at {end}");
    }
}

#[rstest]
#[case("3.5.35", "3.5.0")]
#[case("3.6.16", "3.6.0")]
#[tokio::test]
async fn the_version_of_the_whole_cluster_is_told_beside_the_processs(#[case] version: &str, #[case] cluster: &str) {
    let said = said(&follower(version)).await;
    assert_eq!((said.status.version.as_str(), said.cluster_version.as_deref()), (version, Some(cluster)));
}

/// Only who enters another minor release needs it.
#[rstest]
#[case::nothing_decided(200, r#"{"etcdserver":"3.6.16","etcdcluster":"not_decided"}"#)]
#[case::not_said(200, r#"{"etcdserver":"3.6.16"}"#)]
#[case::hidden_by_a_proxy(404, "404 page not found")]
#[tokio::test]
async fn a_cluster_version_that_is_not_told_blinds_nobody(#[case] status: u16, #[case] body: &str) {
    let said = said(&follower("3.6.16").on(VERSION, Answering::with(status, body))).await;
    assert_eq!(said.cluster_version, None);
}

#[tokio::test]
async fn a_refusal_that_is_no_health_is_an_error() {
    let pod = follower("3.6.16").on(HEALTH, Answering::with(503, "upstream connect error"));
    let error = ask(&pod).await.unwrap_err();
    assert_eq!(error.to_string(), "etcd-1 answered 503 to GET /health: upstream connect error");
}

#[tokio::test]
async fn members_that_a_voter_does_not_list_are_an_error() {
    let pod = follower("3.6.16").on(MEMBERS, said_by("3.6.16", "members asked of a learner"));
    assert_eq!(ask(&pod).await.unwrap_err().class(), Class::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_silent_pod_holds_up_no_other() {
    let cluster = follower("3.6.16").silence("etcd-0");
    let peers = [peer("etcd-0"), peer("etcd-1")];
    let answers = observe(&cluster, &peers, None, &Timeouts::default()).await;
    assert_eq!(answers[0].said.as_ref().unwrap_err().failure(), &Failure::TimedOut);
    assert!(answers[1].said.is_ok());
}

#[rstest]
#[tokio::test]
async fn a_transfer_is_one_request_to_the_leaders_own_pod(#[values("3.5.35", "3.6.16")] version: &str) {
    let pod = Scripted::new().on(TRANSFER, said_by(version, "transfer"));
    transfer_leader(&pod, &peer("etcd-0"), 7, None, &Timeouts::default()).await.unwrap();
    let requests = pod.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].pod.as_str(), &requests[0].method), ("etcd-0", &Method::POST));
    assert_eq!(requests[0].body, r#"{"targetID":"7"}"#);
}

#[rstest]
#[case("transfer sent to a follower", "etcdserver: not leader")]
#[case("transfer without a leader", "etcdserver: not leader")]
#[case("transfer to an unknown member", "etcdserver: bad leader transferee")]
#[case("transfer to a learner", "etcdserver: bad leader transferee")]
#[tokio::test]
async fn a_refused_transfer_is_told_in_the_servers_words(
    #[case] what: &str,
    #[case] words: &str,
    #[values("3.5.35", "3.6.16")] version: &str,
) {
    let pod = Scripted::new().on(TRANSFER, said_by(version, what));
    let error = transfer_leader(&pod, &peer("etcd-0"), 7, None, &Timeouts::default()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("etcd-0 answered 400 to POST {TRANSFER}: {words}"));
}

#[test]
fn every_recorded_answer_is_one_of_a_known_request() {
    for (_, name, request) in recordings("etcd") {
        let path = request.split(' ').nth(1).unwrap();
        assert!([STATUS, MEMBERS, HEALTH, TRANSFER, "/version"].contains(&path), "{name}: {request}");
    }
}

/// A snapshot as the gateway writes it: pieces, then the checksum.
fn lines(pieces: &[&[u8]], checksum: &[u8]) -> String {
    let total: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut sent = 0;
    let mut line = |piece: &[u8]| {
        sent += piece.len();
        let remaining = match total.saturating_sub(sent) {
            0 => String::new(),
            some => format!(r#""remaining_bytes":"{some}","#),
        };
        format!("{{\"result\":{{{remaining}\"blob\":\"{}\"}}}}\n", STANDARD.encode(piece))
    };
    pieces.iter().copied().chain([checksum]).map(&mut line).collect()
}

async fn saved(body: &str) -> (Result<Snapshot, SnapshotError>, Vec<u8>) {
    let pod = Scripted::new().on(SNAPSHOT, Answering::with(200, body));
    let mut file = Vec::new();
    let result = save(&pod, &peer("etcd-0"), None, Duration::from_secs(5), &mut file).await;
    (result, file)
}

#[tokio::test]
async fn a_snapshot_is_written_with_its_checksum_behind_it() {
    let checksum = digest(&SHA256, b"all the data");
    let (snapshot, file) = saved(&lines(&[b"all the ", b"data"], checksum.as_ref())).await;
    assert_eq!(snapshot.unwrap(), Snapshot { bytes: 12, sha256: checksum.as_ref().try_into().unwrap() });
    assert_eq!(file, [b"all the data", checksum.as_ref()].concat());
}

#[tokio::test]
async fn a_damaged_snapshot_is_none() {
    let whole = lines(&[b"all the ", b"data"], digest(&SHA256, b"all the data").as_ref());
    for end in 0..whole.len() - 1 {
        assert!(saved(&whole[..end]).await.0.is_err(), "cut at {end}");
    }
    let (wrong, _) = saved(&lines(&[b"all the ", b"dada"], digest(&SHA256, b"all the data").as_ref())).await;
    assert!(matches!(wrong, Err(SnapshotError::Damaged { why: "its checksum is not that of its bytes", .. })));
    let (failed, _) = saved(r#"{"error":{"code":14,"message":"etcdserver: server stopped"}}"#).await;
    assert!(matches!(failed, Err(SnapshotError::Refused { text, .. }) if text == "etcdserver: server stopped"));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_refused_or_stands_still_says_so() {
    let mut file = Vec::new();
    let denied = Scripted::new().on(SNAPSHOT, said_by("3.6.16", "status without credentials"));
    let error = save(&denied, &peer("etcd-0"), None, Duration::from_secs(5), &mut file).await.unwrap_err();
    assert!(error.to_string().contains("400") && error.to_string().contains("user name is empty"), "{error}");
    let silent = Scripted::new().on(SNAPSHOT, Answering::Silent);
    let error = save(&silent, &peer("etcd-0"), None, Duration::from_secs(5), &mut file).await.unwrap_err();
    assert!(matches!(error, SnapshotError::Stalled(_)), "{error}");
    assert!(file.is_empty());
}

#[test]
fn the_futures_can_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let pod = follower("3.6.16");
    let transport: &dyn Transport = &pod;
    let (peers, timeouts) = ([peer("etcd-0")], Timeouts::default());
    let mut file = Vec::new();
    is_send(&observe(transport, &peers, None, &timeouts));
    is_send(&transfer_leader(transport, &peers[0], 1, None, &timeouts));
    is_send(&save(transport, &peers[0], None, Duration::from_secs(1), &mut file));
}

const AUTHENTICATE: &str = "/v3/auth/authenticate";

fn root() -> Login {
    Login { name: "root".into(), password: Password::new("hunter2").unwrap() }
}

async fn log_in(status: u16, body: &str) -> Result<Option<Secret>, CallError> {
    let pod = Scripted::new().on(AUTHENTICATE, Answering::with(status, body));
    let answer = login(&pod, &peer("etcd-0"), &root(), &Timeouts::default()).await;
    let sent = pod.requests().remove(0).body;
    assert_eq!(sent, r#"{"name":"root","password":"hunter2"}"#);
    answer
}

#[tokio::test]
async fn a_token_is_got_for_a_password() {
    let token = log_in(200, r#"{"header":{"member_id":"1"},"token":"abcdefgh.17"}"#).await.unwrap();
    assert_eq!(token, Some(Secret::new("abcdefgh.17").unwrap()));
}

#[tokio::test]
async fn where_nobody_needs_a_token_there_is_none() {
    let off = r#"{"error":"etcdserver: authentication is not enabled","code":9,"message":"etcdserver: authentication is not enabled"}"#;
    assert_eq!(log_in(400, off).await.unwrap(), None);
}

#[rstest]
#[case::wrong(
    400,
    r#"{"code":3,"message":"etcdserver: authentication failed, invalid user ID or password"}"#,
    Class::Denied
)]
#[case::no_quorum(503, r#"{"code":14,"message":"etcdserver: request timed out"}"#, Class::Refused)]
#[case::echoed(500, r#"{"message":"what does hunter2 mean?"}"#, Class::Refused)]
#[case::of_another_kind(200, r#""abcdefgh.17""#, Class::Garbled)]
#[case::no_token(200, r#"{"token":"two words"}"#, Class::Garbled)]
#[tokio::test]
async fn a_login_that_fails_shows_neither_password_nor_token(
    #[case] status: u16,
    #[case] body: &str,
    #[case] class: Class,
) {
    let error = log_in(status, body).await.unwrap_err();
    assert_eq!(error.class(), class, "{error}");
    for secret in ["hunter2", "abcdefgh", "two words"] {
        assert!(!error.to_string().contains(secret), "{error}");
    }
}

/// What is shown to whom.
#[tokio::test]
async fn a_token_is_shown_with_every_request_but_for_health() {
    let pod = follower("3.6.16").on(TRANSFER, Answering::with(200, "{}"));
    let token = Secret::new("abcdefgh.17").unwrap();
    observe(&pod, &[peer("etcd-1")], Some(&token), &Timeouts::default()).await;
    transfer_leader(&pod, &peer("etcd-1"), 7, Some(&token), &Timeouts::default()).await.unwrap();
    let shown = |asked: &crate::scripted::Asked| {
        asked.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned())
    };
    let shown: Vec<_> = pod.requests().iter().filter(|asked| asked.method == Method::POST).map(shown).collect();
    assert_eq!(shown, vec![Some("abcdefgh.17".to_owned()); 3]);
    assert!(
        pod.requests().iter().all(|asked| asked.method == Method::POST || !asked.headers.contains_key("authorization"))
    );
}

#[rstest]
#[case::expired(401, r#"{"code":16,"message":"etcdserver: invalid auth token"}"#, true)]
#[case::none_shown(400, r#"{"code":3,"message":"etcdserver: user name is empty"}"#, true)]
#[case::not_allowed(403, r#"{"code":7,"message":"etcdserver: permission denied"}"#, false)]
#[case::not_about_that(503, r#"{"code":14,"message":"etcdserver: request timed out"}"#, false)]
#[tokio::test]
async fn another_token_helps_where_this_one_is_not_known(#[case] status: u16, #[case] body: &str, #[case] helps: bool) {
    let pod = follower("3.6.16").on(STATUS, Answering::with(status, body));
    assert_eq!(wants_another_token(&ask(&pod).await.unwrap_err()), helps);
}
