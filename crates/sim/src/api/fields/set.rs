//! Sets of fields, kept in the form in which objects carry them (`fieldsV1`).
//!
//! A field that is in the set is a key with an empty map below; where fields below it are in the set as well, a `.` says
//! that it is too. Working on this form saves the way there and back at every write.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::super::types::{Part, TypeRef};
use super::element;

const SELF: &str = ".";

/// A set of fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldSet(Map<String, Value>);

type Node = Map<String, Value>;

fn is_member(node: &Node) -> bool {
    node.is_empty() || node.contains_key(SELF)
}

fn children(node: &Node) -> impl Iterator<Item = (&String, &Node)> {
    node.iter().filter_map(|(key, below)| if key == SELF { None } else { Some((key, below.as_object()?)) })
}

fn has_children(node: &Node) -> bool {
    node.keys().any(|key| key != SELF)
}

fn member() -> Value {
    Value::Object(Node::new())
}

/// Puts a node together; none where nothing is in it.
fn node(member_too: bool, mut below: Node) -> Option<Node> {
    if below.is_empty() {
        return member_too.then_some(below);
    }
    if member_too {
        below.insert(SELF.to_owned(), member());
    }
    Some(below)
}

impl FieldSet {
    /// The set of these paths of field names.
    pub(crate) fn of_names(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<String> = path.iter().map(|name| element::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Reads what a writer sent; none where it is no set.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        fn read(value: &Value) -> Option<Node> {
            let found = value.as_object()?.iter().map(|(key, below)| {
                if key == SELF {
                    return Some((key.clone(), member()));
                }
                Some((element::parse(key)?, Value::Object(read(below)?)))
            });
            found.collect()
        }
        let mut set = read(value)?;
        set.remove(SELF);
        Some(Self(set))
    }

    /// Takes what the server itself stored.
    pub(crate) fn stored(value: &Value) -> Self {
        Self(value.as_object().cloned().unwrap_or_default())
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a path; the whole object is nobody's.
    pub(crate) fn insert<E: AsRef<str>>(&mut self, path: &[E]) {
        let Some((last, above)) = path.split_last() else { return };
        let mut here = &mut self.0;
        for step in above {
            let step = step.as_ref();
            if !here.contains_key(step) {
                // Not a member: it gets a child just below.
                here.insert(step.to_owned(), Value::Object(Node::new()));
            } else if let Some(Value::Object(node)) = here.get_mut(step)
                && node.is_empty()
            {
                node.insert(SELF.to_owned(), member());
            }
            let Some(Value::Object(below)) = here.get_mut(step) else { return };
            here = below;
        }
        match here.get_mut(last.as_ref()) {
            Some(Value::Object(node)) if node.is_empty() => {}
            Some(Value::Object(node)) => {
                node.insert(SELF.to_owned(), member());
            }
            Some(_) | None => {
                here.insert(last.as_ref().to_owned(), member());
            }
        }
    }

    pub(crate) fn has<E: AsRef<str>>(&self, path: &[E]) -> bool {
        let mut here = &self.0;
        for step in path {
            let Some(Value::Object(below)) = here.get(step.as_ref()) else { return false };
            here = below;
        }
        !path.is_empty() && is_member(here)
    }

    /// Whether the field itself is in the set.
    pub(super) fn has_step(&self, step: &str) -> bool {
        self.0.get(step).and_then(Value::as_object).is_some_and(is_member)
    }

    /// What is in the set below a step.
    pub(super) fn below(&self, step: &str) -> Option<Self> {
        let node = self.0.get(step)?.as_object()?;
        has_children(node).then(|| Self(children(node).map(|(key, node)| (key.clone(), node.clone().into())).collect()))
    }

    pub(crate) fn unite(&mut self, other: &Self) {
        fn unite(into: &mut Node, from: &Node) {
            for (key, below) in children(from) {
                match into.get_mut(key) {
                    Some(Value::Object(node)) => {
                        let member_too = is_member(node) || is_member(below);
                        node.remove(SELF);
                        unite(node, below);
                        if member_too && has_children(node) {
                            node.insert(SELF.to_owned(), member());
                        }
                    }
                    Some(_) | None => {
                        into.insert(key.clone(), Value::Object(below.clone()));
                    }
                }
            }
        }
        unite(&mut self.0, &other.0);
    }

    /// Takes out what is in the other set, path by path.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.take_out(other, false);
    }

    /// The same with everything below what is in the other set.
    pub(crate) fn subtract_with_all_below(&mut self, other: &Self) {
        self.take_out(other, true);
    }

    fn take_out(&mut self, other: &Self, all_below: bool) {
        fn take_out(from: &mut Node, what: &Node, all_below: bool) {
            for (key, what) in children(what) {
                let Some(Value::Object(node)) = from.get_mut(key) else { continue };
                let member_too = is_member(node) && !is_member(what);
                if all_below && is_member(what) {
                    from.remove(key);
                    continue;
                }
                node.remove(SELF);
                take_out(node, what, all_below);
                if has_children(node) {
                    if member_too {
                        node.insert(SELF.to_owned(), member());
                    }
                } else if !member_too {
                    from.remove(key);
                }
            }
        }
        if !other.is_empty() {
            take_out(&mut self.0, &other.0, all_below);
        }
    }

    /// What both have.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        fn intersection(one: &Node, other: &Node) -> Node {
            let both = children(one).filter_map(|(key, one)| {
                let other = other.get(key)?.as_object()?;
                let node = node(is_member(one) && is_member(other), intersection(one, other))?;
                Some((key.clone(), Value::Object(node)))
            });
            both.collect()
        }
        Self(intersection(&self.0, &other.0))
    }

    /// The set with every named field on the way to a member, which sets usually leave out.
    pub(crate) fn with_named_fields(&self, of: &TypeRef) -> Self {
        fn fill(here: &Node, of: Option<&TypeRef>) -> Node {
            let record = of.and_then(|of| of.get().map.as_ref());
            let list = of.and_then(|of| of.get().list.as_ref());
            let filled = children(here).filter_map(|(key, below)| {
                let name = key.strip_prefix("f:");
                let named = name.and_then(|name| record?.fields.get(name));
                let of = match (name, key.starts_with("k:")) {
                    (Some(name), _) => record.and_then(|record| record.below(name)),
                    (None, true) => list.map(|list| &list.element),
                    (None, false) => None,
                };
                let node = node(is_member(below) || named.is_some(), fill(below, of))?;
                Some((key.clone(), Value::Object(node)))
            });
            filled.collect()
        }
        Self(fill(&self.0, Some(of)))
    }

    /// Every path in the set, in the order in which people are told about them.
    pub(crate) fn paths(&self) -> Vec<Vec<String>> {
        fn walk(here: &Node, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
            let mut below: Vec<(&String, &Node)> = children(here).collect();
            below.sort_by(|(one, _), (other, _)| -> Ordering { element::order(one, other) });
            for (key, _) in below.iter().filter(|(_, node)| is_member(node)) {
                found.push(path.iter().chain([*key]).cloned().collect());
            }
            for (key, node) in below {
                path.push(key.clone());
                walk(node, path, found);
                path.pop();
            }
        }
        let mut found = Vec::new();
        walk(&self.0, &mut Vec::new(), &mut found);
        found
    }

    /// A path as people read it.
    pub(crate) fn show(path: &[String]) -> String {
        path.iter().map(|step| element::show(step)).collect()
    }
}

