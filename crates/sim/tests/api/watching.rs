//! Watches.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api as Objects, WatchEvent, WatchParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use windlass_sim::api::{Api, Reply, WatchStream};

use crate::support::*;

fn watch(api: &Api, path: &str) -> WatchStream {
    let request = Request::get(path).body(Bytes::new()).unwrap();
    match api.handle("tester", request, None) {
        Reply::Watch(stream) => stream,
        Reply::Done(response) => panic!("{response:?}"),
    }
}

async fn next(stream: &mut WatchStream) -> (String, Value) {
    let line = stream.next().await.expect("the watch has ended");
    let event: Value = serde_json::from_slice(&line).unwrap();
    (event["type"].as_str().unwrap().to_owned(), event["object"].clone())
}

/// Type and name of the next event.
async fn seen(stream: &mut WatchStream) -> String {
    let (kind, object) = next(stream).await;
    format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or(""))
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_revision_tells_what_happened_since_and_what_happens() {
    let api = api();
    let from = post(&api, MAPS, &config_map("a", "1")).revision().to_owned();
    merge(&api, &format!("{MAPS}/a"), &json!({"data": {"k": "2"}}));
    let mut stream = watch(&api, &format!("{MAPS}?watch=true&resourceVersion={from}"));
    assert_eq!(seen(&mut stream).await, "MODIFIED a");
    post(&api, MAPS, &config_map("b", "1"));
    assert_eq!(seen(&mut stream).await, "ADDED b");
    delete(&api, &format!("{MAPS}/b"), &Value::Null);
    let (kind, last) = next(&mut stream).await;
    assert_eq!(kind, "DELETED");
    assert_eq!(last["metadata"]["resourceVersion"], api.revision().to_string(), "the deletion's own revision");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_revision_begins_with_what_there_is() {
    let api = api();
    post(&api, MAPS, &config_map("a", "1"));
    for query in ["watch=true", "watch=true&resourceVersion=0"] {
        let mut stream = watch(&api, &format!("{MAPS}?{query}"));
        assert_eq!(seen(&mut stream).await, "ADDED a");
    }
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_marked_bookmark() {
    let api = api();
    post(&api, MAPS, &config_map("a", "1"));
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut stream = watch(&api, &format!("{MAPS}?{query}"));
    assert_eq!(seen(&mut stream).await, "ADDED a");
    let (kind, bookmark) = next(&mut stream).await;
    assert_eq!(kind, "BOOKMARK");
    assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(get(&api, &format!("{MAPS}?watch=true&sendInitialEvents=true")).code, 422);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_its_labels_enters_and_leaves_a_selection() {
    let api = api();
    let from = post(&api, MAPS, &config_map("a", "1")).revision().to_owned();
    let mut stream = watch(&api, &format!("{MAPS}?watch=true&resourceVersion={from}&labelSelector=in"));
    let path = format!("{MAPS}/a");
    merge(&api, &path, &json!({"data": {"k": "2"}}));
    merge(&api, &path, &json!({"metadata": {"labels": {"in": "yes"}}}));
    assert_eq!(seen(&mut stream).await, "ADDED a");
    merge(&api, &path, &json!({"metadata": {"labels": {"in": null}}, "data": {"k": "3"}}));
    let (kind, last) = next(&mut stream).await;
    assert_eq!((kind.as_str(), &last["data"]["k"]), ("DELETED", &json!("2")));
    assert_eq!(last["metadata"]["resourceVersion"], api.revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_before_the_compaction_gets_an_error_in_the_stream() {
    let api = api();
    let from = post(&api, MAPS, &config_map("a", "1")).revision().to_owned();
    post(&api, MAPS, &config_map("b", "1"));
    api.compact(api.revision());
    let mut stream = watch(&api, &format!("{MAPS}?watch=true&resourceVersion={from}"));
    let (kind, status) = next(&mut stream).await;
    assert_eq!(kind, "ERROR");
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")));
    assert_eq!(status["message"], format!("too old resource version: {from} ({})", api.revision()));
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_is_told_that_it_missed_something() {
    let api = api();
    let from = post(&api, MAPS, &config_map("a", "1")).revision().to_owned();
    let mut slow = watch(&api, &format!("{MAPS}?watch=true&resourceVersion={from}"));
    let mut quiet = watch(&api, &format!("{SETS}?watch=true&resourceVersion={from}"));
    post(&api, MAPS, &config_map("b", "1"));
    api.compact(api.revision());
    assert_eq!(next(&mut slow).await.0, "ERROR");
    post(&api, SETS, &stateful_set("web"));
    assert_eq!(seen(&mut quiet).await, "ADDED web", "nothing of its own was forgotten");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_the_server_ends_the_watch_in_time() {
    let api = api();
    let from = api.revision();
    let path = format!("{MAPS}?watch=true&resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=90");
    let mut stream = watch(&api, &path);
    let start = tokio::time::Instant::now();
    post(&api, SETS, &stateful_set("web"));
    let (kind, bookmark) = next(&mut stream).await;
    assert_eq!(kind, "BOOKMARK");
    assert_eq!(start.elapsed(), Duration::from_mins(1));
    assert_eq!(bookmark["metadata"]["resourceVersion"], api.revision().to_string(), "other kinds' writes count");
    assert_eq!(next(&mut stream).await.0, "BOOKMARK");
    assert_eq!(start.elapsed(), Duration::from_secs(88));
    assert!(stream.next().await.is_none());
    assert_eq!(start.elapsed(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn open_watches_can_be_dropped_for_one_user() {
    let api = api();
    let from = api.revision();
    let mut mine = watch(&api, &format!("{MAPS}?watch=true&resourceVersion={from}"));
    api.drop_watches(Some("other"));
    post(&api, MAPS, &config_map("a", "1"));
    assert_eq!(seen(&mut mine).await, "ADDED a");
    api.drop_watches(Some("tester"));
    assert!(mine.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_real_client_watches() {
    let api = api();
    let maps: Objects<ConfigMap> = Objects::default_namespaced(api.client("windlass-0"));
    let from = api.revision().to_string();
    let mut stream = maps.watch(&WatchParams::default().timeout(10).disable_bookmarks(), &from).await.unwrap().boxed();
    post(&api, MAPS, &config_map("a", "1"));
    assert!(matches!(stream.try_next().await.unwrap(), Some(WatchEvent::Added(_))));
    assert!(stream.try_next().await.unwrap().is_none(), "the server ends it after ten seconds");
}

#[tokio::test(start_paused = true)]
async fn the_real_watcher_survives_a_compaction_and_a_lost_connection() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let api = api();
        post(&api, MAPS, &config_map("a", "1"));
        let maps: Objects<ConfigMap> = Objects::default_namespaced(api.client("windlass-0"));
        let mut events = watcher(maps, config).boxed();
        let mut until = async |name: &str| loop {
            match events.next().await.unwrap() {
                Ok(watcher::Event::Apply(map) | watcher::Event::InitApply(map)) => {
                    if map.metadata.name.as_deref() == Some(name) {
                        break;
                    }
                }
                Ok(watcher::Event::Init | watcher::Event::InitDone | watcher::Event::Delete(_)) | Err(_) => {}
            }
        };
        until("a").await;
        post(&api, MAPS, &config_map("b", "1"));
        until("b").await;
        api.drop_watches(None);
        post(&api, MAPS, &config_map("c", "1"));
        api.compact(api.revision());
        until("c").await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_is_announced() {
    let api = api();
    let mut newest = api.subscribe();
    assert_eq!(newest.see(), api.revision());
    post(&api, MAPS, &config_map("a", "1"));
    newest.changed().await.unwrap();
    assert_eq!(newest.see(), api.revision());
}
