//! What conditions give as their reason, written and read here and nowhere else.

use serde::{Serialize, Serializer};
use windlass_plan::{Reason, StepKind};

/// The word that a condition gives for machines.
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

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;
    use windlass_plan::{Reason, StepKind};

    use super::Word;

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