/// The part of a type that a value has, for walkers that look at one value.
pub(super) fn part_of<'a>(of: &'a TypeRef, value: &Value) -> Option<Part<'a>> {
    of.get().fitting(Some(value)).first()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(value: &Value) -> FieldSet {
        FieldSet::parse(value).unwrap()
    }

    #[test]
    fn a_field_and_what_is_below_it_are_told_apart() {
        let mut one = FieldSet::default();
        one.insert(&["f:a", "f:b"]);
        assert!(!one.has(&["f:a"]) && one.has(&["f:a", "f:b"]));
        one.insert(&["f:a"]);
        assert_eq!(one, set(&json!({"f:a": {".": {}, "f:b": {}}})));
        let mut other = FieldSet::default();
        other.insert(&["f:a"]);
        other.insert(&["f:a", "f:b"]);
        assert_eq!(one, other);
        one.subtract(&set(&json!({"f:a": {"f:b": {}}})));
        assert_eq!(one, set(&json!({"f:a": {}})));
    }

    #[test]
    fn sets_add_up_and_cancel_out() {
        let one = set(&json!({"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}}));
        let other = set(&json!({"f:a": {"f:x": {}}, "f:b": {".": {}, "f:d": {}}}));
        let mut sum = one.clone();
        sum.unite(&other);
        assert_eq!(sum, set(&json!({"f:a": {".": {}, "f:x": {}}, "f:b": {".": {}, "f:c": {}, "f:d": {}}})));
        assert_eq!(one.intersection(&other), set(&json!({"f:b": {"f:d": {}}})));
        let mut rest = sum.clone();
        rest.subtract(&one);
        assert_eq!(rest, set(&json!({"f:a": {"f:x": {}}, "f:b": {}})));
        sum.subtract_with_all_below(&set(&json!({"f:b": {}})));
        assert_eq!(sum, set(&json!({"f:a": {".": {}, "f:x": {}}})));
        rest.subtract(&rest.clone());
        assert!(rest.is_empty());
    }

    #[test]
    fn paths_come_members_first() {
        let set = set(&json!({"f:b": {}, "f:a": {"f:z": {}, "k:{\"n\":10}": {}, "k:{\"n\":9}": {".": {}, "f:y": {}}}}));
        let shown: Vec<String> = set.paths().iter().map(|path| FieldSet::show(path)).collect();
        assert_eq!(shown, [".b", ".a.z", ".a[n=9]", ".a[n=10]", ".a[n=9].y"]);
    }
}
