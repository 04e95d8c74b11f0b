//! The rules of the built-in kinds: their shape, their defaults, what they refuse, and what a write does to them.

mod crd;
mod endpoint_slice;
mod namespace;
mod pod;
mod pod_template;
mod service;
mod statefulset;

use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::error::{self, Answer, FieldError};
use super::object;
use super::resource::{Resource, Rules, Version};
use super::store::Store;
use super::write::Part;

/// Brings the object into the kind's shape: reads it as the type, writes it out again, and fills in defaults. The result
/// names the fields that the type doesn't have.
pub(crate) fn decode(resource: &Resource, version: &Version, object: &mut Value) -> Answer<Vec<String>> {
    let shaped = match resource.rules {
        Rules::Namespace => shape::<api::core::v1::Namespace>(object),
        Rules::Node => shape::<api::core::v1::Node>(object),
        Rules::Pod => shape::<api::core::v1::Pod>(object),
        Rules::Service => shape::<api::core::v1::Service>(object),
        Rules::Endpoints => shape::<api::core::v1::Endpoints>(object),
        Rules::EndpointSlice => shape::<api::discovery::v1::EndpointSlice>(object),
        Rules::ConfigMap => shape::<api::core::v1::ConfigMap>(object),
        Rules::Secret => shape::<api::core::v1::Secret>(object),
        Rules::ServiceAccount => shape::<api::core::v1::ServiceAccount>(object),
        Rules::PersistentVolumeClaim => shape::<api::core::v1::PersistentVolumeClaim>(object),
        Rules::Event if resource.group.is_empty() => shape::<api::core::v1::Event>(object),
        Rules::Event => shape::<api::events::v1::Event>(object),
        Rules::StatefulSet => shape::<api::apps::v1::StatefulSet>(object),
        Rules::ControllerRevision => shape::<api::apps::v1::ControllerRevision>(object),
        Rules::Deployment => shape::<api::apps::v1::Deployment>(object),
        Rules::ReplicaSet => shape::<api::apps::v1::ReplicaSet>(object),
        Rules::Lease => shape::<api::coordination::v1::Lease>(object),
        Rules::PodDisruptionBudget => shape::<api::policy::v1::PodDisruptionBudget>(object),
        Rules::CustomResourceDefinition => shape::<apiextensions::CustomResourceDefinition>(object),
        // A custom resource without a schema keeps everything.
        Rules::Custom => return Ok(Vec::new()),
    };
    let shaped = shaped.map_err(|why| {
        let kind = &resource.kind;
        error::bad_request(format!("{kind} in version {:?} cannot be handled as a {kind}: {why}", version.name))
    })?;
    let mut unknown = Vec::new();
    missing(object, &shaped, "", &mut unknown);
    *object = shaped;
    default(resource, object);
    Ok(unknown)
}

fn shape<K: Serialize + DeserializeOwned>(object: &Value) -> Result<Value, String> {
    let typed = K::deserialize(object).map_err(|why| why.to_string())?;
    serde_json::to_value(typed).map_err(|why| why.to_string())
}

/// Which fields of the one the other doesn't have.
fn missing(given: &Value, shaped: &Value, path: &str, unknown: &mut Vec<String>) {
    match (given, shaped) {
        (Value::Object(given), Value::Object(shaped)) => {
            for (key, value) in given.iter().filter(|(_, value)| !value.is_null()) {
                let place = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match shaped.get(key) {
                    Some(shaped) => missing(value, shaped, &place, unknown),
                    None => unknown.push(place),
                }
            }
        }
        (Value::Array(given), Value::Array(shaped)) => {
            for (index, (given, shaped)) in given.iter().zip(shaped).enumerate() {
                missing(given, shaped, &format!("{path}[{index}]"), unknown);
            }
        }
        // A scalar has no fields, and the type decided already whether it fits.
        _ => {}
    }
}

