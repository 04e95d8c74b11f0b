//! The simulated OpenBao against what a real one answered.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_sim::apps::{bench::Bench, openbao::ROOT_TOKEN};

const MEMBERS: [&str; 3] = ["openbao-0", "openbao-1", "openbao-2"];
const VERSION: &str = "v2.5.5";
const HEALTH: &str = "/v1/sys/health";
const LEADER: &str = "/v1/sys/leader";
const SEAL: &str = "/v1/sys/seal-status";
const CONFIGURATION: &str = "/v1/sys/storage/raft/configuration";
const AUTOPILOT: &str = "/v1/sys/storage/raft/autopilot/state";
const STEP_DOWN: &str = "/v1/sys/step-down";

fn recorded(name: &str) -> (u16, Value) {
    let recording: Value =
        serde_json::from_str(include_str!("../../../../recordings/openbao.json")).expect("a recording");
    let exchanges = recording["exchanges"].as_array().expect("exchanges");
    let exchange = exchanges.iter().find(|exchange| exchange["name"] == name).expect("the exchange");
    (u16::try_from(exchange["status"].as_u64().expect("a status")).expect("small"), exchange["response"].clone())
}

/// What an answer is made of: names and kinds of fields, and the texts that say something.
fn shape(value: &Value) -> Value {
    match value {
        // Left out where there are none, and the recorded cluster has one.
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| *name != "non_voters")
            .map(|(name, value)| (name.clone(), telling(name, value)))
            .collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Bool(_) | Value::Null => value.clone(),
        Value::Number(_) => json!("number"),
        Value::String(text) if text.is_empty() => json!(""),
        Value::String(_) => json!("string"),
    }
}

fn telling(name: &str, value: &Value) -> Value {
    match name {
        // The recorded cluster has a fourth node, which does not vote; here, one of each kind tells enough.
        "servers" if value.is_array() => shape(&kinds(value.as_array().expect("servers").iter(), "voter")),
        "servers" => shape(&kinds(value.as_object().expect("servers").values(), "status")),
        "voters" => json!(value.as_array().map(Vec::len)),
        "errors" | "version" | "type" | "recovery_seal_type" | "storage_type" | "failure_tolerance" | "status"
        | "node_type" | "node_status" | "t" | "n" | "progress" => value.clone(),
        name if name.starts_with("replication") => value.clone(),
        _ => shape(value),
    }
}

/// The first leader and the first voter.
fn kinds<'a>(servers: impl Iterator<Item = &'a Value>, kind: &str) -> Value {
    let servers: Vec<&Value> = servers.collect();
    let leads = |server: &&Value| server["leader"] == true || server["status"] == "leader";
    let votes = |server: &&Value| !leads(server) && (server[kind] == true || server[kind] == "voter");
    json!([servers.iter().copied().find(leads), servers.iter().copied().find(votes)])
}

#[derive(Default)]
struct Ask<'a> {
    token: Option<&'a str>,
    stays: bool,
    body: Value,
}

const ROOT: Ask<'static> = Ask { token: Some(ROOT_TOKEN), stays: false, body: Value::Null };
const ROOT_THERE: Ask<'static> = Ask { token: Some(ROOT_TOKEN), stays: true, body: Value::Null };

struct Three(Bench);

impl Three {
    fn new(version: &str) -> Self {
        let mut bench = Bench::openbao(1, &MEMBERS);
        for member in MEMBERS {
            bench.start(member, version).expect("it starts");
        }
        bench.pass(Duration::from_secs(20));
        Self(bench)
    }

    fn pass(&mut self, seconds: u64) {
        self.0.pass(Duration::from_secs(seconds));
    }

