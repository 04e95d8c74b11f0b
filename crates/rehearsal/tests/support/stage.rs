//! For what no timeline can do: a story that holds the cluster itself.

use std::time::Duration;

use serde_json::Value;
use tokio::task::LocalSet;
use windlass_rehearsal::{operator, pd};
use windlass_sim::{
    faults::Process,
    harness::{Cluster, is_ours},
    invariants,
};

use super::{Spoken, Tale};

/// Runs a story on these objects with one operator; it begins when the quorum is up.
pub fn play(objects: Vec<Value>, story: impl AsyncFnOnce(&Cluster)) -> Tale {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), async {
        let cluster = Cluster::new(1);
        let world = tokio::task::spawn_local(cluster.world.clone().run());
        for object in objects {
            cluster.api.create_value("user", object).expect("an object that the API takes");
        }
        let led = |cluster: &Cluster| cluster.world.truths().iter().any(|truth| truth.members.iter().any(|member| member.leader));
        until(&cluster, "a quorum", led).await;
        let process = Process::new("windlass-0-0", cluster.clock, cluster.journal.clone(), 1);
        tokio::select! {
            biased;
            () = story(&cluster) => {}
            () = process.live(operator(cluster.seat(&process))) => panic!("the operator ended"),
        }
        world.abort();
        let subject = subject(&cluster);
        let journal = std::mem::take(&mut *cluster.journal.entries());
        let verdict = invariants::judge(&journal, is_ours);
        Tale::new(journal, verdict, true, subject)
    })
}

/// Waits until something is so.
pub async fn until(cluster: &Cluster, what: &str, so: impl Fn(&Cluster) -> bool) {
    let wait = async {
        while !so(cluster) {
            tokio::time::sleep(Duration::from_millis(500)).await;
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

fn subject(cluster: &Cluster) -> Value {
    let subject = pd::subject();
    cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name).map(|object| (*object).clone()).unwrap_or_default()
}
