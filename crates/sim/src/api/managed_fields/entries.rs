//! The entries of `metadata.managedFields`, read and written.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::fields::FieldSet;
use super::super::object;

/// How the fields became the manager's. In the order in which entries are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What makes entries the same. One who applies is the same in every version, one who updates is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Empty for one who applies.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

impl Id {
    pub(super) fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = match operation {
            Operation::Apply => "",
            Operation::Update => api_version,
        };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The text by which the server sorts managers.
    pub(super) fn sorted_by(&self) -> String {
        let field = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!(",{name:?}:{}", json!(value)),
        };
        let version = field("apiVersion", &self.api_version);
        let part = field("subresource", &self.subresource);
        format!("{{\"manager\":{},\"operation\":{:?}{version}{part}}}", json!(self.manager), self.operation.name())
    }
}

/// Who manages which fields, and since when.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) id: Id,
    pub(super) api_version: String,
    pub(super) time: Option<Timestamp>,
    pub(super) fields: FieldSet,
}

/// What a writer sent, or what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Request,
    Store,
}

/// Reads entries; none where one of them is none.
pub(super) fn decode(value: Option<&Value>, source: Source) -> Option<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for value in value.and_then(Value::as_array).into_iter().flatten() {
        let entry = decode_entry(value, source)?;
        // Of two that are the same, the last one counts.
        entries.retain(|other| other.id != entry.id);
        entries.push(entry);
    }
    Some(entries)
}

fn decode_entry(value: &Value, source: Source) -> Option<Entry> {
    let text = |key: &str| object::text(value, &[key]);
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return None,
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
        return None;
    }
    let fields = match (object::at(value, &["fieldsV1"]), source) {
        (None, _) => FieldSet::default(),
        (Some(fields), Source::Store) => FieldSet::stored(fields),
        (Some(fields), Source::Request) => FieldSet::parse(fields)?,
    };
    Some(Entry {
        id: Id::new(text("manager"), operation, api_version, text("subresource")),
        api_version: api_version.to_owned(),
        time: time(text("time")),
        fields,
    })
}

/// The last second that Go writes. Our library of times ends a day before: its last one stands for everything behind it.
const LAST: &str = "9999-12-31T23:59:59Z";

fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| text.starts_with("9999-12-3").then_some(Timestamp::MAX))
}

/// Writes entries in their order; none where there are none.
pub(super) fn encode(mut entries: Vec<Entry>) -> Option<Value> {
    if entries.is_empty() {
        return None;
    }
    entries.sort_by(|one, other| {
        let seconds = |entry: &Entry| entry.time.map_or(0, Timestamp::as_second);
        (one.id.operation.cmp(&other.id.operation))
            .then_with(|| seconds(one).cmp(&seconds(other)))
            .then_with(|| one.id.manager.cmp(&other.id.manager))
            .then_with(|| one.api_version.cmp(&other.api_version))
            .then_with(|| one.id.subresource.cmp(&other.id.subresource))
    });
    Some(Value::Array(entries.into_iter().map(encode_entry).collect()))
}

fn encode_entry(entry: Entry) -> Value {
    let mut encoded = Map::new();
    let mut put = |key: &str, value: Value| encoded.insert(key.to_owned(), value);
    put("operation", json!(entry.id.operation.name()));
    put("apiVersion", Value::String(entry.api_version));
    put("fieldsType", json!("FieldsV1"));
    put("fieldsV1", entry.fields.into_value());
    if !entry.id.manager.is_empty() {
        put("manager", Value::String(entry.id.manager));
    }
    if let Some(time) = entry.time {
        put("time", if time == Timestamp::MAX { json!(LAST) } else { object::seconds(time) });
    }
    if !entry.id.subresource.is_empty() {
        put("subresource", Value::String(entry.id.subresource));
    }
    Value::Object(encoded)
}

/// Sets the times of an object's entries back to what they were where nothing but the times has changed, so that nothing
/// is written.
pub(crate) fn keep_times(object: &mut Value, before: &Value) {
    let (Some(Value::Array(new)), Some(Value::Array(old))) =
        (object::meta(object, "managedFields"), object::meta(before, "managedFields"))
    else {
        return;
    };
    let times =
        |list: &[Value]| -> Vec<Option<Value>> { list.iter().map(|entry| entry.get("time").cloned()).collect() };
    if new.len() != old.len() || times(new) == times(old) {
        return;
    }
    let timeless = |entry: &Value| {
        let mut entry = entry.clone();
        object::as_map(&mut entry).remove("time");
        entry
    };
    if !new.iter().zip(old).all(|(new, old)| timeless(new) == timeless(old)) || !same_but_for_management(object, before)
    {
        return;
    }
    let old = old.clone();
    object::set_meta(object, "managedFields", Value::Array(old));
}

fn same_but_for_management(object: &Value, before: &Value) -> bool {
    let count = |value: &Value| value.as_object().map_or(0, Map::len);
    let pairs = object.as_object().into_iter().flatten();
    let rest = |value: &Value| -> Vec<(String, Value)> {
        let fields = object::at(value, &["metadata"]).and_then(Value::as_object).into_iter().flatten();
        let skipped = |key: &str| matches!(key, "managedFields" | "resourceVersion");
        fields.filter(|(key, _)| !skipped(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    count(object) == count(before)
        && pairs.filter(|(key, _)| *key != "metadata").all(|(key, value)| before.get(key) == Some(value))
        && rest(object) == rest(before)
}