fn default(resource: &Resource, object: &mut Value) {
    let map = object::as_map(object);
    match resource.rules {
        Rules::Pod => pod_template::default_pod(map),
        Rules::Service => service::default(map),
        Rules::Secret => {
            service::fold_string_data(map);
            object::default(map, "type", json!("Opaque"));
        }
        Rules::PersistentVolumeClaim => pod_template::default_claim(map),
        Rules::StatefulSet => statefulset::default(map),
        Rules::Deployment | Rules::ReplicaSet => {
            let spec = object::child(map, "spec");
            object::default(spec, "replicas", json!(1));
            pod_template::default_template(spec);
        }
        Rules::CustomResourceDefinition => crd::default(map),
        Rules::EndpointSlice => endpoint_slice::default(map),
        Rules::Namespace => namespace::default(map),
        Rules::Node
        | Rules::Endpoints
        | Rules::ConfigMap
        | Rules::ServiceAccount
        | Rules::Event
        | Rules::ControllerRevision
        | Rules::Lease
        | Rules::PodDisruptionBudget
        | Rules::Custom => {}
    }
}

/// Sets what a new object begins with.
pub(crate) fn prepare_create(store: &mut Store, resource: &Resource, version: &Version, object: &mut Value) {
    let first_generation = json!(1);
    match resource.rules {
        Rules::Custom => {
            if version.status {
                object::as_map(object).remove("status");
            }
            object::set_meta(object, "generation", first_generation);
        }
        Rules::StatefulSet => {
            object["status"] = json!({"replicas": 0, "availableReplicas": 0});
            object::set_meta(object, "generation", first_generation);
        }
        Rules::ReplicaSet => {
            object["status"] = json!({"replicas": 0});
            object::set_meta(object, "generation", first_generation);
        }
        Rules::Deployment => {
            object["status"] = json!({});
            object::set_meta(object, "generation", first_generation);
        }
        Rules::PodDisruptionBudget => {
            object["status"] =
                json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
            object::set_meta(object, "generation", first_generation);
        }
        Rules::Pod => {
            let class = pod::quality_of_service(object);
            object["status"] = json!({"phase": "Pending", "qosClass": class});
            object::set_meta(object, "generation", first_generation);
        }
        Rules::PersistentVolumeClaim => object["status"] = json!({"phase": "Pending"}),
        Rules::Service => service::prepare_create(store, object),
        Rules::EndpointSlice => object::set_meta(object, "generation", first_generation),
        Rules::Namespace => namespace::prepare_create(object),
        Rules::CustomResourceDefinition => {
            object::set_meta(object, "generation", first_generation);
            object::as_map(object).remove("status");
            let now = store.clock.now();
            crd::set_status(object, &object::seconds(now));
            crd::own_status(resource, version, now, object);
        }
        Rules::Node
        | Rules::Endpoints
        | Rules::ConfigMap
        | Rules::Secret
        | Rules::ServiceAccount
        | Rules::Event
        | Rules::ControllerRevision
        | Rules::Lease => {}
    }
}

/// Keeps what this kind of write may not touch, and counts generations.
pub(crate) fn prepare_update(resource: &Resource, version: &Version, part: Part, object: &mut Value, before: &Value) {
    if resource.rules == Rules::Custom {
        prepare_custom_update(version, part, object, before);
        return;
    }
    if resource.rules == Rules::EndpointSlice {
        endpoint_slice::prepare_update(object, before);
    }
    if !version.status {
        return;
    }
    match part {
        Part::Main => {
            keep(object, before, "status");
            if resource.rules == Rules::Service {
                service::prepare_update(object, before);
            }
            if resource.rules == Rules::CustomResourceDefinition {
                let since = object::meta(before, "creationTimestamp").cloned().unwrap_or_default();
                crd::set_status(object, &since);
            }
        }
        Part::Status => {
            keep(object, before, "spec");
            if resource.rules == Rules::Pod {
                let meta = object::meta_mut(object);
                for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"] {
                    object::put(meta, key, object::meta(before, key));
                }
            }
        }
    }
    let generation = object::generation(before);
    if generation > 0 && object.get("spec") != before.get("spec") {
        object::set_meta(object, "generation", json!(generation + 1));
    }
}

