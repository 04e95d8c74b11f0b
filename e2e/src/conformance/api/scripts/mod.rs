//! Scripts by hand: one per rule of the API, named after it.

mod bodies;
mod create;
mod custom;
mod delete;
mod deployments;
mod kinds;
mod managers;
mod patches;
mod put;
mod reads;
mod status;
mod workloads;

use super::step::Script;

/// Whether `managedFields` are compared.
pub const MANAGED_FIELDS: bool = true;
/// Whether strategic merge patches are sent.
pub const STRATEGIC: bool = true;
/// Whether server-side apply is used.
pub const APPLY: bool = true;

/// Each of them.
pub fn all() -> Vec<Script> {
    let groups = [
        create::scripts,
        put::scripts,
        patches::scripts,
        status::scripts,
        delete::scripts,
        reads::scripts,
        bodies::scripts,
        kinds::scripts,
        workloads::scripts,
        deployments::scripts,
        custom::scripts,
    ];
    let mut all: Vec<Script> = groups.into_iter().flat_map(|scripts| scripts()).collect();
    if STRATEGIC {
        all.extend(managers::strategic_scripts());
    }
    if APPLY {
        all.extend(managers::apply_scripts());
    }
    all
}
