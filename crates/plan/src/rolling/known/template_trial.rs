//! Whether anybody has served from a template.

use serde::{Deserialize, Serialize};

/// A template is on trial until a member has served from it. The words are those of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TemplateTrial {
    /// None has yet.
    Running,
    /// The first one did not: the template before it stands, or is about to.
    Reverted,
    /// One has been ready, healthy, of the right version and caught up.
    Passed,
}
