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
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
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

/// How long a name may be, and what it must look like.
enum Shape {
    Subdomain,
    Label,
    Label1035,
    /// Only what would break a path is refused.
    Path,
}

fn shape(resource: &Resource) -> Shape {
    match resource.rules {
        Rules::Namespace | Rules::StatefulSet => Shape::Label,
        Rules::Service => Shape::Label1035,
        // Nothing but the generic checks looks at these names; those of the older group may be anything.
        Rules::PodDisruptionBudget => Shape::Path,
        Rules::Event if resource.group.is_empty() => Shape::Path,
        Rules::Node
        | Rules::Pod
        | Rules::Endpoints
        | Rules::EndpointSlice
        | Rules::ConfigMap
        | Rules::Secret
        | Rules::ServiceAccount
        | Rules::PersistentVolumeClaim
        | Rules::ControllerRevision
        | Rules::Deployment
        | Rules::ReplicaSet
        | Rules::CronJob
        | Rules::Job
        | Rules::Lease
        | Rules::Event
        | Rules::CustomResourceDefinition
        | Rules::Custom => Shape::Subdomain,
    }
}

/// What is wrong with a name of this resource.
fn name_problems(resource: &Resource, name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut limit = |limit: usize| {
        if name.len() > limit {
            problems.push(format!("must be no more than {limit} characters"));
        }
    };
    match shape(resource) {
        Shape::Label => problems = label_problems(name),
        Shape::Label1035 => {
            limit(63);
            if !is_label(name) || name.starts_with(|first: char| first.is_ascii_digit()) {
                problems.push(LABEL_1035.to_owned());
            }
        }
        Shape::Subdomain => problems = subdomain_problems(name),
        Shape::Path => match name {
            "." | ".." => problems.push(format!("may not be '{name}'")),
            _ => {
                let parts = ['/', '%'].into_iter().filter(|part| name.contains(*part));
                problems.extend(parts.map(|part| format!("may not contain '{part}'")));
            }
        },
    }
    problems
}

/// What is wrong with a name that may have dots.
pub(crate) fn subdomain_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 253 {
        problems.push("must be no more than 253 characters".to_owned());
    }
    if !is_subdomain(name) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

/// What is wrong with a name that becomes a part of a host's.
pub(crate) fn label_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push("must be no more than 63 characters".to_owned());
    }
    if !is_label(name) {
        problems.push(if is_subdomain(name) { "must not contain dots" } else { LABEL }.to_owned());
    }
    problems
}

/// Whether the kind's own rules insist on finalizers with a domain.
fn knows_finalizers(resource: &Resource) -> bool {
    !matches!(
        resource.rules,
        Rules::PodDisruptionBudget | Rules::Event | Rules::Lease | Rules::Custom | Rules::CustomResourceDefinition
    )
}

/// Checks what every new object's metadata must fulfil.
pub(crate) fn validate(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let base = object::meta_text(object, "generateName");
    if !base.is_empty() {
        // A dash at its end is followed by something.
        let tried = base.strip_suffix('-').map_or_else(|| base.to_owned(), |start| format!("{start}a"));
        let problems = name_problems(resource, &tried);
        errors.extend(problems.into_iter().map(|why| FieldError::invalid("metadata.generateName", base, why)));
    }
    let name = object::name(object);
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        let problems = name_problems(resource, name);
        errors.extend(problems.into_iter().map(|why| FieldError::invalid("metadata.name", name, why)));
    }
    errors.extend(contents(object));
    errors.extend(unqualified_finalizers(resource, object));
    errors
}

/// The most that all annotations of an object may take together, keys and values, in bytes.
const ANNOTATIONS: usize = 256 * 1024;

/// What is checked of new and of changed objects alike.
fn contents(object: &Value) -> Vec<FieldError> {
    let mut errors = labels(object::meta(object, "labels"), "metadata.labels");
    let annotations = object::meta(object, "annotations").and_then(Value::as_object);
    let mut size = 0;
    for (key, value) in annotations.into_iter().flatten() {
        let problems = qualified_problems(&key.to_lowercase());
        errors.extend(problems.into_iter().map(|why| FieldError::invalid("metadata.annotations", key.as_str(), why)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS as u64));
    }
    errors.extend(owners(object));
    let finalizers = object::finalizers(object);
    for finalizer in &finalizers {
        let problems = qualified_problems(finalizer).into_iter();
        errors.extend(problems.map(|why| FieldError::invalid("metadata.finalizers", finalizer.as_str(), why)));
    }
    if ["orphan", "foregroundDeletion"].iter().all(|one| finalizers.iter().any(|finalizer| finalizer == one)) {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", json!(finalizers), why));
    }
    errors
}

