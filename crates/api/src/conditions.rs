//! Conditions that kstatus, `kubectl wait`, Helm and Flux understand: Ready, Reconciling, Stalled. And one of our own: Upgrading (D2).

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

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
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// A condition's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
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
        ("Ready", verdict.ready),
        ("Reconciling", Tri::from(verdict.reconciling)),
        ("Stalled", Tri::from(verdict.stalled)),
        ("Upgrading", Tri::from(verdict.upgrading)),
    ];
    let written = |(type_, status): (&str, Tri)| {
        condition(before, type_, status, &verdict.reason, &verdict.message, generation, now)
    };
    states.into_iter().map(written).collect()
}

/// The longest message that a condition carries: others' words are in it, and nobody bounds those.
const LONGEST: usize = 4096;

/// A message, cut where it is too long.
fn cut(message: &str) -> String {
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.to_owned(),
    }
}

/// One condition. The time of its last transition is kept while its status stays.
pub fn condition(
    before: &[Condition],
    type_: &str,
    status: Tri,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) -> Condition {
    let kept = before.iter().find(|old| old.type_ == type_ && old.status == status.text());
    Condition {
        type_: type_.to_owned(),
        status: status.text().to_owned(),
        reason: reason.to_owned(),
        message: cut(message),
        observed_generation: Some(generation),
        last_transition_time: kept.map_or(Time(now), |old| old.last_transition_time.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, Tri, Verdict, conditions};

    #[test]
    fn a_message_is_cut_before_it_enters_a_status() {
        let long = "ü".repeat(100_000);
        let said = super::condition(&[], "Ready", Tri::False, "ResourceFailed", &long, 1, Timestamp::UNIX_EPOCH);
        assert_eq!(said.message.chars().count(), super::LONGEST + 1);
        assert!(said.message.ends_with('…'));
    }

    #[test]
    fn transition_times_move_only_with_the_status() {
        let verdict = |ready| Verdict {
            ready,
            reconciling: false,
            stalled: false,
            upgrading: false,
            reason: "Upgraded".into(),
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
