//! A quorum as people lay it out on Kubernetes: a headless Service that also names pods which are not ready, a StatefulSet with
//! RollingUpdate, members that are called like their pods and find each other by those names.

use serde_json::{Value, json};

/// Where a member is asked how it is.
pub struct Probe {
    /// Whether it can serve.
    pub ready: &'static str,
    /// Whether it must be started anew.
    pub alive: Option<&'static str>,
}

/// Where members speak to each other.
const PEER_PORT: u16 = 2380;

/// What a member is told of itself and of the others.
pub struct Place {
    /// The URL of its own pod, without a port.
    pub me: String,
    /// Everybody with their URL for each other: `name=url,name=url`.
    pub everybody: String,
}

/// The Service and the StatefulSet, both of this name. Every member keeps its data in a folder of its own below `data`, on the node.
pub fn objects(
    (name, port): (&str, u16),
    (namespace, replicas, image, data): (&str, usize, &str, &str),
    probe: &Probe,
    arguments: impl FnOnce(&Place) -> Vec<String>,
) -> [Value; 2] {
    let host = |pod: &str| format!("http://{pod}.{name}.{namespace}.svc.cluster.local");
    let member = |ordinal| format!("{name}-{ordinal}={}:{PEER_PORT}", host(&format!("{name}-{ordinal}")));
    let members: Vec<String> = (0..replicas).map(member).collect();
    let place = Place { me: host("$(POD_NAME)"), everybody: members.join(",") };
    let mut container = json!({
        "name": name,
        "image": image,
        "args": arguments(&place),
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"name": "client", "containerPort": port}, {"name": "peer", "containerPort": PEER_PORT}],
        "readinessProbe": {
            "httpGet": {"path": probe.ready, "port": "client"},
            "periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 3,
        },
        // Without a request it would get next to no time on a busy node.
        "resources": {"requests": {"cpu": "200m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data", "subPathExpr": "$(POD_NAME)"}],
    });
    if let Some(path) = probe.alive {
        container["livenessProbe"] = json!({
            "httpGet": {"path": path, "port": "client"},
            "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 12,
        });
    }
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "clusterIP": "None",
            // Members must find each other before they are ready.
            "publishNotReadyAddresses": true,
            "selector": {"app": name},
            "ports": [{"name": "client", "port": port}, {"name": "peer", "port": PEER_PORT}],
        },
    });
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            // A member is ready when there is a quorum: the first ones must not wait for each other.
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 10,
                    "containers": [container],
                    "volumes": [{"name": "data", "hostPath": {"path": data, "type": "DirectoryOrCreate"}}],
                },
            },
        },
    });
    [service, set]
}
