//! One word for where a QuorumCluster stands, read off what its conditions say and from nothing else.

use serde::{Deserialize, Deserializer, Serialize};
use windlass_plan::Reason;

use crate::conditions::{Tri, Verdict};

/// The word in `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::EnumString, strum::IntoStaticStr)]
pub enum Phase {
    /// All members run what is wanted.
    UpToDate,
    /// An upgrade is under way.
    Upgrading,
    /// An unfinished upgrade is being rolled back.
    RollingBack,
    /// What comes next waits: for people or the calendar, or, where nothing is under way, for anything.
    Waiting,
    /// A person must approve what comes next.
    NeedsApproval,
    /// Nothing moves before a person looks.
    NeedsAttention,
    /// A person paused it.
    Paused,
}

impl Phase {
    /// The one for a verdict.
    pub fn of(verdict: &Verdict, rolling_back: bool) -> Self {
        match (verdict.ready, verdict.word.reason()) {
            (Tri::True, _) => Self::UpToDate,
            _ if verdict.stalled => Self::NeedsAttention,
            (_, Some(Reason::AwaitingApproval)) => Self::NeedsApproval,
            (_, Some(Reason::Paused)) => Self::Paused,
            _ if !verdict.upgrading => Self::Waiting,
            (_, Some(reason)) if reason.is_idle() => Self::Waiting,
            _ if rolling_back => Self::RollingBack,
            _ => Self::Upgrading,
        }
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What another release of the operator says that this one has no word for is as if it were not said: it is for people, and the rest can be read.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Phase>, D::Error> {
    Ok(serde_json::Value::deserialize(from)?.as_str().and_then(|word| word.parse().ok()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use windlass_plan::Reason;

    use super::Phase;
    use crate::{conditions::Verdict, word::Word};

    #[rstest]
    #[case::done(true, false, false, false, Word::UpToDate, Phase::UpToDate)]
    #[case::at_it(false, false, true, false, Reason::PodNotReady.into(), Phase::Upgrading)]
    #[case::on_the_way_back(false, false, true, true, Reason::PodNotReady.into(), Phase::RollingBack)]
    #[case::not_begun(false, false, false, false, Reason::WindowClosed.into(), Phase::Waiting)]
    #[case::the_window_closed_half_way(false, false, true, false, Reason::WindowClosed.into(), Phase::Waiting)]
    #[case::asked_before(false, false, false, false, Reason::AwaitingApproval.into(), Phase::NeedsApproval)]
    #[case::asked_half_way(false, false, true, false, Reason::AwaitingApproval.into(), Phase::NeedsApproval)]
    #[case::paused_half_way(false, false, true, true, Reason::Paused.into(), Phase::Paused)]
    #[case::stalled_half_way(false, true, true, true, Reason::CrashLooping.into(), Phase::NeedsAttention)]
    #[case::stalled_before(false, true, false, false, Reason::TooFewMembers.into(), Phase::NeedsAttention)]
    fn it_follows_from_what_the_conditions_say(
        #[case] ready: bool,
        #[case] stalled: bool,
        #[case] upgrading: bool,
        #[case] rolling_back: bool,
        #[case] word: Word,
        #[case] expected: Phase,
    ) {
        let verdict =
            Verdict { ready: ready.into(), reconciling: false, stalled, upgrading, word, message: String::new() };
        assert_eq!(Phase::of(&verdict, rolling_back), expected);
    }
}
