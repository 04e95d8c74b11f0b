//! OpenBao as its Helm chart lays it out, highly available on Raft: OnDelete, one pod after the other, a readiness probe that asks for
//! the seal, labels that the pods write on themselves, a PodDisruptionBudget. What differs: all pods are on one node, the data is in
//! folders of that node, and the seal is opened by a key that every pod has its own copy of.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

/// The StatefulSet, its container, its Service and the QuorumCluster all have this name.
pub const NAME: &str = "openbao";
/// Where clients speak to a member.
pub const PORT: u16 = 8200;
/// Where Windlass finds its token.
pub const TOKEN_SECRET: &str = "windlass-token";
/// What opens the seal.
pub const SEAL_SECRET: &str = "openbao-seal";

const INTERNAL: &str = "openbao-internal";
const KEY: [u8; 32] = *b"opens nothing but a test's seals";

/// Everything that the chart makes, and what it is told to mount.
pub fn objects(replicas: usize, image: &str, data: &str) -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "openbao-discovery-role"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "watch", "list", "update", "patch"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "openbao-discovery-rolebinding"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "openbao-discovery-role"},
            "subjects": [{"kind": "ServiceAccount", "name": NAME}],
        }),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "openbao-config"},
            "data": {"extraconfig-from-values.hcl": configuration(replicas)},
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SEAL_SECRET},
            "data": (0..replicas).map(|ordinal| (key_file(ordinal), BASE64_STANDARD.encode(KEY).into()))
                .collect::<serde_json::Map<String, Value>>(),
        }),
        service(INTERNAL, &json!({"clusterIP": "None", "publishNotReadyAddresses": true, "selector": labels()})),
        service(NAME, &json!({"publishNotReadyAddresses": true, "selector": labels()})),
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": NAME},
            "spec": {"maxUnavailable": (replicas - 1) / 2, "selector": {"matchLabels": labels()}},
        }),
        stateful_set(replicas, image, data),
    ]
}

/// Where the Secret holds the key of one pod: whoever changes one file seals one pod.
pub fn key_file(ordinal: usize) -> String {
    format!("{NAME}-{ordinal}.key")
}

/// One pod's key, as a Secret has it.
pub fn key() -> String {
    BASE64_STANDARD.encode(KEY)
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME, "component": "server"})
}

fn service(name: &str, spec: &Value) -> Value {
    let mut service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"name": "http", "port": PORT}, {"name": "https-internal", "port": 8201}]},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        service["spec"][field] = value.clone();
    }
    service
}

/// The chart's start script puts the pod's name where HOSTNAME is.
fn configuration(replicas: usize) -> String {
    let joins: Vec<String> = (0..replicas)
        .map(|ordinal| format!("  retry_join {{ leader_api_addr = \"http://{NAME}-{ordinal}.{INTERNAL}:{PORT}\" }}\n"))
        .collect();
    format!(
        r#"ui = false
listener "tcp" {{
  tls_disable = 1
  address = "[::]:8200"
  cluster_address = "[::]:8201"
}}
storage "raft" {{
  path = "/openbao/data"
{}}}
seal "static" {{
  current_key_id = "test-1"
  current_key = "file:///openbao/userconfig/{SEAL_SECRET}/HOSTNAME.key"
}}
service_registration "kubernetes" {{}}
"#,
        joins.concat()
    )
}

fn stateful_set(replicas: usize, image: &str, data: &str) -> Value {
    let from = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}},
        "spec": {
            "replicas": replicas,
            "serviceName": INTERNAL,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": labels()},
            "template": {
                "metadata": {"labels": labels()},
                "spec": {
                    "terminationGracePeriodSeconds": 10,
                    "serviceAccountName": NAME,
                    "containers": [{
                        "name": NAME,
                        "image": image,
                        "command": ["/bin/sh", "-ec"],
                        "args": [
                            "cp /openbao/config/extraconfig-from-values.hcl /tmp/storageconfig.hcl;\n\
                             [ -n \"${HOSTNAME}\" ] && sed -Ei \"s|HOSTNAME|${HOSTNAME?}|g\" /tmp/storageconfig.hcl;\n\
                             bao server -config=/tmp/storageconfig.hcl\n",
                        ],
                        "env": [
                            from("POD_IP", "status.podIP"),
                            from("BAO_K8S_POD_NAME", "metadata.name"),
                            from("BAO_K8S_NAMESPACE", "metadata.namespace"),
                            {"name": "BAO_ADDR", "value": "http://127.0.0.1:8200"},
                            {"name": "BAO_API_ADDR", "value": "http://$(POD_IP):8200"},
                            from("HOSTNAME", "metadata.name"),
                            {"name": "BAO_CLUSTER_ADDR", "value": format!("https://$(HOSTNAME).{INTERNAL}:8201")},
                            {"name": "HOME", "value": "/home/openbao"},
                        ],
                        "ports": [
                            {"name": "http", "containerPort": PORT},
                            {"name": "https-internal", "containerPort": 8201},
                        ],
                        "readinessProbe": {
                            "exec": {"command": ["/bin/sh", "-ec", "bao status -tls-skip-verify"]},
                            "initialDelaySeconds": 5, "periodSeconds": 5, "timeoutSeconds": 3, "failureThreshold": 2,
                        },
                        "lifecycle": {
                            "preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 5 && kill -SIGTERM $(pidof bao)"]}},
                        },
                        // Without a request it would get next to no time on a busy node.
                        "resources": {"requests": {"cpu": "200m", "memory": "128Mi"}},
                        "volumeMounts": [
                            {"name": "data", "mountPath": "/openbao/data", "subPathExpr": "$(HOSTNAME)"},
                            {"name": "config", "mountPath": "/openbao/config"},
                            {"name": "seal", "mountPath": format!("/openbao/userconfig/{SEAL_SECRET}"), "readOnly": true},
                            {"name": "home", "mountPath": "/home/openbao"},
                        ],
                    }],
                    "volumes": [
                        {"name": "data", "hostPath": {"path": data, "type": "DirectoryOrCreate"}},
                        {"name": "config", "configMap": {"name": "openbao-config"}},
                        {"name": "seal", "secret": {"secretName": SEAL_SECRET}},
                        {"name": "home", "emptyDir": {}},
                    ],
                },
            },
        },
    })
}
