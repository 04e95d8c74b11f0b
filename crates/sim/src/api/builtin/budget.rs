//! PodDisruptionBudgets.

use serde_json::{Value, json};

use super::super::error::FieldError;
use super::super::object;
use super::label_selector;
use super::not_negative;

/// What is said of a share that is none.
pub(super) const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex \
    used for validation is '[0-9]+%')";

pub(super) fn validate(budget: &Value) -> Vec<FieldError> {
    let spec = object::at(budget, &["spec"]).cloned().unwrap_or_default();
    let mut errors = Vec::new();
    if object::at(&spec, &["minAvailable"]).is_some() && object::at(&spec, &["maxUnavailable"]).is_some() {
        errors.push(FieldError::invalid("spec", internal(&spec), "minAvailable and maxUnavailable cannot be both set"));
    }
    for key in ["minAvailable", "maxUnavailable"] {
        let field = format!("spec.{key}");
        errors.extend(not_negative(&spec, &[key], &field));
        if let Some(text) = object::at(&spec, &[key]).and_then(Value::as_str) {
            match text.strip_suffix('%').filter(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
                None | Some("") => errors.push(FieldError::invalid(field, text, PERCENT)),
                Some(number) => {
                    if number.parse::<u64>().unwrap_or(u64::MAX) > 100 {
                        errors.push(FieldError::invalid(field, text, "must not be greater than 100%"));
                    }
                }
            }
        }
    }
    errors.extend(label_selector::validate(object::at(&spec, &["selector"]), "spec.selector"));
    if let Some(policy) = object::at(&spec, &["unhealthyPodEvictionPolicy"]).and_then(Value::as_str)
        && !matches!(policy, "AlwaysAllow" | "IfHealthyBudget")
    {
        let supported = ["AlwaysAllow", "IfHealthyBudget"];
        errors.push(FieldError::not_supported("spec.unhealthyPodEvictionPolicy", json!(policy), &supported));
    }
    errors
}

/// The server shows its internal form of a spec, whose fields have other names.
fn internal(spec: &Value) -> Value {
    json!({
        "MinAvailable": spec.get("minAvailable"),
        "Selector": spec.get("selector"),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    })
}

pub(super) fn validate_status(budget: &Value) -> Vec<FieldError> {
    let keys = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    keys.iter().filter_map(|key| not_negative(budget, &["status", key], &format!("status.{key}"))).collect()
}
