//! The adapter for OpenBao and Vault against recorded answers, broken answers and no answers.

use std::time::Duration;

use crate::scripted::{Answering, Asked, Scripted, peer, recorded, recorded_body, recordings};
use http::Method;
use rstest::rstest;
use serde_json::{Value, json};
use windlass_systems::{
    CallError, Class, Failure, Secret, Timeouts, Transport,
    openbao::{
        Address, AuthMethod, Health, Leadership, Lease, Login, Namespace, Product, RaftPosition, Said, Standing, State,
        login, observe, step_down,
    },
};

const HEALTH: &str = "/v1/sys/health";
const LEADER: &str = "/v1/sys/leader";
const SERVERS: &str = "/v1/sys/storage/raft/configuration";
const AUTOPILOT: &str = "/v1/sys/storage/raft/autopilot/state";
const STEP_DOWN: &str = "/v1/sys/step-down";
const LOGIN: &str = "/v1/auth/kubernetes/login";

const TOKEN: &str = "hvs.CAESIJ-not-to-be-seen";
const JWT: &str = "eyJhbGciOi.not-to-be.seen-either";

fn token() -> Secret {
    Secret::new(TOKEN).unwrap()
}

fn said_by(what: &str) -> Answering {
    recorded("openbao", what)
}

/// A pod that answers as the recorded active one did.
fn active() -> Scripted {
    Scripted::new()
        .on(HEALTH, said_by("health on the active node"))
        .on(LEADER, said_by("leader asked of the active node"))
        .on(SERVERS, said_by("raft configuration"))
        .on(AUTOPILOT, said_by("autopilot state"))
}

/// One that answers as a recorded standby did. Where it is asked what it would pass on, it says so.
fn standby() -> Scripted {
    Scripted::new()
        .on(HEALTH, said_by("health on a standby"))
        .on(LEADER, said_by("leader asked of a standby"))
        .on(SERVERS, Answering::with(307, ""))
        .on(AUTOPILOT, Answering::with(307, ""))
}

async fn ask_as(product: Product, pod: &Scripted, token: Option<&Secret>) -> Result<Said, CallError> {
    let mut answers = observe(product, pod, &[peer("bao-1")], token, &Timeouts::default()).await;
    assert_eq!(answers.len(), 1);
    let answer = answers.remove(0);
    assert_eq!(answer.pod, "bao-1");
    answer.said
}

async fn ask(pod: &Scripted) -> Result<Said, CallError> {
    ask_as(Product::OpenBao, pod, Some(&token())).await
}

async fn said(pod: &Scripted) -> Said {
    ask(pod).await.unwrap_or_else(|error| panic!("{error}"))
}

fn has(asked: &Asked, header: &str) -> bool {
    asked.headers.contains_key(header)
}

#[tokio::test]
async fn the_active_pod_is_read_as_recorded() {
    let Said { health, leadership, raft } = said(&active()).await;
    assert_eq!(
        health,
        Health {
            state: State::Active,
            version: Some("2.5.5".into()),
            cluster_name: Some("vault-cluster-afadc547".into()),
            cluster_id: Some("67a42584-e358-51db-53d5-884f9c860670".into()),
            is_dr_secondary: false,
        }
    );
    assert_eq!(
        leadership,
        Some(Leadership {
            is_self: true,
            api_address: Some(Address::new("127.0.0.1:8220")),
            cluster_address: Some(Address::new("127.0.0.1:8221")),
            raft: Some(RaftPosition { last: 44, applied: 44 }),
        })
    );
    let raft = raft.unwrap();
    let servers: Vec<_> = raft.servers.iter().map(|server| (server.node_id.as_str(), server.is_voter)).collect();
    assert_eq!(servers, [("bao-0", true), ("bao-1", false), ("bao-2", true), ("bao-3", true)]);
    let leader = raft.servers.iter().find(|server| server.is_leader).unwrap();
    assert_eq!(leader.node_id, "bao-2");
    assert_eq!(Some(&leader.address), leadership.unwrap().cluster_address.as_ref(), "by this the two are matched");
    let autopilot = raft.autopilot.unwrap();
    assert_eq!((autopilot.is_healthy, autopilot.failure_tolerance, autopilot.leader), (true, 1, Some("bao-2".into())));
    let standings: Vec<_> = autopilot.servers.values().map(|server| server.standing.clone()).collect();
    assert_eq!(standings, [Standing::Voter, Standing::NonVoter, Standing::Leader, Standing::Voter]);
    let one = &autopilot.servers["bao-1"];
    assert_eq!((one.last_index, one.last_term, one.is_healthy, one.is_alive), (44, 4, true, true));
    assert_eq!((one.version.as_deref(), one.address.as_str()), (Some("2.5.5"), "127.0.0.1:8211"));
}

