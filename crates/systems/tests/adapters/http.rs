//! The adapter for described systems: what it asks, what it makes of the answers, and of those that make no sense.

use std::collections::BTreeMap;

use crate::scripted::{Answering, Scripted, peer};
use http::Method;
use rstest::rstest;
use windlass_systems::{
    Class, Secret, Timeouts, Transport,
    http::{Description, HandOver, Leader, Part, Question, Said, System, Unclear, hand_over, observe},
};

fn question(path: &str, cel: &str) -> Question {
    Question { method: Method::GET, path: path.to_owned(), headers: BTreeMap::new(), body: None, cel: cel.to_owned() }
}

/// Each fact has a path of its own, so that each can fail alone.
fn description() -> Description {
    Description {
        health: question("/health", "status == 200 && body.ok"),
        leader: question("/leader", "body.leader"),
        version: question("/version", "body.version"),
        position: Some(question("/position", "body.position")),
        id: Some(question("/id", "body.id")),
        members: Some(question("/members", "body.members.map(member, member.name)")),
        hand_over: HandOver {
            method: Method::POST,
            path: Part::Plain("/transfer".into()),
            headers: BTreeMap::new(),
            body: Some(Part::Cel("{'to': target}".into())),
        },
        token_header: None,
    }
}

fn system(change: impl FnOnce(&mut Description)) -> System {
    let mut description = description();
    change(&mut description);
    System::new(&description).unwrap_or_else(|error| panic!("{error}"))
}

