//! A cluster in a few lines: it applies steps the way Kubernetes would, and refuses the ones that would hurt.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use windlass_plan::{
    Decision, Fact, MemberName, Pod, Step, Trouble, View, Want, rollout,
    workload::{Evictions, Revision, Strategy},
};

use super::{POSITION, at, member_mut, name, partition, pod, pod_mut, rest, revision, version, want};

/// More passes than any way needs.
const PATIENCE: usize = 600;

pub struct World {
    pub want: Want,
    pub view: View,
    pub now: Timestamp,
    /// Every step that was carried out.
    pub steps: Vec<Step>,
    /// Every pod that the controller deleted, and the template that it had.
    pub deleted: Vec<(MemberName, Revision)>,
    /// The StatefulSet's controller does nothing.
    pub frozen: bool,
    /// Versions whose processes never start.
    pub broken: BTreeSet<&'static str>,
}

impl World {
    /// At rest on the old version, with the new one wanted.
    pub fn new(members: u32, leader: u32) -> Self {
        Self::from(rest(members, leader))
    }

    pub fn from(view: View) -> Self {
        Self {
            want: want(super::NEW),
            view,
            now: at(100_000),
            steps: vec![],
            deleted: vec![],
            frozen: false,
            broken: BTreeSet::new(),
        }
    }

    /// One pass of the operator, and what Kubernetes makes of it.
    pub fn pass(&mut self) -> Decision {
        let plan = rollout::plan(&self.want, &self.view, self.now);
        assert_eq!(rollout::plan(&self.want, &self.view, self.now), plan, "the same view gives the same plan");
        self.view.record = plan.record;
        match &plan.decision {
            Decision::Act(step) => {
                self.object(step);
                self.carry_out(step);
                self.steps.push(step.clone());
            }
            Decision::Wait { recheck, .. } => {
                self.now += *recheck;
                self.let_kubernetes_work();
            }
            Decision::Halt { .. } | Decision::Done => self.let_kubernetes_work(),
        }
        plan.decision
    }

    /// Passes until nothing more happens without a person.
    pub fn run(&mut self) -> Decision {
        self.run_until(|_| false)
    }

    /// Passes until this is so, or nothing more happens without a person.
    pub fn run_until(&mut self, enough: impl Fn(&Self) -> bool) -> Decision {
        for _ in 0..PATIENCE {
            let decision = self.pass();
            if enough(self) || matches!(decision, Decision::Halt { .. } | Decision::Done) {
                return decision;
            }
        }
        panic!("it never ends: {:?}", self.steps)
    }

    /// The first so many members that were replaced are well again, and the next one's turn has not begun.
    pub fn run_until_replaced(&mut self, count: usize) {
        let _ = self.run_until(|world| {
            world.deleted.len() == count && world.all_well() && world.view.updated().count() >= count
        });
        assert_eq!(self.deleted.len(), count, "{:?}", self.steps);
    }

    pub fn all_well(&self) -> bool {
        self.view.pods.len() == self.replicas()
            && self.view.pods.iter().all(|pod| {
                let member = self.view.quorum.member(&pod.name);
                pod.is_up() && member.is_some_and(|member| member.is_healthy() && self.caught_up(&pod.name))
            })
    }

    fn is_broken(&self, pod: &Pod) -> bool {
        self.broken.iter().any(|version| pod.revision == revision(version))
    }

    /// The pods that we deleted ourselves.
    pub fn mended(&self) -> Vec<&MemberName> {
        self.steps
            .iter()
            .filter_map(|step| if let Step::DeletePod { pod, .. } = step { Some(pod) } else { None })
            .collect()
    }

    pub fn count(&self, step: &str) -> usize {
        self.steps.iter().filter(|done| done.name() == step).count()
    }

    pub fn permits(&self) -> Vec<u32> {
        let index = |step: &Step| match step {
            Step::Permit { partition, .. } => Some(*partition),
            Step::WriteTemplate { .. }
            | Step::HoldEvictions
            | Step::HandOver { .. }
            | Step::TakeBack { .. }
            | Step::DeletePod { .. }
            | Step::ReleaseEvictions
            | Step::Park { .. } => None,
        };
        self.steps.iter().filter_map(index).collect()
    }

