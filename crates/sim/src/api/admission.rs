//! Policies that let no write change certain fields of an object, as an administrator's ValidatingAdmissionPolicy would.
//!
//! They are asked where a real server asks: after the preconditions and the validation, also in a dry run, and about every writer.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{self, Answer};
use super::key::Key;
use super::resource::Resource;

/// What may not change, as JSON pointers, by resource and object.
#[derive(Debug, Default)]
pub(crate) struct Policies(BTreeMap<(String, Key), Vec<String>>);

impl Policies {
    /// From now on these fields of this object may not change; with none, everything may again.
    pub(crate) fn set(&mut self, resource: &str, key: Key, fields: Vec<String>) {
        let place = (resource.to_owned(), key);
        if fields.is_empty() {
            self.0.remove(&place);
        } else {
            self.0.insert(place, fields);
        }
    }

    /// Refuses a write that changes what may not change.
    pub(crate) fn admit(&self, resource: &Resource, key: &Key, before: &Value, after: &Value) -> Answer<()> {
        let fields = self.0.get(&(resource.id.clone(), key.clone())).into_iter().flatten();
        let changed = fields.into_iter().find(|field| before.pointer(field) != after.pointer(field));
        match changed {
            Some(field) => Err(error::denied(resource.named(), key.name(), &format!("{field} may not change"))),
            None => Ok(()),
        }
    }
}
