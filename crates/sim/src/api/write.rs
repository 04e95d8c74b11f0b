//! Creating and changing objects.

use std::sync::Arc;

use serde_json::Value;

use super::builtin;
use super::definition;
use super::error::{self, Answer, FieldError};
use super::key::Key;
use super::managed_fields::{self, Subresource, Writing};
use super::metadata;
use super::object;
use super::patch::Patch;
use super::resource::{Resource, Rules, Version};
use super::store::Store;

/// What to do with fields that the resource doesn't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    Ignore,
    Warn,
    Strict,
}

/// Who writes, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) user: &'a str,
    /// The name under which the fields that change are managed.
    pub(crate) manager: &'a str,
    pub(crate) dry_run: bool,
    pub(crate) unknown_fields: UnknownFields,
}

/// Which object is meant.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Target {
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    pub(crate) fn served(&self) -> Answer<&Version> {
        self.resource.version(&self.version).ok_or_else(|| self.not_found())
    }

    pub(crate) fn not_found(&self) -> Box<kube::core::Status> {
        error::not_found(self.resource.named(), &self.name)
    }
}

/// Which part of an object a change may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

impl Part {
    fn subresource(self) -> Subresource {
        match self {
            Self::Main => Subresource::None,
            Self::Status => Subresource::Status,
        }
    }
}

/// How an object is to change.
#[derive(Debug)]
pub(crate) enum Update {
    Replace(Value),
    Patch(Patch),
    /// Server-side apply of a configuration.
    Apply {
        config: Value,
        force: bool,
    },
    /// A change of the object's scale, with what it does to `managedFields`.
    Scale {
        patch: Value,
        managed_fields: Option<Value>,
    },
}

/// Where the `managedFields` of a new object come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Managed {
    /// All there is belongs to the writer.
    Writer,
    /// They are in the object.
    Given,
}

/// What a write came to.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Arc<Value>,
    pub(crate) warnings: Vec<String>,
    /// A PUT can create.
    pub(crate) created: bool,
}

impl Store {
    /// Stores a new object.
    pub(crate) fn create(&mut self, writer: Writer<'_>, target: &Target, object: Value) -> Answer<Written> {
        self.create_managed(writer, target, object, Managed::Writer)
    }

