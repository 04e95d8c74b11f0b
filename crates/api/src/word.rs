//! The words in a status that machines go by. Another release of the operator may have written one that this one does not know: it is kept as it
//! was written, and keeps nobody from reading the rest.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use windlass_plan::{Reason, StepKind};

/// One of the words of `T`, or another release's. A string to the API server: an enum of its would refuse what that has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Written<T> {
    /// One that this program knows.
    Known(T),
    /// None that it knows.
    Strange(String),
}

impl<T: Copy> Written<T> {
    /// The word, if this program knows it.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(word) => Some(*word),
            Self::Strange(_) => None,
        }
    }
}

/// The word that a condition gives for machines, or a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// What is wanted is what is there.
    UpToDate,
    /// A ServiceImage, or a tier of it: resources get their image.
    Stamping,
    /// A tier: those of a higher priority go first.
    Waiting,
    /// A step is taken.
    Step(StepKind),
    /// Something holds, for this reason.
    Held(Reason),
    /// None that this program knows: another release of the operator wrote it.
    Strange(String),
}

impl Word {
    /// As it is written.
    pub fn name(&self) -> &str {
        match self {
            Self::UpToDate => "UpToDate",
            Self::Stamping => "Stamping",
            Self::Waiting => "Waiting",
            Self::Step(step) => (*step).into(),
            Self::Held(reason) => reason.name(),
            Self::Strange(word) => word,
        }
    }

    /// Why it waits; none where it does not, or where the word is none that this program knows.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Held(reason) => Some(*reason),
            Self::UpToDate | Self::Stamping | Self::Waiting | Self::Step(_) | Self::Strange(_) => None,
        }
    }
}

impl From<Reason> for Word {
    fn from(reason: Reason) -> Self {
        Self::Held(reason)
    }
}

impl From<&str> for Word {
    fn from(written: &str) -> Self {
        let plain = [Self::UpToDate, Self::Stamping, Self::Waiting].into_iter().find(|word| word.name() == written);
        plain
            .or_else(|| written.parse().ok().map(Self::Held))
            .or_else(|| written.parse().ok().map(Self::Step))
            .unwrap_or_else(|| Self::Strange(written.to_owned()))
    }
}

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|written| written.as_str().into())
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;
    use strum::IntoEnumIterator;
    use windlass_plan::{
        Reason, StepKind,
        gate::State,
        rolling::known::{stage::StageKind, template_trial::TemplateTrial},
        strategy::known::request::Outcome,
    };

    use super::{Serialize, Word, Written};
    use crate::{
        conditions::Tri,
        status::members::{Lag, Role},
    };

    fn are_known<T: Copy + Serialize + DeserializeOwned>(words: &str) {
        for word in words.split_whitespace() {
            let read: Written<T> = serde_json::from_value(json!(word)).unwrap();
            assert!(read.known().is_some(), "{word}");
            assert_eq!(json!(read), json!(word));
        }
    }

    /// What the release before has written can be read only as long as none of them is renamed.
    #[test]
    fn the_words_of_a_status_stay_what_they_are() {
        are_known::<TemplateTrial>("Running Reverted Passed");
        are_known::<StageKind>("Replace Join Sync");
        are_known::<Outcome>("Stopped RolledBack");
        are_known::<State>("Passed Holding Unknown Overridden NotAsked");
        are_known::<Role>("Leader Follower Unknown");
        are_known::<Tri>("True False Unknown");
        are_known::<Lag>("InSync Behind");
    }

    /// Also: none means two things.
    #[test]
    fn every_word_is_read_back_as_it_was_written() {
        let plain = [Word::UpToDate, Word::Stamping, Word::Waiting];
        let reasons = Reason::iter().map(Word::Held);
        let steps = StepKind::iter().map(Word::Step);
        for word in plain.into_iter().chain(reasons).chain(steps) {
            assert_eq!(Word::from(word.name()), word);
        }
        assert_eq!(Word::from("WaitsForTheMoon"), Word::Strange("WaitsForTheMoon".into()));
    }
}
