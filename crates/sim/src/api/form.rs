//! The form in which a client wants its answer: the object itself, its metadata alone, or rows for a person.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::error::{self, Answer};
use super::object;
use super::read::List;
use super::resource::{Resource, Rules, Version};
use super::table;

/// As the real server says it, which speaks two languages more.
const NOT_SERVED: &str = "only the following media types are accepted: application/json, application/yaml, \
                          application/vnd.kubernetes.protobuf";

/// How much of the object comes with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// Which version of `meta.k8s.io` the answer is in; the two don't differ otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata(MetaVersion),
    MetadataList(MetaVersion),
    Table(MetaVersion, Include),
}

/// What the objects in an answer are, and when it is.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) version: &'a Version,
    pub(crate) now: Timestamp,
}

impl Subject<'_> {
    /// The type as the real server's messages name it.
    fn type_name(&self, suffix: &str) -> String {
        if self.resource.rules == Rules::Custom {
            return format!("*unstructured.Unstructured{suffix}");
        }
        let is_core = self.resource.group.is_empty() || self.resource.rules == Rules::Event;
        let package = if is_core { "core" } else { self.resource.group.split('.').next().unwrap_or_default() };
        format!("*{package}.{}{suffix}", self.resource.kind)
    }
}

impl Form {
    /// Reads an `Accept` header; `include` is the query's `includeObject`.
    pub(crate) fn negotiate(accept: &str, include: &str) -> Answer<Self> {
        let form = if accept.trim().is_empty() {
            Self::Whole
        } else {
            let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::read).collect();
            clauses.sort_by_key(|clause| std::cmp::Reverse(clause.quality));
            clauses.iter().find_map(Clause::form).ok_or_else(|| error::no_such_form(NOT_SERVED))?
        };
        match form {
            Self::Table(version, _) => Ok(Self::Table(version, included(include)?)),
            Self::Whole | Self::Metadata(_) | Self::MetadataList(_) => Ok(form),
        }
    }

    /// One object.
    pub(crate) fn object(self, subject: Subject<'_>, object: Arc<Value>) -> Answer<Arc<Value>> {
        match self {
            Self::Whole => Ok(object),
            Self::Metadata(version) => Ok(Arc::new(metadata_of(version, &object))),
            Self::MetadataList(_) => Err(error::no_such_form(&format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                subject.type_name("")
            ))),
            Self::Table(version, include) => {
                let columns = table::columns(subject.resource, subject.version);
                Ok(Arc::new(table_of_one(version, &columns, row(subject, version, include, &object), &object)))
            }
        }
    }

    /// The scale of an object, which has columns of its own.
    pub(crate) fn scale(self, subject: Subject<'_>, scale: Value) -> Answer<Arc<Value>> {
        let Self::Table(version, include) = self else { return self.object(subject, Arc::new(scale)) };
        let row = with_object(version, include, table::scale_row(&scale, subject.now), &scale);
        Ok(Arc::new(table_of_one(version, &table::scale_columns(), row, &scale)))
    }

    /// A list; none where it stays as it is.
    pub(crate) fn list(self, subject: Subject<'_>, list: &List) -> Answer<Option<Value>> {
        match self {
            Self::Whole => Ok(None),
            Self::Metadata(_) => Err(error::no_such_form(&format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                subject.type_name("List")
            ))),
            Self::MetadataList(version) => {
                let items: Vec<Value> = list.items.iter().map(|item| metadata_of(version, item)).collect();
                Ok(Some(json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": version.api_version(),
                    "metadata": list.metadata(),
                    "items": items,
                })))
            }
            Self::Table(version, include) => {
                let rows: Vec<Value> = list.items.iter().map(|item| row(subject, version, include, item)).collect();
                let columns = table::columns(subject.resource, subject.version);
                Ok(Some(table_of(version, &list.metadata(), &columns, &rows)))
            }
        }
    }

    /// One object of a watch, in which only the first table tells its columns.
    pub(crate) fn event(self, subject: Subject<'_>, object: Arc<Value>, first: bool) -> Arc<Value> {
        match self {
            Self::Whole => object,
            Self::Metadata(version) | Self::MetadataList(version) => Arc::new(metadata_of(version, &object)),
            Self::Table(version, include) => {
                let columns = if first { table::columns(subject.resource, subject.version) } else { Value::Null };
                Arc::new(table_of_one(version, &columns, row(subject, version, include, &object), &object))
            }
        }
    }
}

