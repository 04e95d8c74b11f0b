//! A strategy that somebody else set back.

use crate::{
    hold::Hold,
    reason::Reason,
    rolling::known::{order::Order, workload::Pod},
};

/// So often the hold is tried until it is seen to stand: a set whose pods come and go moves on between a look and a write.
pub(crate) const PATIENCE: u32 = 8;

/// A strategy that somebody else set back, kept until a person says `resume`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contest {
    /// Who, as far as managedFields tell.
    pub by: String,
    /// How often we wrote what holds everybody.
    pub holds: u32,
    /// That was seen to stand.
    pub held: bool,
}

impl Contest {
    /// One of which nobody knows how often anything was held: nothing is held any more.
    pub fn exhausted() -> Self {
        Self { by: "somebody".to_owned(), holds: PATIENCE, held: true }
    }

    /// What happened to this StatefulSet, for whoever can't hear the rest yet; `permitted` is the pod that Kubernetes may replace all the same.
    pub fn told(&self, set: &str, permitted: Option<&Pod>) -> String {
        let by = &self.by;
        match permitted.filter(|_| self.held || self.holds >= PATIENCE) {
            None => format!(
                "{by} set the update strategy of StatefulSet {set}, and Windlass held the members back that are not replaced yet. Stop {by} \
                 from writing it"
            ),
            Some(pod) => format!(
                "{by} set the update strategy of StatefulSet {set} back again: Kubernetes is replacing members by itself now, possibly the \
                 leader. Stop {by}, and set spec.updateStrategy.rollingUpdate.partition of the StatefulSet to {}",
                pod.index.saturating_add(1)
            ),
        }
    }

    pub(crate) fn hold(&self) -> Hold {
        let by = &self.by;
        let held = if self.held { "Windlass held again" } else { "Windlass holds again, once," };
        let message = format!(
            "{by} set the update strategy back during this upgrade, and Kubernetes would have replaced members by itself; {held} the members that \
             are not replaced yet. Keep {by} from writing spec.updateStrategy, then set spec.requests.resume to a new value; until then the \
             upgrade stands still, and abort, rollback and another spec.version wait"
        );
        Hold::new(Reason::FieldOwned, message)
    }

    pub(crate) fn lost(&self, order: Order, pod: &Pod) -> Hold {
        let by = &self.by;
        let hold = match order {
            // Above whoever is replaced already: below it they would come back as the old version (H10).
            Order::ReverseOrdinal => format!("updateStrategy.rollingUpdate.partition {}", pod.index.saturating_add(1)),
            Order::LeaderLast => "updateStrategy.type OnDelete".to_owned(),
        };
        let message = format!(
            "{by} set the update strategy back again: Kubernetes is replacing the remaining members by itself now, possibly the leader, and \
             Windlass only asks the leader to hand over. Stop {by}, set {hold} on the StatefulSet, then set spec.requests.resume to a new value"
        );
        Hold::new(Reason::FieldOwned, message)
    }
}
