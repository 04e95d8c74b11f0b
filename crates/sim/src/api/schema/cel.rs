//! The rules in `x-kubernetes-validations`.

use std::{cell::RefCell, collections::HashSet, sync::LazyLock};

use kube_cel::{CompiledSchema, ErrorKind, Validator};
use serde_json::{Value, json};

use super::super::error::FieldError;
use super::{Additional, Node};

/// Evaluates rules; costly to make and without state, so there is one.
static EVALUATOR: LazyLock<Validator> = LazyLock::new(Validator::new);

thread_local! {
    /// Specs in which no rule found anything when they did not change, by the schema that judged them: it would find nothing again, and most
    /// writes change the status alone.
    static SOUND: RefCell<HashSet<(usize, Value)>> = RefCell::default();
}

/// So many are kept.
const KEPT: usize = 10_000;

/// Runs the rules of a compiled schema.
pub(super) fn check(rules: &CompiledSchema, root: &Node, object: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let (mut seen, mut seen_before) = (without_nulls(object), before.map(without_nulls));
    // Rules of the root may look at every part.
    let unchanged = seen.get("spec").filter(|spec| {
        root.rules.is_empty() && seen_before.as_ref().and_then(|before| before.get("spec")) == Some(*spec)
    });
    let key = unchanged.map(|spec| (std::ptr::from_ref(rules).addr(), spec.clone()));
    let known = key.as_ref().is_some_and(|key| SOUND.with_borrow(|sound| sound.contains(key)));
    for seen in [Some(&mut seen), seen_before.as_mut()].into_iter().flatten().filter(|_| known) {
        seen.as_object_mut().map(|fields| fields.remove("spec"));
    }
    let found = EVALUATOR.validate_compiled(rules, &seen, seen_before.as_ref());
    let of_spec = |error: &kube_cel::ValidationError| error.field_path.trim_start_matches('.').starts_with("spec");
    if let Some(key) = key.filter(|_| !known && !found.as_ref().is_err_and(|errors| errors.iter().any(of_spec))) {
        SOUND.with_borrow_mut(|sound| {
            if sound.len() >= KEPT {
                sound.clear();
            }
            sound.insert(key)
        });
    }
    let Err(errors) = found else { return Vec::new() };
    let found = errors.into_iter().filter_map(|error| field_error(root, object, before, error));
    let mut found: Vec<FieldError> = found.collect();
    // The evaluator walks hash maps; the answer must not depend on their order.
    found.sort_by_cached_key(ToString::to_string);
    found
}

/// A field that may be null and is counts as not set: `has` says no.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// None where the rule failed before too and nothing of what it judges changed.
fn field_error(
    root: &Node,
    object: &Value,
    before: Option<&Value>,
    error: kube_cel::ValidationError,
) -> Option<FieldError> {
    let path = error.field_path.trim_start_matches('.');
    let place = find(root, object, before, path, &error.rule);
    let about_change = error.rule.contains("oldSelf");
    if !about_change && error.kind == ErrorKind::ValidationFailure && place.unchanged {
        return None;
    }
    let path = if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() };
    let shown = json!(place.kind);
    Some(match error.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(path, error.message),
        Some("FieldValueRequired") => FieldError::required(path, error.message),
        Some("FieldValueDuplicate") => FieldError::duplicate(path, shown),
        Some(_) | None => FieldError::invalid(path, shown, error.message),
    })
}

/// Where a rule stands.
struct Place<'a> {
    /// The declared type, which messages show instead of the value.
    kind: &'a str,
    unchanged: bool,
}

/// The innermost place on the path that has this rule: the path may go on to a field that the rule only points at.
fn find<'a>(root: &'a Node, object: &Value, before: Option<&Value>, path: &str, rule: &str) -> Place<'a> {
    let mut found = Place { kind: "object", unchanged: false };
    let (mut node, mut new, mut old) = (Some(root), Some(object), before);
    let mut parts = path.split(['.', '[']).filter(|part| !part.is_empty());
    while let Some(here) = node {
        if here.rules.iter().any(|text| text == rule) {
            found = Place { kind: here.kind.as_deref().unwrap_or("object"), unchanged: old.is_some() && new == old };
        }
        let Some(part) = parts.next() else { break };
        if let Some(index) = part.strip_suffix(']').and_then(|index| index.parse::<usize>().ok()) {
            node = here.items.as_deref();
            new = new.and_then(|value| value.get(index));
            old = old.and_then(|value| value.get(index));
        } else {
            node = here.properties.get(part).or(match &here.additional {
                Additional::Of(additional) => Some(additional),
                Additional::Any | Additional::Undeclared => None,
            });
            new = new.and_then(|value| value.get(part));
            old = old.and_then(|value| value.get(part));
        }
    }
    found
}

/// Rules that can't be compiled.
pub(super) fn definition_errors(schema: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    collect(schema, "", &mut errors);
    errors
}

fn collect(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(map) = schema.as_object() else { return };
    let rules = map.get("x-kubernetes-validations").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let alone = json!({"x-kubernetes-validations": [rule]});
        for error in kube_cel::compile_schema(&alone).compilation_errors() {
            let place = format!("{path}.x-kubernetes-validations[{index}].rule");
            let text = rule.get("rule").cloned().unwrap_or_default();
            errors.push(FieldError::invalid(place, text, format!("compilation failed: {error}")));
        }
    }
    for (name, child) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        collect(child, &format!("{path}.properties[{name}]"), errors);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = map.get(key) {
            collect(child, &format!("{path}.{key}"), errors);
        }
    }
}