fn included(text: &str) -> Answer<Include> {
    match text {
        "" | "Metadata" => Ok(Include::Metadata),
        "None" => Ok(Include::Nothing),
        "Object" => Ok(Include::Object),
        _ => Err(error::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {text:?}: must be 'Metadata', \
             'Object', 'None', or empty"
        ))),
    }
}

fn metadata_of(version: MetaVersion, object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

fn row(subject: Subject<'_>, version: MetaVersion, include: Include, object: &Value) -> Value {
    with_object(version, include, table::row(subject.resource, subject.version, object, subject.now), object)
}

fn with_object(version: MetaVersion, include: Include, mut row: Value, object: &Value) -> Value {
    row["object"] = match include {
        Include::Nothing => Value::Null,
        Include::Metadata => metadata_of(version, object),
        Include::Object => object.clone(),
    };
    row
}

fn table_of_one(version: MetaVersion, columns: &Value, row: Value, object: &Value) -> Value {
    let metadata = json!({"resourceVersion": object::meta_text(object, "resourceVersion")});
    table_of(version, &metadata, columns, &[row])
}

fn table_of(version: MetaVersion, metadata: &Value, columns: &Value, rows: &[Value]) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": version.api_version(),
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// One of the media types that a client accepts.
struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    /// In thousandths.
    quality: u32,
}

impl<'a> Clause<'a> {
    fn read(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let quality = parameters.iter().find(|(key, _)| *key == "q").and_then(|(_, value)| value.parse::<f32>().ok());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
        let quality = quality.map_or(1000, |quality| (quality.clamp(0.0, 1.0) * 1000.0) as u32);
        Self { media, parameters, quality }
    }

    /// What this clause asks for; none where the server can't give it.
    fn form(&self) -> Option<Form> {
        if !matches!(self.media, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let parameter = |name: &str| self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let (kind, group, version) = (parameter("as"), parameter("g"), parameter("v"));
        if kind.is_none() && group.is_none() && version.is_none() {
            return Some(Form::Whole);
        }
        let version = match (group, version) {
            (Some("meta.k8s.io"), Some("v1")) => MetaVersion::V1,
            (Some("meta.k8s.io"), Some("v1beta1")) => MetaVersion::V1Beta1,
            _ => return None,
        };
        match kind? {
            "Table" => Some(Form::Table(version, Include::Metadata)),
            "PartialObjectMetadata" => Some(Form::Metadata(version)),
            "PartialObjectMetadataList" => Some(Form::MetadataList(version)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const TABLE: Form = Form::Table(MetaVersion::V1, Include::Metadata);

    #[rstest]
    #[case("", Form::Whole)]
    #[case("*/*", Form::Whole)]
    #[case("application/vnd.kubernetes.protobuf,application/json", Form::Whole)]
    #[case("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", TABLE)]
    #[case("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Form::Whole)]
    #[case("application/json;as=Table;v=v1;g=meta.k8s.io;q=0.5,application/json", Form::Whole)]
    #[case("application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", Form::Metadata(MetaVersion::V1Beta1))]
    fn the_best_clause_that_can_be_served_wins(#[case] accept: &str, #[case] form: Form) {
        assert_eq!(Form::negotiate(accept, "").unwrap(), form);
    }

    #[test]
    fn what_cannot_be_served_is_not_acceptable() {
        for accept in ["application/xml", "application/json;as=Other;v=v1;g=meta.k8s.io"] {
            assert_eq!(Form::negotiate(accept, "").unwrap_err().code, 406);
        }
        let refused = Form::negotiate("application/json;as=Table;v=v1;g=meta.k8s.io", "All").unwrap_err();
        assert_eq!(refused.code, 400);
    }
}
