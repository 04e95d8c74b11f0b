//! What a resource says of itself in its conditions.

use jiff::Timestamp;
use serde::Serialize;
use windlass_api::{
    Word,
    conditions::{Condition, ConditionType, find, holds},
};
use windlass_plan::Hold;

/// What the operator said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// In a word: that all is well, that a step is taken, or why it waits.
    #[serde(rename = "reason")]
    pub word: Word,
    /// In a sentence.
    pub message: String,
    /// What a person can do about it, or that it passes by itself; none where nothing is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<&'static str>,
    /// Since when it has been ready, or has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What is wanted is what is there.
    pub ready: bool,
    /// Nothing moves before a person has looked.
    pub stalled: bool,
    /// It is said of the newest spec.
    pub current: bool,
}

impl Said {
    /// What these conditions say of this generation; none where nothing was said yet.
    pub(crate) fn of(conditions: &[Condition], generation: Option<i64>) -> Option<Self> {
        let ready = find(conditions, ConditionType::Ready)?;
        let (word, message, next_step) = read(ready);
        Some(Self {
            word,
            message,
            next_step,
            since: Some(ready.last_transition_time.0),
            ready: holds(conditions, ConditionType::Ready),
            stalled: holds(conditions, ConditionType::Stalled),
            current: ready.observed_generation == generation,
        })
    }

    /// The same of a resource that can't be read: what is wrong with it is seen here.
    pub(crate) fn unreadable(hold: &Hold) -> Self {
        Self {
            word: hold.reason.into(),
            message: hold.message.clone(),
            next_step: Some(hold.reason.next_step()),
            since: None,
            ready: false,
            stalled: true,
            current: true,
        }
    }

    /// All of it in a sentence.
    pub fn sentence(&self) -> String {
        match self.next_step {
            Some(next_step) => format!("{}; {next_step}", self.message),
            None => self.message.clone(),
        }
    }
}

/// A condition's word, its message, and what to do, which is at the end of what was written.
pub(crate) fn read(written: &Condition) -> (Word, String, Option<&'static str>) {
    let word = Word::from(written.reason.as_str());
    let next_step = word.reason().map(windlass_plan::Reason::next_step);
    let message = next_step.and_then(|next_step| written.message.strip_suffix(next_step)?.strip_suffix("; "));
    let message = message.unwrap_or(&written.message).to_owned();
    (word, message, next_step)
}
