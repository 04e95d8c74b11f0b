//! The simulated etcd against what real ones answered.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_sim::apps::bench::Bench;

const MEMBERS: [&str; 3] = ["etcd-0", "etcd-1", "etcd-2"];
const STATUS: &str = "/v3/maintenance/status";
const LIST: &str = "/v3/cluster/member/list";
const TRANSFER: &str = "/v3/maintenance/transfer-leadership";

fn recorded(version: &str, name: &str) -> (u16, Value) {
    let recording: Value = serde_json::from_str(include_str!("../../../../recordings/etcd.json")).expect("a recording");
    let name = format!("{version}: {name}");
    let exchanges = recording["exchanges"].as_array().expect("exchanges");
    let exchange = exchanges.iter().find(|exchange| exchange["name"] == name.as_str()).expect("the exchange");
    (u16::try_from(exchange["status"].as_u64().expect("a status")).expect("small"), exchange["response"].clone())
}

/// What an answer is made of: names and kinds of fields, and the texts that say something.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), telling(name, value))).collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Bool(_) | Value::Null | Value::Number(_) => value.clone(),
        Value::String(text) if text.parse::<u64>().is_ok() => json!("u64"),
        Value::String(_) => json!("string"),
    }
}

fn telling(name: &str, value: &Value) -> Value {
    match name {
        "version" | "storageVersion" | "error" | "message" | "health" | "reason" | "errors" => value.clone(),
        _ => shape(value),
    }
}

struct Three(Bench);

impl Three {
    fn new(version: &str) -> Self {
        let mut bench = Bench::etcd(1, &MEMBERS);
        for member in MEMBERS {
            bench.start(member, version).expect("it starts");
        }
        bench.pass(Duration::from_secs(10));
        Self(bench)
    }

