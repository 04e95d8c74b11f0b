//! In which fields two values differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::types::{Field, Items, List, Part, Record, TypeRef};
use super::element;
use super::{FieldSet, Problem};

/// No field is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) added: FieldSet,
}

impl Comparison {
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Leaves these fields, and all below them, out of account.
    pub(crate) fn without(mut self, fields: &FieldSet) -> Self {
        for set in [&mut self.removed, &mut self.modified, &mut self.added] {
            set.subtract_with_all_below(fields);
        }
        self
    }
}

/// What an absent field means. A real server reads objects of built-in kinds into types of its own, which always have
/// some of their fields (a pod's `spec`, a container's `resources`), set or not. Nobody sets those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zeros {
    /// It may be there, with nothing in it.
    Implied,
    /// It is absent.
    Absent,
}

pub(crate) fn compare(of: &TypeRef, before: &Value, after: &Value, zeros: Zeros) -> Result<Comparison, Vec<Problem>> {
    let mut walk = Walk { zeros, path: Vec::new(), found: Comparison::default(), problems: Vec::new() };
    walk.values(of, Some(before), Some(after));
    if walk.problems.is_empty() { Ok(walk.found) } else { Err(walk.problems) }
}

static NULL: Value = Value::Null;

struct Walk {
    zeros: Zeros,
    path: Vec<String>,
    found: Comparison,
    problems: Vec<Problem>,
}

/// Whether a value was compared as one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

impl Walk {
    fn values(&mut self, of: &TypeRef, before: Option<&Value>, after: Option<&Value>) {
        // Most of a change is no change, and that is quickly seen.
        if before == after {
            return;
        }
        let of = of.get();
        let (old, new) = (of.fitting(before), of.fitting(after));
        let whole = match (before, after) {
            (_, None) => self.part(old.first(), before, after),
            (None, _) => self.part(new.first(), before, after),
            (Some(_), Some(_)) if old.same(&new) => self.part(new.first(), before, after),
            (Some(_), Some(_)) => {
                self.part(old.first(), before, after);
                self.part(new.first(), before, after)
            }
        };
        match (whole, before, after) {
            (Whole::No, None, _) => self.found.added.insert(&self.path),
            (Whole::No, _, None) => self.found.removed.insert(&self.path),
            (Whole::Yes, _, _) | (Whole::No, Some(_), Some(_)) => {}
        }
    }

    fn part(&mut self, part: Option<Part<'_>>, before: Option<&Value>, after: Option<&Value>) -> Whole {
        match part {
            Some(Part::Map(record)) => {
                let (old, new) = (before.and_then(Value::as_object), after.and_then(Value::as_object));
                let empty =
                    |map: Option<&Map<String, Value>>| map.is_none_or(|map| self.shown(record, map).next().is_none());
                if record.atomic || (empty(old) && empty(new)) {
                    return self.whole(before, after);
                }
                self.maps(record, old, new);
                Whole::No
            }
            Some(Part::List(list)) => {
                let (old, new) = (before.and_then(Value::as_array), after.and_then(Value::as_array));
                let empty = |list: Option<&Vec<Value>>| list.is_none_or(Vec::is_empty);
                if list.items == Items::Atomic || (empty(old) && empty(new)) {
                    return self.whole(before, after);
                }
                self.items(list, old.map_or(&[], Vec::as_slice), new.map_or(&[], Vec::as_slice));
                Whole::No
            }
            Some(Part::Scalar(_)) | None => self.whole(before, after),
        }
    }

