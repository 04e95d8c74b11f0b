//! Scripts by hand: one per rule of the API, named after it.

mod create;
mod patches;
mod put;

use super::step::Script;

/// Whether `managedFields` are compared.
pub const MANAGED_FIELDS: bool = false;

/// Each of them.
pub fn all() -> Vec<Script> {
    [create::scripts, put::scripts, patches::scripts].into_iter().flat_map(|scripts| scripts()).collect()
}
