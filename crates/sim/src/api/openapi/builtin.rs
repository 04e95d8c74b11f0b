//! The schemas of the built-in kinds: what the types of k8s-openapi say of themselves, in the server's spelling.

use std::sync::Arc;

use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::super::resource::{Resource, Rules};
use super::facts;

pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
pub(super) const EVICTION: &str = "io.k8s.api.policy.v1.Eviction";

/// The definition's name of a built-in kind.
pub(super) fn name(resource: &Resource) -> String {
    type_of(resource).map(|named| (named.name)().into_owned()).unwrap_or_default()
}

/// Everything that these kinds are made of, and what all requests share.
pub(super) fn schemas(resources: &[Arc<Resource>]) -> Map<String, Value> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    for named in resources.iter().filter_map(|resource| type_of(resource)) {
        (named.define)(&mut generator);
    }
    generator.subschema_for::<meta::ObjectMeta>();
    generator.subschema_for::<meta::ListMeta>();
    generator.subschema_for::<meta::DeleteOptions>();
    generator.subschema_for::<meta::Status>();
    generator.subschema_for::<api::autoscaling::v1::Scale>();
    generator.subschema_for::<api::policy::v1::Eviction>();
    let mut schemas = generator.take_definitions(true);
    schemas.insert(PATCH.to_owned(), json!({"type": "object", "description": "A change of an object."}));
    for (name, schema) in &mut schemas {
        spell(schema);
        annotate(name, schema);
    }
    schemas
}

/// A type of k8s-openapi, to be named or defined.
struct Type {
    name: fn() -> std::borrow::Cow<'static, str>,
    define: fn(&mut SchemaGenerator),
}

impl Type {
    fn of<K: JsonSchema>() -> Self {
        Self {
            name: K::schema_name,
            define: |generator| {
                generator.subschema_for::<K>();
            },
        }
    }
}

fn type_of(resource: &Resource) -> Option<Type> {
    Some(match resource.rules {
        Rules::Namespace => Type::of::<api::core::v1::Namespace>(),
        Rules::Node => Type::of::<api::core::v1::Node>(),
        Rules::Pod => Type::of::<api::core::v1::Pod>(),
        Rules::Service => Type::of::<api::core::v1::Service>(),
        Rules::Endpoints => Type::of::<api::core::v1::Endpoints>(),
        Rules::EndpointSlice => Type::of::<api::discovery::v1::EndpointSlice>(),
        Rules::ConfigMap => Type::of::<api::core::v1::ConfigMap>(),
        Rules::Secret => Type::of::<api::core::v1::Secret>(),
        Rules::ServiceAccount => Type::of::<api::core::v1::ServiceAccount>(),
        Rules::PersistentVolumeClaim => Type::of::<api::core::v1::PersistentVolumeClaim>(),
        Rules::Event if resource.group.is_empty() => Type::of::<api::core::v1::Event>(),
        Rules::Event => Type::of::<api::events::v1::Event>(),
        Rules::StatefulSet => Type::of::<api::apps::v1::StatefulSet>(),
        Rules::ControllerRevision => Type::of::<api::apps::v1::ControllerRevision>(),
        Rules::Deployment => Type::of::<api::apps::v1::Deployment>(),
        Rules::ReplicaSet => Type::of::<api::apps::v1::ReplicaSet>(),
        Rules::CronJob => Type::of::<api::batch::v1::CronJob>(),
        Rules::Job => Type::of::<api::batch::v1::Job>(),
        Rules::Lease => Type::of::<api::coordination::v1::Lease>(),
        Rules::PodDisruptionBudget => Type::of::<api::policy::v1::PodDisruptionBudget>(),
        Rules::CustomResourceDefinition => Type::of::<apiextensions::CustomResourceDefinition>(),
        Rules::Custom => return None,
    })
}

/// Puts into OpenAPI's words what schemas of custom resources say with an extension: a number or a text.
fn spell(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.remove("x-kubernetes-int-or-string").is_some() {
                map.insert("oneOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
            }
            map.values_mut().for_each(spell);
        }
        Value::Array(list) => list.iter_mut().for_each(spell),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds what the types don't say: how lists and maps are merged, and which fields a client may leave out although the type
/// always has them.
fn annotate(definition: &str, schema: &mut Value) {
    if holds_schemas(definition) {
        // A server says no more of what may be almost anything, and whoever follows every field would not come to an end.
        *schema = json!({"description": schema.get("description").cloned().unwrap_or_default()});
        return;
    }
    if let Some(required) = facts::required(definition)
        && let Some(map) = schema.as_object_mut()
    {
        map.remove("required");
        if !required.is_empty() {
            map.insert("required".to_owned(), json!(required));
        }
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (field, schema) in properties {
        let Some(map) = schema.as_object_mut() else { continue };
        map.extend(facts::of(definition, field));
    }
}

/// The places of a custom resource's schema where another schema or any JSON may stand.
fn holds_schemas(definition: &str) -> bool {
    let Some(name) = definition.strip_prefix("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.") else {
        return false;
    };
    name == "JSON" || name.starts_with("JSONSchemaPropsOr")
}
