//! Policies that let no write change certain fields of an object, as an administrator's ValidatingAdmissionPolicy would; and webhooks that go
//! wrong.
//!
//! Policies are asked where a real server asks: after the preconditions and the validation, also in a dry run, and about every writer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{self, Answer};
use super::key::Key;
use super::resource::Resource;

/// What may not change, as JSON pointers, by resource and object.
#[derive(Debug, Default)]
pub(crate) struct Policies(BTreeMap<(String, Key), Vec<String>>);

/// How a webhook that must be asked goes wrong: nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Webhook {
    /// It does not answer, and the server gives it ten seconds.
    Hangs,
    /// What it makes of the object can't be applied: the server answers at once, with a failure of its own.
    Breaks,
}

/// Those that go wrong, by the end of the path of what they are asked about, with the words in a body that make them be asked.
#[derive(Debug, Default)]
pub(crate) struct Webhooks(BTreeMap<String, (Webhook, String)>);

impl Webhooks {
    /// From now on the one that is asked about this object goes wrong like this; with none, it works again. `resource` is plural and group.
    pub(crate) fn set(&mut self, resource: &str, key: &Key, how: Option<Webhook>, about: &str) {
        let plural = resource.split('.').next().unwrap_or_default();
        let path = match key.namespace() {
            "" => format!("/{plural}/{}", key.name()),
            namespace => format!("/namespaces/{namespace}/{plural}/{}", key.name()),
        };
        match how {
            Some(how) => drop(self.0.insert(path, (how, about.to_owned()))),
            None => drop(self.0.remove(&path)),
        }
    }

    /// How the one goes wrong that is asked about a write, if it does.
    pub(crate) fn asked(&self, path: &str, body: &[u8]) -> Option<Webhook> {
        let body = String::from_utf8_lossy(body);
        let mut asked = self.0.iter().filter(|(of, (_, about))| path.ends_with(of.as_str()) && body.contains(about));
        asked.next().map(|(_, (how, _))| *how)
    }
}

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
