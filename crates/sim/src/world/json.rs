//! Reading Kubernetes objects as JSON: the controllers here look at a handful of fields of objects that others made.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A string field; empty when it is absent.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number.
pub(crate) fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

/// A list; empty when it is absent.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// An object's name.
pub(crate) fn name(value: &Value) -> &str {
    text(value, "/metadata/name")
}

/// An object's uid.
pub(crate) fn uid(value: &Value) -> &str {
    text(value, "/metadata/uid")
}

/// True once somebody has asked for the object's deletion.
pub(crate) fn terminating(value: &Value) -> bool {
    value.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// The owner reference of the managing controller.
pub(crate) fn controller(value: &Value) -> Option<&Value> {
    list(value, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == Value::Bool(true))
}

/// One of the object's conditions.
pub(crate) fn condition<'a>(value: &'a Value, kind: &str) -> Option<&'a Value> {
    list(value, "/status/conditions").iter().find(|condition| text(condition, "/type") == kind)
}

/// True when this condition is there and says so.
pub(crate) fn is_true(value: &Value, kind: &str) -> bool {
    condition(value, kind).is_some_and(|condition| text(condition, "/status") == "True")
}

/// A timestamp as the API writes it, in whole seconds.
pub(crate) fn time(at: Timestamp) -> Value {
    Timestamp::from_second(at.as_second()).map_or(Value::Null, |second| json!(second.to_string()))
}

/// How long ago a timestamp field was.
pub(crate) fn since(value: &Value, pointer: &str, now: Timestamp) -> Option<Duration> {
    let at: Timestamp = text(value, pointer).parse().ok()?;
    Some(now.duration_since(at).try_into().unwrap_or_default())
}

/// Which way a share that is no whole number goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
}

/// A number, or a share of `whole` such as `25%`; none where it is neither.
pub(crate) fn share(value: &Value, whole: i64, rounding: Rounding) -> Option<i64> {
    let Some(share) = value.as_str() else { return value.as_i64() };
    let percent: i64 = share.strip_suffix('%')?.parse().ok()?;
    let rest = match rounding {
        Rounding::Up => 99,
        Rounding::Down => 0,
    };
    Some((percent * whole + rest) / 100)
}

/// A condition to set; its transition time is kept where the status stays.
pub(crate) struct Condition<'a> {
    pub kind: &'a str,
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

/// The object's conditions with these ones set and all others kept.
pub(crate) fn with_conditions(value: &Value, set: &[Condition<'_>], now: Timestamp) -> Value {
    let mut conditions: Vec<Value> = list(value, "/status/conditions").to_vec();
    for wanted in set {
        let at = conditions.iter().position(|condition| text(condition, "/type") == wanted.kind);
        let kept = at
            .and_then(|at| conditions.get(at))
            .filter(|condition| text(condition, "/status") == wanted.status)
            .and_then(|condition| condition.get("lastTransitionTime").cloned());
        let mut condition = Map::new();
        condition.insert("type".to_owned(), json!(wanted.kind));
        condition.insert("status".to_owned(), json!(wanted.status));
        condition.insert("lastTransitionTime".to_owned(), kept.unwrap_or_else(|| time(now)));
        if !wanted.reason.is_empty() {
            condition.insert("reason".to_owned(), json!(wanted.reason));
        }
        if !wanted.message.is_empty() {
            condition.insert("message".to_owned(), json!(wanted.message));
        }
        match at.and_then(|at| conditions.get_mut(at)) {
            Some(slot) => *slot = Value::Object(condition),
            None => conditions.push(Value::Object(condition)),
        }
    }
    Value::Array(conditions)
}

/// Whether a label selector (`matchLabels`, `matchExpressions`) selects an object with these labels. An empty one selects all.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let by_label = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    by_label
        && list(selector, "/matchExpressions").iter().all(|expression| {
            let present = labels.get(text(expression, "/key"));
            let listed = present.is_some_and(|value| list(expression, "/values").contains(value));
            match text(expression, "/operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => present.is_some(),
                "DoesNotExist" => present.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_needs_all_its_labels_and_expressions() {
        let labels = json!({"app": "pd", "tier": "db"});
        assert!(selects(&json!({}), &labels));
        assert!(selects(&json!({"matchLabels": {"app": "pd"}}), &labels));
        assert!(!selects(&json!({"matchLabels": {"app": "pd", "tier": "web"}}), &labels));
        let not_in = json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}]});
        assert!(!selects(&not_in, &labels));
        assert!(selects(&json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}), &labels));
    }

    #[test]
    fn shares_are_rounded_up_or_down() {
        assert_eq!(share(&json!("50%"), 3, Rounding::Up), Some(2));
        assert_eq!(share(&json!("34%"), 3, Rounding::Up), Some(2));
        assert_eq!(share(&json!("34%"), 3, Rounding::Down), Some(1));
        assert_eq!(share(&json!(1), 3, Rounding::Down), Some(1));
        assert_eq!(share(&json!("one"), 3, Rounding::Up), None);
    }

    #[test]
    fn a_condition_keeps_its_transition_time_while_its_status_stays() {
        let old = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}, {"type": "Other", "status": "True"}]}});
        let now = crate::clock::EPOCH.saturating_add(Duration::from_mins(1)).expect("in range");
        let same = with_conditions(&old, &[Condition { kind: "Ready", status: "True", reason: "", message: "" }], now);
        assert_eq!(same[0]["lastTransitionTime"], json!("2026-01-01T00:00:00Z"));
        let turned =
            with_conditions(&old, &[Condition { kind: "Ready", status: "False", reason: "R", message: "m" }], now);
        assert_eq!(turned[0]["lastTransitionTime"], json!("2026-01-01T00:01:00Z"));
        assert_eq!(turned.as_array().map(Vec::len), Some(2));
    }
}
