//! Patches: a change that is applied to whatever the object is at that moment.

mod strategic;

use serde_json::Value;

use super::error::{self, Answer};
use super::resource::{Resource, Rules};
use super::types::TypeRef;
use super::write::Update;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A patch that is a change. An apply isn't: it says what somebody wants the object to be.
#[derive(Debug)]
pub(crate) enum Patch {
    Merge(Value),
    Json(json_patch::Patch),
    Strategic(Value),
}

/// The kinds of patches that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Merge,
    Json,
    Strategic,
    Apply,
}

impl Kind {
    /// The kind that the content type names. Nobody knows how to merge the lists of a custom resource strategically.
    pub(crate) fn of(resource: &Resource, content_type: &str) -> Answer<Self> {
        let custom = resource.rules == Rules::Custom;
        match content_type.split(';').next().unwrap_or("").trim() {
            MERGE_PATCH => Ok(Self::Merge),
            JSON_PATCH => Ok(Self::Json),
            STRATEGIC_MERGE_PATCH if !custom => Ok(Self::Strategic),
            APPLY_PATCH => Ok(Self::Apply),
            _ if custom => Err(error::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH])),
            _ => Err(error::unsupported_media()),
        }
    }

    /// Reads a patch of this kind.
    pub(crate) fn read(self, body: &[u8], force: bool) -> Answer<Update> {
        let head = "error decoding patch: ";
        match self {
            Self::Merge => Ok(Update::Patch(Patch::Merge(map(body, head)?))),
            Self::Json => {
                let patch = serde_json::from_slice(body).map_err(|why| error::bad_request(format!("{head}{why}")))?;
                Ok(Update::Patch(Patch::Json(patch)))
            }
            Self::Strategic => Ok(Update::Patch(Patch::Strategic(map(body, "")?))),
            Self::Apply => Ok(Update::Apply { config: configuration(body)?, force }),
        }
    }
}

impl Patch {
    /// The object after this patch; `of` is its type.
    pub(crate) fn apply(&self, of: &TypeRef, object: &Value) -> Answer<Value> {
        let mut patched = object.clone();
        match self {
            Self::Merge(patch) => json_patch::merge(&mut patched, patch),
            Self::Json(patch) => {
                json_patch::patch(&mut patched, patch).map_err(|_| error::patch_rejected())?;
            }
            Self::Strategic(patch) => strategic::apply(of, &mut patched, patch)?,
        }
        Ok(patched)
    }
}

fn map(body: &[u8], head: &str) -> Answer<Value> {
    let patch: Value = serde_json::from_slice(body).map_err(|why| error::bad_request(format!("{head}{why}")))?;
    match &patch {
        Value::Object(_) => Ok(patch),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(error::bad_request(format!("{head}{}", not_a_map(&patch))))
        }
    }
}

fn not_a_map(value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
}

/// The configuration of an apply: YAML, of which JSON is a part.
fn configuration(body: &[u8]) -> Answer<Value> {
    let head = "error decoding YAML: ";
    let config = match serde_json::from_slice(body) {
        Ok(config) => config,
        Err(_) => {
            let text = std::str::from_utf8(body)
                .map_err(|_| error::bad_request(format!("{head}error converting YAML to JSON: yaml: invalid UTF-8")))?;
            let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
            serde_saphyr::from_str_with_options::<Value>(text, options)
                .map_err(|why| error::bad_request(format!("{head}error converting YAML to JSON: yaml: {why}")))?
        }
    };
    match &config {
        Value::Object(_) => Ok(config),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let why = not_a_map(&config);
            Err(error::bad_request(format!("{head}error unmarshaling JSON: while decoding JSON: {why}")))
        }
    }
}
