//! What names, labels and the other metadata must look like.

use serde_json::{Value, json};

use super::error::FieldError;
use super::object;
use super::resource::{Resource, Rules};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
pub(crate) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

pub(crate) fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Letters, digits and `-_.` with a letter or digit at both ends.
fn is_word(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().copied().all(inner) && edge(bytes.first()) && edge(bytes.last())
}

/// What is wrong with a name of this resource.
fn name_problems(resource: &Resource, name: &str) -> Vec<String> {
    let too_long = |limit: usize| format!("must be no more than {limit} characters");
    let mut problems = Vec::new();
    match resource.rules {
        Rules::Namespace => {
            if name.len() > 63 {
                problems.push(too_long(63));
            }
            if !is_label(name) {
                problems.push(LABEL.to_owned());
            }
        }
        Rules::Service => {
            if name.len() > 63 {
                problems.push(too_long(63));
            }
            if !is_label(name) || name.starts_with(|first: char| first.is_ascii_digit()) {
                problems.push(LABEL_1035.to_owned());
            }
        }
        Rules::Node
        | Rules::Pod
        | Rules::Endpoints
        | Rules::EndpointSlice
        | Rules::ConfigMap
        | Rules::Secret
        | Rules::ServiceAccount
        | Rules::PersistentVolumeClaim
        | Rules::Event
        | Rules::StatefulSet
        | Rules::ControllerRevision
        | Rules::Deployment
        | Rules::ReplicaSet
        | Rules::Lease
        | Rules::PodDisruptionBudget
        | Rules::CustomResourceDefinition
        | Rules::Custom => {
            if name.len() > 253 {
                problems.push(too_long(253));
            }
            if !is_subdomain(name) {
                problems.push(SUBDOMAIN.to_owned());
            }
        }
    }
    problems
}

/// Checks what every object's metadata must fulfil.
pub(crate) fn validate(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = object::name(object);
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        let problems = name_problems(resource, name);
        errors.extend(problems.into_iter().map(|why| FieldError::invalid("metadata.name", name, why)));
    }
    errors.extend(labels(object::meta(object, "labels"), "metadata.labels"));
    for (key, _) in object::meta(object, "annotations").and_then(Value::as_object).into_iter().flatten() {
        errors.extend(key_problem(key, "metadata.annotations"));
    }
    for (index, finalizer) in object::finalizers(object).iter().enumerate() {
        let known = matches!(finalizer.as_str(), "orphan" | "foregroundDeletion" | "kubernetes");
        if !finalizer.contains('/') && !known {
            let field = format!("metadata.finalizers[{index}]");
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(field, finalizer.as_str(), why));
        }
    }
    errors.extend(owners(object));
    errors
}

fn owners(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let owners = object::meta(object, "ownerReferences").and_then(Value::as_array);
    let mut controllers = Vec::new();
    for (index, owner) in owners.into_iter().flatten().enumerate() {
        let field = |name: &str| format!("metadata.ownerReferences[{index}].{name}");
        for (key, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if object::text(owner, &[key]).is_empty() {
                errors.push(FieldError::invalid(field(key), "", why));
            }
        }
        if object::at(owner, &["controller"]) == Some(&Value::Bool(true)) {
            controllers.push(format!("{}/{}", object::text(owner, &["kind"]), object::text(owner, &["name"])));
        }
    }
    if controllers.len() > 1 {
        let shown = object::meta(object, "ownerReferences").cloned().unwrap_or_default();
        let why = "Only one reference can have Controller set to true. Found \"true\" in references for ";
        errors.push(FieldError::invalid(
            "metadata.ownerReferences",
            shown,
            format!("{why}{}", controllers.join(" and ")),
        ));
    }
    errors
}

/// Checks a map of labels.
pub(crate) fn labels(labels: Option<&Value>, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(key_problem(key, field));
        let value = value.as_str().unwrap_or("");
        if value.len() > 63 {
            errors.push(FieldError::invalid(field, value, "must be no more than 63 characters"));
        }
        if !value.is_empty() && !is_word(value) {
            errors.push(FieldError::invalid(field, value, LABEL_VALUE));
        }
    }
    errors
}

fn key_problem(key: &str, field: &str) -> Option<FieldError> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Some(FieldError::invalid(field, key, "prefix part must be non-empty"));
        }
        if !is_subdomain(prefix) {
            return Some(FieldError::invalid(field, key, format!("prefix part {SUBDOMAIN}")));
        }
    }
    if name.is_empty() {
        Some(FieldError::invalid(field, key, "name part must be non-empty"))
    } else if name.len() > 63 {
        Some(FieldError::invalid(field, key, "name part must be no more than 63 characters"))
    } else if is_word(name) {
        None
    } else {
        Some(FieldError::invalid(field, key, QUALIFIED))
    }
}

/// What a write may not change about an object's metadata.
pub(crate) fn validate_update(object: &Value, before: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new, old) = (object::meta(object, key), object::meta(before, key));
        if new != old {
            let shown = new.cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid(format!("metadata.{key}"), shown, "field is immutable"));
        }
    }
    if object::is_deleting(before) {
        let old = object::finalizers(before);
        let added: Vec<String> = object::finalizers(object).into_iter().filter(|one| !old.contains(one)).collect();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|one| json!(one).to_string()).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                list.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::resource::BUILT_IN;

    #[rstest]
    #[case("pods", "web-0", true)]
    #[case("pods", "web.0", true)]
    #[case("pods", "Web", false)]
    #[case("pods", "-web", false)]
    #[case("namespaces", "a.b", false)]
    #[case("services", "0web", false)]
    fn names_follow_the_rules_of_their_kind(#[case] id: &str, #[case] name: &str, #[case] good: bool) {
        let resource = BUILT_IN.iter().find(|resource| resource.id == id).unwrap();
        assert_eq!(validate(resource, &json!({"metadata": {"name": name}})).is_empty(), good);
    }

    #[rstest]
    #[case("app", "web", true)]
    #[case("example.com/app", "", true)]
    #[case("app", "-web", false)]
    #[case("a b", "web", false)]
    #[case("/app", "web", false)]
    fn labels_are_words_with_an_optional_domain(#[case] key: &str, #[case] value: &str, #[case] good: bool) {
        assert_eq!(labels(Some(&json!({key: value})), "metadata.labels").is_empty(), good);
    }
}
