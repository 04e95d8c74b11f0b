//! Namespaces: they hold content, so they go in two steps.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::error::Answer;
use super::super::managed_fields::{self, Subresource, Writing};
use super::super::object;
use super::super::store::Store;
use super::super::write::{Target, Writer};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The label is a default and so the writer's own, unlike what a new namespace begins with.
pub(super) fn default(namespace: &mut Map<String, Value>) {
    let meta = object::child(namespace, "metadata");
    let name = meta.get("name").and_then(Value::as_str).unwrap_or("").to_owned();
    if !name.is_empty() {
        object::child(meta, "labels").insert(NAME_LABEL.to_owned(), json!(name));
    }
}

pub(super) fn prepare_create(namespace: &mut Value) {
    let name = object::name(namespace).to_owned();
    let labels = object::child(object::meta_mut(namespace), "labels");
    labels.insert(NAME_LABEL.to_owned(), json!(name));
    namespace["spec"] = json!({"finalizers": ["kubernetes"]});
    namespace["status"] = json!({"phase": "Active"});
}

impl Store {
    /// Sets a namespace's `spec.finalizers`; a namespace in deletion that has none left goes.
    pub(crate) fn finalize_namespace(
        &mut self,
        writer: Writer<'_>,
        target: &Target,
        object: &Value,
    ) -> Answer<Arc<Value>> {
        let key = target.key();
        let before = self.get("namespaces", &key).cloned().ok_or_else(|| target.not_found())?;
        let mut after = (*before).clone();
        let finalizers = object::at(object, &["spec", "finalizers"]).cloned().unwrap_or_else(|| json!([]));
        let done = finalizers.as_array().is_none_or(Vec::is_empty);
        if done {
            after["spec"] = json!({});
        } else {
            after["spec"] = json!({"finalizers": finalizers});
        }
        let version = target.served()?;
        let writing = Writing::new(&target.resource, version, Subresource::Finalize, writer.manager, self.clock.now());
        managed_fields::update(&writing, Some(&before), &mut after);
        if writer.dry_run {
            return Ok(Arc::new(after));
        }
        if done && object::is_deleting(&before) && object::finalizers(&before).is_empty() {
            return Ok(self.remove_as(writer.user, &target.resource, &key, after));
        }
        Ok(self.put(writer.user, &target.resource, &key, after))
    }
}