#[tokio::test]
async fn a_standby_is_asked_only_what_it_knows_itself() {
    let pod = standby();
    let said = said(&pod).await;
    assert_eq!(said.health.state, State::Standby { hears_active: None });
    let leadership = said.leadership.unwrap();
    assert!(!leadership.is_self);
    assert_eq!(leadership.cluster_address.unwrap().as_str(), "127.0.0.1:8221");
    assert_eq!(leadership.raft, Some(RaftPosition { last: 44, applied: 44 }));
    assert_eq!(said.raft, None);
    assert_eq!(pod.requests().len(), 2);
    assert!(pod.requests().iter().all(|asked| !has(asked, "X-Vault-Token")), "it needs none, so it gets none");
}

#[tokio::test]
async fn without_a_token_nobody_is_asked_of_raft() {
    let pod = active();
    assert_eq!(ask_as(Product::OpenBao, &pod, None).await.unwrap().raft, None);
    assert_eq!(pod.requests().len(), 2);
}

#[tokio::test]
async fn the_leader_is_asked_of_raft_itself_and_health_is_asked_without_a_token() {
    let pod = active();
    said(&pod).await;
    let requests = pod.requests();
    let (open, with_token): (Vec<_>, Vec<_>) = requests.iter().partition(|asked| !has(asked, "X-Vault-Token"));
    assert_eq!((open.len(), with_token.len()), (2, 2));
    assert!(with_token.iter().all(|asked| asked.headers["X-Vault-Token"] == TOKEN));
    assert!(with_token.iter().all(|asked| asked.headers["X-Vault-No-Request-Forwarding"] == "1"));
    assert!(requests.iter().all(|asked| asked.method == Method::GET && !has(asked, "X-Vault-Namespace")));
}

#[tokio::test]
async fn one_that_stopped_leading_meanwhile_says_so() {
    for path in [SERVERS, AUTOPILOT] {
        let error = ask(&active().on(path, Answering::with(307, ""))).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("bao-1 answered 307 to GET {path}: it does not lead (any more), and was asked not to pass this on")
        );
        assert_eq!(error.class(), Class::Refused);
    }
}

fn health(initialized: bool, sealed: bool, standby: bool) -> Value {
    json!({ "initialized": initialized, "sealed": sealed, "standby": standby, "version": "1.21.4" })
}

fn with(mut body: Value, name: &str, value: impl Into<Value>) -> Value {
    body[name] = value.into();
    body
}

const QUIET: State = State::Standby { hears_active: None };

#[rstest]
#[case::active(200, health(true, false, false), Ok(State::Active), Ok(State::Active))]
#[case::standby(429, health(true, false, true), Ok(QUIET), Ok(QUIET))]
#[case::uninitialized(501, health(false, true, true), Ok(State::Uninitialized), Ok(State::Uninitialized))]
#[case::sealed(503, health(true, true, true), Ok(State::Sealed), Ok(State::Sealed))]
#[case::dr_secondary(
    472,
    with(health(true, false, false), "replication_dr_mode", "secondary"),
    Err(472),
    Ok(State::Active)
)]
#[case::performance_standby(473, with(health(true, false, true), "performance_standby", true), Err(473), Ok(QUIET))]
#[case::cut_off(
    474,
    with(health(true, false, true), "ha_connection_healthy", false),
    Err(474),
    Ok(State::Standby { hears_active: Some(false) })
)]
#[case::removed(530, with(health(true, true, true), "removed_from_cluster", true), Err(530), Ok(State::Removed))]
#[case::not_removed(429, with(health(true, false, true), "removed_from_cluster", false), Ok(QUIET), Ok(QUIET))]
#[case::broken(500, json!({ "errors": [] }), Err(500), Err(500))]
#[case::a_bad_request(400, json!({ "errors": [] }), Err(400), Err(400))]
#[case::not_there(404, json!({ "errors": [] }), Err(404), Err(404))]
#[case::a_limit_on_requests(429, json!({ "errors": ["request path rate limit exceeded"] }), Err(429), Err(429))]
#[case::a_proxy_without_a_pod(503, Value::Null, Err(503), Err(503))]
#[tokio::test]
async fn every_status_of_health_is_read(
    #[case] status: u16,
    #[case] body: Value,
    #[case] of_openbao: Result<State, u16>,
    #[case] of_vault: Result<State, u16>,
) {
    for (product, expected) in [(Product::OpenBao, of_openbao), (Product::Vault, of_vault)] {
        let pod = active().on(HEALTH, Answering::with(status, &body.to_string()));
        match (ask_as(product, &pod, Some(&token())).await, expected) {
            (Ok(said), Ok(state)) => {
                assert_eq!(said.health.state, state, "{}", product.name());
                assert_eq!(said.leadership.is_some(), state.takes_part());
                assert_eq!(said.raft.is_some(), state == State::Active);
                assert_eq!(said.health.is_dr_secondary, status == 472);
            }
            (Err(error), Err(code)) => {
                assert!(matches!(error.failure(), Failure::Status { code: told, .. } if *told == code), "{error}");
            }
            (got, wanted) => panic!("{}: {got:?} instead of {wanted:?}", product.name()),
        }
    }
}

