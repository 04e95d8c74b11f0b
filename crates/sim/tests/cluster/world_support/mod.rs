//! A running embedded cluster for the tests of its world, and short ways to ask it things.

#![allow(dead_code, reason = "each test file uses its own part")]
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use windlass_sim::api::Api;
use windlass_sim::clock::Clock;
use windlass_sim::journal::Journal;
use windlass_sim::world::{Settings, World};

pub const NS: &str = "db";
pub const OLD: &str = "registry.example/pingcap/pd:v8.5.1";
pub const NEW: &str = "registry.example/pingcap/pd:v8.5.7";

pub struct Cluster {
    pub api: Api,
    pub world: World,
    pub clock: Clock,
    pub journal: Journal,
}

/// A set of this many PD pods; change it before creating it.
pub fn set_of(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "pd", "namespace": NS},
        "spec": {
            "replicas": replicas,
            "serviceName": "pd-peer",
            "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": {"app": "pd"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "template": {
                "metadata": {"labels": {"app": "pd"}},
                "spec": {"containers": [{"name": "pd", "image": OLD}]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    })
}

pub fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "pd", "image": image}]}}}})
}

impl Cluster {
    pub fn start(seed: u64) -> Self {
        let (clock, journal) = (Clock::start(), Journal::default());
        let api = Api::new(clock, journal.clone());
        let world = World::new(api.clone(), clock, journal.clone(), seed, Settings::default());
        tokio::spawn(world.clone().run());
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}});
        api.create_value("admin", namespace).expect("a namespace");
        Self { api, world, clock, journal }
    }

    /// A cluster in which this set has come up whole and PD has a leader.
    pub async fn with(seed: u64, set: Value) -> Self {
        let cluster = Self::start(seed);
        let replicas = set["spec"]["replicas"].as_i64().expect("replicas");
        cluster.api.create_value("admin", set).expect("a set");
        cluster.until("all pods ready", |c| c.status("/readyReplicas") == json!(replicas)).await;
        cluster.until("a leader", |c| c.world.pd(NS, "pd").leader().is_some()).await;
        cluster.pass(10).await;
        cluster
    }

    pub async fn pass(&self, seconds: u64) {
        sleep(Duration::from_secs(seconds)).await;
    }

    pub async fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let wait = async {
            while !done(self) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let limit = Duration::from_mins(10);
        assert!(timeout(limit, wait).await.is_ok(), "never came: {what}; {:#?}", self.summary());
    }

    fn summary(&self) -> Vec<String> {
        let pods = self.api.list_values("pods", "").into_iter();
        let mut lines: Vec<String> = pods.map(|pod| format!("{} {}", pod["metadata"]["name"], pod["status"])).collect();
        let set = self.api.get_value("statefulsets.apps", NS, "pd");
        lines.extend(set.map(|set| set["status"].to_string()));
        lines
    }

    pub fn set(&self) -> Arc<Value> {
        self.api.get_value("statefulsets.apps", NS, "pd").expect("the set")
    }

    pub fn status(&self, pointer: &str) -> Value {
        self.set().pointer(&format!("/status{pointer}")).cloned().unwrap_or(Value::Null)
    }

    pub fn patch(&self, patch: &Value) {
        self.api.merge::<StatefulSet>("admin", NS, "pd", patch).expect("a patch");
    }

    pub fn pod(&self, name: &str) -> Option<Arc<Value>> {
        self.api.get_value("pods", NS, name)
    }

    pub fn uid(&self, name: &str) -> String {
        self.pod(name).map(|pod| pod["metadata"]["uid"].to_string()).unwrap_or_default()
    }

    pub fn revision(&self, name: &str) -> Value {
        self.pod(name).map_or(Value::Null, |pod| pod["metadata"]["labels"]["controller-revision-hash"].clone())
    }

    pub fn image(&self, name: &str) -> String {
        let pod = self.pod(name);
        pod.and_then(|pod| pod["spec"]["containers"][0]["image"].as_str().map(str::to_owned)).unwrap_or_default()
    }

    pub fn ready(&self, name: &str) -> bool {
        self.pod(name).is_some_and(|pod| {
            pod["metadata"].get("deletionTimestamp").is_none()
                && pod["status"]["conditions"].as_array().is_some_and(|conditions| {
                    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
                })
        })
    }

    pub fn names(&self) -> Vec<String> {
        let pods = self.api.list_values("pods", NS).into_iter();
        pods.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect()
    }

    pub fn delete_pod(&self, name: &str) {
        self.api.delete::<Pod>("admin", NS, name, &DeleteParams::default()).expect("a deletion");
    }

    pub fn waiting(&self, name: &str) -> String {
        let pod = self.pod(name);
        let reason = pod.as_ref().and_then(|pod| pod.pointer("/status/containerStatuses/0/state/waiting/reason"));
        reason.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub async fn dial(&self, pod: &str, method: Method, path: &str, body: Value) -> std::io::Result<Response<Bytes>> {
        self.dial_with(pod, method, path, body, false).await
    }

    pub async fn dial_with(
        &self,
        pod: &str,
        method: Method,
        path: &str,
        body: Value,
        local: bool,
    ) -> std::io::Result<Response<Bytes>> {
        let pod = self.pod(pod).expect("the pod");
        let address = pod["status"]["podIP"].as_str().expect("an address").to_owned();
        let mut request = Request::builder().method(method).uri(format!("http://{address}:2379{path}"));
        if local {
            request = request.header("PD-Allow-follower-handle", "true");
        }
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        self.world.dial("tester", request.body(body).expect("a request")).await
    }

    /// Status and body, the body parsed where it is JSON.
    pub async fn ask(&self, pod: &str, method: Method, path: &str) -> (u16, Value) {
        let response = self.dial(pod, method, path, Value::Null).await.expect("an answer");
        let text = String::from_utf8_lossy(response.body()).into_owned();
        (response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub fn leader(&self) -> String {
        self.world.pd(NS, "pd").leader().expect("a leader")
    }

    pub fn follower(&self) -> String {
        let leader = self.leader();
        self.names().into_iter().find(|name| *name != leader).expect("a follower")
    }
}
