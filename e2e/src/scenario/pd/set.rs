//! PD as people lay it out on Kubernetes: a headless Service that also names pods which are not ready, a StatefulSet with
//! RollingUpdate, members that are called like their pods. There is no store, so the cluster is not bootstrapped.

use serde_json::{Value, json};

/// The StatefulSet, its container, its Service and the QuorumCluster all have this name.
pub const NAME: &str = "pd";
/// Where clients speak to a member.
pub const PORT: u16 = 2379;

/// The headless Service.
pub fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {
            "clusterIP": "None",
            // Members must find each other before they are ready.
            "publishNotReadyAddresses": true,
            "selector": {"app": NAME},
            "ports": [{"name": "client", "port": PORT}, {"name": "peer", "port": 2380}],
        },
    })
}

/// The StatefulSet. Every member keeps its data in a folder of its own below `data`, on the node.
pub fn stateful_set(namespace: &str, replicas: usize, image: &str, data: &str) -> Value {
    let host = |pod: &str| format!("http://{pod}.{NAME}.{namespace}.svc.cluster.local");
    let members: Vec<String> =
        (0..replicas).map(|ordinal| format!("{NAME}-{ordinal}={}:2380", host(&format!("{NAME}-{ordinal}")))).collect();
    let me = host("$(POD_NAME)");
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME},
        "spec": {
            "replicas": replicas,
            "serviceName": NAME,
            // A member is ready when there is a quorum: the first ones must not wait for each other.
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {
                    "terminationGracePeriodSeconds": 10,
                    "containers": [{
                        "name": NAME,
                        "image": image,
                        "args": [
                            "--name=$(POD_NAME)",
                            "--data-dir=/data/pd",
                            "--client-urls=http://0.0.0.0:2379",
                            format!("--advertise-client-urls={me}:2379"),
                            "--peer-urls=http://0.0.0.0:2380",
                            format!("--advertise-peer-urls={me}:2380"),
                            format!("--initial-cluster={}", members.join(",")),
                        ],
                        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        "ports": [{"name": "client", "containerPort": PORT}, {"name": "peer", "containerPort": 2380}],
                        "readinessProbe": {
                            "httpGet": {"path": "/pd/api/v1/ping", "port": "client"},
                            "periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 3,
                        },
                        // Without a request it would get next to no time on a busy node.
                        "resources": {"requests": {"cpu": "200m", "memory": "128Mi"}},
                        "volumeMounts": [{"name": "data", "mountPath": "/data", "subPathExpr": "$(POD_NAME)"}],
                    }],
                    "volumes": [{"name": "data", "hostPath": {"path": data, "type": "DirectoryOrCreate"}}],
                },
            },
        },
    })
}