#[tokio::test]
async fn a_pod_without_data_is_read_as_recorded() {
    let pod = Scripted::new()
        .on(HEALTH, said_by("health of a node that is not initialized"))
        .on(LEADER, said_by("leader asked of a sealed node"));
    let said = said(&pod).await;
    assert_eq!(said.health.state, State::Uninitialized);
    assert_eq!((said.health.version.as_deref(), said.health.cluster_id), (Some("2.5.5"), None));
    assert_eq!((said.leadership, said.raft), (None, None));
}

#[tokio::test]
async fn one_that_was_sealed_between_two_answers_is_not_known() {
    let error = ask(&standby().on(LEADER, said_by("leader asked of a sealed node"))).await.unwrap_err();
    assert_eq!(error.to_string(), "bao-1 answered 503 to GET /v1/sys/leader: Vault is sealed");
}

#[tokio::test]
async fn no_leader_and_hidden_addresses_are_none() {
    let leader = r#"{"ha_enabled":true,"is_self":false,"active_time":"0001-01-01T00:00:00Z","leader_address":"","leader_cluster_address":""}"#;
    let leadership = said(&standby().on(LEADER, Answering::with(200, leader))).await.leadership.unwrap();
    assert_eq!(leadership, Leadership { is_self: false, api_address: None, cluster_address: None, raft: None });
    let hidden = with(with(health(true, false, true), "version", ""), "cluster_name", "");
    let health = said(&standby().on(HEALTH, Answering::with(429, &hidden.to_string()))).await.health;
    assert_eq!((health.version, health.cluster_name), (None, None));
}

#[tokio::test]
async fn autopilot_is_understood_with_and_without_its_envelope() {
    let wrapped = recorded_body("openbao", "autopilot state");
    let flat = serde_json::from_str::<Value>(&wrapped).unwrap()["data"].clone();
    let both = with(flat.clone(), "data", flat.clone());
    let as_recorded = said(&active()).await;
    for body in [flat, both] {
        assert_eq!(said(&active().on(AUTOPILOT, Answering::with(200, &body.to_string()))).await, as_recorded);
    }
}

#[tokio::test]
async fn autopilot_of_an_older_server_tells_less() {
    let old = json!({ "healthy": false, "failure_tolerance": 0, "leader": "", "voters": null, "non_voters": null, "servers": {
        "raft1": { "id": "raft1", "name": "raft1", "address": "127.0.0.1:8201", "node_status": "failed", "last_contact": "0s",
                   "last_term": 3, "last_index": 18_446_744_073_709_551_615_u64, "healthy": false, "status": "staging", "meta": null } } });
    let pod = active().on(AUTOPILOT, Answering::with(200, &old.to_string()));
    let autopilot = said(&pod).await.raft.unwrap().autopilot.unwrap();
    let server = &autopilot.servers["raft1"];
    assert_eq!((autopilot.leader, server.version.as_deref(), server.is_alive), (None, None, false));
    assert_eq!((&server.standing, server.last_index), (&Standing::Other("staging".into()), u64::MAX));
}

