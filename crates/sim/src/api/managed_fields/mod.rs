//! Who manages which fields of an object (`metadata.managedFields`).
//!
//! ```text
//!   create, replace, patch ─▶ update ─┐
//!                                     ├─▶ entries ◀─▶ metadata.managedFields
//!   server-side apply ──────▶ apply ──┘
//! ```
//!
//! A write owns what it changes; an apply owns what it says. What is never owned is in `reset`.

mod apply;
mod conflict;
mod entries;
mod last_applied;
mod reset;
mod scale;
mod update;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::events::{to_core_group, to_events_group};
use super::fields::{Comparison, FieldSet, Problem, Zeros, compare};
use super::object;
use super::resource::{Resource, Rules, Version};
use super::types::{self, TypeRef};

pub(crate) use self::apply::apply;
pub(crate) use self::entries::keep_times;
pub(crate) use self::reset::Subresource;
pub(crate) use self::scale::{to_parent, to_scale};
pub(crate) use self::update::update;

use self::entries::{Entry, Id, Operation};

/// The longest name of a manager that a request may give, and that is made of a User-Agent.
pub(crate) const LONGEST_NAME: usize = 128;

/// A write, as far as it matters for who manages what.
#[derive(Clone, Debug)]
pub(crate) struct Writing<'a> {
    kind: &'a str,
    api_version: String,
    /// The type of the objects in this version.
    of: TypeRef,
    zeros: Zeros,
    part: Subresource,
    /// What the server sets back at such a write.
    reset: &'static FieldSet,
    /// Where the other versions are found.
    resource: Option<&'a Resource>,
    manager: &'a str,
    now: Timestamp,
}

impl<'a> Writing<'a> {
    /// A write of an object or of a part of it.
    pub(crate) fn new(
        resource: &'a Resource,
        version: &Version,
        part: Subresource,
        manager: &'a str,
        now: Timestamp,
    ) -> Self {
        Self {
            kind: &resource.kind,
            api_version: resource.api_version(&version.name),
            of: version.merging.clone(),
            zeros: if resource.rules == Rules::Custom { Zeros::Absent } else { Zeros::Implied },
            part,
            reset: reset::fields(resource.rules, version.status, part),
            resource: Some(resource),
            manager,
            now,
        }
    }

    /// A write of an object's scale, which is an object of its own to those who write it.
    pub(crate) fn of_scale(manager: &'a str, now: Timestamp) -> Self {
        let (api_version, kind) = types::SCALE;
        Self {
            kind,
            api_version: api_version.to_owned(),
            of: types::of_kind(api_version, kind),
            // A scale of none shows no replicas.
            zeros: Zeros::Absent,
            part: Subresource::Scale,
            reset: reset::fields(Rules::Custom, false, Subresource::Scale),
            resource: None,
            manager,
            now,
        }
    }

    fn id(&self, operation: Operation) -> Id {
        let manager = if self.manager.is_empty() { "unknown" } else { self.manager };
        Id::new(manager, operation, &self.api_version, self.part.name())
    }

    /// What an object is before it is anything.
    fn nothing(&self) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.kind})
    }

    /// The type of the objects in this version; none where there is no such version any more.
    fn type_in(&self, api_version: &str) -> Option<TypeRef> {
        if api_version == self.api_version {
            return Some(self.of.clone());
        }
        let resource = self.resource?;
        if resource.rules == Rules::Event {
            return Some(types::of_kind(api_version, self.kind));
        }
        let found = resource.versions.iter().find(|one| resource.api_version(&one.name) == api_version);
        found.map(|version| version.merging.clone())
    }

    /// In which fields the objects differ as this version sees them, without what this kind of write can't change; none
    /// where there is no such version any more.
    fn compare(&self, api_version: &str, before: &Value, after: &Value) -> Option<Result<Comparison, Vec<Problem>>> {
        let of = self.type_in(api_version)?;
        if api_version == self.api_version {
            return Some(compare(&of, before, after, self.zeros).map(|found| found.without(self.reset)));
        }
        if self.resource.is_some_and(|resource| resource.rules == Rules::Event) {
            // Events have two shapes, and an entry may speak of the one that isn't written now.
            let turn = if api_version == "v1" { to_core_group } else { to_events_group };
            return Some(compare(&of, &turn(before), &turn(after), self.zeros));
        }
        Some(compare(&of, before, after, self.zeros))
    }
}

/// The manager's name that a User-Agent gives: what is before the first slash.
pub(crate) fn name_of_agent(agent: &str) -> String {
    let mut name = String::new();
    for character in agent.split('/').next().unwrap_or("").chars().filter(|one| is_printable(*one)) {
        if name.len() + character.len_utf8() > LONGEST_NAME {
            break;
        }
        name.push(character);
    }
    name
}

/// Whether a manager's name may have this character.
pub(crate) fn is_printable(character: char) -> bool {
    // The server knows no space but the plain one.
    !character.is_control() && (character == ' ' || !character.is_whitespace())
}

fn set_managed(object: &mut Value, entries: Vec<Entry>) {
    match entries::encode(entries) {
        Some(encoded) => object::set_meta(object, "managedFields", encoded),
        None => {
            object::meta_mut(object).remove("managedFields");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_gives_its_first_word_as_far_as_it_can_be_printed() {
        assert_eq!(name_of_agent("kubectl/v1.34.0 (linux/amd64)"), "kubectl");
        assert_eq!(name_of_agent("My Tool\u{7}/1"), "My Tool");
        assert_eq!(name_of_agent(&"é".repeat(100)).len(), 128);
        assert_eq!(name_of_agent(""), "");
    }
}
