//! The schema of a custom resource: its definition's own, with the fields that every object has.

use serde_json::{Map, Value, json};

use super::super::key::Key;
use super::super::object;
use super::super::resource::Resource;
use super::super::store::Store;
use super::{builtin, described};

/// Adds the resource's schema; the answer is its name.
pub(super) fn add(store: &Store, resource: &Resource, version: &str, schemas: &mut Map<String, Value>) -> String {
    let definition = store.get("customresourcedefinitions.apiextensions.k8s.io", &Key::new("", &resource.id));
    let versions = definition.and_then(|definition| object::at(definition, &["spec", "versions"]));
    let found = versions
        .and_then(Value::as_array)
        .and_then(|versions| versions.iter().find(|one| object::text(one, &["name"]) == version));
    let declared = found.and_then(|found| object::at(found, &["schema", "openAPIV3Schema"]));
    let mut schema = declared.cloned().unwrap_or_else(|| json!({"type": "object"}));
    let own = object::child(object::as_map(&mut schema), "properties");
    object::default(
        own,
        "apiVersion",
        json!({"type": "string", "description": "The version of the API that this object is in."}),
    );
    object::default(own, "kind", json!({"type": "string", "description": "What this object is."}));
    own.insert("metadata".to_owned(), described(builtin::OBJECT_META, "What every object has, its name among it."));
    // The group is read from its end, as everywhere in these names.
    let group: Vec<&str> = resource.group.rsplit('.').collect();
    let name = format!("{}.{version}.{}", group.join("."), resource.kind);
    schemas.insert(name.clone(), schema);
    name
}