    fn whole(&mut self, before: Option<&Value>, after: Option<&Value>) -> Whole {
        match (before, after) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(before), Some(after)) if before != after => self.found.modified.insert(&self.path),
            (Some(_), Some(_)) => {}
        }
        Whole::Yes
    }

    /// The fields that a map has, those included that it always has.
    fn shown<'a>(&self, record: &'a Record, map: &'a Map<String, Value>) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let zeros = self.zeros;
        let set = map.iter().filter_map(move |(key, value)| {
            let value = given(zeros, record.fields.get(key), value)?;
            Some((key.as_str(), value))
        });
        let implied = record.fields.iter().filter(move |(key, field)| {
            zeros == Zeros::Implied && map.get(*key).is_none_or(|value| given(zeros, Some(*field), value).is_none())
        });
        set.chain(implied.filter_map(|(key, field)| Some((key.as_str(), zero(field)?))))
    }

    fn maps(&mut self, record: &Record, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) {
        match (old, new) {
            (None, None) => {}
            (Some(only), None) => {
                let fields: Vec<_> = self.shown(record, only).collect();
                for (key, value) in fields {
                    self.field(record, key, Some(value), None);
                }
            }
            (None, Some(only)) => {
                let fields: Vec<_> = self.shown(record, only).collect();
                for (key, value) in fields {
                    self.field(record, key, None, Some(value));
                }
            }
            (Some(old), Some(new)) => {
                for (key, before) in old {
                    self.pair(record, key, Some(before), new.get(key));
                }
                for (key, after) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                    self.pair(record, key, None, Some(after));
                }
            }
        }
    }

    fn pair(&mut self, record: &Record, key: &str, before: Option<&Value>, after: Option<&Value>) {
        if before == after {
            return;
        }
        let field = record.fields.get(key);
        let zeros = self.zeros;
        let known = |value: Option<&Value>| match value {
            Some(value) => given(zeros, field, value).is_some(),
            None => false,
        };
        let implied = if zeros == Zeros::Implied { field.and_then(zero) } else { None };
        let before = if known(before) { before } else { implied };
        let after = if known(after) { after } else { implied };
        if before.is_some() || after.is_some() {
            self.field(record, key, before, after);
        }
    }

    fn field(&mut self, record: &Record, key: &str, before: Option<&Value>, after: Option<&Value>) {
        let Some(of) = record.below(key) else { return };
        self.path.push(element::field(key));
        self.values(of, before, after);
        self.path.pop();
    }

    fn items(&mut self, list: &List, old: &[Value], new: &[Value]) {
        let mut found: BTreeMap<String, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (place, value) in old.iter().enumerate() {
            match element::item(list, value) {
                Ok(step) => found.entry(step).or_default().0.push(value),
                Err(why) => self.problems.push(Problem::new(format!("element {place}: {why}"))),
            }
        }
        for (place, value) in new.iter().enumerate() {
            match element::item(list, value) {
                Ok(step) => found.entry(step).or_default().1.push(value),
                Err(why) => self.problems.push(Problem::new(format!("element {place}: {why}"))),
            }
        }
        for (step, (old, new)) in found {
            self.path.push(step);
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => self.values(&list.element, old.first().copied(), new.first().copied()),
                // Items that can't be told apart are one piece together.
                ([_, _, ..], [_, _, ..]) => {
                    if old != new {
                        self.found.modified.insert(&self.path);
                    }
                }
                ([_, _, ..], rest) => {
                    if let [only] = rest {
                        self.values(&list.element, None, Some(only));
                    }
                    self.found.removed.insert(&self.path);
                }
                (rest, [_, _, ..]) => {
                    if let [only] = rest {
                        self.values(&list.element, Some(only), None);
                    }
                    self.found.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
    }
}

/// The value of a field, unless the server's own types leave it out: an empty list or map that needn't be there.
fn given<'a>(zeros: Zeros, field: Option<&Field>, value: &'a Value) -> Option<&'a Value> {
    let left_out = match (value, field) {
        (Value::Null, Some(_)) => true,
        (Value::Array(list), Some(field)) => list.is_empty() && !field.required,
        (Value::Object(map), Some(field)) => {
            let plain = field.of.get().map.as_ref().is_some_and(|record| record.fields.is_empty());
            map.is_empty() && plain && !field.required && field.of.get().scalar.is_none()
        }
        (
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
            _,
        ) => false,
    };
    (zeros == Zeros::Absent || !left_out).then_some(value)
}

/// What a field of a built-in type is when nobody set it; none where it isn't there then. Defaults that mean something are
/// filled in long before.
fn zero(field: &Field) -> Option<&Value> {
    match &field.default {
        Some(Value::Object(map)) if map.is_empty() => field.default.as_ref(),
        Some(Value::String(text)) if text.is_empty() => field.default.as_ref(),
        Some(Value::Bool(false)) => field.default.as_ref(),
        Some(Value::Number(number)) if number.as_i64() == Some(0) => field.default.as_ref(),
        Some(_) => None,
        None => field.required.then_some(&NULL),
    }
}
