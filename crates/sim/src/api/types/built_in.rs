//! The table of the built-in types, read.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{Field, Items, List, PatchRule, Record, Scalar, Strategy, Type, TypeRef};

/// The facts as text.
pub(crate) const TABLE: &str = include_str!("built_in.txt");

pub(super) const OPAQUE: usize = 0;
pub(super) const DEDUCED: usize = 1;

/// What the `scale` of an object is.
pub(crate) const SCALE: (&str, &str) = ("autoscaling/v1", "Scale");

#[derive(Debug)]
struct Types {
    all: Vec<Type>,
    kinds: BTreeMap<(&'static str, &'static str), usize>,
    names: BTreeMap<&'static str, usize>,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| read(TABLE));

pub(super) fn at(place: usize) -> &'static Type {
    &TYPES.all[place]
}

/// The type of a built-in kind.
pub(crate) fn of_kind(api_version: &str, kind: &str) -> TypeRef {
    TypeRef::BuiltIn(TYPES.kinds.get(&(api_version, kind)).copied().unwrap_or(DEDUCED))
}

/// The type with this name, as the table spells it.
pub(super) fn named(name: &str) -> TypeRef {
    TypeRef::BuiltIn(TYPES.names.get(name).copied().unwrap_or(DEDUCED))
}

/// Lines that are not understood are left out; a test sees to it that there are none.
fn read(table: &'static str) -> Types {
    let lines = || table.lines().filter(|line| !line.starts_with('#'));
    let mut names: BTreeMap<&'static str, usize> = BTreeMap::new();
    for line in lines().filter_map(|line| line.strip_prefix("type ")) {
        let place = names.len() + 2;
        names.insert(line.split(' ').next().unwrap_or(line), place);
    }
    let anything = |others: usize, atomic: bool| Type {
        map: Some(Record { others: Some(TypeRef::BuiltIn(others)), atomic, ..Record::default() }),
        scalar: Some(Scalar::Any),
        list: Some(List { element: TypeRef::BuiltIn(OPAQUE), items: Items::Atomic }),
    };
    let mut all = vec![anything(OPAQUE, true), anything(DEDUCED, false)];
    let mut record: Option<Record> = None;
    for line in lines() {
        if let Some(head) = line.strip_prefix("type ") {
            all.extend(record.take().map(named_type));
            record = Some(Record { atomic: head.ends_with(" atomic"), ..Record::default() });
        } else if let Some(text) = line.strip_prefix("  ")
            && let Some((name, field)) = field(text, &names)
            && let Some(record) = &mut record
        {
            record.fields.insert(name.to_owned(), field);
        }
    }
    all.extend(record.map(named_type));
    let mut kinds = BTreeMap::new();
    for line in lines().filter_map(|line| line.strip_prefix("kind ")) {
        if let [api_version, kind, name] = line.split(' ').collect::<Vec<_>>().as_slice()
            && let Some(place) = names.get(name)
        {
            kinds.insert((*api_version, *kind), *place);
        }
    }
    Types { all, kinds, names }
}

fn named_type(record: Record) -> Type {
    Type { map: Some(record), ..Type::default() }
}

fn field<'a>(line: &'a str, names: &BTreeMap<&'static str, usize>) -> Option<(&'a str, Field)> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let mut field =
        Field { of: type_of(words.next()?, names)?, required: false, default: None, patch: PatchRule::default() };
    for word in words {
        match word.split_once('=') {
            None if word == "required" => field.required = true,
            Some(("default", default)) => field.default = Some(serde_json::from_str(default).ok()?),
            Some(("patch", rule)) => field.patch = patch_rule(rule),
            None | Some(_) => return None,
        }
    }
    Some((name, field))
}

fn patch_rule(text: &str) -> PatchRule {
    let (strategies, key) = match text.split_once('/') {
        Some((strategies, key)) => (strategies, Some(key.to_owned())),
        None => (text, None),
    };
    let has = |strategy: &str| strategies.split(',').any(|one| one == strategy);
    let strategy = if has("merge") {
        Strategy::Merge
    } else if has("replace") {
        Strategy::Replace
    } else {
        // `retainKeys` speaks to those who write patches.
        Strategy::Usual
    };
    PatchRule { strategy, merge_key: key }
}

fn type_of(text: &str, names: &BTreeMap<&'static str, usize>) -> Option<TypeRef> {
    let scalar = |scalar: Scalar| Some(Type::scalar(scalar).inline());
    match text {
        "text" => return scalar(Scalar::Text),
        "number" => return scalar(Scalar::Number),
        "boolean" => return scalar(Scalar::Boolean),
        "scalar" => return scalar(Scalar::Any),
        "deduced" => return Some(Type::deduced()),
        "opaque" => return Some(Type::opaque()),
        _ => {}
    }
    if let Some(inner) = text.strip_suffix(']') {
        let (how, element) = inner.split_once('[')?;
        let items = match how {
            "" => Items::Atomic,
            "set" => Items::Set,
            keyed => {
                let keys = keyed.strip_prefix("keys(")?.strip_suffix(')')?;
                Items::Keyed(keys.split(',').map(str::to_owned).collect())
            }
        };
        return Some(Type::list(type_of(element, names)?, items).inline());
    }
    let (atomic, map) = match text.strip_prefix("atomic") {
        Some(map) => (true, map),
        None => (false, text),
    };
    if let Some(others) = map.strip_prefix('{').and_then(|map| map.strip_suffix('}')) {
        return Some(Type::map(type_of(others, names)?, atomic).inline());
    }
    Some(TypeRef::BuiltIn(*names.get(text)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::resource;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let types = read(TABLE);
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let understood = match line.strip_prefix("  ") {
                Some(text) => field(text, &types.names).is_some(),
                None => line.starts_with("type ") || line.starts_with("kind "),
            };
            assert!(understood, "{line}");
        }
        assert_eq!(types.all.len(), types.names.len() + 2);
    }

    #[test]
    fn every_kind_that_is_served_has_its_type() {
        for kind in resource::built_in_kinds() {
            let place = (kind.api_version(), kind.kind.clone());
            assert!(TYPES.kinds.contains_key(&(place.0.as_str(), place.1.as_str())), "{place:?}");
        }
    }

    #[test]
    fn the_facts_of_a_field_are_found() {
        let TypeRef::BuiltIn(place) = named("api.core.v1.Container") else { panic!("a named type") };
        let ports = &at(place).map.as_ref().unwrap().fields["ports"];
        assert_eq!(ports.patch, PatchRule { strategy: Strategy::Merge, merge_key: Some("containerPort".into()) });
        let list = ports.of.get().list.as_ref().unwrap();
        assert_eq!(list.items, Items::Keyed(vec!["containerPort".into(), "protocol".into()]));
        let protocol = &list.element.get().map.as_ref().unwrap().fields["protocol"];
        assert_eq!(protocol.default, Some("TCP".into()));
    }
}
