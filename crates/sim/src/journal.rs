//! What truly happened, in one order: every write to the API, every change of an application's state, every injected fault.
//!
//! The API and the applications write it; [`invariants`](crate::invariants) judges it. Nothing here passes through the operator
//! under test, so its beliefs can't colour the verdict.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::Value;

/// What kind of write it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// The object is new.
    Create,
    /// PUT or PATCH, also of a subresource; also the deletion mark on an object that must wait for its finalizers or its grace period.
    Update,
    /// The object is gone.
    Delete,
}

/// One object's change, as stored.
#[derive(Clone, Debug)]
pub struct Change {
    /// The revision that this write made; each is used once.
    pub revision: u64,
    /// Who asked for it: the name that the client was made with (`windlass-0`, `statefulset-controller`, `kubelet`, …).
    pub user: String,
    /// What was done.
    pub verb: Verb,
    /// Plural and group as in `kubectl api-resources`: `pods`, `statefulsets.apps`, `quorumclusters.windlass.dev`.
    pub resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object as it was; none when created.
    pub before: Option<Arc<Value>>,
    /// The object as it is; for a deletion its last state.
    pub after: Option<Arc<Value>>,
}

/// One member of a quorum as it truly is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberTruth {
    /// The pod's name, which is the member's too.
    pub pod: String,
    /// True when the process serves and takes part in the quorum.
    pub healthy: bool,
    /// True when this member leads.
    pub leader: bool,
    /// The version of the running process; while it is down, of the one that ran last.
    pub version: String,
}

/// One quorum as it truly is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumTruth {
    /// Namespace of the StatefulSet.
    pub namespace: String,
    /// The StatefulSet's name.
    pub workload: String,
    /// In the order of their names.
    pub members: Vec<MemberTruth>,
}

/// What happened at one moment.
#[derive(Clone, Debug)]
pub enum Event {
    /// A write landed.
    Write(Change),
    /// A quorum's true state changed; always the whole state.
    Quorum(QuorumTruth),
    /// An application took a verb (a leadership transfer, say) from somebody; `changed` tells whether it had any effect.
    Verb {
        /// Who called, as for [`Change::user`].
        user: String,
        /// Which pod was asked.
        pod: String,
        /// Method and path.
        what: String,
        /// Whether it changed anything.
        changed: bool,
    },
    /// Something that the scenario did to the cluster or to the operator; not the operator's doing.
    Note(String),
}

/// One line of the journal.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Cluster time.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// The shared record of one run.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Vec<Entry>>>);

impl Journal {
    /// Adds a line.
    pub fn push(&self, at: Timestamp, event: Event) {
        self.entries().push(Entry { at, event });
    }

    /// All lines so far. Don't hold this across another call into the cluster.
    pub fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
