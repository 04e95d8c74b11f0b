//! One pod of a set as the controller sees it, and how it builds a new one.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::json::{condition, is_true, list, name, since, terminating, text, uid};
use super::Wanted;

pub(super) struct Replica {
    pub name: String,
    pub ordinal: i64,
    pub revision: String,
    phase: String,
    pub terminating: bool,
    /// Running, with the Ready condition true.
    pub ready: bool,
    /// How long until a ready pod counts as available; none while it isn't ready.
    pub available_in: Option<Duration>,
}

impl Replica {
    /// None for a pod whose name has no ordinal of this set.
    pub fn of(pod: &Value, set: &str, min_ready: Duration, now: Timestamp) -> Option<Self> {
        let ordinal = name(pod).strip_prefix(set)?.strip_prefix('-')?.parse().ok()?;
        let ready = text(pod, "/status/phase") == "Running" && is_true(pod, "Ready");
        let age = condition(pod, "Ready").and_then(|ready| since(ready, "/lastTransitionTime", now));
        Some(Self {
            name: name(pod).to_owned(),
            ordinal,
            revision: text(pod, "/metadata/labels/controller-revision-hash").to_owned(),
            phase: text(pod, "/status/phase").to_owned(),
            terminating: terminating(pod),
            ready,
            available_in: ready.then(|| min_ready.saturating_sub(age.unwrap_or_default())),
        })
    }

    /// A pod that isn't there, with the revision that it would get.
    pub fn missing(set: &str, ordinal: i64, revision: &str) -> Self {
        Self {
            name: format!("{set}-{ordinal}"),
            ordinal,
            revision: revision.to_owned(),
            phase: String::new(),
            terminating: false,
            ready: false,
            available_in: None,
        }
    }

    pub fn created(&self) -> bool {
        !self.phase.is_empty()
    }

    /// Ended for good, well or badly: either way it is replaced.
    pub fn ended(&self) -> bool {
        matches!(self.phase.as_str(), "Failed" | "Succeeded")
    }

    pub fn available(&self) -> bool {
        self.available_in.is_some_and(|wait| wait.is_zero())
    }

    pub fn unavailable(&self) -> bool {
        self.terminating || !self.available()
    }
}

pub(super) fn owner_reference(wanted: &Wanted<'_>) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": wanted.key.name,
        "uid": uid(wanted.set),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// A pod for this ordinal from a revision's template.
pub(super) fn build_pod(wanted: &Wanted<'_>, template: &Value, revision: &str, ordinal: i64) -> Value {
    let pod = format!("{}-{ordinal}", wanted.key.name);
    let mut labels = template.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    labels.insert("controller-revision-hash".to_owned(), json!(revision));
    labels.insert("statefulset.kubernetes.io/pod-name".to_owned(), json!(pod));
    labels.insert("apps.kubernetes.io/pod-index".to_owned(), json!(ordinal.to_string()));
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(pod));
    metadata.insert("namespace".to_owned(), json!(wanted.key.namespace));
    metadata.insert("labels".to_owned(), Value::Object(labels));
    for field in ["annotations", "finalizers"] {
        if let Some(value) = template.pointer("/metadata").and_then(|metadata| metadata.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("ownerReferences".to_owned(), json!([owner_reference(wanted)]));

    let mut spec = template.get("spec").cloned().unwrap_or(json!({}));
    spec["hostname"] = json!(pod);
    let service = text(wanted.set, "/spec/serviceName");
    if !service.is_empty() {
        spec["subdomain"] = json!(service);
    }
    let claims: Vec<&str> = list(wanted.set, "/spec/volumeClaimTemplates").iter().map(name).collect();
    if !claims.is_empty() {
        let mut volumes: Vec<Value> = claims
            .iter()
            .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": format!("{claim}-{pod}")}}))
            .collect();
        // A claim takes the place of a volume of the same name in the template.
        volumes.extend(
            list(template, "/spec/volumes").iter().filter(|volume| !claims.contains(&text(volume, "/name"))).cloned(),
        );
        spec["volumes"] = Value::Array(volumes);
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}
