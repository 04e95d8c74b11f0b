//! What a `LabelSelector` inside an object must look like.

use serde_json::Value;

use super::super::error::FieldError;
use super::super::metadata;
use super::super::object;

pub(super) fn validate(selector: Option<&Value>, field: &str) -> Vec<FieldError> {
    let Some(selector) = selector else { return Vec::new() };
    let mut errors = metadata::labels(object::at(selector, &["matchLabels"]), &format!("{field}.matchLabels"));
    let expressions = object::at(selector, &["matchExpressions"]).and_then(Value::as_array);
    for (index, expression) in expressions.into_iter().flatten().enumerate() {
        errors.extend(validate_expression(expression, &format!("{field}.matchExpressions[{index}]")));
    }
    errors
}

fn validate_expression(expression: &Value, place: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let given = object::at(expression, &["values"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match object::text(expression, &["operator"]) {
        "In" | "NotIn" if given.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(format!("{place}.values"), why));
        }
        "Exists" | "DoesNotExist" if !given.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(format!("{place}.values"), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(format!("{place}.operator"), other, "not a valid selector operator")),
    }
    let key = object::text(expression, &["key"]);
    let problems = metadata::qualified_problems(key).into_iter();
    errors.extend(problems.map(|why| FieldError::invalid(format!("{place}.key"), key, why)));
    for (index, value) in given.iter().enumerate() {
        let value = value.as_str().unwrap_or("");
        let problems = metadata::label_value_problems(value).into_iter();
        errors.extend(problems.map(|why| FieldError::invalid(format!("{place}.values[{index}]"), value, why)));
    }
    errors
}
