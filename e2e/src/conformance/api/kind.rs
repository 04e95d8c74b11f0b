//! The kinds that the scripts speak of.

use serde_json::{Value, json};

/// A kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of Kubernetes' kinds say it")]
pub enum Kind {
    ConfigMap,
    Secret,
    Pod,
    StatefulSet,
    Deployment,
    ReplicaSet,
    PodDisruptionBudget,
    Lease,
    Event,
    NewEvent,
    ControllerRevision,
    ServiceAccount,
    PersistentVolumeClaim,
    Node,
    Namespace,
    Definition,
    QuorumCluster,
}

/// What Kubernetes calls it.
struct Row {
    group_version: &'static str,
    plural: &'static str,
    kind: &'static str,
    namespaced: bool,
}

impl Kind {
    const fn row(self) -> Row {
        let (group_version, plural, kind, namespaced) = match self {
            Self::ConfigMap => ("v1", "configmaps", "ConfigMap", true),
            Self::Secret => ("v1", "secrets", "Secret", true),
            Self::Pod => ("v1", "pods", "Pod", true),
            Self::StatefulSet => ("apps/v1", "statefulsets", "StatefulSet", true),
            Self::Deployment => ("apps/v1", "deployments", "Deployment", true),
            Self::ReplicaSet => ("apps/v1", "replicasets", "ReplicaSet", true),
            Self::PodDisruptionBudget => ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", true),
            Self::Lease => ("coordination.k8s.io/v1", "leases", "Lease", true),
            Self::Event => ("v1", "events", "Event", true),
            Self::NewEvent => ("events.k8s.io/v1", "events", "Event", true),
            Self::ControllerRevision => ("apps/v1", "controllerrevisions", "ControllerRevision", true),
            Self::ServiceAccount => ("v1", "serviceaccounts", "ServiceAccount", true),
            Self::PersistentVolumeClaim => ("v1", "persistentvolumeclaims", "PersistentVolumeClaim", true),
            Self::Node => ("v1", "nodes", "Node", false),
            Self::Namespace => ("v1", "namespaces", "Namespace", false),
            Self::Definition => {
                ("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", false)
            }
            Self::QuorumCluster => ("windlass.dev/v1alpha1", "quorumclusters", "QuorumCluster", true),
        };
        Row { group_version, plural, kind, namespaced }
    }

    /// The path of all objects in the script's namespace.
    pub fn collection(self) -> String {
        let row = self.row();
        let root = if row.group_version.contains('/') { "apis" } else { "api" };
        let namespace = if row.namespaced { "/namespaces/$(ns)" } else { "" };
        format!("/{root}/{}{namespace}/{}", row.group_version, row.plural)
    }

    /// The path of one object.
    pub fn object(self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    /// The kind's name.
    pub fn name(self) -> &'static str {
        self.row().kind
    }

    /// The group and version.
    pub fn api_version(self) -> &'static str {
        self.row().group_version
    }

    /// apiVersion, kind and metadata, with more fields merged in at the top.
    pub fn with(self, name: &str, fields: &Value) -> Value {
        let row = self.row();
        let mut object = json!({"apiVersion": row.group_version, "kind": row.kind, "metadata": {"name": name}});
        if let (Some(map), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
            for (key, value) in fields {
                if key == "metadata" {
                    let meta = value.as_object().cloned().unwrap_or_default();
                    if let Some(known) = map.get_mut("metadata").and_then(Value::as_object_mut) {
                        known.extend(meta);
                    }
                } else {
                    map.insert(key.clone(), value.clone());
                }
            }
        }
        object
    }

    /// The least that a server accepts.
    pub fn minimal(self, name: &str) -> Value {
        let fields = match self {
            Self::ConfigMap | Self::Secret | Self::Lease | Self::ServiceAccount | Self::Node | Self::Namespace => {
                json!({})
            }
            Self::Pod => json!({"spec": pod_spec()}),
            Self::StatefulSet => json!({"spec": {
                "serviceName": "web",
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec()},
            }}),
            Self::Deployment | Self::ReplicaSet => json!({"spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec()},
            }}),
            Self::PodDisruptionBudget => {
                json!({"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}})
            }
            Self::Event => json!({"involvedObject": {"kind": "Pod", "name": "p", "namespace": "$(ns)"}}),
            Self::NewEvent => json!({
                "eventTime": "2031-02-03T00:00:00.000000Z", "reportingController": "example.com/conformance",
                "reportingInstance": "i", "action": "Did", "reason": "Because", "type": "Normal",
                "regarding": {"kind": "Pod", "name": "p", "namespace": "$(ns)"},
            }),
            Self::ControllerRevision => json!({"revision": 1, "data": {"spec": {}}}),
            Self::PersistentVolumeClaim => json!({"spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            }}),
            Self::Definition => return definition(name),
            Self::QuorumCluster => json!({"spec": {
                "workload": {"statefulSet": "web", "container": "c"},
                "system": {"type": "Pd"},
                "version": "8.5.7",
            }}),
        };
        self.with(name, &fields)
    }
}

/// One container and nothing else.
pub fn pod_spec() -> Value {
    json!({"containers": [{"name": "c", "image": "example.com/c:1"}]})
}

/// A definition of a kind with a small schema; the name is `<plural>.<group>`.
fn definition(name: &str) -> Value {
    let (plural, group) = name.split_once('.').unwrap_or((name, "example.com"));
    let kind = Kind::Definition;
    kind.with(
        name,
        &json!({"spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                }}},
            }],
        }}),
    )
}
