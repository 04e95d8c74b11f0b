//! StatefulSets.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::metadata;
use super::super::object;
use super::super::selector::Labels;
use super::pod_template;

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
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

pub(super) fn default(set: &mut Map<String, Value>) {
    let spec = object::child(set, "spec");
    object::default(spec, "podManagementPolicy", json!("OrderedReady"));
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
    // A field whose feature gate is off by default is dropped without a word.
    if let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut) {
        rolling.remove("maxUnavailable");
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

pub(super) fn validate(set: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let number = |key: &str| object::integer(set, &["spec", key]);
    for key in ["replicas", "minReadySeconds"] {
        if let Some(value) = number(key).filter(|value| *value < 0) {
            errors.push(FieldError::invalid(format!("spec.{key}"), value, NOT_NEGATIVE));
        }
    }
    let policy = object::text(set, &["spec", "podManagementPolicy"]);
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let why = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid("spec.podManagementPolicy", policy, why));
    }
    errors.extend(validate_strategy(set));
    errors.extend(validate_selector(set));
    errors.extend(validate_template(set));
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
    let partition = rolling.and_then(|rolling| object::integer(rolling, &["partition"]));
    match (object::text(&strategy, &["type"]), rolling) {
        ("OnDelete", Some(rolling)) => {
            // The server shows its internal form of the value, where an unset partition reads as 0.
            let shown = json!({
                "Partition": partition.unwrap_or(0),
                "MaxUnavailable": rolling.get("maxUnavailable"),
            });
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            vec![FieldError::invalid("spec.updateStrategy.rollingUpdate", shown, why)]
        }
        ("RollingUpdate", Some(_)) => match partition.filter(|partition| *partition < 0) {
            Some(partition) => {
                let field = "spec.updateStrategy.rollingUpdate.partition";
                vec![FieldError::invalid(field, partition, NOT_NEGATIVE)]
            }
            None => Vec::new(),
        },
        ("OnDelete" | "RollingUpdate", None) => Vec::new(),
        (_, _) => {
            vec![FieldError::invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")]
        }
    }
}

fn validate_selector(set: &Value) -> Vec<FieldError> {
    let selector = object::at(set, &["spec", "selector"]).cloned().unwrap_or_else(|| json!({}));
    let labels = object::at(set, &["spec", "template", "metadata", "labels"]);
    match Labels::from_object(&selector) {
        Some(parsed) if parsed.is_empty() => {
            vec![FieldError::invalid("spec.selector", selector, "empty selector is invalid for statefulset")]
        }
        Some(parsed) if parsed.matches(labels) => {
            metadata::labels(object::at(&selector, &["matchLabels"]), "spec.selector.matchLabels")
        }
        Some(_) => {
            let shown = labels.cloned().unwrap_or(Value::Null);
            let why = "`selector` does not match template `labels`";
            vec![FieldError::invalid("spec.template.metadata.labels", shown, why)]
        }
        None => vec![FieldError::invalid("spec.selector", selector, "not a valid selector operator")],
    }
}

fn validate_template(set: &Value) -> Vec<FieldError> {
    let mut errors = super::pod::validate_spec(
        object::at(set, &["spec", "template", "spec"]).unwrap_or(&Value::Null),
        "spec.template.spec",
    );
    let policy = object::text(set, &["spec", "template", "spec", "restartPolicy"]);
    if policy != "Always" {
        errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", json!(policy), &["Always"]));
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
        let several = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
        assert_eq!(strategy(&several), rolling);
    }
}