fn prepare_custom_update(version: &Version, part: Part, object: &mut Value, before: &Value) {
    match part {
        Part::Main => {
            if version.status {
                keep(object, before, "status");
            }
            if content(object, version.status) != content(before, version.status) {
                object::set_meta(object, "generation", json!(object::generation(before) + 1));
            }
        }
        Part::Status => {
            let status = object.get("status").cloned();
            let managed = object::meta(object, "managedFields").cloned();
            *object = before.clone();
            object::put(object::as_map(object), "status", status.as_ref());
            if managed.is_some() {
                object::put(object::meta_mut(object), "managedFields", managed.as_ref());
            }
        }
    }
}

/// What counts for a custom resource's generation.
fn content(object: &Value, without_status: bool) -> Vec<(&String, &Value)> {
    let skipped = |key: &str| key == "metadata" || (without_status && key == "status");
    object.as_object().into_iter().flatten().filter(|(key, _)| !skipped(key)).collect()
}

fn keep(object: &mut Value, before: &Value, key: &str) {
    object::put(object::as_map(object), key, before.get(key));
}

/// What the kind refuses.
pub(crate) fn validate(resource: &Resource, object: &Value, before: Option<&Value>) -> Vec<FieldError> {
    match resource.rules {
        Rules::StatefulSet => statefulset::validate(object, before),
        Rules::Pod => pod::validate(object, before),
        Rules::PodDisruptionBudget => pod::validate_budget(object),
        Rules::CustomResourceDefinition => crd::validate(object, before),
        Rules::Lease => validate_lease(object),
        Rules::ConfigMap | Rules::Secret => validate_immutable(object, before),
        Rules::Event => validate_event(resource, object),
        Rules::Service => service::validate(object, before),
        Rules::EndpointSlice => endpoint_slice::validate(object, before),
        Rules::ControllerRevision => validate_revision(object, before),
        Rules::Namespace
        | Rules::Node
        | Rules::Endpoints
        | Rules::ServiceAccount
        | Rules::PersistentVolumeClaim
        | Rules::Deployment
        | Rules::ReplicaSet
        | Rules::Custom => Vec::new(),
    }
}

fn validate_lease(lease: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(seconds) = object::integer(lease, &["spec", "leaseDurationSeconds"]).filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(count) = object::integer(lease, &["spec", "leaseTransitions"]).filter(|count| *count < 0) {
        errors.push(FieldError::invalid("spec.leaseTransitions", count, "must be greater than or equal to 0"));
    }
    if let Some("") = object::at(lease, &["spec", "holderIdentity"]).and_then(Value::as_str) {
        errors.push(FieldError::invalid("spec.holderIdentity", "", "must not be empty"));
    }
    errors
}

fn validate_immutable(object: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let Some(before) = before else { return Vec::new() };
    if before.get("immutable") != Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    for key in ["immutable", "data", "binaryData"] {
        if object.get(key) != before.get(key) {
            errors.push(FieldError::forbidden(key, why));
        }
    }
    errors
}

fn validate_event(resource: &Resource, event: &Value) -> Vec<FieldError> {
    let field = if resource.group.is_empty() { "involvedObject" } else { "regarding" };
    let about = object::text(event, &[field, "namespace"]);
    let own = object::meta_text(event, "namespace");
    // An event on a cluster-scoped object lives in the default namespace.
    if about == own || (about.is_empty() && own == "default") {
        return Vec::new();
    }
    vec![FieldError::invalid("involvedObject.namespace", about, "does not match event.namespace")]
}

fn validate_revision(object: &Value, before: Option<&Value>) -> Vec<FieldError> {
    match before {
        Some(before) if object.get("data") != before.get("data") => {
            let shown = object.get("data").cloned().unwrap_or_default();
            vec![FieldError::invalid("data", shown, "field is immutable")]
        }
        Some(_) | None => Vec::new(),
    }
}

/// The list at this key of a map, if it is one.
fn list_mut<'a>(map: &'a mut Map<String, Value>, key: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}