    /// The images that were written into the template, oldest first.
    pub fn templates(&self) -> Vec<&str> {
        self.steps
            .iter()
            .filter_map(|step| if let Step::WriteTemplate { image, .. } = step { Some(image.as_str()) } else { None })
            .collect()
    }

    pub fn everybody_runs(&self, wanted: &str) -> bool {
        let made = self.view.pods.iter().all(|pod| pod.revision == revision(wanted));
        let says = |index: u32| self.view.quorum.member(&name(index)).is_some_and(|m| m.version.is(&version(wanted)));
        made && (0..self.view.workload.replicas).all(says)
    }

    fn replicas(&self) -> usize {
        usize::try_from(self.view.workload.replicas).unwrap()
    }

    fn caught_up(&self, member: &MemberName) -> bool {
        self.view.quorum.member(member).is_some_and(|member| member.position.is(&Some(POSITION)))
    }

    /// What must be true of every step at the moment when it is carried out.
    fn object(&self, step: &Step) {
        let replicas = self.view.workload.replicas;
        let held = partition(&self.view).expect("the strategy stays RollingUpdate");
        let highest = self.view.outdated().next_back();
        match step {
            Step::WriteTemplate { partition, .. } => assert_eq!(*partition, Some(replicas), "H8"),
            Step::HandOver { from, to } => {
                assert!(self.view.quorum.leader.is(from) && from != to);
                assert!(
                    self.view.quorum.member(to).is_some_and(windlass_plan::Member::is_healthy),
                    "C3: {to} is healthy"
                );
                assert!(self.all_well(), "C5");
            }
            Step::Permit { pod, partition } => {
                let highest = highest.expect("somebody is outdated");
                assert_eq!((pod, *partition), (&highest.name, highest.index), "the highest outdated one, and it alone");
                assert!(*partition < held, "a permit lowers the partition from {held} to {partition}");
                assert!(replicas == 1 || !self.view.quorum.leader.is(pod), "C3: {pod} leads");
                assert!(self.all_well() || self.is_broken(highest), "C2, C5: {:?}", self.view);
                assert_ne!(self.view.evictions, Evictions::Open, "H12");
            }
            Step::TakeBack { pod, partition, .. } => {
                assert_eq!(Some(pod), highest.map(|pod| &pod.name));
                assert_eq!(*partition, highest.map_or(0, |pod| pod.index + 1));
                let reverts = self.view.record.as_ref().is_some_and(|record| record.reverting);
                assert!(reverts || self.view.updated().all(|pod| pod.index >= *partition), "H10");
            }
            Step::DeletePod { pod, uid, .. } => {
                let pod = self.view.pod(pod).expect("it is there");
                assert!(pod.uid == *uid && !pod.is_up() && self.is_broken(pod), "H44: {pod:?}");
                assert!(self.view.comes_back_updated(pod.index), "H44: {:?}", self.view.workload);
                assert!(!self.view.quorum.leader.is(&pod.name), "C3");
            }
            Step::HoldEvictions => assert_eq!(self.view.evictions, Evictions::Open),
            Step::ReleaseEvictions => {
                assert_eq!(self.view.evictions, Evictions::HeldByUs);
                assert!(self.view.permitted().is_none() && self.all_up(), "H12: nothing is on its way");
            }
            Step::Park { partition } => {
                assert_eq!(*partition, replicas);
                assert!(
                    highest.is_none() && self.view.workload.current_revision == self.view.workload.update_revision,
                    "H11"
                );
            }
        }
    }

    fn all_up(&self) -> bool {
        self.view.pods.len() == self.replicas() && self.view.pods.iter().all(Pod::is_up)
    }

    fn carry_out(&mut self, step: &Step) {
        match step {
            Step::WriteTemplate { image, partition } => {
                self.view.workload.image.clone_from(image);
                if let Some(partition) = partition {
                    self.view.workload.strategy = Strategy::RollingUpdate { partition: *partition };
                }
                self.view.workload.observed = false;
            }
            Step::Permit { partition, .. } | Step::TakeBack { partition, .. } | Step::Park { partition } => {
                self.view.workload.strategy = Strategy::RollingUpdate { partition: *partition };
                self.view.workload.observed = false;
            }
            Step::DeletePod { pod, .. } => {
                let index = self.view.pod(pod).map(|pod| pod.index).expect("it is there");
                pod_mut(&mut self.view, index).terminating = true;
            }
            Step::HoldEvictions => self.view.evictions = Evictions::HeldByUs,
            Step::ReleaseEvictions => self.view.evictions = Evictions::Open,
            Step::HandOver { to, .. } => self.view.quorum.leader = Fact::Known(to.clone()),
        }
    }

