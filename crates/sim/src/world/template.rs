//! Pod templates: the short name of one, and the pod that is made from it.

use serde_json::{Map, Value, json};

use super::json::{text, uid};

/// Characters that can't spell a word by accident.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A short name for a template; another one for each clash.
pub(super) fn hash(template: &Value, collisions: i64) -> String {
    let mut hash = 0x811c_9dc5_u32;
    let suffix = if collisions > 0 { collisions.to_string() } else { String::new() };
    for byte in template.to_string().bytes().chain(suffix.bytes()) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let letter = |digit: u8| char::from(ALPHABET.get(usize::from(digit) % ALPHABET.len()).copied().unwrap_or(b'x'));
    hash.to_string().bytes().map(letter).collect()
}

/// The reference to the controller of something.
pub(super) fn controlled_by(owner: &Value) -> Value {
    json!({
        "apiVersion": text(owner, "/apiVersion"),
        "kind": text(owner, "/kind"),
        "name": text(owner, "/metadata/name"),
        "uid": uid(owner),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// A pod with a generated name from the template of its owner.
pub(super) fn pod_of(owner: &Value) -> Value {
    let template = owner.pointer("/spec/template").unwrap_or(&Value::Null);
    let mut metadata = Map::new();
    metadata.insert("generateName".to_owned(), json!(format!("{}-", text(owner, "/metadata/name"))));
    metadata.insert("namespace".to_owned(), json!(text(owner, "/metadata/namespace")));
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template.get("metadata").and_then(|metadata| metadata.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("ownerReferences".to_owned(), json!([controlled_by(owner)]));
    let spec = template.get("spec").cloned().unwrap_or(json!({}));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_always_gets_the_same_name_until_names_clash() {
        let template = json!({"spec": {"containers": [{"name": "pd", "image": "pd:v1"}]}});
        assert_eq!(hash(&template, 0), hash(&template.clone(), 0));
        assert_ne!(hash(&template, 0), hash(&template, 1));
        assert_ne!(hash(&template, 0), hash(&json!({}), 0));
    }
}
