//! Whether a value has the shape of its type.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::types::{Items, List, Part, Record, Scalar, TypeRef};
use super::Problem;
use super::element;
use super::set::part_of;

/// What is wrong with the value; items of a list that can't be told apart are.
pub(crate) fn validate(of: &TypeRef, value: &Value) -> Vec<Problem> {
    match part_of(of, value) {
        Some(Part::Scalar(kind)) => scalar(kind, value),
        Some(Part::Map(record)) => match value {
            Value::Object(map) => fields(record, map),
            Value::Null => Vec::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                vec![Problem::new(format!("expected map, got &{{{}}}", plain(value)))]
            }
        },
        Some(Part::List(list)) => match value {
            Value::Array(values) => items(list, values),
            Value::Null => Vec::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                vec![Problem::new(format!("expected list, got &{{{}}}", plain(value)))]
            }
        },
        None => vec![Problem::new("schema error: invalid atom: inlined")],
    }
}

fn scalar(kind: Scalar, value: &Value) -> Vec<Problem> {
    let fits = match (kind, value) {
        (_, Value::Null)
        | (Scalar::Text, Value::String(_))
        | (Scalar::Number, Value::Number(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Any, Value::Bool(_) | Value::Number(_) | Value::String(_)) => true,
        (Scalar::Text | Scalar::Number | Scalar::Boolean | Scalar::Any, _) => false,
    };
    if fits {
        return Vec::new();
    }
    let why = match kind {
        Scalar::Text => format!("expected string, got &value.valueUnstructured{{Value:{}}}", literal(value)),
        Scalar::Number => format!("expected numeric (int or float), got {}", type_name(value)),
        Scalar::Boolean => format!("expected boolean, got &{{{}}}", plain(value)),
        Scalar::Any => format!("expected any scalar, got &{{{}}}", plain(value)),
    };
    vec![Problem::new(why)]
}

fn fields(record: &Record, map: &Map<String, Value>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (key, value) in map {
        let step = element::show(&element::field(key));
        let Some(of) = record.below(key) else {
            problems.push(Problem::new("field not declared in schema").below(&step));
            // The server, too, stops at the first one of a map.
            return problems;
        };
        problems.extend(validate(of, value).into_iter().map(|problem| problem.below(&step)));
    }
    problems
}

fn items(list: &List, values: &[Value]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (place, value) in values.iter().enumerate() {
        let step = match (&list.items, element::item(list, value)) {
            (Items::Atomic, _) => format!("i:{place}"),
            (Items::Set | Items::Keyed(_), Ok(step)) => step,
            (Items::Set | Items::Keyed(_), Err(why)) => {
                problems.push(Problem::new(format!("element {place}: {why}")));
                return problems;
            }
        };
        let shown = element::show(&step);
        if !seen.insert(step) {
            problems.push(Problem::new(format!("duplicate entries for key {shown}")));
        }
        problems.extend(validate(&list.element, value).into_iter().map(|problem| problem.below(&shown)));
    }
    problems
}

/// A value as the server's language prints it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

/// The same with types.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(list) => {
            format!("[]interface {{}}{{{}}}", list.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key:?}:{}", literal(value))).collect();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
