//! The rules of the built-in kinds: their shape, their defaults, what they refuse, and what a write does to them.

mod budget;
mod crd;
mod data;
mod deployment;
mod endpoint_slice;
mod event;
mod job;
mod label_selector;
mod namespace;
mod pod;
mod pod_spec;
mod pod_template;
mod quantity;
mod replicaset;
mod service;
mod shape;
mod statefulset;

use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::error::{self, Answer, FieldError};
use super::metadata;
use super::object;
use super::resource::{Resource, Rules, Version};
use super::store::Store;
use super::write::Part;

/// Brings the object into the kind's shape: reads it as the type, writes it out again, and fills in defaults. The result
/// names the fields that the type doesn't have.
pub(crate) fn decode(resource: &Resource, version: &Version, object: &mut Value) -> Answer<Vec<String>> {
    let selected = object::at(object, &["spec", "selector"]).is_some();
    prepare_shape(resource, object);
    check_times(resource, object).map_err(|why| unreadable(resource, version, &why))?;
    if matches!(resource.rules, Rules::Pod | Rules::StatefulSet) {
        quantity::check(object).map_err(|why| unreadable(resource, version, &why))?;
    }
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
        Rules::CronJob => shape::<api::batch::v1::CronJob>(object),
        Rules::Job => shape::<api::batch::v1::Job>(object),
        Rules::Lease => shape::<api::coordination::v1::Lease>(object),
        Rules::PodDisruptionBudget => shape::<api::policy::v1::PodDisruptionBudget>(object),
        Rules::CustomResourceDefinition => shape::<apiextensions::CustomResourceDefinition>(object),
        // A custom resource keeps everything; only its metadata has a shape that the server knows.
        Rules::Custom => {
            return shape_metadata(object).map_err(|why| unreadable(resource, version, &why));
        }
    };
    let mut shaped = shaped.map_err(|why| unreadable(resource, version, &why))?;
    if matches!(resource.rules, Rules::StatefulSet | Rules::Deployment | Rules::ReplicaSet) && !selected {
        // The type has it always, but what nobody wrote is not the same as what selects everything.
        object::child(object::as_map(&mut shaped), "spec").remove("selector");
    }
    let mut unknown = Vec::new();
    missing(object, &shaped, "", &mut unknown);
    *object = shaped;
    default(resource, object);
    Ok(unknown)
}

/// An object that is not of its type.
pub(crate) fn unreadable(resource: &Resource, version: &Version, why: &str) -> Box<kube::core::Status> {
    let kind = &resource.kind;
    error::bad_request(format!("{kind} in version {:?} cannot be handled as a {kind}: {why}", version.name))
}

/// A null text in a map of texts is an empty one.
fn prepare_shape(resource: &Resource, object: &mut Value) {
    if resource.rules != Rules::ConfigMap {
        return;
    }
    for value in object.get_mut("data").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        if value.is_null() {
            *value = json!("");
        }
    }
}

/// A time of microseconds has six digits behind the point, neither more nor less.
fn check_times(resource: &Resource, object: &Value) -> Result<(), String> {
    let paths: &[&[&str]] = if resource.rules == Rules::Lease {
        &[&["spec", "acquireTime"], &["spec", "renewTime"]]
    } else if resource.rules == Rules::Event {
        &[&["eventTime"], &["series", "lastObservedTime"]]
    } else {
        &[]
    };
    for path in paths {
        let Some(text) = object::at(object, path).and_then(Value::as_str) else { continue };
        let digits = text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
        if digits != 6 {
            return Err(format!("parsing time {text:?}"));
        }
    }
    Ok(())
}

