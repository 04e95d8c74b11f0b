//! StatefulSets.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::metadata;
use super::super::object;
use super::super::selector::Labels;
use super::label_selector;
use super::{not_negative, pod_spec, pod_template};

const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
const IMMUTABLE_MESSAGE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
    'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

pub(super) fn default(set: &mut Map<String, Value>) {
    let spec = object::child(set, "spec");
    if spec.get("podManagementPolicy").and_then(Value::as_str).unwrap_or("").is_empty() {
        spec.insert("podManagementPolicy".to_owned(), json!("OrderedReady"));
    }
    object::default(spec, "replicas", json!(1));
    object::default(spec, "revisionHistoryLimit", json!(10));
    object::default(spec, "serviceName", json!(""));
    let strategy = object::child(spec, "updateStrategy");
    if strategy.get("type").and_then(Value::as_str).unwrap_or("").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
        object::default(strategy, "rollingUpdate", json!({}));
    }
    // A type that was set without parameters stays without them.
    if strategy.get("type") == Some(&json!("RollingUpdate"))
        && let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut)
    {
        object::default(rolling, "partition", json!(0));
    }
    let retention = object::child(spec, "persistentVolumeClaimRetentionPolicy");
    object::default(retention, "whenDeleted", json!("Retain"));
    object::default(retention, "whenScaled", json!("Retain"));
    pod_template::default_template(spec);
    for claim in super::list_mut(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".to_owned(), json!("v1"));
        claim.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
        pod_template::default_claim(claim);
    }
}

/// Takes out what is behind a feature gate that is off.
pub(super) fn drop_disabled(set: &mut Value) {
    let rolling = set.pointer_mut("/spec/updateStrategy/rollingUpdate").and_then(Value::as_object_mut);
    if let Some(rolling) = rolling {
        rolling.remove("maxUnavailable");
    }
}

pub(super) fn validate(set: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policy = object::text(set, &["spec", "podManagementPolicy"]);
    match policy {
        "OrderedReady" | "Parallel" => {}
        _ => {
            let why = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid("spec.podManagementPolicy", policy, why));
        }
    }
    errors.extend(validate_strategy(set));
    for key in ["whenDeleted", "whenScaled"] {
        let policy = object::text(set, &["spec", "persistentVolumeClaimRetentionPolicy", key]);
        if !matches!(policy, "Retain" | "Delete") {
            let field = format!("spec.persistentVolumeClaimRetentionPolicy.{key}");
            errors.push(FieldError::not_supported(field, json!(policy), &["Retain", "Delete"]));
        }
    }
    for path in [&["replicas"][..], &["minReadySeconds"], &["ordinals", "start"]] {
        let place = [&["spec"][..], path].concat();
        errors.extend(not_negative(set, &place, &place.join(".")));
    }
    let service = object::text(set, &["spec", "serviceName"]);
    if before.is_none() && !service.is_empty() {
        let problems = metadata::label_problems(service).into_iter();
        errors.extend(problems.map(|why| FieldError::invalid("spec.serviceName", service, why)));
    }
    errors.extend(validate_selector_and_template(set));
    if let Some(before) = before
        && !same_where_immutable(set, before)
    {
        errors.push(FieldError::forbidden("spec", IMMUTABLE_MESSAGE));
    }
    errors
}

fn validate_strategy(set: &Value) -> Vec<FieldError> {
    let strategy = object::at(set, &["spec", "updateStrategy"]).cloned().unwrap_or_default();
    let rolling = object::at(&strategy, &["rollingUpdate"]);
    let field = "spec.updateStrategy.rollingUpdate";
    match (object::text(&strategy, &["type"]), rolling) {
        ("OnDelete", Some(rolling)) => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            vec![FieldError::invalid(field, internal_rolling(rolling), why)]
        }
        ("RollingUpdate", Some(rolling)) => {
            not_negative(rolling, &["partition"], &format!("{field}.partition")).into_iter().collect()
        }
        ("OnDelete" | "RollingUpdate", None) => Vec::new(),
        ("", _) => vec![FieldError::required("spec.updateStrategy", "")],
        (kind, _) => {
            let shown = json!({"Type": kind, "RollingUpdate": rolling.map(internal_rolling)});
            vec![FieldError::invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")]
        }
    }
}

/// The server shows its internal form of the value, where an unset partition reads as 0.
fn internal_rolling(rolling: &Value) -> Value {
    let partition = object::integer(rolling, &["partition"]).unwrap_or(0);
    json!({"Partition": partition, "MaxUnavailable": rolling.get("maxUnavailable")})
}