/// A pod that tells all.
fn telling() -> Scripted {
    let says = |pod: Scripted, path, body| pod.on(path, Answering::with(200, body));
    [
        ("/health", r#"{"ok": true}"#),
        ("/leader", r#"{"leader": "a7"}"#),
        ("/version", r#"{"version": "1.2.3"}"#),
        ("/position", r#"{"position": 41}"#),
        ("/id", r#"{"id": "a7"}"#),
        ("/members", r#"{"members": [{"name": "app-0"}, {"name": "app-1"}]}"#),
    ]
    .into_iter()
    .fold(Scripted::new(), |pod, (path, body)| says(pod, path, body))
}

async fn ask(system: &System, pod: &Scripted) -> Result<Said, Unclear> {
    let mut answers = observe(system, pod, &[peer("app-1")], None, &Timeouts::default()).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0).said
}

fn all() -> Said {
    Said {
        healthy: true,
        leader: Leader::Named("a7".into()),
        version: "1.2.3".into(),
        position: Some(41),
        id: "a7".into(),
        members: Some(vec!["app-0".into(), "app-1".into()]),
    }
}

#[tokio::test]
async fn what_is_told_is_read() {
    assert_eq!(ask(&system(|_| ()), &telling()).await, Ok(all()));
}

#[tokio::test]
async fn what_nobody_asks_has_its_default() {
    let system = system(|description| {
        (description.position, description.id, description.members) = (None, None, None);
    });
    let pod = telling();
    let said = ask(&system, &pod).await.unwrap();
    assert_eq!(said, Said { position: None, id: "app-1".into(), members: None, ..all() });
    assert_eq!(pod.requests().len(), 3);
}

#[rstest]
#[case::leads(r#"{"leader": true}"#, Leader::Itself)]
#[case::follows(r#"{"leader": false}"#, Leader::Another)]
#[case::number(r#"{"leader": 11217253672926327294}"#, Leader::Named("11217253672926327294".into()))]
#[case::nobody(r#"{"leader": null}"#, Leader::Nobody)]
#[case::nobody_in_text(r#"{"leader": ""}"#, Leader::Nobody)]
#[tokio::test]
async fn who_leads_can_be_told_in_several_ways(#[case] body: &str, #[case] leader: Leader) {
    let pod = telling().on("/leader", Answering::with(200, body));
    assert_eq!(ask(&system(|_| ()), &pod).await.unwrap().leader, leader);
}

#[rstest]
#[case::health("/health", "health", &[r#"{"ok": "true"}"#, r#"{"ok": 1}"#, r#"{"ok": null}"#])]
#[case::leader("/leader", "leader", &[r#"{"leader": 0.5}"#, r#"{"leader": ["a7"]}"#, r#"{"leader": {}}"#])]
#[case::version("/version", "version", &[r#"{"version": null}"#, r#"{"version": ""}"#, r#"{"version": {"major": 1}}"#])]
#[case::position("/position", "position", &[r#"{"position": "41"}"#, r#"{"position": -1}"#, r#"{"position": 4.1}"#])]
#[case::id("/id", "id", &[r#"{"id": true}"#, r#"{"id": ""}"#, r#"{"id": null}"#])]
#[case::members("/members", "members", &[r#"{"members": []}"#, r#"{"members": null}"#, r#"{"members": [{"name": ""}]}"#])]
#[tokio::test]
async fn what_is_not_told_is_unknown_and_names_its_field(
    #[case] path: &str,
    #[case] field: &str,
    #[case] wrong: &[&str],
) {
    let system = system(|_| ());
    let wrong = wrong.iter().map(|body| (Answering::with(200, body), Class::Garbled));
    let broken = [
        (Answering::with(200, "{}"), Class::Garbled),
        (Answering::with(200, "null"), Class::Garbled),
        (Answering::with(200, ""), Class::Garbled),
        (Answering::with(200, "<html>hello</html>"), Class::Garbled),
        (Answering::bytes(200, vec![0xff, 0xfe]), Class::Garbled),
        (Answering::bytes(200, vec![b' '; 65 * 1024]), Class::Garbled),
        (Answering::with(401, "{}"), Class::Denied),
        (Answering::with(403, "no"), Class::Denied),
        (Answering::Refusing, Class::Unreachable),
    ];
    for (answer, class) in wrong.chain(broken) {
        let pod = telling().on(path, answer.clone());
        let unclear = ask(&system, &pod).await.expect_err(&format!("{answer:?}"));
        assert!(unclear.to_string().starts_with(&format!("spec.system.http.{field}: ")), "{unclear}");
        assert!(unclear.to_string().contains(path), "{unclear}");
        assert_eq!(unclear.class(), class, "{unclear}");
    }
}

#[rstest]
#[case("/leader", "leader")]
#[case("/version", "version")]
#[case("/position", "position")]
#[case("/id", "id")]
#[case("/members", "members")]
#[tokio::test]
async fn only_who_looks_at_the_status_is_asked_of_a_failure(#[case] path: &str, #[case] field: &str) {
    let pod = telling().on(path, Answering::with(500, r#"{"leader": "a7", "message": "no quorum"}"#));
    let unclear = ask(&system(|_| ()), &pod).await.unwrap_err();
    let expected = format!("spec.system.http.{field}: app-1 answered 500 to GET {path}: no quorum");
    assert_eq!((unclear.class(), unclear.to_string()), (Class::Refused, expected));
    let unhealthy = telling().on("/health", Answering::with(503, "no"));
    assert!(!ask(&system(|_| ()), &unhealthy).await.unwrap().healthy);
}

#[tokio::test(start_paused = true)]
async fn a_silent_pod_holds_up_no_other() {
    let peers = [peer("app-0"), peer("app-1")];
    let answers = observe(&system(|_| ()), &telling().silence("app-0"), &peers, None, &Timeouts::default()).await;
    let unclear = answers[0].said.as_ref().unwrap_err().to_string();
    assert_eq!(unclear, "spec.system.http.health: app-0 did not answer GET /health in time");
    assert!(answers[1].said.is_ok());
}

#[tokio::test]
async fn the_same_request_is_sent_once() {
    let system = system(|description| {
        let status = |cel: &str| Question { method: Method::POST, body: Some("{}".into()), ..question("/status", cel) };
        description.leader = status("body.leader");
        description.version = status("body.version");
        description.position = Some(status("int(body.index)"));
        description.id = Some(Question { method: Method::GET, body: None, ..status("body.leader") });
    });
    let body = r#"{"leader": "a7", "version": "1.2.3", "index": "41"}"#;
    let pod = telling().on("/status", Answering::with(200, body));
    assert_eq!(ask(&system, &pod).await, Ok(all()));
    let requests = pod.requests();
    assert_eq!(requests.len(), 4, "health, members, and the status in both ways");
    let posted = requests.iter().find(|request| request.method == Method::POST).unwrap();
    assert_eq!(
        (posted.body.as_ref(), posted.headers["content-type"].to_str().unwrap()),
        (&b"{}"[..], "application/json")
    );
}

#[tokio::test]
async fn an_expression_sees_the_pod_and_the_headers() {
    let system = system(|description| {
        description.leader = question("/text", r#"text == pod.address + ":8300" && pod.index == 1"#);
        description.id = Some(question("/text", "pod.name + string(size(headers))"));
    });
    let said = ask(&system, &telling().on("/text", Answering::with(200, "127.0.0.1:8300"))).await.unwrap();
    assert_eq!((said.leader, said.id.as_str()), (Leader::Itself, "app-10"));
}

#[rstest]
#[case::bearer(None, "authorization", "Bearer hvs.CAESIJ")]
#[case::header(Some("X-Consul-Token"), "x-consul-token", "hvs.CAESIJ")]
#[tokio::test]
async fn a_token_is_sent_with_every_request_and_never_shown(
    #[case] header: Option<&str>,
    #[case] name: &str,
    #[case] value: &str,
) {
    let system = system(|description| description.token_header = header.map(str::to_owned));
    let token = Secret::new("hvs.CAESIJ").unwrap();
    let pod = telling().on("/transfer", Answering::with(400, "no such token: hvs.CAESIJ"));
    let pod = pod.on("/leader", Answering::with(500, "no such token: hvs.CAESIJ"));
    let timeouts = Timeouts::default();
    let answers = observe(&system, &pod, &[peer("app-0")], Some(&token), &timeouts).await;
    let asked = answers[0].said.clone().unwrap_err();
    let told = hand_over(&system, &pod, &peer("app-0"), "b8", Some(&token), &timeouts).await.unwrap_err();
    for unclear in [asked, told] {
        assert!(unclear.to_string().ends_with("no such token: (hidden)"), "{unclear}");
    }
    let requests = pod.requests();
    assert_eq!(requests.len(), 7);
    for request in requests {
        assert_eq!(request.headers[name].to_str().unwrap(), value);
        assert!(request.headers[name].is_sensitive());
    }
}

#[rstest]
#[case::named_in_the_body(Part::Plain("/transfer".into()), Some(Part::Cel("{'to': target}".into())), r#"{"to":"b/8?"}"#)]
#[case::as_text(Part::Plain("/transfer".into()), Some(Part::Cel("'to=' + target".into())), "to=b/8?")]
#[case::named_in_the_path(Part::Cel("'/transfer?id=' + target".into()), None, "")]
#[case::not_named(Part::Plain("/transfer".into()), Some(Part::Plain("now".into())), "now")]
#[tokio::test]
async fn a_hand_over_is_one_request_to_the_leaders_own_pod(
    #[case] path: Part,
    #[case] body: Option<Part>,
    #[case] sent: &str,
) {
    let system = system(|description| {
        description.hand_over.method = Method::PUT;
        (description.hand_over.path, description.hand_over.body) = (path, body);
    });
    let pod = Scripted::new().on("/transfer", Answering::with(204, ""));
    hand_over(&system, &pod, &peer("app-0"), "b/8?", None, &Timeouts::default()).await.unwrap();
    let requests = pod.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].pod.as_str(), &requests[0].method), ("app-0", &Method::PUT));
    assert_eq!(requests[0].body, sent);
}

#[tokio::test]
async fn an_id_stays_in_its_place_in_the_path() {
    let system = system(|description| {
        description.hand_over.path = Part::Cel("'/members/' + target + '/lead'".into());
        description.hand_over.body = None;
    });
    let pod = Scripted::new().on("/members/b%2F8%3F/lead", Answering::with(200, ""));
    hand_over(&system, &pod, &peer("app-0"), "b/8?", None, &Timeouts::default()).await.unwrap();
}

#[rstest]
#[case::refused(
    Answering::with(409, r#"{"message": "not leading"}"#),
    "app-0 answered 409 to POST /transfer: not leading"
)]
#[case::moved(Answering::with(307, ""), "app-0 answered 307 to POST /transfer")]
#[case::gone(Answering::Refusing, "app-0 refused the connection for POST /transfer")]
#[tokio::test]
async fn a_refused_hand_over_is_told_in_the_servers_words(#[case] answer: Answering, #[case] words: &str) {
    let pod = Scripted::new().on("/transfer", answer);
    let unclear = hand_over(&system(|_| ()), &pod, &peer("app-0"), "b8", None, &Timeouts::default()).await.unwrap_err();
    assert_eq!(unclear.to_string(), format!("spec.system.http.handOver: {words}"));
}

#[tokio::test]
async fn a_target_that_cannot_be_named_is_asked_of_nobody() {
    let system = system(|description| description.hand_over.body = Some(Part::Cel("{'to': int(target)}".into())));
    let pod = Scripted::new();
    let unclear = hand_over(&system, &pod, &peer("app-0"), "b8", None, &Timeouts::default()).await.unwrap_err();
    assert_eq!(unclear.to_string(), "spec.system.http.handOver: bodyCel: int() can't take what it was given");
    assert!(pod.requests().is_empty());
}

type Change = fn(&mut Description);

#[rstest]
#[case::health(|it: &mut Description| it.health.cel = "body.".into(), "health.cel: ")]
#[case::leader(|it: &mut Description| it.leader.cel = "boddy".into(), "leader.cel: boddy is not known")]
#[case::version(|it: &mut Description| it.version.cel = "now()".into(), "version.cel: now() is not known")]
#[case::position(|it: &mut Description| it.position.as_mut().unwrap().cel = "target".into(), "position.cel: target is not known")]
#[case::id(|it: &mut Description| it.id.as_mut().unwrap().cel = "1 +".into(), "id.cel: ")]
#[case::members(|it: &mut Description| it.members.as_mut().unwrap().cel = "[body, ]]".into(), "members.cel: ")]
#[case::long(|it: &mut Description| it.health.cel = "1".repeat(1025), "health.cel: it is longer than 1024 characters")]
#[case::path(|it: &mut Description| it.version.path = "version".into(), "version.path: a path begins with a slash")]
#[case::url(|it: &mut Description| it.version.path = "http://elsewhere/".into(), "version.path: a path begins")]
#[case::spaces(|it: &mut Description| it.version.path = "/a b".into(), "version.path: ")]
#[case::header(|it: &mut Description| it.health.headers = [("a b".to_owned(), String::new())].into(), "health.headers: a b can't be")]
#[case::value(|it: &mut Description| it.health.headers = [("a".to_owned(), "\n".to_owned())].into(), "health.headers: the value of a")]
#[case::host(|it: &mut Description| it.health.headers = [("Host".to_owned(), "x".to_owned())].into(), "health.headers: Host can't be set")]
#[case::body(|it: &mut Description| it.hand_over.body = Some(Part::Cel("body".into())), "handOver.bodyCel: body is not known; there is target")]
#[case::no_target(|it: &mut Description| it.hand_over.path = Part::Cel("'/x'".into()), "handOver.pathCel: it does not use target")]
#[case::token(|it: &mut Description| it.token_header = Some("content-length".into()), "tokenHeader: content-length can't be set")]
fn what_is_wrong_with_a_description_is_found_before_anything_is_asked(#[case] spoil: Change, #[case] words: &str) {
    let mut description = description();
    spoil(&mut description);
    let invalid = System::new(&description).unwrap_err().to_string();
    assert!(invalid.starts_with(&format!("spec.system.http.{words}")), "{invalid}");
}

#[test]
fn the_futures_can_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let (pod, system) = (telling(), system(|_| ()));
    let transport: &dyn Transport = &pod;
    let (peers, timeouts) = ([peer("app-0")], Timeouts::default());
    is_send(&observe(&system, transport, &peers, None, &timeouts));
    is_send(&hand_over(&system, transport, &peers[0], "b8", None, &timeouts));
}
