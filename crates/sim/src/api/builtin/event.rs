//! Events, of the core group and of their own.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::metadata;
use super::super::object;
use super::super::resource::Resource;

/// What an event always shows.
pub(super) fn default(resource: &Resource, event: &mut Map<String, Value>) {
    let group = resource.group.as_str();
    let absent: &[(&str, Value)] = if group.is_empty() {
        &[
            ("eventTime", Value::Null),
            ("firstTimestamp", Value::Null),
            ("lastTimestamp", Value::Null),
            ("reportingComponent", json!("")),
            ("reportingInstance", json!("")),
            ("source", json!({})),
            ("involvedObject", json!({})),
        ]
    } else {
        &[
            ("eventTime", Value::Null),
            ("deprecatedFirstTimestamp", Value::Null),
            ("deprecatedLastTimestamp", Value::Null),
            ("deprecatedSource", json!({})),
            ("regarding", json!({})),
        ]
    };
    for (key, value) in absent {
        if !event.contains_key(*key) {
            event.insert((*key).to_owned(), value.clone());
        }
    }
}

/// Where the two shapes of an event have the same fact. Messages use the core group's names, save for one.
struct Facts<'a> {
    event: &'a Value,
    old_shape: bool,
}

impl Facts<'_> {
    fn text(&self, old: &[&str], new: &[&str]) -> &str {
        object::text(self.event, if self.old_shape { old } else { new })
    }
}

pub(super) fn validate(resource: &Resource, event: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let facts = Facts { event, old_shape: resource.group.is_empty() };
    let mut errors = Vec::new();
    let about = facts.text(&["involvedObject", "namespace"], &["regarding", "namespace"]);
    let own = object::meta_text(event, "namespace");
    let elsewhere = || FieldError::invalid("involvedObject.namespace", about, "does not match event.namespace");
    let timed = object::at(event, &["eventTime"]).is_some();
    if timed {
        if about.is_empty() && own != "default" && own != "kube-system" {
            errors.push(elsewhere());
        }
        errors.extend(validate_timed(&facts));
    } else if about != own && !(about.is_empty() && own == "default") {
        errors.push(elsewhere());
    }
    if facts.old_shape {
        return errors;
    }
    match before {
        Some(before) => errors.extend(validate_change(event, before)),
        None => errors.extend(validate_new(event, timed)),
    }
    errors
}

/// What an event with a time of its own must say.
fn validate_timed(facts: &Facts<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let controller = facts.text(&["reportingComponent"], &["reportingController"]);
    let field = if facts.old_shape { "reportingComponent" } else { "reportingController" };
    if controller.is_empty() {
        errors.push(FieldError::required(field, ""));
    }
    let problems = metadata::qualified_problems(controller).into_iter();
    errors.extend(problems.map(|why| FieldError::invalid(field, controller, why)));
    for (key, limit) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        let text = object::text(facts.event, &[key]);
        if text.is_empty() {
            errors.push(FieldError::required(key, ""));
        }
        if text.len() > limit {
            errors.push(FieldError::invalid(key, "", format!("can have at most {limit} characters")));
        }
    }
    if facts.text(&["message"], &["note"]).len() > 1024 {
        errors.push(FieldError::invalid("message", "", "can have at most 1024 characters"));
    }
    errors
}

fn validate_new(event: &Value, timed: bool) -> Vec<FieldError> {
    let mut errors = validate_series(event);
    if !timed {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = object::text(event, &["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
    }
    for (key, field) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ] {
        if object::at(event, &[key]).is_some() {
            errors.push(FieldError::invalid(field, "", "needs to be unset"));
        }
    }
    if object::at(event, &["deprecatedSource"]).and_then(Value::as_object).is_some_and(|source| !source.is_empty()) {
        errors.push(FieldError::invalid("source", "", "needs to be unset"));
    }
    errors
}

fn validate_series(event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(series) = object::at(event, &["series"]) {
        if object::integer(series, &["count"]).unwrap_or(0) < 2 {
            errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
        }
        if object::at(series, &["lastObservedTime"]).is_none() {
            errors.push(FieldError::required("series.lastObservedTime", ""));
        }
    }
    errors
}

/// Nothing but the series may change.
fn validate_change(event: &Value, before: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if event.get("series") != before.get("series") {
        errors.extend(validate_series(event));
    }
    for (key, field) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        if event.get(key) != before.get(key) {
            let shown = event.get(key).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(field, shown, "field is immutable"));
        }
    }
    errors
}