    fn create_managed(
        &mut self,
        writer: Writer<'_>,
        target: &Target,
        object: Value,
        managed: Managed,
    ) -> Answer<Written> {
        let resource = Arc::clone(&target.resource);
        let version = target.served()?;
        let mut object = object;
        check_envelope(writer, target, &mut object)?;
        let mut warnings = decode(writer, &resource, version, &mut object)?;
        self.warned.clone_from(&warnings);
        settle_namespace(target, &mut object)?;
        if managed == Managed::Writer {
            let writing = Writing::new(&resource, version, Subresource::None, writer.manager, self.clock.now());
            managed_fields::update(&writing, None, &mut object);
        }
        self.prepare_name(&mut object);
        let name = object::name(&object).to_owned();
        let key = Key::new(&target.namespace, &name);
        self.check_namespace(&resource, &target.namespace, &name)?;

        if resource.rules == Rules::Custom && definition::is_ending(self, &resource.id) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(error::not_allowed(why));
        }
        let asked_revision = object::revision(&object);
        let stamp = object::seconds(self.clock.now());
        let meta = object::meta_mut(&mut object);
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
            meta.remove(field);
        }
        // A dry run ends before the storage, which is what takes it away.
        if !writer.dry_run || meta.get("resourceVersion").and_then(Value::as_str).is_none_or(str::is_empty) {
            meta.remove("resourceVersion");
        }
        meta.insert("creationTimestamp".to_owned(), stamp);
        let uid = self.new_uid();
        object::set_meta(&mut object, "uid", Value::String(uid));

        builtin::prepare_create(self, &resource, version, &mut object);
        let errors = Self::validate(&resource, version, Part::Main, &object, None);
        if !errors.is_empty() {
            return Err(error::invalid(resource.kind_named(), &name, &errors));
        }
        warnings.extend(builtin::warnings(&resource, &object, None));
        self.warned.clone_from(&warnings);
        if asked_revision != 0 && !writer.dry_run {
            return Err(error::unknown(500, "resourceVersion should not be set on objects to be created"));
        }
        if let Some(existing) = self.get(&resource.storage, &key) {
            let mut status = error::already_exists(resource.named(), &name);
            if object::is_deleting(existing) {
                status.message = format!("object is being deleted: {}", status.message);
            }
            return Err(status);
        }
        let object = definition::to_stored(&resource, version, object);
        if writer.dry_run {
            return Ok(Written { object: Arc::new(object), warnings, created: true });
        }
        let object = self.put(writer.user, &resource, &key, object);
        definition::after_write(self, &resource, &object);
        Ok(Written { object, warnings, created: true })
    }

    /// Makes the object that somebody applies and that there isn't.
    fn create_by_apply(&mut self, writer: Writer<'_>, target: &Target, config: &Value, force: bool) -> Answer<Written> {
        let version = target.served()?;
        let writing = Writing::new(&target.resource, version, Subresource::None, writer.manager, self.clock.now());
        let mut object = managed_fields::apply(&writing, None, config, force)?;
        let uid = object::meta_text(&object, "uid");
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(error::conflict(target.resource.named(), &target.name, &why));
        }
        check_name(target, &object)?;
        if !writer.dry_run {
            object::meta_mut(&mut object).remove("resourceVersion");
        }
        self.create_managed(writer, target, object, Managed::Given)
    }

    fn prepare_name(&mut self, object: &mut Value) {
        let base = object::meta_text(object, "generateName").to_owned();
        if object::name(object).is_empty() && !base.is_empty() {
            let count = self.count();
            let base: String = base.chars().take(58).collect();
            object::set_meta(object, "name", Value::String(format!("{base}{}", suffix(count))));
        }
    }

    fn check_namespace(&self, resource: &Resource, namespace: &str, name: &str) -> Answer<()> {
        if !resource.namespaced {
            return Ok(());
        }
        let Some(found) = self.get("namespaces", &Key::new("", namespace)) else {
            return Err(error::not_found(error::Named { group: "", what: "namespaces" }, namespace));
        };
        if object::text(found, &["status", "phase"]) == "Terminating" || object::is_deleting(found) {
            return Err(error::terminating(resource.named(), name, namespace));
        }
        Ok(())
    }

    /// What is to be said against an object: of its metadata first, then by the resource's own rules.
    fn validate(
        resource: &Resource,
        version: &Version,
        part: Part,
        object: &Value,
        before: Option<&Value>,
    ) -> Vec<FieldError> {
        let metadata = match before {
            Some(before) => metadata::validate_update(resource, object, before),
            None => metadata::validate(resource, object),
        };
        if before.is_none() && matches!(resource.rules, Rules::PodDisruptionBudget | Rules::Event) {
            // The rules of these kinds leave the metadata to the checks that all objects go through afterwards.
            let errors = builtin::validate(resource, object, None);
            return if errors.is_empty() { metadata } else { errors };
        }
        match (&version.schema, resource.rules) {
            (Some(schema), _) => schema.validate(metadata, part, object, before),
            (None, Rules::Custom) => metadata,
            (None, _) => {
                let mut errors = metadata;
                errors.extend(builtin::validate(resource, object, before));
                errors
            }
        }
    }

    /// Changes an object.
    pub(crate) fn update(
        &mut self,
        writer: Writer<'_>,
        target: &Target,
        part: Part,
        update: &Update,
    ) -> Answer<Written> {
        let resource = Arc::clone(&target.resource);
        let version = target.served()?;
        let key = target.key();
        if let Update::Replace(object) = update {
            // What a request says about itself is checked before anything is looked up.
            let mut object = object.clone();
            check_envelope(writer, target, &mut object)?;
            self.warned = decode(writer, &resource, version, &mut object)?;
            settle_namespace(target, &mut object)?;
            check_name(target, &object)?;
        }
        let Some(stored) = self.get(&resource.storage, &key).cloned() else {
            return match update {
                Update::Replace(object) if part == Part::Main && resource.allows_create_on_update() => {
                    self.create_on_update(writer, target, object)
                }
                Update::Apply { config, force } if part == Part::Main => {
                    self.create_by_apply(writer, target, config, *force)
                }
                Update::Replace(_) | Update::Patch(_) | Update::Apply { .. } | Update::Scale { .. } => {
                    Err(target.not_found())
                }
            };
        };
        let before = definition::view(&resource, version, &stored);
        let writing = Writing::new(&resource, version, part.subresource(), writer.manager, self.clock.now());
        let mut object = match update {
            Update::Replace(object) => object.clone(),
            Update::Patch(patch) => patch.apply(&version.merging, &before)?,
            Update::Apply { config, force } => managed_fields::apply(&writing, Some(&before), config, *force)?,
            Update::Scale { patch, .. } => Patch::Merge(patch.clone()).apply(&version.merging, &before)?,
        };
        let mut warnings = shape(writer, target, version, update, &mut object)?;
        self.warned.clone_from(&warnings);
        match update {
            Update::Replace(_) | Update::Patch(_) => managed_fields::update(&writing, Some(&before), &mut object),
            Update::Apply { .. } => {}
            Update::Scale { managed_fields, .. } => {
                object::put(object::meta_mut(&mut object), "managedFields", managed_fields.as_ref());
            }
        }
        check_preconditions(writer, target, update, &object, &before)?;

        object::set_revision(&mut object, object::revision(&before));
        carry_over(&mut object, &before);
        builtin::prepare_update(&resource, version, part, &mut object, &before);
        managed_fields::keep_times(&mut object, &before);
        let errors = if part == Part::Main || resource.rules == Rules::Custom {
            Self::validate(&resource, version, part, &object, Some(&before))
        } else {
            let mut errors = metadata::validate_update(&resource, &object, &before);
            errors.extend(builtin::validate_status(&resource, &object, &before));
            errors
        };
        if !errors.is_empty() {
            return Err(error::invalid(resource.kind_named(), &target.name, &errors));
        }
        warnings.extend(builtin::warnings(&resource, &object, Some(&before)));
        self.warned.clone_from(&warnings);
        self.policies.admit(&resource, &key, &before, &object)?;
        let object = definition::to_stored(&resource, version, object);
        if writer.dry_run {
            return Ok(Written { object: Arc::new(object), warnings, created: false });
        }
        let object = if ends_with_this_write(&object, &before) {
            self.finish(writer.user, &resource, &key);
            let mut last = object;
            object::set_revision(&mut last, object::revision(&before));
            Arc::new(last)
        } else {
            let object = self.put(writer.user, &resource, &key, object);
            definition::after_write(self, &resource, &object);
            object
        };
        Ok(Written { object, warnings, created: false })
    }

    /// A PUT that makes its object. What it says of the past is forgotten, save for a uid, which would have to be this one.
    fn create_on_update(&mut self, writer: Writer<'_>, target: &Target, object: &Value) -> Answer<Written> {
        let uid = object::meta_text(object, "uid");
        if !uid.is_empty() {
            return Err(wrong_uid(writer, target, uid, ""));
        }
        let mut object = object.clone();
        if !writer.dry_run {
            object::meta_mut(&mut object).remove("resourceVersion");
        }
        self.create(writer, target, object)
    }
}

