//! ConfigMaps and Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::object;
use super::super::resource::Rules;

const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// `stringData` is for writing only: it ends up in `data`.
pub(super) fn fold_string_data(secret: &mut Map<String, Value>) {
    let Some(Value::Object(plain)) = secret.remove("stringData") else { return };
    let data = object::child(secret, "data");
    for (key, value) in plain {
        data.insert(key, json!(STANDARD.encode(value.as_str().unwrap_or(""))));
    }
}

pub(super) fn validate(rules: Rules, object: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(before) = before {
        if rules == Rules::Secret && object.get("type") != before.get("type") {
            let shown = object.get("type").cloned().unwrap_or_default();
            errors.push(FieldError::invalid("type", shown, "field is immutable"));
        }
        errors.extend(validate_immutable(object, before));
    }
    for bag in ["data", "binaryData"] {
        for (key, _) in object::at(object, &[bag]).and_then(Value::as_object).into_iter().flatten() {
            let place = format!("{bag}[{key}]");
            let problems = key_problems(key).into_iter();
            errors.extend(problems.map(|why| FieldError::invalid(place.as_str(), key.as_str(), why)));
            if bag == "data" && object::at(object, &["binaryData", key]).is_some() {
                errors.push(FieldError::invalid(place, key.as_str(), "duplicate of key present in binaryData"));
            }
        }
    }
    if rules == Rules::Secret {
        errors.extend(missing_keys(object));
    }
    errors
}

fn validate_immutable(object: &Value, before: &Value) -> Vec<FieldError> {
    if before.get("immutable") != Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let changed = ["immutable", "data", "binaryData"].into_iter().filter(|key| object.get(key) != before.get(key));
    changed.map(|key| FieldError::forbidden(key, why)).collect()
}

fn key_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > 253 {
        problems.push("must be no more than 253 characters".to_owned());
    }
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(inner) {
        problems.push(KEY.to_owned());
    }
    match key {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// What a secret of a well-known type must hold.
fn missing_keys(secret: &Value) -> Vec<FieldError> {
    let has = |key: &str| secret.get("data").is_some_and(|data| data.get(key).is_some());
    let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
    let all = |keys: &[&str]| keys.iter().filter(|key| !has(key)).map(|key| required(key)).collect();
    match object::text(secret, &["type"]) {
        "kubernetes.io/tls" => all(&["tls.crt", "tls.key"]),
        "kubernetes.io/ssh-auth" => all(&["ssh-privatekey"]),
        "kubernetes.io/dockercfg" => all(&[".dockercfg"]),
        "kubernetes.io/dockerconfigjson" => all(&[".dockerconfigjson"]),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            vec![required("username"), required("password")]
        }
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            let named = object::at(secret, &["metadata", "annotations", key]).is_some();
            if named { Vec::new() } else { vec![FieldError::required(format!("metadata.annotations[{key}]"), "")] }
        }
        _ => Vec::new(),
    }
}
