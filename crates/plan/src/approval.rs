//! Approvals: what a person may ask to be asked.

use serde::{Deserialize, Serialize};

/// The gate's name.
pub const NAME: &str = "Approval";

/// What must be approved. The words are those of the custom resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::VariantNames)]
pub enum Mode {
    /// Nothing.
    #[default]
    None,
    /// Each target, before anything is written or replaced for it; going back, too.
    BeforeUpgrade,
    /// Each hand-over, before leadership is asked to move. Who does not lead is replaced without.
    BeforeEachHandOver,
}