    fn send(&mut self, member: &str, method: Method, path: &str, ask: &Ask<'_>) -> http::Response<Bytes> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = ask.token {
            request = request.header("X-Vault-Token", token);
        }
        if ask.stays {
            request = request.header("X-Vault-No-Request-Forwarding", "1");
        }
        let body = if ask.body.is_null() { Bytes::new() } else { Bytes::from(ask.body.to_string()) };
        self.0.ask(member, &request.body(body).expect("a request")).expect("an answer")
    }

    fn ask(&mut self, member: &str, method: Method, path: &str, ask: &Ask<'_>) -> (u16, Value) {
        let response = self.send(member, method, path, ask);
        let text = String::from_utf8_lossy(response.body()).into_owned();
        (response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn get(&mut self, member: &str, path: &str) -> (u16, Value) {
        self.ask(member, Method::GET, path, &ROOT)
    }

    /// The active member, if there is one.
    fn active(&mut self) -> Option<&'static str> {
        MEMBERS.into_iter().find(|member| {
            let request = Request::get(HEALTH).body(Bytes::new()).expect("a request");
            self.0.ask(member, &request).is_some_and(|response| response.status() == 200)
        })
    }

    /// The active member, and the others.
    fn roles(&mut self) -> (&'static str, Vec<&'static str>) {
        let active = self.active().expect("an active member");
        (active, MEMBERS.into_iter().filter(|member| *member != active).collect())
    }

    /// What autopilot shows of a member.
    fn autopilot(&mut self, asked: &str, member: &str) -> Value {
        let state = self.get(asked, AUTOPILOT).1;
        let servers = state["data"]["servers"].as_object().expect("servers").values();
        let address = format!("{member}.openbao:8201");
        servers.clone().find(|server| server["address"] == address.as_str()).expect("the member").clone()
    }

    #[track_caller]
    fn is_as_recorded(&mut self, name: &str, member: &str, method: Method, path: &str, ask: &Ask<'_>) {
        let (status, answer) = self.ask(member, method, path, ask);
        let (wanted, recorded) = recorded(name);
        assert_eq!((status, shape(&answer)), (wanted, shape(&recorded)), "{name}");
    }
}

#[test]
fn answers_are_those_of_a_real_one() {
    let mut three = Three::new(VERSION);
    let (active, standbys) = three.roles();
    let (standby, nobody) = (standbys[0], Ask::default());
    three.is_as_recorded("health on the active node", active, Method::GET, HEALTH, &nobody);
    three.is_as_recorded("health on a standby", standby, Method::GET, HEALTH, &nobody);
    three.is_as_recorded("leader asked of a standby", standby, Method::GET, LEADER, &nobody);
    three.is_as_recorded("leader asked of the active node", active, Method::GET, LEADER, &nobody);
    three.is_as_recorded("raft configuration", active, Method::GET, CONFIGURATION, &ROOT);
    three.is_as_recorded(
        "raft configuration asked of a standby (forwarded)",
        standby,
        Method::GET,
        CONFIGURATION,
        &ROOT,
    );
    three.is_as_recorded("autopilot state", active, Method::GET, AUTOPILOT, &ROOT);
    three.is_as_recorded("autopilot state", standby, Method::GET, AUTOPILOT, &ROOT);
    three.is_as_recorded("no token", active, Method::GET, CONFIGURATION, &nobody);
    let wrong = Ask { token: Some("s.wrong"), ..Ask::default() };
    three.is_as_recorded("bad token", active, Method::GET, CONFIGURATION, &wrong);
    three.is_as_recorded("step-down without token", active, Method::PUT, STEP_DOWN, &nobody);
    three.is_as_recorded("seal-status", standby, Method::GET, SEAL, &nobody);
    three.is_as_recorded(
        "step-down sent to a standby (forwarded to the active node)",
        standby,
        Method::PUT,
        STEP_DOWN,
        &ROOT,
    );
}

#[test]
fn one_that_has_never_been_unsealed_is_not_initialized() {
    let mut three = Three(Bench::openbao(1, &MEMBERS));
    three.0.start("openbao-0", VERSION).expect("it starts");
    let nobody = Ask::default();
    three.is_as_recorded("health of a node that is not initialized", "openbao-0", Method::GET, HEALTH, &nobody);
    three.is_as_recorded("leader asked of a sealed node", "openbao-0", Method::GET, LEADER, &nobody);
}

