//! Whether anybody has served from a template.

/// Whether a member has served from the target's template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumString, strum::IntoStaticStr)]
pub enum Proof {
    /// None has yet.
    Pending,
    /// The first one did not: the template before it stands, or is about to.
    PutBack,
    /// One has been ready, healthy, of the right version and caught up.
    Proven,
}
