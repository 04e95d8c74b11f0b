//! A snapshot, and the tries to take one.

use jiff::Timestamp;

use crate::strategy::known::want::Target;

/// One try to take a snapshot, as recorded before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Grows by one, and never comes again.
    pub number: u32,
    /// The upgrade that it is for.
    pub target: Target,
    /// When it was asked for.
    pub since: Timestamp,
    /// An upgrade has begun with it.
    pub used: bool,
}

/// A snapshot that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// How long it is.
    pub bytes: u64,
    /// Its checksum, in hexadecimal digits.
    pub sha256: String,
    /// Where it is.
    pub location: String,
}

/// What became of the attempt's Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is no such Job, or no attempt.
    Missing,
    /// It has not ended.
    Running,
    /// It has ended well.
    Done(Snapshot),
    /// It has ended badly, or is not ours. The text is for a person.
    Failed(String),
}
