//! Objects for scenarios: the StatefulSets that people have.

use serde_json::{Value, json};

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A PD cluster, as [`quorum`].
pub fn pd(namespace: &str, name: &str, replicas: u32, image: &str) -> Vec<Value> {
    quorum("pd", namespace, name, replicas, image)
}

/// An OpenBao cluster, as [`quorum`], with what its chart sets: pods come up together and are replaced when somebody deletes them.
pub fn openbao(namespace: &str, name: &str, replicas: u32, image: &str) -> Vec<Value> {
    let mut objects = quorum("openbao", namespace, name, replicas, image);
    for object in &mut objects {
        if object["kind"] == "StatefulSet" {
            object["spec"]["podManagementPolicy"] = json!("Parallel");
            object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        } else {
            object["spec"]["publishNotReadyAddresses"] = json!(true);
        }
    }
    objects
}

/// A quorum as its users deploy it: a headless Service and a StatefulSet with one container, whose name tells the system.
pub fn quorum(container: &str, namespace: &str, name: &str, replicas: u32, image: &str) -> Vec<Value> {
    let labels = json!({"app": name});
    let port = if container == "openbao" { 8200 } else { 2379 };
    vec![
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterIP": "None", "selector": labels, "ports": [{"name": "client", "port": port}]},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": replicas,
                "serviceName": name,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": container, "image": image, "ports": [{"containerPort": port}]}]},
                },
            },
        }),
    ]
}
