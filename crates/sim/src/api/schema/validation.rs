//! Checking an object against a structural schema.
//!
//! What was wrong before and did not change is let through, so that a tightened schema doesn't block every other write.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::error::{Fault, FieldError};
use super::{Additional, ListType, Node, below, formats};

/// All violations, in the order of the fields.
pub(super) fn check(root: &Node, object: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(root, object, before, "", &mut errors);
    errors
}

fn walk(node: &Node, value: &Value, before: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    if before == Some(value) {
        return;
    }
    if value.is_null() && node.nullable {
        return;
    }
    if !type_fits(node, value) {
        errors.push(wrong_type(node, value, path));
        return;
    }
    if let Some(allowed) = &node.allowed
        && !allowed.contains(value)
    {
        let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let detail = format!("supported values: {}", list.join(", "));
        errors.push(FieldError::new(Fault::NotSupported, path, value.clone(), detail));
    }
    match value {
        Value::Object(map) => check_map(node, map, before, path, errors),
        Value::Array(list) => check_list(node, list, before, path, errors),
        Value::String(text) => check_text(node, text, path, errors),
        Value::Number(number) => check_number(node, number.as_f64().unwrap_or(0.0), value, path, errors),
        Value::Null | Value::Bool(_) => {}
    }
    check_junctors(node, value, path, errors);
}

fn type_fits(node: &Node, value: &Value) -> bool {
    if node.int_or_string {
        return value.is_string() || is_integer(value);
    }
    if texts_format(node).is_some() && (value.is_string() || value.is_array()) {
        // The server leaves it to the format to say what fits, and a format says something of texts alone: a list passes, whatever is in it.
        return true;
    }
    match node.kind.as_deref() {
        None | Some("") => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => is_integer(value),
        Some("number") => value.is_number(),
        Some(_) => false,
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The format of what is no number, where the server knows it.
fn texts_format(node: &Node) -> Option<&str> {
    let numeric = matches!(node.kind.as_deref(), Some("integer" | "number"));
    node.format.as_deref().filter(|format| !numeric && formats::is_known(format))
}

fn wrong_type(node: &Node, value: &Value, path: &str) -> FieldError {
    let (expected, found) = match texts_format(node) {
        // It compares formats, and only numbers have one of their own.
        Some(format) if is_integer(value) => (format, "int64"),
        Some(format) if value.is_number() => (format, "float64"),
        Some(format) if !value.is_null() => (format, ""),
        Some(_) | None if node.int_or_string => ("integer,string", type_name(value)),
        Some(_) | None => (node.kind.as_deref().unwrap_or(""), type_name(value)),
    };
    let place = if path.is_empty() { "" } else { path };
    let detail = format!("{place} in body must be of type {expected}: {found:?}");
    FieldError::new(Fault::TypeInvalid, path, json!(found), detail)
}

fn check_map(node: &Node, map: &Map<String, Value>, before: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let nullable = |name: &str| node.properties.get(name).is_some_and(|child| child.nullable);
    let absent = |name: &str| map.get(name).is_none_or(|value| value.is_null() && !nullable(name));
    let missing: Vec<&String> = node.required.iter().filter(|name| absent(name)).collect();
    let size = map.len() as u64;
    if let Some(least) = node.min_properties
        && size < least
    {
        let detail = format!("{path} in body should have at least {least} properties");
        errors.push(FieldError::invalid(path, Value::Object(map.clone()), detail));
    }
    if let Some(most) = node.max_properties
        && size > most
    {
        errors.push(FieldError::too_many(path, size, most));
    }
    for (name, child) in map {
        let known = node.properties.get(name).or(match &node.additional {
            Additional::Of(additional) => Some(additional),
            Additional::Any | Additional::Undeclared => None,
        });
        // A null where something is required is nothing.
        if missing.contains(&name) {
            continue;
        }
        if let Some(known) = known {
            walk(known, child, before.and_then(|before| before.get(name)), &below(path, name), errors);
        }
    }
    errors.extend(missing.into_iter().map(|name| FieldError::required(below(path, name), "")));
}

fn check_list(node: &Node, list: &[Value], before: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let size = list.len() as u64;
    if let Some(least) = node.min_items
        && size < least
    {
        let detail = format!("{path} in body should have at least {least} items");
        errors.push(FieldError::invalid(path, json!(size), detail));
    }
    if let Some(most) = node.max_items
        && size > most
    {
        errors.push(FieldError::too_many(path, size, most));
    }
    let old: &[Value] = before.and_then(Value::as_array).map_or(&[], Vec::as_slice);
    if let Some(items) = &node.items {
        for (index, item) in list.iter().enumerate() {
            // Only keyed items can be told to be the same as before.
            let same = match &node.list_type {
                ListType::Map(keys) => old.iter().find(|old| key_of(keys, old) == key_of(keys, item)),
                ListType::Atomic | ListType::Set => None,
            };
            walk(items, item, same, &format!("{path}[{index}]"), errors);
        }
    }
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        let identity = match &node.list_type {
            ListType::Map(keys) => key_of(keys, item),
            ListType::Set => item.clone(),
            ListType::Atomic if node.unique_items => item.clone(),
            ListType::Atomic => continue,
        };
        if !seen.insert(identity.to_string()) {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), identity));
        }
    }
}

