//! Merge patches and JSON patches.

use serde_json::Value;

use super::error::{self, Answer};
use super::resource::{Resource, Rules};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A change that is applied to whatever the object is at that moment.
#[derive(Debug)]
pub(crate) enum Patch {
    Merge(Value),
    Json(json_patch::Patch),
}

impl Patch {
    /// Reads a patch of the kind that the content type names.
    pub(crate) fn parse(resource: &Resource, content_type: &str, body: &[u8]) -> Answer<Self> {
        let undecodable = |why: serde_json::Error| error::bad_request(format!("error decoding patch: {why}"));
        match content_type.split(';').next().unwrap_or("").trim() {
            MERGE_PATCH => {
                let patch: Value = serde_json::from_slice(body).map_err(undecodable)?;
                if patch.is_object() {
                    Ok(Self::Merge(patch))
                } else {
                    Err(error::bad_request(
                        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
                    ))
                }
            }
            JSON_PATCH => Ok(Self::Json(serde_json::from_slice(body).map_err(undecodable)?)),
            _ if resource.rules == Rules::Custom => {
                Err(error::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH]))
            }
            _ => Err(error::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH])),
        }
    }

    /// The object after this patch.
    pub(crate) fn apply(&self, object: &Value) -> Answer<Value> {
        let mut patched = object.clone();
        match self {
            Self::Merge(patch) => json_patch::merge(&mut patched, patch),
            Self::Json(patch) => {
                json_patch::patch(&mut patched, patch).map_err(|_| error::patch_rejected())?;
            }
        }
        Ok(patched)
    }
}