#[rstest]
#[case::standby_is_fine("?standbyok=true", 200)]
#[case::a_flag_without_a_value_is_not_set("?standbyok", 429)]
#[case::openbao_has_no_performance_standbys("?perfstandbyok=true", 429)]
#[case::a_code_of_ones_own("?standbycode=299&sealedcode=204", 299)]
#[case::no_code("?sealedcode=well", 400)]
fn health_answers_with_the_codes_that_are_asked_for(#[case] query: &str, #[case] status: u16) {
    let mut three = Three::new(VERSION);
    let (_, standbys) = three.roles();
    assert_eq!(three.get(standbys[0], &format!("{HEALTH}{query}")).0, status);
}

#[test]
fn a_step_down_leaves_nobody_active_for_a_moment_and_then_another_one() {
    let mut three = Three::new(VERSION);
    let (active, standbys) = three.roles();
    let named = |three: &mut Three, member: &str| three.get(member, LEADER).1["leader_address"].clone();
    let old = named(&mut three, standbys[0]);
    assert_eq!(three.ask(active, Method::PUT, STEP_DOWN, &ROOT_THERE).0, 204);
    assert_eq!(three.active(), None);
    // The others name the old one until there is a new one; itself, it names nobody.
    assert_eq!((named(&mut three, standbys[0]), named(&mut three, active)), (old, json!("")));
    assert_eq!(three.ask(active, Method::PUT, STEP_DOWN, &ROOT).0, 500);
    three.0.pass(Duration::from_millis(900));
    assert_eq!(three.active(), None);
    three.0.pass(Duration::from_millis(1100));
    let (new, _) = three.roles();
    assert_ne!(new, active);
    // Whoever stepped down stays out of it for ten seconds.
    three.pass(4);
    assert_eq!(three.ask(new, Method::POST, STEP_DOWN, &ROOT_THERE).0, 204);
    three.pass(2);
    let (third, _) = three.roles();
    assert!(third != new && third != active);
}

#[test]
fn without_forwarding_a_standby_sends_the_caller_away() {
    let mut three = Three::new(VERSION);
    let (active, standbys) = three.roles();
    for path in [STEP_DOWN, AUTOPILOT] {
        let method = if path == STEP_DOWN { Method::PUT } else { Method::GET };
        let response = three.send(standbys[0], method, path, &ROOT_THERE);
        let location = response.headers()["location"].to_str().expect("text");
        assert_eq!(
            (response.status().as_u16(), location),
            (307, &*format!("http://{active}.openbao.bench.svc:8200{path}"))
        );
    }
    // A read that any member can answer is answered.
    assert_eq!(three.ask(standbys[0], Method::GET, CONFIGURATION, &ROOT_THERE).0, 200);
    assert_eq!(three.active(), Some(active));
    let mut old = Three::new("v2.4.4");
    let (_, standbys) = old.roles();
    assert_eq!(old.ask(standbys[0], Method::GET, CONFIGURATION, &ROOT_THERE).0, 307);
}

#[rstest]
fn a_login_gives_a_token_that_expires(#[values("kubernetes", "jwt", "jwt-operator")] mount: &str) {
    let mut three = Three::new(VERSION);
    let (active, standbys) = three.roles();
    let path = format!("/v1/auth/{mount}/login");
    let login = |body: Value| Ask { body, ..Ask::default() };
    let (status, answer) =
        three.ask(standbys[0], Method::POST, &path, &login(json!({"role": "upgrade", "jwt": "e30.e30.x"})));
    assert_eq!((status, &answer["auth"]["lease_duration"]), (200, &json!(3600)));
    let token = answer["auth"]["client_token"].as_str().expect("a token");
    let ask = Ask { token: Some(token), ..Ask::default() };
    assert_eq!(three.ask(active, Method::GET, AUTOPILOT, &ask).0, 200);
    three.pass(3601);
    assert_eq!(three.ask(active, Method::GET, AUTOPILOT, &ask), recorded("bad token"));
    assert_eq!(three.ask(active, Method::POST, &path, &login(json!({"jwt": "x"}))).0, 400);
}