#[tokio::test]
async fn autopilot_that_is_switched_off_is_none() {
    let raft = said(&active().on(AUTOPILOT, Answering::with(404, r#"{"errors":[]}"#))).await.raft.unwrap();
    assert_eq!((raft.autopilot, raft.servers.len()), (None, 4));
}

#[tokio::test]
async fn storage_that_is_not_raft_is_told_in_the_servers_words() {
    let pod = active().on(SERVERS, Answering::with(400, r#"{"errors":["raft storage is not in use"]}"#));
    let error = ask(&pod).await.unwrap_err();
    assert_eq!(error.to_string(), format!("bao-1 answered 400 to GET {SERVERS}: raft storage is not in use"));
}

#[rstest]
#[case::openbao("bad token", "permission denied")]
#[case::no_token("no token", "permission denied")]
#[tokio::test]
async fn a_token_that_is_refused_is_a_class_of_its_own(#[case] recording: &str, #[case] words: &str) {
    let error = ask(&active().on(SERVERS, said_by(recording))).await.unwrap_err();
    assert_eq!(error.class(), Class::Denied, "so that the caller logs in again");
    assert_eq!(error.to_string(), format!("bao-1 asks for credentials: 403 to GET {SERVERS}: {words}"));
}

#[tokio::test]
async fn a_token_that_may_not_read_autopilot_is_refused_likewise() {
    let words = r#"{"errors":["2 errors occurred:\n\t* permission denied\n\t* invalid token\n\n"]}"#;
    let error = ask(&active().on(AUTOPILOT, Answering::with(403, words))).await.unwrap_err();
    assert_eq!(error.class(), Class::Denied);
    assert!(error.to_string().ends_with("2 errors occurred: * permission denied * invalid token"), "{error}");
}

#[rstest]
#[case::health_empty(HEALTH, "{}")]
#[case::health_of_the_wrong_kind(HEALTH, r#"{"initialized":"true","sealed":false,"standby":false}"#)]
#[case::health_without_sealed(HEALTH, r#"{"initialized":true,"standby":false}"#)]
#[case::health_without_standby(HEALTH, r#"{"initialized":true,"sealed":false}"#)]
#[case::health_null(HEALTH, "null")]
#[case::health_as_a_web_page(HEALTH, "<html>hello</html>")]
#[case::health_nothing(HEALTH, "")]
#[case::health_twice(HEALTH, r#"{"initialized":true,"sealed":false,"standby":false}{}"#)]
#[case::leader_empty(LEADER, "{}")]
#[case::leader_without_self(LEADER, r#"{"leader_address":"","leader_cluster_address":""}"#)]
#[case::leader_null(LEADER, r#"{"is_self":true,"leader_address":null,"leader_cluster_address":""}"#)]
#[case::leader_negative(
    LEADER,
    r#"{"is_self":true,"leader_address":"","leader_cluster_address":"","raft_committed_index":-1}"#
)]
#[case::leader_rounded(
    LEADER,
    r#"{"is_self":true,"leader_address":"","leader_cluster_address":"","raft_applied_index":1.5}"#
)]
#[case::servers_empty(SERVERS, "{}")]
#[case::servers_null(SERVERS, r#"{"data":{"config":{"servers":null}}}"#)]
#[case::servers_none(SERVERS, r#"{"data":{"config":{"servers":[]}}}"#)]
#[case::servers_a_null(SERVERS, r#"{"data":{"config":{"servers":[null]}}}"#)]
#[case::servers_without_a_vote(
    SERVERS,
    r#"{"data":{"config":{"servers":[{"node_id":"a","address":"b:1","leader":true}]}}}"#
)]
#[case::servers_without_an_id(
    SERVERS,
    r#"{"data":{"config":{"servers":[{"address":"b:1","leader":true,"voter":true}]}}}"#
)]
#[case::servers_as_a_list(SERVERS, "[]")]
#[case::data_null(SERVERS, r#"{"data":null}"#)]
#[case::autopilot_empty(AUTOPILOT, "{}")]
#[case::autopilot_text(AUTOPILOT, r#""healthy""#)]
#[case::autopilot_a_null(AUTOPILOT, r#"{"healthy":true,"failure_tolerance":1,"leader":"a","servers":{"a":null}}"#)]
#[case::autopilot_servers_as_a_list(
    AUTOPILOT,
    r#"{"healthy":true,"failure_tolerance":1,"leader":"a","servers":[{"id":"a"}]}"#
)]
#[tokio::test]
async fn an_unreadable_answer_is_never_a_default(#[case] path: &str, #[case] body: &str) {
    let error = ask(&active().on(path, Answering::with(200, body))).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Unreadable(_)), "{error}");
    assert_eq!(error.class(), Class::Garbled);
}

