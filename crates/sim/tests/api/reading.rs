//! Lists, pages, selectors and stale reads.

use serde_json::{Value, json};

use crate::support::*;

fn names(body: &Value) -> Vec<&str> {
    body["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_moment_even_when_objects_change_in_between() {
    let api = api();
    for name in ["a", "b", "c"] {
        post(&api, MAPS, &config_map(name, "1"));
    }
    let first = get(&api, &format!("{MAPS}?limit=2")).body;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    merge(&api, &format!("{MAPS}/c"), &json!({"data": {"k": "2"}}));
    post(&api, MAPS, &config_map("d", "1"));
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = get(&api, &format!("{MAPS}?limit=2&continue={token}")).body;
    assert_eq!(names(&second), ["c"]);
    assert_eq!(second["items"][0]["data"]["k"], "1");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert!(second["metadata"].get("continue").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_token_from_before_the_compaction_is_expired_but_offers_to_go_on() {
    let api = api();
    for name in ["a", "b", "c"] {
        post(&api, MAPS, &config_map(name, "1"));
    }
    let first = get(&api, &format!("{MAPS}?limit=1")).body;
    post(&api, MAPS, &config_map("d", "1"));
    api.compact(api.revision());
    let token = first["metadata"]["continue"].as_str().unwrap();
    let expired = get(&api, &format!("{MAPS}?limit=1&continue={token}"));
    assert_eq!((expired.code, expired.reason()), (410, "Expired"));
    let token = expired.body["metadata"]["continue"].as_str().unwrap();
    assert_eq!(names(&get(&api, &format!("{MAPS}?continue={token}")).body), ["b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn items_of_built_in_lists_have_no_kind_and_those_of_custom_lists_do() {
    let api = api_with_widgets();
    post(&api, MAPS, &config_map("a", "1"));
    post(&api, WIDGETS, &widget("a", &json!({"size": 1})));
    let maps = get(&api, MAPS).body;
    assert_eq!(maps["kind"], "ConfigMapList");
    assert!(maps["items"][0].get("kind").is_none());
    let widgets = get(&api, WIDGETS).body;
    assert_eq!((&widgets["kind"], &widgets["items"][0]["kind"]), (&json!("WidgetList"), &json!("Widget")));
}

#[tokio::test(start_paused = true)]
async fn labels_and_fields_select() {
    let api = api_with_widgets();
    post(&api, PODS, &pod("a", Some("n1")));
    post(&api, PODS, &pod("b", None));
    let list = |query: &str| {
        let body = get(&api, &format!("{PODS}?{query}")).body;
        names(&body).join(",")
    };
    assert_eq!(list("labelSelector=app%20in%20(db)"), "a,b");
    assert_eq!(list("labelSelector=app!=db"), "");
    assert_eq!(list("fieldSelector=spec.nodeName=n1"), "a");
    assert_eq!(list("fieldSelector=spec.nodeName=,status.phase=Pending"), "b");
    assert_eq!(list("fieldSelector=metadata.name!=a"), "b");
    let unknown = get(&api, &format!("{PODS}?fieldSelector=spec.image=x"));
    assert_eq!((unknown.code, unknown.message()), (400, "field label not supported: spec.image"));
    let unknown = get(&api, &format!("{SETS}?fieldSelector=spec.replicas=1"));
    assert_eq!(unknown.code, 400);
    assert_eq!(
        unknown.message(),
        "\"spec.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    post(&api, WIDGETS, &widget("w", &json!({"size": 1})));
    assert_eq!(names(&get(&api, &format!("{WIDGETS}?fieldSelector=spec.mode=Safe")).body), ["w"]);
}

#[tokio::test(start_paused = true)]
async fn revisions_in_queries_are_honoured() {
    let api = api();
    let first = post(&api, MAPS, &config_map("a", "1")).revision().to_owned();
    post(&api, MAPS, &config_map("b", "1"));
    let exact = get(&api, &format!("{MAPS}?resourceVersion={first}&resourceVersionMatch=Exact"));
    assert_eq!(names(&exact.body), ["a"]);
    let newer = get(&api, &format!("{MAPS}?resourceVersion={first}&resourceVersionMatch=NotOlderThan"));
    assert_eq!(names(&newer.body), ["a", "b"]);
    let future = get(&api, &format!("{MAPS}?resourceVersion=99999"));
    assert_eq!((future.code, future.reason()), (504, "Timeout"));
    assert_eq!(future.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    api.compact(api.revision());
    let old = get(&api, &format!("{MAPS}?resourceVersion={first}&resourceVersionMatch=Exact"));
    assert_eq!((old.code, old.reason()), (410, "Expired"));
    assert_eq!(get(&api, &format!("{MAPS}?resourceVersionMatch=Exact")).code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_may_be_of_any_revision_ignores_its_limit() {
    let api = api();
    for name in ["a", "b"] {
        post(&api, MAPS, &config_map(name, "1"));
    }
    assert_eq!(names(&get(&api, &format!("{MAPS}?limit=1&resourceVersion=0")).body), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_shows_an_older_world() {
    let api = api();
    let first: u64 = post(&api, MAPS, &config_map("a", "1")).revision().parse().unwrap();
    merge(&api, &format!("{MAPS}/a"), &json!({"data": {"k": "2"}}));
    let request = http::Request::get(format!("{MAPS}/a")).body(bytes::Bytes::new()).unwrap();
    let windlass_sim::api::Reply::Done(stale) = api.handle("tester", request, Some(first)) else { panic!() };
    let stale: Value = serde_json::from_slice(stale.body()).unwrap();
    assert_eq!(stale["data"]["k"], "1");
}

#[tokio::test(start_paused = true)]
async fn events_have_two_shapes_and_one_storage() {
    let api = api();
    let event = json!({
        "metadata": {"name": "e", "namespace": "default"}, "action": "Look", "reason": "Seen", "note": "a note",
        "type": "Normal", "reportingController": "windlass", "reportingInstance": "windlass-0",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
    });
    let made = post(&api, "/apis/events.k8s.io/v1/namespaces/default/events", &event);
    assert_eq!((made.code, &made.body["note"]), (201, &json!("a note")));
    let core = get(&api, "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=p").body;
    assert_eq!(core["items"][0]["message"], "a note");
    let other = "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name=p";
    assert_eq!(get(&api, other).body["items"][0]["regarding"]["name"], "p");
    assert_eq!(api.list_values("events", "default").len(), 1);
}