fn key_of(keys: &[String], item: &Value) -> Value {
    keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect()
}

fn check_text(node: &Node, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    let length = text.chars().count() as u64;
    // The first of these is told, and the others are not.
    if let Some(most) = node.max_length.filter(|most| length > *most) {
        errors.push(FieldError::too_long(path, most));
    } else if let Some(least) = node.min_length.filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        errors.push(FieldError::invalid(path, text, detail));
    } else if let Some((pattern, compiled)) = &node.pattern
        && !compiled.as_ref().is_some_and(|compiled| compiled.is_match(text))
    {
        errors.push(FieldError::invalid(path, text, format!("{path} in body should match '{pattern}'")));
    }
    if let Some(format) = &node.format
        && !formats::fits(format, text)
    {
        let detail = format!("{path} in body must be of type {format}: {text:?}");
        errors.push(FieldError::new(Fault::TypeInvalid, path, json!(text), detail));
    }
}

fn check_number(node: &Node, number: f64, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path, value.clone(), detail));
    if let Some(bound) = node.minimum {
        if node.exclusive_minimum && number <= bound {
            refuse(format!("{path} in body should be greater than {bound}"));
        } else if !node.exclusive_minimum && number < bound {
            refuse(format!("{path} in body should be greater than or equal to {bound}"));
        }
    }
    if let Some(bound) = node.maximum {
        if node.exclusive_maximum && number >= bound {
            refuse(format!("{path} in body should be less than {bound}"));
        } else if !node.exclusive_maximum && number > bound {
            refuse(format!("{path} in body should be less than or equal to {bound}"));
        }
    }
    if let Some(step) = node.multiple_of
        && step > 0.0
        && (number / step).fract() != 0.0
    {
        refuse(format!("{path} in body should be a multiple of {step}"));
    }
    let bounded = node.maximum.is_some_and(|bound| number > bound) || node.minimum.is_some_and(|bound| number < bound);
    let fits = bounded
        || match node.format.as_deref() {
            Some("int32") => number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX),
            Some(_) | None => true,
        };
    if !fits {
        refuse(format!("Checked value must be of type integer with format int32 in {path}"));
    }
}

fn check_junctors(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let fits = |branch: &Node| {
        let mut inner = Vec::new();
        walk(branch, value, None, path, &mut inner);
        inner.is_empty()
    };
    for branch in &node.all_of {
        walk(branch, value, None, path, errors);
    }
    let mut refuse = |text: String| errors.push(FieldError::invalid(path, value.clone(), text));
    if !node.any_of.is_empty() && !node.any_of.iter().any(fits) {
        refuse(format!("{path:?} must validate at least one schema (anyOf)"));
    }
    if !node.one_of.is_empty() {
        match node.one_of.iter().filter(|branch| fits(branch)).count() {
            1 => {}
            0 => refuse(format!("{path:?} must validate one and only one schema (oneOf). Found none valid")),
            many => {
                refuse(format!(
                    "{path:?} must validate one and only one schema (oneOf). Found {many} valid alternatives"
                ));
            }
        }
    }
    if node.not.as_deref().is_some_and(fits) {
        refuse(format!("{path:?} must not validate the schema (not)"));
    }
}