#[rstest]
#[case(HEALTH, "health on the active node")]
#[case(LEADER, "leader asked of the active node")]
#[case(SERVERS, "raft configuration")]
#[case(AUTOPILOT, "autopilot state")]
#[tokio::test]
async fn every_truncation_of_an_answer_is_an_error(#[case] path: &str, #[case] name: &str) {
    let whole = recorded_body("openbao", name);
    assert!(ask(&active().on(path, Answering::with(200, &whole))).await.is_ok());
    for end in 0..whole.len() {
        let answer = ask(&active().on(path, Answering::with(200, &whole[..end]))).await;
        assert!(matches!(answer.unwrap_err().failure(), Failure::Unreadable(_)), "cut at {end}");
    }
}

#[tokio::test]
async fn every_damaged_byte_gives_an_answer_or_an_error() {
    let whole = recorded_body("openbao", "raft configuration");
    for index in 0..whole.len() {
        for byte in [0, b'"', b'{', b'9', b'-', 0xff] {
            let mut damaged = whole.clone().into_bytes();
            damaged[index] = byte;
            // Neither outcome is wrong for every byte; a panic is.
            let _ = ask(&active().on(SERVERS, Answering::bytes(200, damaged))).await;
        }
    }
}

#[tokio::test]
async fn every_recorded_success_to_a_question_we_ask_is_understood() {
    let mut understood = 0;
    for (file, name, request) in recordings("openbao") {
        let (_, path) = request.split_once(' ').unwrap();
        let refused = ["no token", "bad token", "leader asked of a sealed node"].contains(&name.as_str());
        if [HEALTH, LEADER, SERVERS, AUTOPILOT].contains(&path) && !refused {
            said(&active().on(path, recorded(file, &name))).await;
            understood += 1;
        }
    }
    assert_eq!(understood, 8);
}

#[tokio::test(start_paused = true)]
async fn every_pod_is_asked_itself_and_a_silent_one_holds_up_no_other() {
    let peers = [peer("bao-2"), peer("bao-0"), peer("bao-1")];
    let cluster = active().silence("bao-0");
    let begin = tokio::time::Instant::now();
    let answers = observe(Product::OpenBao, &cluster, &peers, Some(&token()), &Timeouts::default()).await;
    assert!(begin.elapsed() <= Timeouts::default().read, "the pods are asked at once");
    let heard: Vec<_> = answers.iter().map(|answer| (answer.pod.as_str(), answer.said.is_ok())).collect();
    assert_eq!(heard, [("bao-2", true), ("bao-0", false), ("bao-1", true)]);
    let error = answers[1].said.as_ref().unwrap_err();
    assert_eq!(error.to_string(), "bao-0 did not answer GET /v1/sys/health in time");
}

#[tokio::test]
async fn a_step_down_is_one_request_to_the_leader_itself_and_not_to_be_passed_on() {
    let pod = Scripted::new().on(STEP_DOWN, Answering::with(204, ""));
    step_down(&pod, &peer("bao-0"), &token(), &Timeouts::default()).await.unwrap();
    let requests = pod.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].pod.as_str(), &requests[0].method), ("bao-0", &Method::PUT));
    assert_eq!(requests[0].headers["X-Vault-No-Request-Forwarding"], "1");
    assert_eq!(requests[0].headers["X-Vault-Token"], TOKEN);
    assert!(!has(&requests[0], "X-Vault-Namespace") && requests[0].body.is_empty());
}