/// Brings what was sent, or what a patch made, into the resource's shape. What a patch broke is the patch's fault.
fn shape(
    writer: Writer<'_>,
    target: &Target,
    version: &Version,
    update: &Update,
    object: &mut Value,
) -> Answer<Vec<String>> {
    let shaped = |object: &mut Value| {
        check_envelope(writer, target, object)?;
        let warnings = decode(writer, &target.resource, version, object)?;
        settle_namespace(target, object)?;
        check_name(target, object)?;
        Ok(warnings)
    };
    match update {
        Update::Replace(_) | Update::Apply { .. } | Update::Scale { .. } => shaped(object),
        Update::Patch(_) => {
            let text = object.to_string();
            let custom = target.resource.rules == Rules::Custom;
            let is_map = object.get("metadata").is_none_or(Value::is_object);
            let same = |key: &str, expected: &str| object.get(key).and_then(Value::as_str) == Some(expected);
            let kept = same("kind", &target.resource.kind)
                && same("apiVersion", &target.resource.api_version(&target.version));
            if !object.is_object() || !is_map || (!custom && !kept) {
                return Err(error::undecodable_patch(&text, "the object is of another type"));
            }
            let namespace = object::meta_text(object, "namespace");
            if !namespace.is_empty() && namespace != target.namespace {
                return Err(error::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            if custom && !same("apiVersion", &target.resource.api_version(&target.version)) {
                return Err(another_version(target, object));
            }
            shaped(object).map_err(|status| match status.message.split_once(": ") {
                Some((head, why)) if status.code == 400 && head.contains("cannot be handled as a") => {
                    error::undecodable_patch(&text, why)
                }
                Some(_) | None => status,
            })
        }
    }
}

/// A custom resource that a patch made one of another version.
fn another_version(target: &Target, object: &Value) -> Box<kube::core::Status> {
    let found = object::text(object, &["apiVersion"]);
    let expected = target.resource.api_version(&target.version);
    let why = FieldError::invalid("apiVersion", found, format!("must be {expected}"));
    let group = found.split_once('/').map_or("", |(group, _)| group);
    error::invalid(error::Named { group, ..target.resource.kind_named() }, &target.name, &[why])
}

/// Whether a write takes the last thing away that a deletion waits for.
fn ends_with_this_write(object: &Value, before: &Value) -> bool {
    object::finalizers(object).is_empty()
        && object::is_deleting(before)
        && object::integer(before, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) == 0
}

/// Five characters that no other count gives; they look like those of a real server.
fn suffix(count: u64) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    // 27^5; the factor shares no divisor with it, so all counts below it differ.
    let mut rest = count.wrapping_mul(7_368_787) % 14_348_907;
    let mut text = String::new();
    for _ in 0..5 {
        let index = usize::try_from(rest % 27).unwrap_or(0);
        text.push(char::from(ALPHABET[index]));
        rest /= 27;
    }
    text
}

fn check_name(target: &Target, object: &Value) -> Answer<()> {
    let name = object::name(object);
    if !name.is_empty() && name != target.name {
        return Err(error::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    if name.is_empty() {
        return Err(error::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name
        )));
    }
    Ok(())
}

/// Sets or compares what the URL says: apiVersion and kind.
fn check_envelope(writer: Writer<'_>, target: &Target, object: &mut Value) -> Answer<()> {
    let resource = &target.resource;
    let expected = resource.api_version(&target.version);
    if !object.is_object() {
        return Err(error::bad_request("couldn't get version/kind; json parse error: the body is not an object"));
    }
    check_type(writer, target, object)?;
    if object.get("metadata").is_some_and(|meta| !meta.is_object() && !meta.is_null()) {
        let version = target.served()?;
        return Err(builtin::unreadable(resource, version, "the metadata is no object"));
    }
    let map = object::as_map(object);
    map.insert("apiVersion".to_owned(), Value::String(expected));
    map.insert("kind".to_owned(), Value::String(resource.kind.clone()));
    Ok(())
}

/// Sets or compares the namespace that the URL says.
fn settle_namespace(target: &Target, object: &mut Value) -> Answer<()> {
    let namespace = object::meta_text(object, "namespace");
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(error::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let meta = object::meta_mut(object);
    if target.resource.namespaced {
        meta.insert("namespace".to_owned(), Value::String(target.namespace.clone()));
    } else {
        meta.remove("namespace");
    }
    Ok(())
}

/// Compares the type that the object claims to be of.
fn check_type(writer: Writer<'_>, target: &Target, object: &Value) -> Answer<()> {
    let resource = &target.resource;
    let expected = resource.api_version(&target.version);
    let found = object::text(object, &["apiVersion"]);
    let kind = object::text(object, &["kind"]);
    let unrecognized = |why: &str| {
        error::bad_request(format!("the object provided is unrecognized (must be of type {}): {why}", resource.kind))
    };
    if resource.rules == Rules::Custom {
        if kind.is_empty() {
            let why = "Object 'Kind' is missing";
            return Err(match writer.unknown_fields {
                UnknownFields::Ignore => builtin::unreadable(resource, target.served()?, why),
                UnknownFields::Warn | UnknownFields::Strict => unrecognized(why),
            });
        }
        if !found.is_empty() && found != expected {
            return Err(error::bad_request(format!(
                "the API version in the data ({found}) does not match the expected API version ({expected})"
            )));
        }
        if kind != resource.kind {
            let why = FieldError::invalid("kind", kind, format!("must be {}", resource.kind));
            return Err(error::invalid(
                error::Named { what: kind, ..resource.kind_named() },
                object::name(object),
                &[why],
            ));
        }
        return Ok(());
    }
    if found.matches('/').count() > 1 {
        return Err(unrecognized("unexpected GroupVersion string"));
    }
    if (!found.is_empty() && found != expected) || (!kind.is_empty() && kind != resource.kind) {
        let version = if found.is_empty() { &target.version } else { found.rsplit('/').next().unwrap_or(found) };
        let claimed = if kind.is_empty() { &resource.kind } else { kind };
        return Err(error::bad_request(format!(
            "{claimed} in version {version:?} cannot be handled as a {}: no kind {claimed:?} is registered for version \
             {found:?}",
            resource.kind
        )));
    }
    Ok(())
}

/// Brings the object into the resource's shape: unknown fields out, defaults in.
fn decode(writer: Writer<'_>, resource: &Resource, version: &Version, object: &mut Value) -> Answer<Vec<String>> {
    let unknown = match &version.schema {
        Some(schema) => {
            let shaped = builtin::shape_metadata(object);
            let mut unknown = shaped.map_err(|why| builtin::unreadable(resource, version, &why))?;
            unknown.extend(schema.prune(object));
            schema.default(object);
            unknown
        }
        None => builtin::decode(resource, version, object)?,
    };
    if unknown.is_empty() {
        return Ok(Vec::new());
    }
    let list: Vec<String> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
    match writer.unknown_fields {
        UnknownFields::Ignore => Ok(Vec::new()),
        UnknownFields::Warn => Ok(list),
        UnknownFields::Strict => Err(error::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
            resource.kind,
            version.name,
            resource.kind,
            list.join(", ")
        ))),
    }
}