    fn ask(&mut self, member: &str, method: Method, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = Request::builder().method(method).uri(path).body(Bytes::from(body.to_string()));
        let response = self.0.ask(member, &request.expect("a request"))?;
        let text = String::from_utf8_lossy(response.body()).into_owned();
        Some((response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    fn post(&mut self, member: &str, path: &str, body: &Value) -> (u16, Value) {
        self.ask(member, Method::POST, path, body).expect("an answer")
    }

    fn id(&mut self, member: &str) -> Value {
        self.post(member, STATUS, &json!({})).1["header"]["member_id"].clone()
    }

    /// The leader, and the others.
    fn roles(&mut self) -> (&'static str, Vec<&'static str>) {
        let leader = self.post("etcd-0", STATUS, &json!({})).1["leader"].clone();
        let (leads, follow): (Vec<_>, Vec<_>) = MEMBERS.into_iter().partition(|member| self.id(member) == leader);
        (leads[0], follow)
    }

    #[track_caller]
    fn is_as_recorded(&mut self, version: &str, name: &str, member: &str, method: Method, path: &str, body: &Value) {
        let (status, answer) = self.ask(member, method, path, body).expect("an answer");
        let (wanted, recorded) = recorded(version, name);
        assert_eq!((status, shape(&answer)), (wanted, shape(&recorded)), "{version}: {name}");
    }
}

#[rstest]
fn answers_are_those_of_real_ones(#[values("3.5.35", "3.6.16")] version: &str) {
    let mut three = Three::new(version);
    let (leader, followers) = three.roles();
    let (follower, other) = (followers[0], followers[1]);
    let nothing = json!({});
    let local = json!({"linearizable": false});
    let ids: Vec<Value> = [leader, follower, other].into_iter().map(|member| three.id(member)).collect();
    let to = |id: &Value| json!({"targetID": id});
    three.is_as_recorded(version, "status of the leader", leader, Method::POST, STATUS, &nothing);
    three.is_as_recorded(version, "status of a follower", follower, Method::POST, STATUS, &nothing);
    three.is_as_recorded(version, "members", follower, Method::POST, LIST, &local);
    three.is_as_recorded(version, "health", follower, Method::GET, "/health", &nothing);
    three.is_as_recorded(version, "version", follower, Method::GET, "/version", &nothing);
    three.is_as_recorded(version, "transfer sent to a follower", follower, Method::POST, TRANSFER, &to(&ids[1]));
    three.is_as_recorded(
        version,
        "transfer to an unknown member",
        leader,
        Method::POST,
        TRANSFER,
        &to(&json!("12345")),
    );
    three.is_as_recorded(version, "transfer to the leader itself", leader, Method::POST, TRANSFER, &to(&ids[0]));

    let peer = json!({"peerURLs": ["http://etcd-3.etcd.bench.svc.cluster.local:2380"], "isLearner": true});
    let (_, added) = three.post(leader, "/v3/cluster/member/add", &peer);
    let learner = added["member"]["ID"].clone();
    let listed = three.post(follower, LIST, &local).1;
    let unstarted = listed["members"].as_array().expect("members").iter().filter(|one| one["isLearner"] == true);
    let unstarted: Vec<_> = unstarted.map(shape).collect();
    let (_, recording) = recorded(version, "members with a learner that never started");
    let wanted = recording["members"].as_array().expect("members").iter().filter(|one| one["isLearner"] == true);
    assert_eq!(unstarted, wanted.map(shape).collect::<Vec<_>>());
    three.is_as_recorded(version, "transfer to a learner", leader, Method::POST, TRANSFER, &to(&learner));
    three.0.start("etcd-3", version).expect("it was added");
    three.0.pass(Duration::from_secs(10));
    three.is_as_recorded(version, "members asked of a learner", "etcd-3", Method::POST, LIST, &local);
    three.is_as_recorded(version, "health of a learner", "etcd-3", Method::GET, "/health", &nothing);
    assert_eq!(three.post("etcd-3", STATUS, &nothing).1["isLearner"], true);
    three.post(leader, "/v3/cluster/member/remove", &json!({"ID": learner}));

    three.is_as_recorded(version, "transfer", leader, Method::POST, TRANSFER, &to(&ids[1]));
    three.0.pass(Duration::from_secs(1));
    assert_eq!(three.roles().0, follower);
    three.is_as_recorded(version, "status of the old leader", leader, Method::POST, STATUS, &nothing);

    three.0.kill(leader);
    assert_eq!(three.ask(follower, Method::POST, TRANSFER, &to(&ids[0])), None, "it waits as long as the caller does");
    three.0.kill(follower);
    three.0.pass(Duration::from_secs(4));
    three.is_as_recorded(version, "status without a leader", other, Method::POST, STATUS, &nothing);
    three.is_as_recorded(version, "members without a leader", other, Method::POST, LIST, &local);
    three.is_as_recorded(version, "health without a leader", other, Method::GET, "/health", &nothing);
    three.is_as_recorded(version, "transfer without a leader", other, Method::POST, TRANSFER, &to(&ids[1]));
    let linear = three.post(other, LIST, &json!({"linearizable": true}));
    assert_eq!((linear.0, &linear.1["message"]), (503, &json!("etcdserver: request timed out")));
}

#[test]
fn the_clusters_version_rises_with_the_last_member_and_lets_no_older_process_in() {
    let mut three = Three::new("3.5.35");
    for (member, storage) in [("etcd-2", "3.5.0"), ("etcd-1", "3.5.0"), ("etcd-0", "3.6.0")] {
        three.0.kill(member);
        three.0.pass(Duration::from_secs(3));
        assert!(three.0.start(member, "3.7.0").is_err(), "a minor release can't be skipped");
        three.0.start(member, "3.6.16").expect("one minor release further");
        three.0.pass(Duration::from_secs(10));
        let status = three.post(member, STATUS, &json!({})).1;
        assert_eq!((&status["version"], &status["storageVersion"]), (&json!("3.6.16"), &json!(storage)));
        if member != "etcd-0" {
            three.0.kill(member);
            three.0.start(member, "3.5.35").expect("there is a way back while one stays");
            three.0.pass(Duration::from_secs(3));
            three.0.kill(member);
            three.0.start(member, "3.6.16").expect("and forward again");
            three.0.pass(Duration::from_secs(3));
        }
    }
    three.0.kill("etcd-1");
    assert!(three.0.start("etcd-1", "3.5.35").is_err(), "no way back");
}

#[test]
fn a_dead_leader_is_followed_until_the_vote() {
    let mut three = Three::new("3.6.16");
    let (leader, followers) = three.roles();
    let old = three.id(leader);
    three.0.kill(leader);
    assert_eq!(three.post(followers[0], STATUS, &json!({})).1["leader"], old);
    three.0.pass(Duration::from_secs(3));
    let new = three.post(followers[0], STATUS, &json!({})).1["leader"].clone();
    assert!(new != old && new.is_string());
}

const AUTHENTICATE: &str = "/v3/auth/authenticate";

impl Three {
    /// With this token.
    fn shown(&mut self, member: &str, path: &str, token: &str) -> (u16, Value) {
        let request = Request::post(path).header("authorization", token).body(Bytes::from("{}")).expect("a request");
        let response = self.0.ask(member, &request).expect("an answer");
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
    }

    fn log_in(&mut self, name: &str, password: &str) -> (u16, Value) {
        self.post("etcd-1", AUTHENTICATE, &json!({"name": name, "password": password}))
    }

    /// With users root and guest, whose passwords are their names.
    fn with_authentication(version: &str) -> Self {
        let mut three = Self::new(version);
        for (path, body) in [
            ("user/add", json!({"name": "root", "password": "root"})),
            ("user/add", json!({"name": "guest", "password": "guest"})),
            ("user/grant", json!({"user": "root", "role": "root"})),
            ("enable", json!({})),
        ] {
            assert_eq!(three.post("etcd-0", &format!("/v3/auth/{path}"), &body).0, 200, "{path}");
        }
        three
    }
}

#[rstest]
fn without_credentials_nobody_is_told_anything(#[values("3.5.35", "3.6.16")] version: &str) {
    let mut three = Three::with_authentication(version);
    let nothing = json!({});
    for (name, path) in [("status", STATUS), ("members", LIST), ("transfer", TRANSFER)] {
        let recording = format!("{name} without credentials");
        three.is_as_recorded(version, &recording, "etcd-1", Method::POST, path, &nothing);
    }
    three.is_as_recorded(version, "health without credentials", "etcd-1", Method::GET, "/health", &nothing);
    assert_eq!(three.log_in("root", "wrong").0, 400);
    let token = three.log_in("root", "root").1["token"].clone();
    let token = token.as_str().expect("a token").to_owned();
    assert!(MEMBERS.iter().all(|member| three.shown(member, STATUS, &token).0 == 200));
    assert_eq!(three.shown("etcd-1", STATUS, "nonsense.1").0, 401);
    let guest = three.log_in("guest", "guest").1["token"].as_str().expect("a token").to_owned();
    assert_eq!(three.shown("etcd-1", TRANSFER, &guest).0, 403);
}

#[test]
fn a_token_is_forgotten_by_who_is_restarted_and_by_all_who_are_not_asked() {
    let mut three = Three::with_authentication("3.6.16");
    let token = three.log_in("root", "root").1["token"].as_str().expect("a token").to_owned();
    three.0.kill("etcd-2");
    three.0.start("etcd-2", "3.6.16").expect("it starts");
    three.0.pass(Duration::from_secs(10));
    let codes = |three: &mut Three| MEMBERS.map(|member| three.shown(member, STATUS, &token).0);
    assert_eq!(codes(&mut three), [200, 200, 401]);
    three.0.pass(Duration::from_mins(4));
    assert_eq!(three.shown("etcd-0", STATUS, &token).0, 200);
    three.0.pass(Duration::from_mins(4));
    assert_eq!(codes(&mut three), [200, 401, 401]);
}