#[rstest]
#[case::a_standby(
    Answering::with(307, ""),
    "bao-0 answered 307 to PUT /v1/sys/step-down: it does not lead (any more), and was asked not to pass this on",
    Class::Refused
)]
#[case::a_standby_without_a_leader(
    Answering::with(500, r#"{"errors":["local node not active but active cluster node not found"]}"#),
    "bao-0 answered 500 to PUT /v1/sys/step-down: local node not active but active cluster node not found",
    Class::Refused
)]
#[case::sealed(
    Answering::with(503, r#"{"errors":["Vault is sealed"]}"#),
    "bao-0 answered 503 to PUT /v1/sys/step-down: Vault is sealed",
    Class::Refused
)]
#[case::not_allowed(
    said_by("step-down without token"),
    "bao-0 asks for credentials: 403 to PUT /v1/sys/step-down: permission denied",
    Class::Denied
)]
#[case::silent(Answering::Silent, "bao-0 did not answer PUT /v1/sys/step-down in time", Class::Unreachable)]
#[tokio::test(start_paused = true)]
async fn a_step_down_that_failed_says_why(#[case] answer: Answering, #[case] message: &str, #[case] class: Class) {
    let pod = Scripted::new().on(STEP_DOWN, answer);
    let error = step_down(&pod, &peer("bao-0"), &token(), &Timeouts::default()).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.class()), (message, class));
    assert_eq!(pod.requests().len(), 1, "nothing is repeated or followed");
}

fn service_account() -> Login {
    Login::new(AuthMethod::Kubernetes, "windlass", Secret::new(JWT).unwrap())
}

async fn log_in(answer: Answering) -> Result<Lease, CallError> {
    let pod = Scripted::new().on(LOGIN, answer);
    login(&pod, &peer("bao-1"), &service_account(), &Timeouts::default()).await
}

fn granted(lease: u64) -> String {
    json!({ "request_id": "", "lease_id": "", "renewable": false, "lease_duration": 0, "data": null, "wrap_info": null, "warnings": null,
            "auth": { "client_token": TOKEN, "accessor": "a", "policies": ["default"], "lease_duration": lease, "renewable": true } })
    .to_string()
}

#[rstest]
#[case::kubernetes(Login::new(AuthMethod::Kubernetes, "windlass", Secret::new(JWT).unwrap()), LOGIN, None)]
#[case::jwt(Login::new(AuthMethod::Jwt, "windlass", Secret::new(JWT).unwrap()), "/v1/auth/jwt/login", None)]
#[case::elsewhere(
    Login { mount: "team/jwt-operator".into(), namespace: Some(Namespace::new("ops/eu").unwrap()), ..service_account() },
    "/v1/auth/team/jwt-operator/login",
    Some("ops/eu")
)]
#[tokio::test]
async fn a_login_trades_the_service_account_for_a_token(
    #[case] how: Login,
    #[case] path: &str,
    #[case] namespace: Option<&str>,
) {
    let pod = Scripted::new().on(path, Answering::with(200, &granted(3600)));
    let lease = login(&pod, &peer("bao-1"), &how, &Timeouts::default()).await.unwrap();
    assert_eq!(lease, Lease { token: token(), lease: Some(Duration::from_hours(1)), renewable: true });
    let requests = pod.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        (&requests[0].method, &requests[0].headers["Content-Type"]),
        (&Method::POST, &"application/json".parse().unwrap())
    );
    assert_eq!(requests[0].headers.get("X-Vault-Namespace").map(|value| value.to_str().unwrap()), namespace);
    assert!(!has(&requests[0], "X-Vault-Token") && !has(&requests[0], "X-Vault-No-Request-Forwarding"));
    assert_eq!(serde_json::from_slice::<Value>(&requests[0].body).unwrap(), json!({ "role": "windlass", "jwt": JWT }));
}

#[tokio::test]
async fn a_lease_of_zero_does_not_end() {
    assert_eq!(log_in(Answering::with(200, &granted(0))).await.unwrap().lease, None);
}

#[rstest]
#[case::denied(403, r#"{"errors":["permission denied"]}"#, Class::Denied)]
#[case::not_that_account(403, r#"{"errors":["service account name not authorized"]}"#, Class::Denied)]
#[case::unknown_role(400, r#"{"errors":["invalid role name \"windlass\""]}"#, Class::Denied)]
#[case::bad_claims(400, r#"{"errors":["error validating token: invalid audience (aud) claim"]}"#, Class::Denied)]
#[case::not_configured(500, r#"{"errors":["could not load backend configuration"]}"#, Class::Refused)]
#[case::sealed(503, r#"{"errors":["Vault is sealed"]}"#, Class::Refused)]
#[case::passing_on_failed(307, "", Class::Refused)]
#[case::no_auth(200, r#"{"auth":null}"#, Class::Garbled)]
#[case::a_second_factor(200, r#"{"auth":{"client_token":"","lease_duration":0,"renewable":false}}"#, Class::Garbled)]
#[case::not_json(200, "hello", Class::Garbled)]
#[tokio::test]
async fn a_login_that_failed_says_why(#[case] status: u16, #[case] body: &str, #[case] class: Class) {
    let error = log_in(Answering::with(status, body)).await.unwrap_err();
    assert_eq!(error.class(), class, "{error}");
}

