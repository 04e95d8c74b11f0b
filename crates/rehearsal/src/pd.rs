//! PD clusters and their upgrades as scenarios.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_sim::{
    objects,
    scenario::{Action, Ending, Moment, Place, Scenario, Subject, When},
    world::ImageBehaviour,
};

/// Where the cluster lives.
pub const NAMESPACE: &str = "tikv";
/// The StatefulSet's and the QuorumCluster's name.
pub const NAME: &str = "pd";

/// The custom resource definitions, a PD cluster of so many members at `from`, and a QuorumCluster that wants `to`.
pub fn objects(members: u32, from: &str, to: &str) -> Vec<Value> {
    let mut objects: Vec<Value> =
        windlass_api::crd::all().iter().filter_map(|crd| serde_json::to_value(crd).ok()).collect();
    objects.push(objects::namespace(NAMESPACE));
    objects.extend(objects::pd(NAMESPACE, NAME, members, &format!("registry.example/pingcap/pd:v{from}")));
    objects.push(quorum_cluster(NAME, to));
    objects
}

/// A QuorumCluster for the PD cluster.
pub fn quorum_cluster(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "workload": {"statefulSet": NAME, "container": "pd"},
            "system": {"type": "Pd", "port": 2379},
            "version": version,
        },
    })
}

/// The QuorumCluster.
pub fn subject() -> Subject {
    Subject { resource: "quorumclusters.windlass.dev".into(), namespace: NAMESPACE.into(), name: NAME.into() }
}

/// The StatefulSet.
pub fn workload() -> Subject {
    Subject { resource: "statefulsets.apps".into(), namespace: NAMESPACE.into(), name: NAME.into() }
}

/// One of its pods.
pub fn pod(ordinal: u32) -> Place {
    Place { namespace: NAMESPACE.into(), pod: format!("{NAME}-{ordinal}") }
}

/// The reference upgrade: three members, two operators, nothing goes wrong.
pub fn reference(seed: u64) -> Scenario {
    Scenario {
        seed,
        objects: objects(3, "8.5.0", "8.5.3"),
        operators: 2,
        faults: false,
        timeline: vec![],
        subject: subject(),
        ending: Ending::Ready,
        max_leader_moves: Some(2),
        limit: Duration::from_mins(40),
    }
}

/// An upgrade whose image is broken until the spec is mended, with the first member waiting for it: by the next version for even
/// seeds, by a revert for odd ones.
pub fn mend(seed: u64) -> Scenario {
    let broken = if seed.is_multiple_of(3) { ImageBehaviour::CannotPull } else { ImageBehaviour::Crashes };
    let (mended, broken_image) =
        (if seed.is_multiple_of(2) { "8.5.4" } else { "8.5.0" }, "registry.example/pingcap/pd:v8.5.3");
    let timeline = vec![
        after(Duration::ZERO, Action::Image(broken_image.into(), broken)),
        Moment { when: When::Replaced(1), action: Action::DropWatches },
        after(Duration::from_secs(20), spec(json!({ "version": mended }))),
    ];
    Scenario { timeline, max_leader_moves: None, ..reference(seed) }
}

/// A change of the QuorumCluster's spec.
#[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
pub fn spec(patch: Value) -> Action {
    Action::Patch { target: subject(), patch: json!({ "spec": patch }) }
}

/// So long after the moment before.
pub fn after(delay: Duration, action: Action) -> Moment {
    Moment { when: When::After(delay), action }
}
