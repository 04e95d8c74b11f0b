//! What the API server is told of single values.

use schemars::{Schema, SchemaGenerator, json_schema};
use strum::VariantNames;

/// These words and no others: those of an enum of plan's, which knows nothing of schemas.
pub(crate) fn one_of<T: VariantNames>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": T::VARIANTS})
}