/// Brings the metadata of a custom resource into the shape that all metadata has.
pub(crate) fn shape_metadata(object: &mut Value) -> Result<Vec<String>, String> {
    let Some(mut given) = object.get("metadata").cloned() else { return Ok(Vec::new()) };
    let late = put_off(&mut given);
    let mut shaped = shape::<k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>(&given)?;
    for (index, time) in late {
        shaped["managedFields"][index]["time"] = time;
    }
    let mut unknown = Vec::new();
    missing(&given, &shaped, "metadata", &mut unknown);
    object["metadata"] = shaped;
    shape::tidy(Rules::Custom, object::as_map(object));
    Ok(unknown)
}

/// The last day that Go can tell is behind the end of our library of times: in who wrote which fields when, which anybody may write, it is
/// kept aside, with a day before it in its place.
fn put_off(metadata: &mut Value) -> Vec<(usize, Value)> {
    let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
    let mut late = Vec::new();
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        let Some(time) = entry.get_mut("time") else { continue };
        if time.as_str().is_some_and(|time| time.starts_with("9999-12-31T") && time.ends_with('Z')) {
            late.push((index, std::mem::replace(time, Value::String("9999-12-30T00:00:00Z".to_owned()))));
        }
    }
    late
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
        Rules::Pod => {
            pod_template::default_pod(map);
            shape::pod_status(map);
        }
        Rules::Service => service::default(map),
        Rules::Secret => {
            data::fold_string_data(map);
            if map.get("type").and_then(Value::as_str).unwrap_or("").is_empty() {
                map.insert("type".to_owned(), json!("Opaque"));
            }
        }
        Rules::PersistentVolumeClaim => pod_template::default_claim(map),
        Rules::StatefulSet => {
            statefulset::default(map);
            shape::set_status(map);
        }
        Rules::PodDisruptionBudget => shape::budget(map),
        Rules::Node => shape::node(map),
        Rules::Event => event::default(resource, map),
        Rules::Lease => {
            object::child(map, "spec");
        }
        Rules::Deployment => {
            deployment::default(map);
            shape::deployment_status(map);
        }
        Rules::ReplicaSet => {
            replicaset::default(map);
            shape::replica_set_status(map);
        }
        Rules::Job => job::default(map),
        Rules::CustomResourceDefinition => crd::default(map),
        Rules::EndpointSlice => endpoint_slice::default(map),
        Rules::Namespace => namespace::default(map),
        Rules::Endpoints
        | Rules::ConfigMap
        | Rules::ServiceAccount
        | Rules::ControllerRevision
        | Rules::CronJob
        | Rules::Custom => {}
    }
    shape::tidy(resource.rules, map);
}