#[test]
fn autopilot_notices_late_that_a_member_is_gone_and_late_that_it_is_back() {
    let mut three = Three::new(VERSION);
    let (active, standbys) = three.roles();
    let standby = standbys[0];
    three.0.kill(standby);
    three.pass(4);
    assert_eq!(three.autopilot(active, standby)["healthy"], true, "it was heard of lately");
    three.pass(12);
    assert_eq!(three.autopilot(active, standby)["healthy"], false);
    let state = three.get(active, AUTOPILOT).1["data"].clone();
    assert_eq!((&state["healthy"], &state["failure_tolerance"]), (&json!(false), &json!(0)));
    let before = three.autopilot(active, standby)["last_index"].as_u64();
    three.0.start(standby, "v2.5.6").expect("it starts");
    assert_eq!(three.autopilot(active, standby)["healthy"], false, "nothing has been heard of it");
    three.pass(15);
    let back = three.autopilot(active, standby);
    assert_eq!((&back["healthy"], &back["version"]), (&json!(true), &json!("2.5.6")));
    assert!(back["last_index"].as_u64() > before);
}

#[test]
fn a_new_leader_knows_nothing_of_who_was_gone_before() {
    let mut three = Three::new(VERSION);
    let (active, standbys) = three.roles();
    three.0.kill(standbys[0]);
    three.pass(30);
    three.0.kill(active);
    three.pass(1);
    three.0.start(active, VERSION).expect("it starts");
    three.pass(20);
    let (new, _) = three.roles();
    let gone = three.autopilot(new, standbys[0]);
    assert_eq!((&gone["last_index"], &gone["healthy"]), (&json!(0), &json!(false)));
}

#[test]
fn a_dead_leader_is_named_until_another_one_is_active() {
    let mut three = Three::new(VERSION);
    let (active, standbys) = three.roles();
    three.0.kill(active);
    three.pass(4);
    let named = three.get(standbys[0], LEADER).1["leader_address"].clone();
    assert_eq!(named, format!("http://{active}.openbao.bench.svc:8200").as_str());
    assert_eq!(three.get(standbys[0], AUTOPILOT).0, 307, "it can't be reached");
    three.pass(8);
    assert!(three.active().is_some_and(|new| new != active));
}

#[test]
fn without_a_majority_nobody_is_active() {
    let mut three = Three::new(VERSION);
    let (active, standbys) = three.roles();
    three.0.kill(standbys[0]);
    three.0.kill(standbys[1]);
    assert_eq!(three.active(), Some(active), "its lease has not run out");
    three.pass(3);
    assert_eq!(three.active(), None);
    three.0.start(standbys[0], VERSION).expect("it starts");
    three.pass(15);
    assert!(three.active().is_some());
}

#[test]
fn a_member_without_auto_unseal_comes_back_sealed_and_out_of_the_quorum() {
    let mut three = Three::new(VERSION);
    let (active, standbys) = three.roles();
    three.0.auto_unseal(false);
    three.0.kill(standbys[0]);
    three.0.start(standbys[0], VERSION).expect("it starts");
    three.pass(60);
    let (status, health) = three.get(standbys[0], HEALTH);
    assert_eq!((status, &health["initialized"], &health["sealed"]), (503, &json!(true), &json!(true)));
    assert_eq!(three.get(standbys[0], &format!("{HEALTH}?sealedcode=204")).0, 204);
    assert_eq!(three.get(standbys[0], CONFIGURATION), recorded("leader asked of a sealed node"));
    let seal = three.get(standbys[0], SEAL).1;
    assert_eq!((&seal["type"], &seal["sealed"], &seal["cluster_id"]), (&json!("shamir"), &json!(true), &Value::Null));
    // It is no member of any majority.
    three.0.kill(standbys[1]);
    three.pass(3);
    assert_eq!(three.active(), None);
    three.0.unseal(standbys[0]);
    three.pass(15);
    assert!(three.active().is_some());
    assert_eq!(three.autopilot(active, standbys[0])["healthy"], true);
}