fn validate_selector_and_template(set: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector = object::at(set, &["spec", "selector"]);
    errors.extend(label_selector::validate(selector, "spec.selector"));
    let labels = object::at(set, &["spec", "template", "metadata", "labels"]);
    let unreadable = !errors.is_empty();
    match selector.map(Labels::from_object) {
        None => {
            errors.push(FieldError::required("spec.selector", ""));
            // What selects nothing does not select the template's pods either.
            errors.push(mismatch(labels));
        }
        Some(_) if unreadable => {
            let shown = selector.cloned().unwrap_or_default();
            errors.push(FieldError::invalid("spec.selector", shown, ""));
        }
        Some(None) => {
            let shown = selector.cloned().unwrap_or_default();
            errors.push(FieldError::invalid("spec.selector", shown, ""));
        }
        Some(Some(parsed)) => {
            if parsed.is_empty() {
                let why = "empty selector is invalid for statefulset";
                errors.push(FieldError::invalid("spec.selector", selector.cloned().unwrap_or_default(), why));
            } else if !parsed.matches(labels) {
                errors.push(mismatch(labels));
            }
        }
    }
    if !unreadable {
        errors.extend(validate_template(set, labels));
    }
    let spec = |key: &str| object::at(set, &["spec", "template", "spec", key]);
    let policy = spec("restartPolicy").and_then(Value::as_str).unwrap_or("");
    if policy != "Always" {
        errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", json!(policy), &["Always"]));
    }
    if spec("activeDeadlineSeconds").is_some() {
        let why = "activeDeadlineSeconds in StatefulSet is not Supported";
        errors.push(FieldError::forbidden("spec.template.spec.activeDeadlineSeconds", why));
    }
    errors
}

fn mismatch(labels: Option<&Value>) -> FieldError {
    let shown = labels.cloned().unwrap_or(Value::Null);
    let why = "`selector` does not match template `labels`";
    FieldError::invalid("spec.template.metadata.labels", shown, why)
}

/// What is accepted, but not without a word.
pub(super) fn warnings(set: &Value) -> Vec<String> {
    let why =
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
    let negative = object::integer(set, &["spec", "revisionHistoryLimit"]).is_some_and(|limit| limit < 0);
    if negative { vec![why.to_owned()] } else { Vec::new() }
}

fn validate_template(set: &Value, labels: Option<&Value>) -> Vec<FieldError> {
    let spec = object::at(set, &["spec", "template", "spec"]).unwrap_or(&Value::Null);
    let mut errors = metadata::labels(labels, "spec.template.labels");
    errors.extend(pod_spec::validate(spec, "spec.template.spec"));
    // The server looks at them twice, and calls them the same both times.
    errors.extend(metadata::labels(labels, "spec.template.labels"));
    errors
}

pub(super) fn validate_status(set: &Value, before: &Value) -> Vec<FieldError> {
    const COUNTS: [&str; 4] = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    let number = |object: &Value, key: &str| object::integer(object, &["status", key]).unwrap_or(0);
    let field = |key: &str| format!("status.{key}");
    let keys = ["replicas"].into_iter().chain(COUNTS).chain(["observedGeneration", "collisionCount"]);
    let mut errors: Vec<FieldError> = keys.filter_map(|key| not_negative(set, &["status", key], &field(key))).collect();
    for key in COUNTS.into_iter().filter(|key| number(set, key) > number(set, "replicas")) {
        let why = "cannot be greater than status.replicas";
        errors.push(FieldError::invalid(field(key), number(set, key), why));
    }
    if number(set, "availableReplicas") > number(set, "readyReplicas") {
        let why = "cannot be greater than status.readyReplicas";
        errors.push(FieldError::invalid(field("availableReplicas"), number(set, "availableReplicas"), why));
    }
    let decremented = object::at(before, &["status", "collisionCount"]).is_some()
        && number(set, "collisionCount") < number(before, "collisionCount");
    if decremented {
        let why = "cannot be decremented";
        errors.push(FieldError::invalid(field("collisionCount"), number(set, "collisionCount"), why));
    }
    errors
}

fn same_where_immutable(set: &Value, before: &Value) -> bool {
    let fixed = |object: &Value| -> Map<String, Value> {
        let spec = object::at(object, &["spec"]).and_then(Value::as_object);
        let kept = spec.into_iter().flatten().filter(|(key, _)| !MUTABLE.contains(&key.as_str()));
        kept.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    fixed(set) == fixed(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(given: &Value) -> Value {
        let mut set = json!({"spec": {"updateStrategy": given}});
        default(set.as_object_mut().unwrap());
        set["spec"]["updateStrategy"].clone()
    }

    #[test]
    fn only_a_missing_type_brings_the_parameters_with_it() {
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
        assert_eq!(strategy(&json!({})), rolling);
        assert_eq!(strategy(&json!({"type": "RollingUpdate", "rollingUpdate": {}})), rolling);
        assert_eq!(strategy(&json!({"type": "RollingUpdate"})), json!({"type": "RollingUpdate"}));
        assert_eq!(strategy(&json!({"type": "OnDelete"})), json!({"type": "OnDelete"}));
    }

    #[test]
    fn a_field_whose_feature_gate_is_off_is_dropped() {
        let mut set = json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2, "partition": 1}}}});
        drop_disabled(&mut set);
        assert_eq!(set["spec"]["updateStrategy"]["rollingUpdate"], json!({"partition": 1}));
    }
}
