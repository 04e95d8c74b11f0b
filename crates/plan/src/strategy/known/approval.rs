//! What a person is asked, and what was approved.

use crate::{quorum::MemberName, strategy::known::want::Target};

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Where the upgrade goes.
    pub target: Target,
    /// Who leads and would hand over; none where the upgrade itself is asked about.
    pub hand_over: Option<MemberName>,
}

/// Where approvals stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    /// A token came that was not handled yet.
    pub fresh: bool,
    /// What is asked, as recorded.
    pub asked: Option<Question>,
    /// What was approved and still counts.
    pub granted: Vec<Question>,
}
