//! What the API server is told of single values.

use schemars::{Schema, SchemaGenerator, json_schema};
use strum::VariantNames;

/// These words and no others: those of an enum of plan's, which knows nothing of schemas.
pub(crate) fn one_of<T: VariantNames>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": T::VARIANTS})
}

/// What a duration looks like.
pub(crate) const DURATION: &str = r"^([0-9]+(h|m|s|ms))+$";

/// What containers, Services and namespaces may be called, and gates.
pub(crate) const DNS_LABEL: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// What most other objects may be called. It becomes part of a request's path, and must not be able to lead anywhere else.
pub(crate) const DNS_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// What looks like a reference to an image; `windlass_images` has the last word.
pub(crate) const IMAGE: &str = r"^(([A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+([+._-][a-z0-9]+)*:[A-Za-z0-9=_-]+)?$";
