//! The two orders in which members can go.

use crate::rolling::known::workload::Strategy;

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumString, strum::IntoStaticStr)]
pub enum Order {
    /// Highest ordinal first, held by the StatefulSet's partition.
    ReverseOrdinal,
    /// Followers first and the leader last, each pod deleted by us under OnDelete.
    LeaderLast,
}

impl Order {
    /// The order that a StatefulSet of this strategy can be upgraded in as it is (H7).
    pub fn of(strategy: Strategy) -> Self {
        match strategy {
            Strategy::RollingUpdate { .. } => Self::ReverseOrdinal,
            Strategy::OnDelete => Self::LeaderLast,
        }
    }

    /// The strategy that lets Kubernetes replace nobody, whatever the template says.
    pub(crate) fn holding(self, replicas: u32) -> Strategy {
        match self {
            Self::ReverseOrdinal => Strategy::RollingUpdate { partition: replicas },
            Self::LeaderLast => Strategy::OnDelete,
        }
    }
}
