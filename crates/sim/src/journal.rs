//! What truly happened, in one order: every write to the API, every change of an application's state, every injected fault.
//!
//! The API and the applications write it, and whoever has a run judged reads it. Nothing here passes through the operator
//! under test, so its beliefs can't colour the verdict.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

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
    /// Who asked for it: the name that the client was made with (`user`, `statefulset-controller`, `kubelet`, …).
    pub user: String,
    /// What was done.
    pub verb: Verb,
    /// Plural and group as in `kubectl api-resources`: `pods`, `statefulsets.apps`, `widgets.example.org`.
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
    Note(Note),
}

/// Something that the scenario, or bad luck, did to the cluster or to a process under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Something befell a process under test.
    Process {
        /// Which, as for [`Change::user`].
        user: String,
        /// What.
        what: Befell,
    },
    /// The API did not take an object that was to be there at the beginning.
    NotCreated {
        /// Why not.
        why: String,
    },
    /// The API did not take what a person asked for later.
    Refused {
        /// What was asked for.
        what: String,
        /// Why not.
        why: String,
    },
    /// A policy lets nobody change these fields of an object from now on, given as JSON pointers; with none, everything may change again.
    FieldsFrozen {
        /// The object's name.
        name: String,
        /// What of it.
        fields: Vec<String>,
    },
    /// Nothing that the processes under test write to an object arrives any more, for a webhook goes wrong; or everything arrives again.
    WebhookBroken {
        /// The object's name.
        name: String,
        /// It goes wrong.
        yes: bool,
    },
    /// The watches of the processes under test stand still.
    WatchesStill,
    /// The API was restored as of this revision; of none where nothing had been written.
    Restored(Option<u64>),
    /// A snapshot of a StatefulSet's quorum was truly taken, and is where it should be.
    SnapshotStored {
        /// Namespace of the StatefulSet.
        namespace: String,
        /// The StatefulSet's name.
        workload: String,
    },
    /// What nobody reads but people.
    Disturbed(String),
}

/// What befell a process under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Befell {
    /// It died.
    Killed,
    /// It stands still, for so long.
    Frozen(Duration),
    /// It goes on.
    Thawed,
    /// A write of its own takes effect when it has given up waiting for the answer.
    Late {
        /// So long after this.
        delay: Duration,
        /// Method and path.
        what: String,
    },
}

impl Note {
    /// The process under test that this befell, if it was one.
    pub fn process(&self) -> Option<&str> {
        match self {
            Self::Process { user, .. } => Some(user),
            Self::NotCreated { .. }
            | Self::Refused { .. }
            | Self::FieldsFrozen { .. }
            | Self::WebhookBroken { .. }
            | Self::WatchesStill
            | Self::Restored(_)
            | Self::SnapshotStored { .. }
            | Self::Disturbed(_) => None,
        }
    }

    /// Whether the API did not take what the scenario asked it for.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::NotCreated { .. } | Self::Refused { .. })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { user, what: Befell::Killed } => write!(f, "{user} killed"),
            Self::Process { user, what: Befell::Frozen(how_long) } => write!(f, "{user} frozen for {how_long:?}"),
            Self::Process { user, what: Befell::Thawed } => write!(f, "{user} thawed"),
            Self::Process { user, what: Befell::Late { delay, what } } => {
                write!(f, "{user} late by {}ms: {what}", delay.as_millis())
            }
            Self::NotCreated { why } => write!(f, "not created: {why}"),
            Self::Refused { what, why } => write!(f, "{what} refused: {why}"),
            Self::FieldsFrozen { name, fields } => write!(f, "frozen fields of {name}: {fields:?}"),
            Self::WebhookBroken { name, yes: true } => write!(f, "the webhook for {name} goes wrong"),
            Self::WebhookBroken { name, yes: false } => write!(f, "the webhook for {name} works"),
            Self::WatchesStill => f.write_str("watches stand still"),
            Self::Restored(revision) => write!(f, "restored as of {revision:?}"),
            Self::SnapshotStored { namespace, workload } => write!(f, "snapshot of {namespace}/{workload} stored"),
            Self::Disturbed(what) => f.write_str(what),
        }
    }
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
