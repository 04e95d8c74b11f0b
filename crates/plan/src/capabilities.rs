//! What a system can do, as far as anybody decides by it. Whoever talks to a system says so, in one place for each.

use crate::path::Path;

/// What a system can do, the way that it is used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Which ways between its versions there are.
    pub path: Path,
    /// What its leader can be told.
    pub hand_over: HandOver,
    /// Its members tell how far their logs are applied. Where they don't, a replaced one counts as caught up when it is healthy.
    pub lag: bool,
    /// What the file of a snapshot of its data ends with; none where it gives no snapshots.
    pub snapshot: Option<&'static str>,
    /// It has members without a vote, and tells which ones they are.
    pub non_voters: bool,
    /// A member can be brought to another version in the pod that it is in.
    pub in_place: bool,
    /// As whom it can be asked.
    pub credentials: Credentials,
}

/// What a leader can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// Who shall lead next.
    ToNamed,
    /// Only to step down: whoever is elected is read back.
    StepDown,
}

impl HandOver {
    /// Whether it can be told who shall lead next.
    pub fn names_target(self) -> bool {
        match self {
            Self::ToNamed => true,
            Self::StepDown => false,
        }
    }
}

/// As whom a system can be asked, where it wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// It does not want to know.
    Nobody,
    /// A user with a password.
    User,
    /// Whoever has the token.
    Token,
    /// Whoever has the token, or logs in to get one.
    TokenOrLogin,
}
