//! The question that every gate is asked, whatever the strategy.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    quorum::MemberName,
    strategy::known::{
        seen::Seen,
        want::{Target, Want},
    },
};

/// The question that every gate is asked: may this be done now?
pub trait Ask {
    /// What is wanted.
    fn want(&self) -> &Want;

    /// What was seen.
    fn seen(&self) -> &Seen;

    /// When.
    fn now(&self) -> Timestamp;

    /// The target of the upgrade that is under way; none before it begins.
    fn under_way(&self) -> Option<&Target>;

    /// Who would be taken down.
    fn member(&self) -> &MemberName;

    /// Where it goes: with the upgrade that is under way, or with the one that would begin.
    fn target(&self) -> &Target {
        self.under_way().unwrap_or(&self.want().target)
    }

    /// The new image need not be there first: it was, or this goes back to one that was.
    fn needs_no_pull(&self) -> bool;

    /// Who of those that were replaced was the last to be well again, and when: what was said elsewhere before that says nothing of it.
    fn last_settled(&self) -> Option<(&MemberName, Timestamp)>;

    /// How long the next member is expected to take; none where nothing was measured.
    fn expected(&self) -> Option<Duration>;
}
