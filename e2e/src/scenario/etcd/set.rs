//! etcd's place on Kubernetes.

use serde_json::Value;

use crate::scenario::layout::{self, Probe};

/// The StatefulSet, its container, its Service and the QuorumCluster all have this name.
pub const NAME: &str = "etcd";
/// Where clients speak to a member.
pub const PORT: u16 = 2379;

/// Its Service and its StatefulSet.
pub fn objects(namespace: &str, replicas: usize, image: &str, data: &str) -> [Value; 2] {
    let probe = Probe { ready: "/readyz", alive: Some("/livez") };
    layout::objects((NAME, PORT), (namespace, replicas, image, data), &probe, |place| {
        vec![
            "--name=$(POD_NAME)".into(),
            "--data-dir=/data/etcd".into(),
            "--listen-client-urls=http://0.0.0.0:2379".into(),
            format!("--advertise-client-urls={}:2379", place.me),
            "--listen-peer-urls=http://0.0.0.0:2380".into(),
            format!("--initial-advertise-peer-urls={}:2380", place.me),
            format!("--initial-cluster={}", place.everybody),
            format!("--initial-cluster-token={namespace}"),
            "--initial-cluster-state=new".into(),
        ]
    })
}
