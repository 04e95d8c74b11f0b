//! Ways in which the controllers of workloads can be made to deviate from the real ones, to show that a comparison with those notices.

/// One broken rule of the StatefulSet controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// The partition holds nothing back.
    PartitionIgnored,
    /// An outdated pod that isn't ready is replaced, whatever waits for it.
    BrokenPodReplaced,
    /// Under OnDelete the current revision moves on when all pods are new.
    CurrentMovesUnderOnDelete,
    /// A pod below the partition that has to be made anew gets the new template.
    HeldPodComesUpNew,
    /// Old revisions are never deleted.
    HistoryKept,
}

impl Deviation {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::PartitionIgnored,
        Self::BrokenPodReplaced,
        Self::CurrentMovesUnderOnDelete,
        Self::HeldPodComesUpNew,
        Self::HistoryKept,
    ];
}

/// One broken rule of the Job controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobDeviation {
    /// A failed pod is replaced, however many have failed already.
    BackoffLimitIgnored,
    /// The deadline ends nothing.
    DeadlineIgnored,
    /// A Job is called Complete without the word that goes before.
    NoCriteriaMet,
    /// Pods that have ended keep the finalizer by which they are counted.
    FinalizerKept,
    /// A suspended Job keeps its pods.
    SuspendIgnored,
}

impl JobDeviation {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::BackoffLimitIgnored,
        Self::DeadlineIgnored,
        Self::NoCriteriaMet,
        Self::FinalizerKept,
        Self::SuspendIgnored,
    ];
}

/// One broken rule of the Deployment controller or of the ReplicaSet controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeploymentDeviation {
    /// Old pods that are not available are not the first to go.
    SickPodsKept,
    /// A paused Deployment goes on to its new template.
    PauseIgnored,
    /// Old ReplicaSets are never deleted.
    HistoryKept,
    /// Of too many pods those go first that have come the farthest.
    ReadyPodsGoFirst,
}

impl DeploymentDeviation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::SickPodsKept, Self::PauseIgnored, Self::HistoryKept, Self::ReadyPodsGoFirst];
}
