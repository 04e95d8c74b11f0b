//! The stages of replacing one member, each with a deadline of its own that counts from the stage's recorded start (D4).

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{quorum::MemberName, strategy::known::want::Deadlines};

/// What is being waited for. The words are those of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::EnumIter)]
pub enum StageKind {
    /// This member's pod was permitted to be replaced, until the new one is Ready.
    Replace,
    /// The pod is Ready, until its member is healthy.
    Join,
    /// The member is healthy, until it has caught up.
    Sync,
}

impl StageKind {
    /// How long it may take.
    pub fn deadline(self, deadlines: &Deadlines) -> Duration {
        match self {
            Self::Replace => deadlines.ready,
            Self::Join => deadlines.health,
            Self::Sync => deadlines.sync,
        }
    }

    /// For a person: what has not happened.
    pub fn lacking(self) -> &'static str {
        match self {
            Self::Replace => "its pod is not ready",
            Self::Join => "it is not healthy as a member",
            Self::Sync => "it has not caught up with the leader",
        }
    }
}

/// A hand-over that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// Whom leadership was asked to leave.
    pub pod: MemberName,
    /// When it was asked last.
    pub since: Timestamp,
    /// How often it was asked.
    pub attempts: u32,
    /// Why the last request failed, where it did.
    pub last_error: Option<String>,
}

impl HandOver {
    /// Whether its time is up.
    pub fn is_overdue(&self, deadlines: &Deadlines, now: Timestamp) -> bool {
        is_over(self.since, deadlines.handover, now)
    }
}

/// A stage that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Which.
    pub kind: StageKind,
    /// Of which member.
    pub pod: MemberName,
    /// Since when; deadlines count from here.
    pub since: Timestamp,
}

impl Stage {
    /// Whether its time is up.
    pub fn is_overdue(&self, deadlines: &Deadlines, now: Timestamp) -> bool {
        is_over(self.since, self.kind.deadline(deadlines), now)
    }
}

/// A clock that was set back ends nothing.
fn is_over(since: Timestamp, deadline: Duration, now: Timestamp) -> bool {
    now >= since && now.duration_since(since).unsigned_abs() >= deadline
}
