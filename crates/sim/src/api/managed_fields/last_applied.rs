//! The way from `kubectl apply` on the client's side to the server's: what the annotation says that kubectl applied is no
//! conflict for kubectl, and the annotation keeps up.

use serde_json::Value;

use super::super::fields::{FieldSet, Zeros, compare, fields_of, validate};
use super::super::object;
use super::Writing;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const KUBECTL: &str = "kubectl";

fn annotation(object: &Value) -> &str {
    object::text(object, &["metadata", "annotations", ANNOTATION])
}

/// The fields that kubectl may take over without force: those that still are as the annotation says.
pub(super) fn excused(writing: &Writing<'_>, live: &Value) -> Option<FieldSet> {
    if writing.manager != KUBECTL {
        return None;
    }
    let last: Value = serde_json::from_str(annotation(live)).ok()?;
    let of = &writing.of;
    let fits = object::text(&last, &["apiVersion"]) == writing.api_version && validate(of, &last).is_empty();
    if !fits {
        return None;
    }
    let mut fields = fields_of(of, &last);
    let comparison = compare(of, &last, live, Zeros::Absent).ok()?;
    for changed in [&comparison.modified, &comparison.added, &comparison.removed] {
        fields.subtract(changed);
    }
    Some(fields)
}

/// The object with its annotation, if it has one, brought to what kubectl applied now.
pub(super) fn renewed(writing: &Writing<'_>, mut object: Value, config: &Value) -> Value {
    if writing.manager != KUBECTL || annotation(&object).is_empty() {
        return object;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let annotations = object::child(object::meta_mut(&mut object), "annotations");
    annotations.insert(ANNOTATION.to_owned(), Value::String(format!("{config}\n")));
    object
}
