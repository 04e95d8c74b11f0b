//! Deployments.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::object;
use super::budget::PERCENT;
use super::{not_negative, replicaset};

const ROLLING: &str = "spec.strategy.rollingUpdate";

pub(super) fn default(deployment: &mut Map<String, Value>) {
    replicaset::default(deployment);
    let spec = object::child(deployment, "spec");
    let strategy = object::child(spec, "strategy");
    if strategy.get("type").and_then(Value::as_str).unwrap_or("").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
    }
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        let rolling = object::child(strategy, "rollingUpdate");
        object::default(rolling, "maxUnavailable", json!("25%"));
        object::default(rolling, "maxSurge", json!("25%"));
    }
    object::default(spec, "revisionHistoryLimit", json!(10));
    object::default(spec, "progressDeadlineSeconds", json!(600));
}

pub(super) fn validate(deployment: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> =
        not_negative(deployment, &["spec", "replicas"], "spec.replicas").into_iter().collect();
    errors.extend(replicaset::validate_selector_and_template(deployment));
    errors.extend(validate_strategy(deployment));
    for key in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        errors.extend(not_negative(deployment, &["spec", key], &format!("spec.{key}")));
    }
    let patience = object::integer(deployment, &["spec", "minReadySeconds"]).unwrap_or(0);
    if let Some(seconds) = object::integer(deployment, &["spec", "progressDeadlineSeconds"])
        && seconds <= patience
    {
        let why = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid("spec.progressDeadlineSeconds", seconds, why));
    }
    errors.extend(replicaset::validate_same_selector(deployment, before));
    errors
}

fn validate_strategy(deployment: &Value) -> Vec<FieldError> {
    let strategy = object::at(deployment, &["spec", "strategy"]).cloned().unwrap_or_default();
    match (object::text(&strategy, &["type"]), object::at(&strategy, &["rollingUpdate"])) {
        ("Recreate", None) => Vec::new(),
        ("Recreate", Some(_)) => {
            vec![FieldError::forbidden(ROLLING, "may not be specified when strategy `type` is 'Recreate'")]
        }
        ("RollingUpdate", Some(rolling)) => validate_rolling(rolling),
        ("RollingUpdate", None) => {
            vec![FieldError::required(ROLLING, "this should be defaulted and never be nil")]
        }
        (kind, rolling) => {
            let shown = json!({"Type": kind, "RollingUpdate": rolling});
            vec![FieldError::not_supported("spec.strategy", shown, &["Recreate", "RollingUpdate"])]
        }
    }
}

fn validate_rolling(rolling: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let percent = |key: &str| {
        let text = object::at(rolling, &[key]).and_then(Value::as_str)?.strip_suffix('%')?;
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i64>().unwrap_or(i64::MAX))
    };
    for key in ["maxUnavailable", "maxSurge"] {
        let field = format!("{ROLLING}.{key}");
        errors.extend(not_negative(rolling, &[key], &field));
        if let Some(text) = object::at(rolling, &[key]).and_then(Value::as_str)
            && percent(key).is_none()
        {
            errors.push(FieldError::invalid(field, text, PERCENT));
        }
    }
    let value = |key: &str| percent(key).or_else(|| object::integer(rolling, &[key])).unwrap_or(0);
    let field = format!("{ROLLING}.maxUnavailable");
    let shown = || object::at(rolling, &["maxUnavailable"]).cloned().unwrap_or_default();
    if value("maxUnavailable") == 0 && value("maxSurge") == 0 {
        errors.push(FieldError::invalid(field.clone(), shown(), "may not be 0 when `maxSurge` is 0"));
    }
    if percent("maxUnavailable").is_some_and(|percent| percent > 100) {
        errors.push(FieldError::invalid(field, shown(), "must not be greater than 100%"));
    }
    errors
}

pub(super) fn validate_status(deployment: &Value, before: &Value) -> Vec<FieldError> {
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    let others = ["unavailableReplicas", "observedGeneration", "collisionCount"];
    let mut errors = replicaset::validate_counts(deployment, &parts, &others);
    let clashes = |object: &Value| object::integer(object, &["status", "collisionCount"]);
    if clashes(before).is_some_and(|known| clashes(deployment).unwrap_or(0) < known) {
        let shown = clashes(deployment).unwrap_or(0);
        errors.push(FieldError::invalid("status.collisionCount", shown, "cannot be decremented"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaulted(spec: &Value) -> Value {
        let mut deployment = json!({"spec": spec});
        default(deployment.as_object_mut().unwrap());
        deployment
    }

    #[test]
    fn a_rolling_update_by_quarters_is_the_default() {
        let spec = defaulted(&json!({}))["spec"].clone();
        let quarters = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
        assert_eq!(spec["strategy"], json!({"type": "RollingUpdate", "rollingUpdate": quarters}));
        assert_eq!((&spec["replicas"], &spec["revisionHistoryLimit"]), (&json!(1), &json!(10)));
        assert_eq!(spec["progressDeadlineSeconds"], json!(600));
        let recreate = defaulted(&json!({"strategy": {"type": "Recreate"}}));
        assert_eq!(recreate["spec"]["strategy"], json!({"type": "Recreate"}));
    }

    #[test]
    fn an_update_that_could_never_begin_is_refused() {
        let refused = |unavailable: Value, surge: Value| {
            validate_rolling(&json!({"maxUnavailable": unavailable, "maxSurge": surge})).len()
        };
        assert_eq!(refused(json!(0), json!(0)), 1);
        assert_eq!(refused(json!("0%"), json!(0)), 1);
        assert_eq!(refused(json!("101%"), json!(0)), 1);
        assert_eq!(refused(json!("half"), json!(1)), 1);
        assert_eq!(refused(json!(-1), json!(1)), 1);
        assert_eq!(refused(json!("25%"), json!("250%")), 0);
    }
}
