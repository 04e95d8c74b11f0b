//! Custom resources: what a CustomResourceDefinition makes of itself, and how its objects are seen.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{Deleted, Options};
use super::error::Answer;
use super::key::Key;
use super::object;
use super::resource::{Resource, Rules, ScalePaths, Version};
use super::schema::Schema;
use super::store::Store;
use super::table::CustomColumns;
use super::types::Type;
use super::write::{Target, Writer};

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Who does what the server does by itself.
const SERVER: &str = "kube-apiserver";

/// The object as this version shows it.
pub(crate) fn view(resource: &Resource, version: &Version, stored: &Arc<Value>) -> Arc<Value> {
    if resource.rules == Rules::Event && !resource.group.is_empty() {
        return Arc::new(super::events::to_events_group(stored));
    }
    let converted = version.name != resource.stored;
    let outdated = object::revision(stored) < resource.schema_revision;
    // A new object is stored without a status, which may have a default.
    let bare = version.status && stored.get("status").is_none();
    if resource.rules != Rules::Custom || !(converted || outdated || bare) {
        return Arc::clone(stored);
    }
    let mut object = (**stored).clone();
    object::as_map(&mut object).insert("apiVersion".to_owned(), json!(resource.api_version(&version.name)));
    if let Some(schema) = &version.schema {
        schema.prune(&mut object);
        schema.default(&mut object);
    }
    Arc::new(object)
}

/// The object as it is stored; the reverse of [`view`].
pub(crate) fn to_stored(resource: &Resource, version: &Version, mut object: Value) -> Value {
    if resource.rules == Rules::Event && !resource.group.is_empty() {
        return super::events::to_core_group(&object);
    }
    if version.name != resource.stored {
        object::as_map(&mut object).insert("apiVersion".to_owned(), json!(resource.api_version(&resource.stored)));
    }
    object
}

/// A definition takes effect with the write.
pub(crate) fn after_write(store: &mut Store, resource: &Resource, object: &Arc<Value>) {
    if resource.rules != Rules::CustomResourceDefinition || object::is_deleting(object) {
        return;
    }
    let known = store.resource(object::name(object)).map(|known| known.definition_generation);
    // Labels and status change too, and compiling a schema is not free.
    if known == Some(object::generation(object)) {
        return;
    }
    let mut made = resource_of(object);
    made.schema_revision = if known.is_some() { store.revision() } else { 0 };
    store.register(made);
}

/// Deletes a definition and all objects of its kind. Where some have finalizers, the definition waits for them.
pub(crate) fn delete(store: &mut Store, writer: Writer<'_>, target: &Target) -> Answer<Deleted> {
    let before = store.get(&target.resource.storage, &target.key()).cloned().ok_or_else(|| target.not_found())?;
    if writer.dry_run {
        return Ok(Deleted::Waiting(before));
    }
    let mut marked = (*before).clone();
    if !object::is_deleting(&before) {
        object::set_meta(&mut marked, "deletionTimestamp", object::seconds(store.clock.now()));
        let mut finalizers = object::finalizers(&before);
        if !finalizers.iter().any(|one| one == CLEAN_UP) {
            finalizers.push(CLEAN_UP.to_owned());
        }
        object::set_finalizers(&mut marked, &finalizers);
    }
    let marked = store.put(writer.user, &target.resource, &target.key(), marked);
    if let Some(resource) = store.resource(&target.name).cloned() {
        let keys: Vec<_> = store.list(&resource.storage, "").map(|(key, _)| key.clone()).collect();
        for key in keys {
            let one = Target {
                resource: Arc::clone(&resource),
                version: resource.stored.clone(),
                namespace: key.namespace().to_owned(),
                name: key.name().to_owned(),
            };
            store.delete(writer, &one, &Options::default())?;
        }
    }
    finish(store, &target.name);
    Ok(Deleted::Waiting(marked))
}

/// Whether the definition of this resource is being deleted.
pub(crate) fn is_ending(store: &Store, id: &str) -> bool {
    store.get(DEFINITIONS, &Key::new("", id)).is_some_and(|definition| object::is_deleting(definition))
}

/// Takes a definition in deletion out of service once its last object is gone.
pub(crate) fn finish(store: &mut Store, id: &str) {
    let key = Key::new("", id);
    let Some(definition) = store.get(DEFINITIONS, &key).cloned() else { return };
    if !object::is_deleting(&definition) || store.list(id, "").next().is_some() {
        return;
    }
    store.unregister(id);
    let Some(resource) = store.resource(DEFINITIONS).cloned() else { return };
    let left: Vec<String> = object::finalizers(&definition).into_iter().filter(|one| one != CLEAN_UP).collect();
    let mut after = (*definition).clone();
    object::set_finalizers(&mut after, &left);
    if left.is_empty() {
        store.remove_as(SERVER, &resource, &key, after);
    } else {
        store.put(SERVER, &resource, &key, after);
    }
}

fn resource_of(definition: &Value) -> Resource {
    let names = |key: &str| object::text(definition, &["spec", "names", key]).to_owned();
    let list = |key: &str| -> Vec<String> {
        let list = object::at(definition, &["spec", "names", key]).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let group = object::text(definition, &["spec", "group"]).to_owned();
    let versions = object::at(definition, &["spec", "versions"]).and_then(Value::as_array);
    let versions: Vec<&Value> = versions.into_iter().flatten().collect();
    let stored = versions.iter().find(|version| object::at(version, &["storage"]) == Some(&Value::Bool(true)));
    let plural = names("plural");
    let id = Resource::id_of(&group, &plural);
    Resource {
        storage: id.clone(),
        id,
        group,
        plural,
        singular: names("singular"),
        kind: names("kind"),
        list_kind: names("listKind"),
        short_names: list("shortNames"),
        categories: list("categories"),
        namespaced: object::text(definition, &["spec", "scope"]) == "Namespaced",
        rules: Rules::Custom,
        stored: stored.map(|version| object::text(version, &["name"]).to_owned()).unwrap_or_default(),
        versions: versions.into_iter().map(version_of).collect(),
        schema_revision: 0,
        definition_generation: object::generation(definition),
    }
}

fn version_of(version: &Value) -> Version {
    let scale = object::at(version, &["subresources", "scale"]).map(|scale| ScalePaths {
        spec: object::text(scale, &["specReplicasPath"]).to_owned(),
        status: object::text(scale, &["statusReplicasPath"]).to_owned(),
        selector: object::at(scale, &["labelSelectorPath"]).and_then(Value::as_str).map(str::to_owned),
    });
    let selectable = object::at(version, &["selectableFields"]).and_then(Value::as_array);
    let schema = object::at(version, &["schema", "openAPIV3Schema"]).map(Schema::compile);
    Version {
        name: object::text(version, &["name"]).to_owned(),
        served: object::at(version, &["served"]) == Some(&Value::Bool(true)),
        status: object::at(version, &["subresources", "status"]).is_some(),
        scale,
        merging: schema.as_ref().map_or_else(Type::deduced, |schema| schema.merging.clone()),
        schema,
        columns: CustomColumns::read(object::at(version, &["additionalPrinterColumns"])),
        selectable: selectable
            .into_iter()
            .flatten()
            .map(|field| object::text(field, &["jsonPath"]).to_owned())
            .collect(),
    }
}