    /// One small move of the controller, the kubelet or a member.
    pub fn let_kubernetes_work(&mut self) {
        self.now += Duration::from_secs(1);
        if self.frozen {
            return;
        }
        if !self.view.workload.observed {
            self.view.workload.observed = true;
            let written = self.view.workload.image.rsplit('v').next().unwrap().to_owned();
            self.view.workload.update_revision = revision(&written);
        } else if let Some(gone) = self.view.pods.iter().position(|pod| pod.terminating) {
            self.view.pods.remove(gone);
        } else if let Some(missing) =
            (0..self.view.workload.replicas).find(|index| self.view.pod(&name(*index)).is_none())
        {
            self.create(missing);
        } else if let Some(index) = self.index_of(|_, pod| self.is_broken(pod) && pod.trouble.is_none()) {
            let message = "the registry does not have it".into();
            let (container, image) = ("pd".into(), self.view.workload.image.clone());
            pod_mut(&mut self.view, index).trouble = Some(Trouble::ImagePull { container, image, message });
            member_mut(&mut self.view, index).healthy = Fact::Known(false);
        } else if let Some(index) = self.index_of(|_, pod| !pod.is_up() && !self.is_broken(pod)) {
            let now = self.now;
            let made_from = pod_mut(&mut self.view, index).revision.to_string();
            pod_mut(&mut self.view, index).ready_since = Some(now);
            member_mut(&mut self.view, index).version = Fact::Known(version(&made_from));
        } else if self.view.pods.iter().any(|pod| self.is_broken(pod)) {
            // kubernetes#67250: the update loop is not reached while a pod is not ready.
        } else if let Some(index) = self.index_of(|view, pod| !view.quorum.member(&pod.name).unwrap().is_healthy()) {
            member_mut(&mut self.view, index).healthy = Fact::Known(true);
        } else if let Some(index) =
            self.index_of(|view, pod| !view.quorum.member(&pod.name).unwrap().position.is(&Some(POSITION)))
        {
            member_mut(&mut self.view, index).position = Fact::Known(Some(POSITION));
        } else if let Some(index) = self.view.permitted().map(|pod| pod.index) {
            self.delete(index);
        } else if self.view.outdated().next().is_none() {
            self.view.workload.current_revision = self.view.workload.update_revision.clone();
        }
    }

    fn index_of(&self, what: impl Fn(&View, &Pod) -> bool) -> Option<u32> {
        self.view.pods.iter().find(|pod| what(&self.view, pod)).map(|pod| pod.index)
    }

    fn delete(&mut self, index: u32) {
        let doomed = pod_mut(&mut self.view, index);
        doomed.terminating = true;
        let (gone, made_from) = (doomed.name.clone(), doomed.revision.clone());
        assert!(
            self.view.workload.replicas == 1 || !self.view.quorum.leader.is(&gone),
            "C3: the leader {gone} is restarted"
        );
        self.deleted.push((gone, made_from));
        let member = member_mut(&mut self.view, index);
        member.healthy = Fact::Known(false);
        if self.view.workload.replicas > 1 {
            member_mut(&mut self.view, index).position = Fact::Known(Some(POSITION / 2));
        }
    }

    fn create(&mut self, index: u32) {
        let workload = &self.view.workload;
        let held = partition(&self.view).is_some_and(|partition| index < partition);
        let made_from = if held { &workload.current_revision } else { &workload.update_revision }.clone();
        let uid = format!("{index}-at-{}", self.now);
        let fresh = Pod { uid, revision: made_from, ready_since: None, ..pod(index, super::NEW) };
        self.view.pods.push(fresh);
        self.view.pods.sort_by_key(|pod| pod.index);
    }
}
