//! Approvals: what a person may ask to be asked.

/// The gate's name.
pub const NAME: &str = "Approval";

/// What must be approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    #[default]
    None,
    /// Each target, before anything is written or replaced for it.
    BeforeUpgrade,
    /// Each hand-over, before leadership is asked to move.
    BeforeEachHandOver,
}
