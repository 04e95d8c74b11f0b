//! What the two orders mean for a StatefulSet.

pub use crate::strategy::known::want::Order;

use crate::rolling::known::workload::Strategy;

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
