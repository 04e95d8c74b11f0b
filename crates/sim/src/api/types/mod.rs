//! What merging needs to know about types: which lists are sets or keyed by fields, which maps are one piece, and which
//! type is below which field. The facts about built-in kinds are a table; those about custom resources come from their
//! schemas.

mod built_in;
mod custom;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::built_in::{SCALE, TABLE as BUILT_IN, of_kind};
pub(crate) use self::custom::of_schema;

/// A type. More than one part where the value decides; where one is null and doesn't, the map goes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Type {
    pub(crate) map: Option<Record>,
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<List>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Text,
    Number,
    Boolean,
    Any,
}

/// A map, or what has named fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) fields: BTreeMap<String, Field>,
    /// The type of what is not among the fields; none where nothing else may be.
    pub(crate) others: Option<TypeRef>,
    pub(crate) atomic: bool,
}

/// A field with a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) of: TypeRef,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    pub(crate) patch: PatchRule,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchRule {
    pub(crate) strategy: Strategy,
    pub(crate) merge_key: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Maps are merged, lists replaced.
    #[default]
    Usual,
    /// Lists are merged too.
    Merge,
    /// Maps are replaced too.
    Replace,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List {
    pub(crate) element: TypeRef,
    pub(crate) items: Items,
}

/// What tells the items of a list apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Items {
    /// Nothing: the list is one piece.
    Atomic,
    /// Their value.
    Set,
    /// Some of their fields.
    Keyed(Vec<String>),
}

/// Where a type is. Types refer to themselves (a schema has schemas), so the named ones are found by their place.
#[derive(Clone, Debug)]
pub(crate) enum TypeRef {
    BuiltIn(usize),
    Inline(Arc<Type>),
}

impl PartialEq for TypeRef {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn(one), Self::BuiltIn(other)) => one == other,
            (Self::Inline(one), Self::Inline(other)) => Arc::ptr_eq(one, other) || one == other,
            (Self::BuiltIn(_), Self::Inline(_)) | (Self::Inline(_), Self::BuiltIn(_)) => false,
        }
    }
}

impl TypeRef {
    /// The type where it is here; for those who read the table and can't look into it yet.
    fn get_inline(&self) -> Option<&Type> {
        match self {
            Self::BuiltIn(_) => None,
            Self::Inline(inline) => Some(inline),
        }
    }

    pub(crate) fn get(&self) -> &Type {
        match self {
            Self::BuiltIn(place) => built_in::at(*place),
            Self::Inline(inline) => inline,
        }
    }
}

impl Type {
    fn inline(self) -> TypeRef {
        TypeRef::Inline(Arc::new(self))
    }

    fn scalar(scalar: Scalar) -> Self {
        Self { scalar: Some(scalar), ..Self::default() }
    }

    fn map(others: TypeRef, atomic: bool) -> Self {
        Self { map: Some(Record { others: Some(others), atomic, ..Record::default() }), ..Self::default() }
    }

    fn list(element: TypeRef, items: Items) -> Self {
        Self { list: Some(List { element, items }), ..Self::default() }
    }

    /// Anything, never looked into.
    fn opaque() -> TypeRef {
        TypeRef::BuiltIn(built_in::OPAQUE)
    }

    /// Anything; maps are merged by their keys, lists are one piece.
    pub(crate) fn deduced() -> TypeRef {
        TypeRef::BuiltIn(built_in::DEDUCED)
    }

    /// The part that fits this value; all parts where none does or the value is null.
    pub(crate) fn fitting(&self, value: Option<&Value>) -> Parts<'_> {
        let all = Parts { map: self.map.as_ref(), scalar: self.scalar, list: self.list.as_ref() };
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if self.scalar.is_some() => {
                Parts { scalar: self.scalar, ..Parts::default() }
            }
            Some(Value::Array(_)) if self.list.is_some() => Parts { list: self.list.as_ref(), ..Parts::default() },
            Some(Value::Object(_)) if self.map.is_some() => Parts { map: self.map.as_ref(), ..Parts::default() },
            Some(_) | None => all,
        }
    }
}

/// Some parts of a type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts<'a> {
    map: Option<&'a Record>,
    scalar: Option<Scalar>,
    list: Option<&'a List>,
}

/// The part of a type that a value is treated as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    Map(&'a Record),
    Scalar(Scalar),
    List(&'a List),
}

impl<'a> Parts<'a> {
    /// The part that counts.
    pub(crate) fn first(&self) -> Option<Part<'a>> {
        self.map.map(Part::Map).or(self.scalar.map(Part::Scalar)).or(self.list.map(Part::List))
    }

    /// Whether the same parts are left; both must come from one type.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let kinds = |parts: &Self| (parts.map.is_some(), parts.scalar.is_some(), parts.list.is_some());
        kinds(self) == kinds(other)
    }
}

impl Record {
    /// The type below a key; none where the key may not be.
    pub(crate) fn below(&self, key: &str) -> Option<&TypeRef> {
        self.fields.get(key).map(|field| &field.of).or(self.others.as_ref())
    }
}
