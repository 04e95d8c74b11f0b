//! The StatefulSet and its pods as read in this pass, and the [`View`] that a decision is made from.

use std::{borrow::Cow, fmt, time::Duration};

use jiff::Timestamp;

use crate::{
    approval::Approvals,
    budget::Budget,
    bug::{self, Bug},
    fact::Fact,
    outcome::ExternalGate,
    owners::Owners,
    parking::Parked,
    prepull::Pulls,
    quorum::{MemberName, Quorum},
    record::Record,
    request::{GivenUp, Requests},
    snapshot::{Attempt, Progress},
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
    /// The name of the pod, and so of the member, at this index.
    pub fn member(&self, index: u32) -> MemberName {
        MemberName::new(format!("{}-{}", self.name, self.first_ordinal.saturating_add(index)))
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
    /// It has a deletion timestamp.
    pub terminating: bool,
    /// What keeps it from being ready, where Kubernetes says so.
    pub trouble: Option<Trouble>,
    /// Where its log tells more, for one that does not come up.
    pub log: Option<Log>,
}

impl Pod {
    /// Ready, and staying.
    pub fn is_up(&self) -> bool {
        self.ready_since.is_some() && !self.terminating
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

/// Everything that a decision about one workload is made from, all of it read in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The StatefulSet.
    pub workload: Workload,
    /// Its pods that exist, in the order of their indices.
    pub pods: Vec<Pod>,
    /// What the system says of itself.
    pub quorum: Quorum,
    /// Who else writes the StatefulSet.
    pub owners: Fact<Owners>,
    /// Who holds evictions.
    pub evictions: Evictions,
    /// The upgrade that is under way, as recorded.
    pub record: Option<Record>,
    /// The partition that we set while no upgrade was under way, as recorded.
    pub parked: Option<Parked>,
    /// Until now the resource could not be read, so nobody looked at who leads.
    pub unwatched: bool,
    /// The last try to take a snapshot, as recorded.
    pub attempt: Option<Attempt>,
    /// What became of it.
    pub snapshot: Fact<Progress>,
    /// What became of the new image on the nodes, where it shall be there before anybody stops.
    pub pulls: Fact<Pulls>,
    /// A person asked to finish a rollout that was half done when it was adopted (H40), or to try again what failed.
    pub resumed: bool,
    /// What a person asks for once, and has not been answered yet.
    pub requests: Requests,
    /// The target that was given up, as recorded.
    pub given_up: Option<GivenUp>,
    /// What was approved, and what was asked.
    pub approvals: Approvals,
    /// Gates that were evaluated where the facts are, in their order.
    pub external: Vec<ExternalGate>,
}

impl View {
    /// What this means at a moment: a pod that has not been ready for as long as its StatefulSet asks is not ready yet. Kubernetes itself
    /// goes on to the next one only then, and a process that ends after a while shows it.
    pub(crate) fn as_of(&self, now: Timestamp) -> Cow<'_, Self> {
        let min_ready = self.workload.min_ready;
        if min_ready.is_zero() || bug::active(Bug::MinReadyIgnored) {
            return Cow::Borrowed(self);
        }
        let mut view = self.clone();
        for pod in &mut view.pods {
            let long_enough = |since: &Timestamp| since.saturating_add(min_ready).is_ok_and(|until| until <= now);
            pod.ready_since = pod.ready_since.filter(long_enough);
        }
        Cow::Owned(view)
    }

    /// Pods that are not made from the newest template, lowest index first.
    pub fn outdated(&self) -> impl DoubleEndedIterator<Item = &Pod> {
        self.pods.iter().filter(|pod| self.is_outdated(pod))
    }

    /// Pods that are made from the newest template.
    pub fn updated(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(|pod| !self.is_outdated(pod))
    }

    /// Whether the pod is not made from the newest template.
    pub fn is_outdated(&self, pod: &Pod) -> bool {
        self.workload.is_outdated(pod)
    }

    /// Whether a pod at this index that has to be made anew now gets the newest template: at or above the partition it does, below it
    /// gets the held revision, which may be the same one.
    pub fn comes_back_updated(&self, index: u32) -> bool {
        let held = match self.workload.strategy {
            Strategy::RollingUpdate { partition } => index < partition,
            Strategy::OnDelete => false,
        };
        self.workload.observed && (!held || self.workload.current_revision == self.workload.update_revision)
    }

    /// One pod by its member's name.
    pub fn pod(&self, name: &MemberName) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.name == *name)
    }

    /// The pod that Kubernetes may delete at any moment because the partition allows it: a permit that stands (H9).
    pub fn permitted(&self) -> Option<&Pod> {
        self.workload.permitted(&self.pods)
    }

    /// True when all pods exist and were made from one template, the newest.
    pub fn is_uniform(&self) -> bool {
        self.workload.observed
            && self.pods.len() == usize::try_from(self.workload.replicas).unwrap_or(usize::MAX)
            && self.outdated().next().is_none()
            && self.is_concluded()
    }

    /// True when the controller has nothing left to do after the last pod. Under OnDelete its current revision never advances (H7).
    pub fn is_concluded(&self) -> bool {
        let caught_up = self.workload.current_revision == self.workload.update_revision;
        match self.workload.strategy {
            Strategy::RollingUpdate { .. } => caught_up || bug::active(Bug::SwitchNotConcluded),
            Strategy::OnDelete => caught_up || !bug::active(Bug::WaitsForCurrentRevision),
        }
    }
}
