//! Everything that a decision about one quorum is made from.

use std::{
    borrow::Cow,
    ops::{Deref, DerefMut},
};

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    quorum::MemberName,
    rolling::known::{
        owners::{Field, Owners},
        parked::Parked,
        record::Record,
        workload::{Evictions, Pod, Strategy, Workload},
    },
    strategy::known::seen::Seen,
};

/// Everything that a decision about one workload is made from, all of it read in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// What every strategy sees. Its fields are read as if they stood here.
    pub seen: Seen,
    /// The StatefulSet.
    pub workload: Workload,
    /// Its pods that exist, in the order of their indices.
    pub pods: Vec<Pod>,
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
}

impl Deref for View {
    type Target = Seen;

    fn deref(&self) -> &Seen {
        &self.seen
    }
}

impl DerefMut for View {
    fn deref_mut(&mut self) -> &mut Seen {
        &mut self.seen
    }
}

impl AsRef<Seen> for View {
    fn as_ref(&self) -> &Seen {
        &self.seen
    }
}

impl AsMut<Seen> for View {
    fn as_mut(&mut self) -> &mut Seen {
        &mut self.seen
    }
}

impl View {
    /// What this means at a moment: a pod that has not been ready for as long as its StatefulSet asks is not up yet. Kubernetes itself
    /// goes on to the next one only then, and a process that ends after a while shows it.
    pub(crate) fn as_of(&self, now: Timestamp) -> Cow<'_, Self> {
        let min_ready = self.workload.min_ready;
        if min_ready.is_zero() || bug::active(Bug::MinReadyIgnored) {
            return Cow::Borrowed(self);
        }
        let mut view = self.clone();
        for pod in &mut view.pods {
            let long_enough = |since: &Timestamp| since.saturating_add(min_ready).is_ok_and(|until| until <= now);
            pod.young = !pod.ready_since.as_ref().is_none_or(long_enough);
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

/// What a view says of the record.
impl Record {
    /// Whether somebody else changed the template after it was seen: its image, or anything else in it.
    pub fn is_changed(&self, view: &View) -> bool {
        let revision = self.revision.as_ref().filter(|_| view.workload.observed);
        view.workload.image != self.target.image || revision.is_some_and(|seen| *seen != view.workload.update_revision)
    }

    /// Notes that our last write of the partition was seen. Writes before it carried an older resourceVersion and can't land any more. The
    /// template comes with its partition in one write: where that is seen, a partition of somebody else's is not what was there before.
    pub(crate) fn note_partition(&mut self, view: &View) {
        let Strategy::RollingUpdate { partition } = view.workload.strategy else { return };
        // A template that is not ours is no template_trial: it may be the one that was there before, and our write lost.
        let theirs = view
            .owners
            .known()
            .is_some_and(|owners| owners.writer(Field::Partition).is_some() && owners.is_ours(Field::Image));
        let template = self.revision.is_none() && self.contest.is_none() && view.workload.image == self.target.image;
        if (partition == self.partition || (template && theirs)) && !bug::active(Bug::OriginalPartitionIsOurs) {
            self.previous_partitions.clear();
        }
    }
}
