//! Which fields a value has.

use serde_json::Value;

use super::super::types::{Items, List, Part, Record, TypeRef};
use super::FieldSet;
use super::element;
use super::set::part_of;

/// Every field and item that the value mentions.
pub(crate) fn fields_of(of: &TypeRef, value: &Value) -> FieldSet {
    let mut walk = Walk { path: Vec::new(), found: FieldSet::default() };
    walk.value(of, value);
    walk.found
}

struct Walk {
    path: Vec<String>,
    found: FieldSet,
}

impl Walk {
    fn value(&mut self, of: &TypeRef, value: &Value) {
        match part_of(of, value) {
            Some(Part::Map(record)) if record.atomic => self.found.insert(&self.path),
            Some(Part::List(list)) if list.items == Items::Atomic => self.found.insert(&self.path),
            Some(Part::Map(record)) => self.map(record, value),
            Some(Part::List(list)) => self.list(list, value),
            Some(Part::Scalar(_)) => self.found.insert(&self.path),
            None => {}
        }
    }

    fn map(&mut self, record: &Record, value: &Value) {
        for (key, below) in value.as_object().into_iter().flatten() {
            let Some(of) = record.below(key) else { continue };
            self.path.push(element::field(key));
            self.value(of, below);
            let empty = below.is_null() || below.as_object().is_some_and(serde_json::Map::is_empty);
            if empty || !record.fields.contains_key(key) {
                self.found.insert(&self.path);
            }
            self.path.pop();
        }
    }

    fn list(&mut self, list: &List, value: &Value) {
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        let steps: Vec<Option<String>> = items.iter().map(|item| element::item(list, item).ok()).collect();
        for (step, item) in steps.iter().zip(items) {
            let Some(step) = step else { continue };
            self.path.push(step.clone());
            let alone = steps.iter().filter(|other| other.as_ref() == Some(step)).count() == 1;
            if alone {
                self.value(&list.element, item);
            }
            self.found.insert(&self.path);
            self.path.pop();
        }
    }
}
