//! What to do now: one step of a strategy, or a reason not to.

use std::time::Duration;

use jiff::Timestamp;

use crate::hold::Hold;

/// What to do now.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<A> {
    /// Exactly one act, then look again.
    Act(A),
    /// Something will happen by itself; look again at the latest after this long.
    Wait {
        /// What is waited for.
        on: Hold,
        /// The safety net; an event usually comes first.
        recheck: Duration,
    },
    /// A person must look; nothing moves before.
    Halt {
        /// What for.
        on: Hold,
    },
    /// What is wanted is what is there.
    Done,
}

impl<A> Decision<A> {
    /// The same, looked at again at the very moment when its hold ends, where that is known.
    pub(crate) fn punctual(self, now: Timestamp) -> Self {
        match self {
            Self::Wait { on: on @ Hold { until: Some(until), .. }, .. } if until > now => {
                Self::Wait { recheck: until.duration_since(now).unsigned_abs(), on }
            }
            Self::Wait { .. } | Self::Act(_) | Self::Halt { .. } | Self::Done => self,
        }
    }
}

/// While a permit stands or leadership moves, seconds count.
pub(crate) const WATCHFUL: Duration = Duration::from_secs(1);

/// Something is on its way; an event usually comes first, but applications send none.
pub const SOON: Duration = Duration::from_secs(2);

/// To look again at the latest after this long.
pub fn wait<A>(on: Hold, recheck: Duration) -> Decision<A> {
    Decision::Wait { on, recheck }
}

pub(crate) fn halt<A>(on: Hold) -> Decision<A> {
    Decision::Halt { on }
}

/// What a hold means: whether it ends by itself or a person must look, its reason tells.
pub fn wait_or_halt<A>(on: Hold) -> Decision<A> {
    if on.reason.needs_a_person() { halt(on) } else { wait(on, SOON) }
}
