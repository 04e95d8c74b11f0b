//! What an executor says when it ends: one line of JSON, on its standard output and as its container's termination message.

use serde::{Deserialize, Serialize};

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// Well, with this result.
    Done(Outcome),
    /// Badly.
    Failed(Failure),
}

/// What a task brought, by its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// A snapshot is stored.
    Snapshot(Stored),
}

/// A snapshot that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stored {
    /// How many bytes it has.
    pub bytes: u64,
    /// Its checksum, in hexadecimal digits.
    pub sha256: String,
    /// Where it is, for a person.
    pub place: String,
    /// How long taking and storing it took.
    pub milliseconds: u64,
}

/// Why a task failed. Nothing secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Who can end it, in one word.
    pub class: String,
    /// What happened, and what to look at.
    pub message: String,
}

impl Ending {
    /// Reads what a container left behind.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text.trim()).ok()
    }
}
