//! For what no timeline can do: a story that holds the cluster itself.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use tokio::task::LocalSet;
use windlass_rehearsal::{
    judge, operator, pd,
    setting::{ETCD, OPENBAO, PD, Setting},
};
use windlass_sim::{
    api::Reply,
    faults::{Odds, Process},
    harness::{Cluster, Program},
    scenario::Subject,
};

use super::{Spoken, Tale};

/// Runs a story on these objects with one operator; it begins when the quorum is up.
pub fn play(objects: Vec<Value>, story: impl AsyncFnOnce(&Cluster)) -> Tale {
    play_with(objects, &operator, story)
}

/// The same with another program.
pub fn play_with(objects: Vec<Value>, program: &Program, story: impl AsyncFnOnce(&Cluster)) -> Tale {
    play_at(objects, program, Odds::default(), story)
}

/// The same with calls that go wrong at these odds.
pub fn play_at(objects: Vec<Value>, program: &Program, odds: Odds, story: impl AsyncFnOnce(&Cluster)) -> Tale {
    play_all(objects, program, odds, |_| {}, story)
}

/// The same where something is taken from the cluster before the operator begins.
pub fn play_beside(
    objects: Vec<Value>,
    program: &Program,
    before: impl FnOnce(&Cluster),
    story: impl AsyncFnOnce(&Cluster),
) -> Tale {
    play_all(objects, program, Odds::default(), before, story)
}

fn play_all(
    objects: Vec<Value>,
    program: &Program,
    odds: Odds,
    before: impl FnOnce(&Cluster),
    story: impl AsyncFnOnce(&Cluster),
) -> Tale {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), async {
        let cluster = Cluster::new(1);
        let world = tokio::task::spawn_local(cluster.world.clone().run());
        for object in objects {
            cluster.api.create_value("user", object).expect("an object that the API takes");
        }
        let led = |cluster: &Cluster| {
            cluster.world.truths().iter().any(|truth| truth.members.iter().any(|member| member.leader))
        };
        until(&cluster, "a quorum", led).await;
        before(&cluster);
        let process = Process::new("windlass-0-0", cluster.clock, cluster.journal.clone(), 1);
        process.set_odds(odds);
        tokio::select! {
            biased;
            () = story(&cluster) => {}
            () = process.live(program(cluster.seat(&process))) => panic!("the operator ended"),
        }
        world.abort();
        let subject = subject(&cluster);
        let journal = std::mem::take(&mut *cluster.journal.entries());
        let verdict = judge::judge(&journal, None);
        Tale::new(journal, verdict, subject)
    })
}

/// Waits until something is so.
pub async fn until(cluster: &Cluster, what: &str, so: impl Fn(&Cluster) -> bool) {
    until_by(Duration::from_millis(10), cluster, what, so).await;
}

/// The same for what takes long and stays: it is looked for less often.
pub async fn until_at_last(cluster: &Cluster, what: &str, so: impl Fn(&Cluster) -> bool) {
    until_by(Duration::from_secs(1), cluster, what, so).await;
}

async fn until_by(every: Duration, cluster: &Cluster, what: &str, so: impl Fn(&Cluster) -> bool) {
    let wait = async {
        while !so(cluster) {
            tokio::time::sleep(every).await;
        }
    };
    let came = tokio::time::timeout(Duration::from_mins(30), wait).await;
    assert!(came.is_ok(), "never came: {what}; {}", subject(cluster)["status"]);
}

/// Waits until the QuorumCluster gives this reason.
pub async fn until_reason(cluster: &Cluster, reason: &str) -> Spoken {
    let now = |cluster: &Cluster| Spoken::of(&subject(cluster)).filter(|spoken| spoken.reason == reason);
    until(cluster, reason, |cluster| now(cluster).is_some()).await;
    now(cluster).expect("it has just been so")
}

/// Waits until the QuorumCluster gives this reason and says that a person is needed.
pub async fn until_stalled(cluster: &Cluster, reason: &str) -> Spoken {
    until(cluster, reason, |cluster| stalled(cluster, reason).is_some()).await;
    stalled(cluster, reason).expect("it has just been so")
}

/// What it says, if it gives this reason and a person is needed.
pub fn stalled(cluster: &Cluster, reason: &str) -> Option<Spoken> {
    Spoken::of(&subject(cluster)).filter(|spoken| spoken.reason == reason && spoken.stalled == "True")
}

/// The QuorumCluster, whichever system it is of.
pub fn subject(cluster: &Cluster) -> Value {
    let get = |setting: Setting| {
        let subject = setting.subject();
        cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name)
    };
    [PD, ETCD, OPENBAO].into_iter().find_map(get).map(|object| (*object).clone()).unwrap_or_default()
}

fn path(subject: &Subject) -> String {
    let (plural, group) = subject.resource.split_once('.').unwrap_or((&subject.resource, ""));
    let root = match group {
        "" => "api/v1".to_owned(),
        "windlass.dev" => "apis/windlass.dev/v1alpha1".to_owned(),
        group => format!("apis/{group}/v1"),
    };
    format!("/{root}/namespaces/{}/{plural}/{}", subject.namespace, subject.name)
}

/// A person changes an object.
pub fn patch(cluster: &Cluster, subject: &Subject, patch: &Value) {
    let request = Request::patch(path(subject)).header("content-type", "application/merge-patch+json");
    send(cluster, request.body(Bytes::from(patch.to_string())));
}

/// A person changes an object's status.
pub fn patch_status(cluster: &Cluster, subject: &Subject, patch: &Value) {
    let status = format!("{}/status", path(subject));
    let request = Request::patch(status).header("content-type", "application/merge-patch+json");
    send(cluster, request.body(Bytes::from(patch.to_string())));
}

/// Somebody changes a node.
pub fn patch_node(cluster: &Cluster, name: &str, patch: &Value) {
    let request =
        Request::patch(format!("/api/v1/nodes/{name}")).header("content-type", "application/merge-patch+json");
    send(cluster, request.body(Bytes::from(patch.to_string())));
}

/// A person deletes an object.
pub fn delete(cluster: &Cluster, subject: &Subject) {
    send(cluster, Request::delete(path(subject)).body(Bytes::new()));
}

fn send(cluster: &Cluster, request: http::Result<Request<Bytes>>) {
    match cluster.api.handle("user", request.expect("a request"), None) {
        Reply::Done(response) => assert!(response.status().is_success(), "{response:?}"),
        Reply::Watch(_) => panic!("nobody asked for a watch"),
    }
}

/// Time passes.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

pub fn partition(cluster: &Cluster) -> Value {
    let set = cluster.api.get_value("statefulsets.apps", pd::NAMESPACE, pd::NAME);
    set.and_then(|set| set.pointer("/spec/updateStrategy/rollingUpdate/partition").cloned()).unwrap_or_default()
}

/// Waits for the first permit and keeps Kubernetes from using it for five minutes.
pub async fn permit_stands(cluster: &Cluster) {
    let held = |cluster: &Cluster| {
        cluster.api.get_value("poddisruptionbudgets.policy", pd::NAMESPACE, "windlass-pd").is_some()
    };
    until(cluster, "evictions are held", held).await;
    cluster.world.freeze_controllers(cluster.clock.elapsed() + Duration::from_mins(5));
    until(cluster, "a permit", |cluster| partition(cluster) == json!(2)).await;
}
