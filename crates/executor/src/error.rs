//! Why a task failed, and who can end that.

use windlass_api::executor::Failure;

/// What kind of trouble it is; each has an exit code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What it was told makes no sense. A person has to look.
    Invalid,
    /// Credentials are missing, or are not accepted. A person has to look.
    Denied,
    /// No member gave what was asked for. Time can heal it.
    Unreachable,
    /// What was taken could not be stored.
    Store,
    /// It was begun too late, or took too long.
    Late,
}

impl Class {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid",
            Self::Denied => "Denied",
            Self::Unreachable => "Unreachable",
            Self::Store => "Store",
            Self::Late => "Late",
        }
    }

    /// The process's exit code. 1 is left to what nobody foresaw, 0 to success.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Invalid => 2,
            Self::Denied => 3,
            Self::Unreachable => 4,
            Self::Store => 5,
            Self::Late => 6,
        }
    }
}

/// A task's failure. Nothing secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind.
    pub class: Class,
    /// What happened, and what to look at.
    pub message: String,
}

impl Error {
    /// A failure of this kind.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }

    /// As it is told.
    pub fn failure(&self) -> Failure {
        Failure { class: self.class.name().to_owned(), message: self.message.clone() }
    }
}
