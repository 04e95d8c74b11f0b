//! Ways in which the StatefulSet controller can be made to deviate from the real one, to show that a comparison with the real
//! one notices.

/// One broken rule.
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
