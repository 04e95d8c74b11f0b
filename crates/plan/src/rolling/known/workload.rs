//! The StatefulSet, its pods, and who keeps them from being evicted, reduced to what a decision needs.

use std::{fmt, time::Duration};

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    quorum::{MemberName, Seat},
    trouble::{Log, Trouble},
};

/// The name of a ControllerRevision: what `controller-revision-hash` carries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(String);

impl Revision {
    /// A revision of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How the StatefulSet's controller replaces pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Pods at or above the partition (counted from the first ordinal) are replaced; the ones below stay.
    RollingUpdate {
        /// 0 where the StatefulSet does not say.
        partition: u32,
    },
    /// Pods are replaced when somebody deletes them.
    OnDelete,
}

/// A StatefulSet, reduced to what a decision needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The ordinal of its first pod; indices and the partition count from there (H11).
    pub first_ordinal: u32,
    /// How many pods it shall have.
    pub replicas: u32,
    /// For how long a pod must have been ready to count as that (`minReadySeconds`).
    pub min_ready: Duration,
    /// The init containers that follow the container have its image.
    pub images_agree: bool,
    /// How they are replaced.
    pub strategy: Strategy,
    /// The image of the managed container in the pod template.
    pub image: String,
    /// True when the controller has seen the newest spec, so that the revisions below mean something.
    pub observed: bool,
    /// What pods below the partition run.
    pub current_revision: Revision,
    /// What pods at or above the partition shall run.
    pub update_revision: Revision,
}

impl Workload {
    /// The pod at this index.
    pub fn seat(&self, index: u32) -> Seat {
        Seat { set: self.name.clone(), ordinal: self.first_ordinal.saturating_add(index) }
    }

    /// The name of the pod, and so of the member, at this index.
    pub fn member(&self, index: u32) -> MemberName {
        MemberName::in_pod(&self.seat(index))
    }

    /// Whether the pod is not made from the newest template.
    pub fn is_outdated(&self, pod: &Pod) -> bool {
        pod.revision != self.update_revision
    }

    /// The one of these pods that Kubernetes may delete at any moment because the partition allows it: a permit that stands (H9).
    pub fn permitted<'a>(&self, pods: &'a [Pod]) -> Option<&'a Pod> {
        let Strategy::RollingUpdate { partition } = self.strategy else { return None };
        pods.iter().rfind(|pod| self.is_outdated(pod) && pod.index >= partition && !pod.terminating)
    }
}

/// A pod of the StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name, which is its member's name too.
    pub name: MemberName,
    /// Which pod of that name it is: a later one is another.
    pub uid: String,
    /// Its place, counted from the StatefulSet's first ordinal: what `partition` counts.
    pub index: u32,
    /// What it was made from.
    pub revision: Revision,
    /// Since when it is Ready; none if it is not.
    pub ready_since: Option<Timestamp>,
    /// It is Ready, and not for as long as its StatefulSet asks: [`View::as_of`](super::view::View::as_of) says so.
    pub young: bool,
    /// It has a deletion timestamp.
    pub terminating: bool,
    /// What keeps it from being ready, where Kubernetes says so.
    pub trouble: Option<Trouble>,
    /// Where its log tells more, for one that does not come up.
    pub log: Option<Log>,
}

impl Pod {
    /// Ready for long enough, and staying.
    pub fn is_up(&self) -> bool {
        self.ready_since.is_some() && !self.young && !self.terminating
    }

    /// Not Ready at all. One that is Ready since a moment ago is neither up nor down: nobody counts on it, and it may serve.
    pub fn is_down(&self) -> bool {
        self.ready_since.is_none() || self.terminating || (self.young && bug::active(Bug::YoungPodMended))
    }
}

/// Who keeps evictions from taking a second member down while one is being replaced (H12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evictions {
    /// Nobody.
    Open,
    /// A PodDisruptionBudget of ours, which lets nobody go.
    HeldByUs,
    /// PodDisruptionBudgets of somebody else's, which select some of the pods or all of them.
    Theirs(Vec<Budget>),
}

/// A PodDisruptionBudget of somebody else's that selects pods of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// It selects every pod of the set that exists, and those that are made from its template.
    pub selects_all: bool,
    /// What its controller counted; none while that has not seen the newest spec.
    pub counts: Option<Counts>,
}

/// What the disruption controller counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// How many pods it is about.
    pub expected: u32,
    /// How many of them must stay healthy.
    pub desired: u32,
    /// How many may be evicted now.
    pub allowed: u32,
}
