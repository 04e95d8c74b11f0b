//! Why nothing is done, for a person.

use std::fmt;

use jiff::Timestamp;

use crate::reason::Reason;

/// Why nothing is done, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The machine's word.
    pub reason: Reason,
    /// What exactly is waited for: names, values seen, values needed.
    pub message: String,
    /// When it ends by itself, where that is known: the moment to look again.
    pub until: Option<Timestamp>,
}

impl Hold {
    /// A hold for this reason.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), until: None }
    }

    /// The same, with one sentence more.
    #[must_use]
    pub fn and(&self, more: &str) -> Self {
        Self { message: format!("{}. {more}", self.message), ..self.clone() }
    }

    /// The same, and it ends by itself at that moment.
    #[must_use]
    pub fn until(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.reason.next_step())
    }
}
