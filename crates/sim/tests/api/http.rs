//! Discovery, and the API over a socket.

use futures::{StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api as Objects, ListParams, PostParams, WatchParams};
use kube::discovery::{Discovery, Scope};
use serde_json::json;
use windlass_sim::api::{Api, Reply};
use windlass_sim::journal::{Event, Journal};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn the_real_client_discovers_what_is_served() {
    let api = api_with_widgets();
    for discovery in [
        Discovery::new(api.client("tester")).run().await.unwrap(),
        Discovery::new(api.client("tester")).run_aggregated().await.unwrap(),
    ] {
        let widgets = discovery.get("example.com").unwrap();
        let (widget, capabilities) = widgets.recommended_kind("Widget").unwrap();
        assert_eq!(widget.plural, "widgets");
        assert_eq!(capabilities.scope, Scope::Namespaced);
        assert!(discovery.get("apps").unwrap().recommended_kind("StatefulSet").is_some());
    }
    assert_eq!(api.client("tester").apiserver_version().await.unwrap().git_version, "v1.34.4");
}

#[tokio::test(start_paused = true)]
async fn discovery_tells_names_and_parts() {
    let api = api();
    let list = get(&api, "/apis/apps/v1").body;
    let sets = list["resources"].as_array().unwrap().iter().find(|one| one["name"] == "statefulsets").unwrap();
    assert_eq!(sets["shortNames"], json!(["sts"]));
    assert!(list["resources"].as_array().unwrap().iter().any(|one| one["name"] == "statefulsets/status"));
    assert_eq!(get(&api, "/api").body["versions"], json!(["v1"]));
    assert_eq!(get(&api, "/apis/apps").body["preferredVersion"]["groupVersion"], "apps/v1");
    assert_eq!(get(&api, "/apis/none").code, 404);
    assert_eq!(get(&api, "/readyz").body, json!("ok"));
}

#[tokio::test]
async fn a_client_can_work_over_a_socket() {
    let journal = Journal::default();
    let api = Api::new(windlass_sim::clock::Clock::start(), journal.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(api.clone().serve(listener));
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    let maps: Objects<ConfigMap> = Objects::default_namespaced(client);
    let mut stream = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let map: ConfigMap = serde_json::from_value(config_map("a", "1")).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    assert!(stream.try_next().await.unwrap().is_some());
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    assert!(journal.entries().iter().any(|entry| match &entry.event {
        Event::Write(change) => change.resource == "configmaps",
        Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => false,
    }));
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn the_user_of_a_client_is_in_the_journal() {
    let journal = Journal::default();
    let api = Api::new(windlass_sim::clock::Clock::start(), journal.clone());
    let maps: Objects<ConfigMap> = Objects::default_namespaced(api.client("windlass-1"));
    let map: ConfigMap = serde_json::from_value(config_map("a", "1")).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let entries = journal.entries();
    let Event::Write(change) = &entries.last().unwrap().event else { panic!() };
    assert_eq!((change.user.as_str(), change.name.as_str()), ("windlass-1", "a"));
    assert!(change.before.is_none() && change.after.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_turned_into_a_response() {
    let api = api();
    let request = http::Request::get("/version").body(bytes::Bytes::new()).unwrap();
    let reply: Reply = api.handle("tester", request, None);
    let body = reply.into_response().into_body().collect().await.unwrap().to_bytes();
    assert!(!body.is_empty());
}
