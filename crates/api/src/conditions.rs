//! Conditions that kstatus, `kubectl wait`, Helm and Flux understand: Ready, Reconciling, Stalled. And one of our own: Upgrading (D2).

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde::{Deserialize, Serialize};
use windlass_plan::Reason;

use crate::word::Word;

/// Which conditions our resources have. Complete and InProgress are a ServiceImage's and its tiers', Upgrading is a QuorumCluster's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
pub enum ConditionType {
    /// What is wanted is what is there.
    Ready,
    /// Work goes on.
    Reconciling,
    /// A person must look.
    Stalled,
    /// An upgrade is under way, whether it moves or not.
    Upgrading,
    /// All resources have their image, and run it.
    Complete,
    /// They do not yet; of a tier, that its turn has come.
    InProgress,
}

impl ConditionType {
    /// As Kubernetes writes it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What to say of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What is wanted is what is there.
    pub ready: Tri,
    /// Work goes on.
    pub reconciling: bool,
    /// A person must look.
    pub stalled: bool,
    /// An upgrade is under way, whether it moves or not.
    pub upgrading: bool,
    /// A word for machines.
    pub word: Word,
    /// A sentence for people.
    pub message: String,
}

/// A condition's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
pub enum Tri {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// Nobody knows.
    Unknown,
}

impl Tri {
    /// As Kubernetes writes it.
    pub fn text(self) -> &'static str {
        self.into()
    }
}

impl From<bool> for Tri {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// The conditions for a verdict. Transition times of conditions whose status stays are kept, so an equal verdict gives equal bytes.
pub fn conditions(before: &[Condition], verdict: &Verdict, generation: i64, now: Timestamp) -> Vec<Condition> {
    let states = [
        (ConditionType::Ready, verdict.ready),
        (ConditionType::Reconciling, Tri::from(verdict.reconciling)),
        (ConditionType::Stalled, Tri::from(verdict.stalled)),
        (ConditionType::Upgrading, Tri::from(verdict.upgrading)),
    ];
    let written = |(type_, status): (ConditionType, Tri)| {
        condition(before, type_, status, &verdict.word, &verdict.message, generation, now)
    };
    states.into_iter().map(written).collect()
}

/// The longest message that a condition carries: others' words are in it, and nobody bounds those.
const LONGEST: usize = 4096;

/// A message, cut where it is too long.
pub(crate) fn cut(message: &str) -> String {
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.to_owned(),
    }
}

/// One condition. The time of its last transition is kept while its status stays.
pub fn condition(
    before: &[Condition],
    type_: ConditionType,
    status: Tri,
    word: &Word,
    message: &str,
    generation: i64,
    now: Timestamp,
) -> Condition {
    let kept = find(before, type_).filter(|old| old.status == status.text());
    Condition {
        type_: type_.name().to_owned(),
        status: status.text().to_owned(),
        reason: word.name().to_owned(),
        message: cut(message),
        observed_generation: Some(generation),
        last_transition_time: kept.map_or(Time(now), |old| old.last_transition_time.clone()),
    }
}

/// The condition of this type, where there is one.
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|one| one.type_ == type_.name())
}

/// Whether it is said to be so, of whatever generation.
pub fn holds(conditions: &[Condition], type_: ConditionType) -> bool {
    find(conditions, type_).is_some_and(|one| one.status == Tri::True.text())
}

/// Whether it is ready, and that is said of this generation.
pub fn is_ready(conditions: &[Condition], generation: Option<i64>) -> bool {
    let ready = find(conditions, ConditionType::Ready);
    ready.is_some_and(|ready| ready.status == Tri::True.text() && ready.observed_generation == generation)
}

/// What it says in a word: what Ready gives as its reason.
pub fn word(conditions: &[Condition]) -> Option<Word> {
    find(conditions, ConditionType::Ready).map(|ready| ready.reason.as_str().into())
}

/// Whether any of them gives this as its reason.
pub fn mention(conditions: &[Condition], reason: Reason) -> bool {
    conditions.iter().any(|one| Word::from(one.reason.as_str()) == Word::Held(reason))
}

#[cfg(test)]
mod tests {
    use windlass_plan::{
        Hold, Reason,
        gate::{GateState, State},
    };

    use super::{ConditionType, Timestamp, Tri, Verdict, Word, conditions};

    #[test]
    fn a_message_is_cut_before_it_enters_a_status() {
        let long = "ü".repeat(100_000);
        let said = super::condition(
            &[],
            ConditionType::Ready,
            Tri::False,
            &Reason::ResourceFailed.into(),
            &long,
            1,
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(said.message.chars().count(), super::LONGEST + 1);
        assert!(said.message.ends_with('…'));
        let hold = Some(Hold::new(Reason::AnalysisFailed, long));
        let asked = GateState { name: "Analysis/errors".into(), state: State::Unknown, hold, overridden_until: None };
        let said = crate::translate::gate(&asked).message.unwrap_or_default();
        assert_eq!(said.chars().count(), super::LONGEST + 1, "nor in what a gate says");
    }

    #[test]
    fn transition_times_move_only_with_the_status() {
        let verdict = |ready| Verdict {
            ready,
            reconciling: false,
            stalled: false,
            upgrading: false,
            word: Word::UpToDate,
            message: String::new(),
        };
        let (first, second) = (Timestamp::from_second(1).unwrap(), Timestamp::from_second(2).unwrap());
        let before = conditions(&[], &verdict(Tri::Unknown), 1, first);
        let after = conditions(&before, &verdict(Tri::True), 1, second);
        assert_eq!(after[0].last_transition_time.0, second, "Ready changed");
        assert_eq!(after[1].last_transition_time.0, first, "Reconciling did not");
        assert_eq!(conditions(&after, &verdict(Tri::True), 1, second), after);
    }
}
