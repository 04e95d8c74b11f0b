//! The `scale` part of objects that have replicas.

use serde_json::{Map, Value, json};

use super::definition;
use super::error::{self, Answer};
use super::managed_fields::{self, Writing};
use super::object;
use super::resource::Rules;
use super::selector::text_of;
use super::store::Store;
use super::types;
use super::write::{Part, Target, Update, Writer};

/// The keys of a path like `.spec.replicas`.
fn keys(path: &str) -> Vec<&str> {
    path.split('.').filter(|key| !key.is_empty()).collect()
}

/// The object's scale.
pub(super) fn of(target: &Target, object: &Value) -> Answer<Value> {
    let paths = target.served()?.scale.as_ref().ok_or_else(|| target.not_found())?;
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        object::put(&mut metadata, key, object::meta(object, key));
    }
    let mut status = json!({"replicas": object::integer(object, &keys(&paths.status)).unwrap_or(0)});
    let selector = match &paths.selector {
        Some(path) => object::text(object, &keys(path)).to_owned(),
        None if target.resource.rules == Rules::Custom => String::new(),
        None => object::at(object, &["spec", "selector"]).map(text_of).unwrap_or_default(),
    };
    if !selector.is_empty() {
        status["selector"] = Value::String(selector);
    }
    let mut spec = json!({});
    if let Some(replicas) = object::integer(object, &keys(&paths.spec)).filter(|replicas| *replicas != 0) {
        spec["replicas"] = json!(replicas);
    }
    Ok(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}))
}

/// What a replaced scale says about itself.
fn check(target: &Target, scale: &Value) -> Answer<()> {
    let (version, kind) = (object::text(scale, &["apiVersion"]), object::text(scale, &["kind"]));
    if !matches!(kind, "" | "Scale") {
        let version = version.rsplit('/').next().unwrap_or(version);
        return Err(error::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a Scale: no such kind"
        )));
    }
    let name = object::name(scale);
    if name != target.name {
        let url = &target.name;
        return Err(error::bad_request(if name.is_empty() {
            format!("the name of the object ({url} based on URL) was undeterminable: name must be provided")
        } else {
            format!("the name of the object ({name}) does not match the name on the URL ({url})")
        }));
    }
    Ok(())
}

/// Sets the object's replicas.
pub(super) fn change(store: &mut Store, writer: Writer<'_>, target: &Target, update: &Update) -> Answer<Value> {
    let version = target.served()?;
    let paths = version.scale.clone().ok_or_else(|| target.not_found())?;
    let stored = store.get(&target.resource.storage, &target.key()).cloned().ok_or_else(|| target.not_found())?;
    let object = definition::view(&target.resource, version, &stored);
    let managed = object::meta(&object, "managedFields");
    let mut before = of(target, &object)?;
    let replicas_path = keys(&paths.spec);
    let entries = managed_fields::to_scale(managed, &replicas_path);
    object::put(object::meta_mut(&mut before), "managedFields", entries.as_ref());
    let writing = Writing::of_scale(writer.manager, store.clock.now());
    let mut scale = match update {
        Update::Replace(scale) => {
            check(target, scale)?;
            scale.clone()
        }
        Update::Patch(patch) => {
            let scale = patch.apply(&types::of_kind(types::SCALE.0, types::SCALE.1), &before)?;
            if object::at(&scale, &["spec", "replicas"]).is_some_and(|replicas| replicas.as_i64().is_none()) {
                return Err(error::undecodable_patch(&scale.to_string(), "spec.replicas is no number"));
            }
            scale
        }
        Update::Apply { config, force } => managed_fields::apply(&writing, Some(&before), config, *force)?,
        // Only this function makes it.
        Update::Scale { .. } => return Err(target.not_found()),
    };
    let uid = object::meta_text(&scale, "uid");
    let found = object::meta_text(&before, "uid");
    if !uid.is_empty() && uid != found {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
        let scale = format!("{}/scale", target.resource.plural);
        let named = error::Named { what: &scale, ..target.resource.named() };
        return Err(error::conflict(named, &target.name, &why));
    }
    if object::integer(&scale, &["spec", "replicas"]) == Some(0) {
        // To the server's own type, none is nothing.
        object::child(object::as_map(&mut scale), "spec").remove("replicas");
    }
    match update {
        Update::Replace(_) | Update::Patch(_) => managed_fields::update(&writing, Some(&before), &mut scale),
        Update::Apply { .. } | Update::Scale { .. } => {}
    }
    let after = object::meta(&scale, "managedFields");
    let api_version = target.resource.api_version(&target.version);
    let managed_fields = managed_fields::to_parent(managed, after, &replicas_path, &api_version);
    let replicas = object::integer(&scale, &["spec", "replicas"]).unwrap_or(0);
    if replicas < 0 {
        let why = error::FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(error::invalid(error::Named { group: "autoscaling", what: "Scale" }, &target.name, &[why]));
    }
    let mut patch = json!(replicas);
    for key in keys(&paths.spec).into_iter().rev() {
        patch = json!({ key: patch });
    }
    let revision = object::meta_text(&scale, "resourceVersion");
    if !revision.is_empty() {
        object::set_meta(&mut patch, "resourceVersion", json!(revision));
    }
    let update = Update::Scale { patch, managed_fields };
    let written = store.update(writer, target, Part::Main, &update)?;
    of(target, &definition::view(&target.resource, version, &written.object))
}
