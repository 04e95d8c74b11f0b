//! What is known of one fact, and what is not.

use std::fmt;

/// Something observed. `Unknown` is neither false nor an error: it blocks every disruptive step, and says why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    /// Seen, from the source itself, in this pass.
    Known(T),
    /// Not seen; the text says what was tried, for a person to read.
    Unknown(String),
}

impl<T> Fact<T> {
    /// The value, if known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Why it is not known; none if it is.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }
}

impl<T: PartialEq> Fact<T> {
    /// True only when known, and equal.
    pub fn is(&self, value: &T) -> bool {
        self.known() == Some(value)
    }
}

impl<T: fmt::Display> fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown(_) => f.write_str("unknown"),
        }
    }
}