/// Whatever a person may get to see of an error.
fn shown(error: &CallError) -> String {
    format!("{error} {error:?} {error:#?} {:?} {}", error.failure(), error.next_step())
}

#[rstest]
#[case::in_words(403, format!("the token {TOKEN} is not known"))]
#[case::in_an_error(500, json!({ "errors": [format!("bad: {TOKEN}")] }).to_string())]
#[case::as_a_page_that_repeats_the_request(400, format!("<pre>X-Vault-Token: {TOKEN}\n</pre>"))]
#[case::at_the_end_of_what_is_shown(502, format!("{}{TOKEN}", "x".repeat(190)))]
#[case::where_a_number_belongs(200, json!({ "config": { "servers": TOKEN } }).to_string())]
#[tokio::test]
async fn a_token_that_is_sent_back_is_in_no_message(#[case] status: u16, #[case] body: String) {
    let pod =
        active().on(SERVERS, Answering::with(status, &body)).on(STEP_DOWN, Answering::with(status.max(300), &body));
    let read = ask(&pod).await.unwrap_err();
    let told = step_down(&pod, &peer("bao-0"), &token(), &Timeouts::default()).await.unwrap_err();
    for error in [read, told] {
        assert!(!shown(&error).contains("hvs."), "{error}");
        assert!(error.to_string().contains("(hid"), "{error}");
    }
}

#[rstest]
#[case::the_question(400, json!({ "errors": [format!("can't parse {JWT}")] }).to_string())]
#[case::a_token_of_the_wrong_shape(200, json!({ "auth": { "client_token": [TOKEN], "lease_duration": 1, "renewable": true } }).to_string())]
#[case::a_token_that_can_be_none(200, json!({ "auth": { "client_token": format!("{TOKEN} {TOKEN}") } }).to_string())]
#[case::no_lease(200, json!({ "auth": { "client_token": TOKEN, "renewable": true } }).to_string())]
#[case::a_lease_in_words(200, json!({ "auth": { "client_token": TOKEN, "lease_duration": TOKEN, "renewable": true } }).to_string())]
#[case::not_renewable_nor_otherwise(200, json!({ "auth": { "client_token": TOKEN, "lease_duration": 1 } }).to_string())]
#[case::cut_off(200, granted(1)[..150].to_owned())]
#[case::something_else(200, json!(TOKEN).to_string())]
#[tokio::test]
async fn neither_side_of_a_login_is_in_a_message(#[case] status: u16, #[case] body: String) {
    let error = log_in(Answering::with(status, &body)).await.unwrap_err();
    let shown = shown(&error);
    assert!(!shown.contains("hvs.") && !shown.contains("eyJ"), "{error}");
}

#[tokio::test]
async fn nothing_secret_is_in_the_debug_of_what_is_kept() {
    let pod = active().on(LOGIN, Answering::with(200, &granted(60)));
    said(&pod).await;
    let lease = login(&pod, &peer("bao-1"), &service_account(), &Timeouts::default()).await.unwrap();
    let headers: Vec<_> = pod.requests().into_iter().map(|asked| asked.headers).collect();
    let shown = format!("{headers:?} {lease:?} {:?}", service_account());
    assert!(shown.contains("x-vault-token") && shown.contains("windlass"), "{shown}");
    assert!(!shown.contains("hvs.") && !shown.contains("eyJ"), "{shown}");
}

#[test]
fn the_products_differ_in_their_names() {
    assert_eq!([Product::OpenBao, Product::Vault].map(Product::name), ["OpenBao", "Vault"]);
    assert_eq!([Product::OpenBao, Product::Vault].map(Product::active_label), ["openbao-active", "vault-active"]);
}

#[test]
fn the_futures_can_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let pod = active();
    let transport: &dyn Transport = &pod;
    let (peers, timeouts, token, how) = ([peer("bao-0")], Timeouts::default(), token(), service_account());
    is_send(&observe(Product::Vault, transport, &peers, Some(&token), &timeouts));
    is_send(&step_down(transport, &peers[0], &token, &timeouts));
    is_send(&login(transport, &peers[0], &how, &timeouts));
}