fn check_preconditions(
    writer: Writer<'_>,
    target: &Target,
    update: &Update,
    object: &Value,
    before: &Value,
) -> Answer<()> {
    let resource = &target.resource;
    let (new, old) = (object::meta_text(object, "uid"), object::meta_text(before, "uid"));
    // Only in an object that replaces another is it a condition; a patch may simply not change it.
    if matches!(update, Update::Replace(_)) && !new.is_empty() && new != old {
        return Err(wrong_uid(writer, target, new, old));
    }
    let asked = object::meta_text(object, "resourceVersion");
    if asked.is_empty() || asked == "0" {
        if resource.allows_unconditional_update() {
            return Ok(());
        }
        let why = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        return Err(error::invalid(resource.named(), &target.name, &[why]));
    }
    let Ok(asked) = asked.parse::<u64>() else {
        return Err(error::unknown(500, &format!("strconv.ParseUint: parsing {asked:?}: invalid syntax")));
    };
    if asked == object::revision(before) { Ok(()) } else { Err(error::modified(resource.named(), &target.name)) }
}

fn wrong_uid(writer: Writer<'_>, target: &Target, asked: &str, found: &str) -> Box<kube::core::Status> {
    let key = target.resource.registry_key(&target.namespace, &target.name);
    // A dry run does not come as far as the storage.
    let key = if writer.dry_run { key.trim_start_matches("/registry") } else { &key };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {asked}, UID in object meta: {found}"
    );
    error::conflict(target.resource.named(), &target.name, &why)
}

/// What a writer can't set is as it was.
fn carry_over(object: &mut Value, before: &Value) {
    let meta = object::meta_mut(object);
    for key in ["creationTimestamp", "generation", "selfLink"] {
        object::put(meta, key, object::meta(before, key));
    }
    if meta.get("uid").and_then(Value::as_str).is_none_or(str::is_empty) {
        object::put(meta, "uid", object::meta(before, "uid"));
    }
    if object::is_deleting(before) {
        object::put(meta, "deletionTimestamp", object::meta(before, "deletionTimestamp"));
    }
    if meta.get("deletionGracePeriodSeconds").is_none_or(Value::is_null) {
        object::put(meta, "deletionGracePeriodSeconds", object::meta(before, "deletionGracePeriodSeconds"));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn generated_suffixes_differ() {
        let made: BTreeSet<String> = (0..50_000).map(suffix).collect();
        assert_eq!(made.len(), 50_000);
    }
}
