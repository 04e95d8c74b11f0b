//! CustomResourceDefinitions.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::managed_fields::{self, Subresource, Writing};
use super::super::object;
use super::super::resource::{Resource, Version};
use super::super::schema::Schema;

pub(super) fn default(definition: &mut Map<String, Value>) {
    let spec = object::child(definition, "spec");
    object::default(spec, "conversion", json!({"strategy": "None"}));
    let names = object::child(spec, "names");
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or("").to_owned();
    object::default(names, "singular", json!(kind.to_lowercase()));
    object::default(names, "listKind", json!(format!("{kind}List")));
}

/// The server's own findings: the names are free, and the resource is served from this write on.
pub(super) fn set_status(definition: &mut Value, since: &Value) {
    let names = object::at(definition, &["spec", "names"]).cloned().unwrap_or_default();
    let versions = object::at(definition, &["spec", "versions"]).and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let storage = storage.and_then(|version| version.get("name")).cloned().unwrap_or_default();
    let mut stored =
        object::at(definition, &["status", "storedVersions"]).and_then(Value::as_array).cloned().unwrap_or_default();
    if !stored.contains(&storage) {
        stored.push(storage);
    }
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since});
    let conditions = json!([
        condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]);
    let status = object::child(object::as_map(definition), "status");
    object::default(status, "conditions", conditions);
    status.insert("acceptedNames".to_owned(), names);
    status.insert("storedVersions".to_owned(), json!(stored));
}

/// The server manages what it found out, as in the write of its own that it would make. The stored versions are no finding.
pub(super) fn own_status(resource: &Resource, version: &Version, now: Timestamp, definition: &mut Value) {
    let mut before = definition.clone();
    let status = object::child(object::as_map(&mut before), "status");
    status.retain(|key, _| key == "storedVersions");
    // Known only from here on, but for this write it is the same definition.
    object::default(object::meta_mut(&mut before), "uid", json!("-"));
    let writing = Writing::new(resource, version, Subresource::Status, "kube-apiserver", now);
    managed_fields::update(&writing, Some(&before), definition);
}

pub(super) fn validate(definition: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |path: &[&str]| object::text(definition, path);
    let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    let name = object::name(definition);
    if before.is_none() && name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
    for (path, field) in [
        (&["spec", "group"][..], "spec.group"),
        (&["spec", "names", "plural"], "spec.names.plural"),
        (&["spec", "names", "kind"], "spec.names.kind"),
    ] {
        if text(path).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
    }
    let scope = text(&["spec", "scope"]);
    if !matches!(scope, "Cluster" | "Namespaced") {
        errors.push(FieldError::not_supported("spec.scope", json!(scope), &["Cluster", "Namespaced"]));
    }
    errors.extend(validate_versions(definition));
    if let Some(before) = before {
        for path in
            [&["spec", "group"][..], &["spec", "names", "plural"], &["spec", "names", "kind"], &["spec", "scope"]]
        {
            if text(path) != object::text(before, path) {
                errors.push(FieldError::invalid(path.join("."), text(path), "field is immutable"));
            }
        }
    }
    errors
}

fn validate_versions(definition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions = object::at(definition, &["spec", "versions"]).and_then(Value::as_array);
    let versions: Vec<&Value> = versions.into_iter().flatten().collect();
    let storage = versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true))).count();
    if storage != 1 {
        let shown = object::at(definition, &["spec", "versions"]).cloned().unwrap_or_default();
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", shown, why));
    }
    for (index, version) in versions.iter().enumerate() {
        let place = format!("spec.versions[{index}].schema.openAPIV3Schema");
        match object::at(version, &["schema", "openAPIV3Schema"]) {
            None => errors.push(FieldError::required(place, "schemas are required")),
            Some(schema) => {
                if object::text(schema, &["type"]) != "object" {
                    let shown = schema.get("type").cloned().unwrap_or_default();
                    errors.push(FieldError::invalid(format!("{place}.type"), shown, "must be object at the root"));
                }
                errors.extend(Schema::compile(schema).rule_errors(&place));
            }
        }
    }
    errors
}