/// Takes out what is behind feature gates that are off.
fn drop_disabled(resource: &Resource, object: &mut Value) {
    if resource.rules == Rules::StatefulSet {
        statefulset::drop_disabled(object);
    } else if matches!(resource.rules, Rules::Deployment | Rules::ReplicaSet) {
        object::child(object::as_map(object), "status").remove("terminatingReplicas");
    } else if resource.rules == Rules::Lease {
        let spec = object::child(object::as_map(object), "spec");
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

/// Sets what a new object begins with.
pub(crate) fn prepare_create(store: &mut Store, resource: &Resource, version: &Version, object: &mut Value) {
    drop_disabled(resource, object);
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
        Rules::Job => {
            job::prepare_create(object);
            object::set_meta(object, "generation", first_generation);
        }
        Rules::Deployment | Rules::CronJob => {
            object["status"] = json!({});
            object::set_meta(object, "generation", first_generation);
        }
        Rules::PodDisruptionBudget => {
            object["status"] =
                json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
            object::set_meta(object, "generation", first_generation);
        }
        Rules::Pod => {
            pod::shorten_negative_grace(object);
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
    drop_disabled(resource, object);
    if resource.rules == Rules::EndpointSlice {
        endpoint_slice::prepare_update(object, before);
    }
    if !version.status {
        return;
    }
    match part {
        Part::Main => {
            keep(object, before, "status");
            if resource.rules == Rules::Namespace {
                // Only its own part of a namespace ends it.
                keep(object, before, "spec");
            }
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
            if resource.rules == Rules::Deployment {
                object::put(object::meta_mut(object), "labels", object::meta(before, "labels"));
            }
            if resource.rules == Rules::Pod {
                let meta = object::meta_mut(object);
                for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"] {
                    object::put(meta, key, object::meta(before, key));
                }
                pod::keep_status(object, before);
            }
        }
    }
    let generation = object::generation(before);
    // A Deployment's annotations are copied to its ReplicaSets, so a change of them is one to be observed.
    let annotated = resource.rules == Rules::Deployment
        && part == Part::Main
        && object::meta(object, "annotations") != object::meta(before, "annotations");
    if generation > 0 && (annotated || object.get("spec") != before.get("spec")) {
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
        Rules::Deployment => deployment::validate(object, before),
        Rules::ReplicaSet => replicaset::validate(object, before),
        Rules::Job => job::validate(object, before),
        Rules::Pod => pod::validate(object, before),
        Rules::PodDisruptionBudget => budget::validate(object),
        Rules::CustomResourceDefinition => crd::validate(object, before),
        Rules::Lease => validate_lease(object),
        Rules::ConfigMap | Rules::Secret => data::validate(resource.rules, object, before),
        Rules::Event => event::validate(resource, object, before),
        Rules::Service => service::validate(object, before),
        Rules::EndpointSlice => endpoint_slice::validate(object, before),
        Rules::ControllerRevision => validate_revision(object, before),
        Rules::Namespace
        | Rules::Node
        | Rules::Endpoints
        | Rules::ServiceAccount
        | Rules::PersistentVolumeClaim
        | Rules::CronJob
        | Rules::Custom => Vec::new(),
    }
}

/// What the kind refuses of a status.
pub(crate) fn validate_status(resource: &Resource, object: &Value, before: &Value) -> Vec<FieldError> {
    if resource.rules == Rules::StatefulSet {
        statefulset::validate_status(object, before)
    } else if resource.rules == Rules::Deployment {
        deployment::validate_status(object, before)
    } else if resource.rules == Rules::ReplicaSet {
        replicaset::validate_status(object)
    } else if resource.rules == Rules::PodDisruptionBudget {
        budget::validate_status(object)
    } else if resource.rules == Rules::Pod {
        pod::validate_status(object)
    } else {
        Vec::new()
    }
}

/// What is accepted, but not without a word.
pub(crate) fn warnings(resource: &Resource, object: &Value, before: Option<&Value>) -> Vec<String> {
    match (resource.rules, before) {
        (Rules::Custom, _) => metadata::finalizer_warnings(object, before),
        (Rules::Pod, None) => pod::warnings(object),
        (Rules::StatefulSet, _) => statefulset::warnings(object),
        (_, _) => Vec::new(),
    }
}

/// A number at this path that is below 0.
fn not_negative(object: &Value, path: &[&str], field: &str) -> Option<FieldError> {
    let value = object::integer(object, path).filter(|value| *value < 0)?;
    Some(FieldError::invalid(field, value, "must be greater than or equal to 0"))
}

fn validate_lease(lease: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(seconds) = object::integer(lease, &["spec", "leaseDurationSeconds"]).filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    errors.extend(not_negative(lease, &["spec", "leaseTransitions"], "spec.leaseTransitions"));
    errors
}

fn validate_revision(object: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = not_negative(object, &["revision"], "revision").into_iter().collect();
    let data = object::at(object, &["data"]);
    match before {
        Some(before) if object.get("data") != before.get("data") => {
            errors.push(FieldError::invalid("data", data.cloned().unwrap_or_default(), "field is immutable"));
        }
        Some(_) => {}
        None => match data {
            None => errors.push(FieldError::required("data", "data is mandatory")),
            Some(Value::Object(_)) => {}
            Some(_) => errors.push(FieldError::required("data", "data must be a valid JSON object")),
        },
    }
    errors
}

/// The list at this key of a map, if it is one.
fn list_mut<'a>(map: &'a mut Map<String, Value>, key: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}