fn unqualified_finalizers(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !knows_finalizers(resource) {
        return errors;
    }
    for (index, finalizer) in object::finalizers(object).iter().enumerate() {
        if !finalizer.contains('/') && !is_standard_finalizer(finalizer) {
            let field = format!("metadata.finalizers[{index}]");
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(field, finalizer.as_str(), why));
        }
    }
    errors
}

fn is_standard_finalizer(finalizer: &str) -> bool {
    matches!(finalizer, "orphan" | "foregroundDeletion" | "kubernetes")
}

/// Custom resources are only warned about finalizers that may meet others of that name.
pub(crate) fn finalizer_warnings(object: &Value, before: Option<&Value>) -> Vec<String> {
    let known = before.map(object::finalizers).unwrap_or_default();
    let mut added: Vec<String> =
        object::finalizers(object).into_iter().filter(|finalizer| !known.contains(finalizer)).collect();
    added.sort();
    added.dedup();
    let mut warnings = Vec::new();
    for finalizer in added {
        let said = |why: &str| format!("metadata.finalizers: {finalizer:?}: {why}");
        warnings.extend(qualified_problems(&finalizer).iter().map(|why| said(why)));
        if !finalizer.contains('/') && !is_standard_finalizer(&finalizer) {
            let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
            warnings.push(said(&format!(
                "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            )));
        }
    }
    warnings
}

fn owners(object: &Value) -> Vec<FieldError> {
    const FIELD: &str = "metadata.ownerReferences";
    let mut errors = Vec::new();
    let owners = object::meta(object, "ownerReferences").and_then(Value::as_array);
    let mut controller: Option<String> = None;
    for owner in owners.into_iter().flatten() {
        for (key, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if object::text(owner, &[key]).is_empty() {
                errors.push(FieldError::invalid(format!("{FIELD}.{key}"), "", why));
            }
        }
        if object::text(owner, &["apiVersion"]) == "v1" && object::text(owner, &["kind"]) == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(FIELD, owner.clone(), why));
        }
        if object::at(owner, &["controller"]) == Some(&Value::Bool(true)) {
            let this = format!("{}/{}", object::text(owner, &["kind"]), object::text(owner, &["name"]));
            match &controller {
                Some(first) => {
                    let shown = object::meta(object, "ownerReferences").cloned().unwrap_or_default();
                    let why = "Only one reference can have Controller set to true. Found \"true\" in references for";
                    errors.push(FieldError::invalid(FIELD, shown, format!("{why} {first} and {this}")));
                }
                None => controller = Some(this),
            }
        }
    }
    errors
}

/// Checks a map of labels.
pub(crate) fn labels(labels: Option<&Value>, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(qualified_problems(key).into_iter().map(|why| FieldError::invalid(field, key.as_str(), why)));
        let value = value.as_str().unwrap_or("");
        let problems = label_value_problems(value);
        errors.extend(problems.into_iter().map(|why| FieldError::invalid(field, value, why)));
    }
    errors
}

/// What is wrong with a label's value.
pub(crate) fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push("must be no more than 63 characters".to_owned());
    }
    if !value.is_empty() && !is_word(value) {
        problems.push(LABEL_VALUE.to_owned());
    }
    problems
}

/// What is wrong with a key: a name, with a domain in front of it if need be.
pub(crate) fn qualified_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                if prefix.len() > 253 {
                    problems.push("prefix part must be no more than 253 characters".to_owned());
                }
                if !is_subdomain(prefix) {
                    problems.push(format!("prefix part {SUBDOMAIN}"));
                }
            }
            *name
        }
        _ => {
            let optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a qualified name {QUALIFIED} {optional}")];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 characters".to_owned());
    }
    if !is_word(name) {
        problems.push(format!("name part {QUALIFIED}"));
    }
    problems
}

/// What must be true of the metadata of a changed object.
pub(crate) fn validate_update(resource: &Resource, object: &Value, before: &Value) -> Vec<FieldError> {
    let mut errors = contents(object);
    if object::is_deleting(before) {
        let old = object::finalizers(before);
        let mut added: Vec<String> = object::finalizers(object).into_iter().filter(|one| !old.contains(one)).collect();
        added.sort();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|one| json!(one).to_string()).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                list.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", why));
        }
    }
    for key in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new, old) = (object::meta(object, key), object::meta(before, key));
        if new != old {
            let shown = new.cloned().unwrap_or(Value::Null);
            let error = FieldError::invalid(format!("metadata.{key}"), shown, "field is immutable");
            if resource.rules != Rules::Custom {
                // The rules of every built-in kind say it once more.
                errors.push(error.clone());
            }
            errors.push(error);
        }
    }
    errors.extend(unqualified_finalizers(resource, object));
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
