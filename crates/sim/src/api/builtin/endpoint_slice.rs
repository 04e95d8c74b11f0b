//! EndpointSlices: some of the addresses behind a Service.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::object;
use super::list_mut;

const TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];

pub(super) fn default(slice: &mut Map<String, Value>) {
    for port in list_mut(slice, "ports") {
        object::default(port, "name", json!(""));
        object::default(port, "protocol", json!("TCP"));
    }
    // The storage doesn't tell an empty list from none.
    for key in ["endpoints", "ports"] {
        if slice.get(key).and_then(Value::as_array).is_none_or(Vec::is_empty) {
            slice.insert(key.to_owned(), Value::Null);
        }
    }
}

/// Everything but the metadata counts for the generation.
pub(super) fn prepare_update(slice: &mut Value, before: &Value) {
    if ["addressType", "endpoints", "ports"].iter().any(|key| slice.get(key) != before.get(key)) {
        object::set_meta(slice, "generation", json!(object::generation(before) + 1));
    }
}

pub(super) fn validate(slice: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = object::text(slice, &["addressType"]);
    if kind.is_empty() {
        errors.push(FieldError::required("addressType", ""));
    } else if !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported("addressType", json!(kind), &TYPES));
    }
    let endpoints = object::at(slice, &["endpoints"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, endpoint) in endpoints.iter().enumerate() {
        let addresses = object::at(endpoint, &["addresses"]).and_then(Value::as_array);
        if addresses.is_none_or(Vec::is_empty) {
            errors
                .push(FieldError::required(format!("endpoints[{index}].addresses"), "must contain at least 1 address"));
        }
    }
    if let Some(before) = before
        && kind != object::text(before, &["addressType"])
    {
        errors.push(FieldError::invalid("addressType", kind, "field is immutable"));
    }
    errors
}
