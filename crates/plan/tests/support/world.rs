//! A cluster in a few lines: it applies steps the way Kubernetes would, and refuses the ones that would hurt.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use windlass_plan::{
    Decision, Fact, MemberName, Order, Pod, Step, Trouble, View, Want,
    rolling::{
        self,
        known::workload::{Evictions, Revision, Strategy},
    },
    strategy::known::{
        pulls::{Pull, Pulls},
        request::Requests,
        snapshot::Progress,
        step::{JobStep, Step as _},
        want::Trigger,
    },
};

use super::{
    POSITION, at, gatekeeper::Gatekeeper, image, member_mut, name, partition, pod, pod_mut, rest, rest_on_delete,
    revision, snapshot, target, version, want,
};

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
    /// Whoever leads stays in the lead, whatever it is asked.
    pub clings: bool,
    /// Versions whose processes never start.
    pub broken: BTreeSet<&'static str>,
    /// Who judges by the gates, where a test has one.
    pub keeper: Option<Gatekeeper>,
    /// Processes of such versions that run go on.
    pub only_unready_are_broken: bool,
    /// What pods were made from, oldest first.
    pub made: Vec<Revision>,
    /// How Jobs that take snapshots end.
    pub outcome: Progress,
    /// Members, by their indices, whose nodes can't pull anything new.
    pub unpullable: BTreeSet<u32>,
    /// When which image was asked for on which node.
    asked: BTreeMap<(String, String), Timestamp>,
    /// Which image is on which node because it was asked for there.
    pulled: BTreeSet<(String, String)>,
}

impl World {
    /// At rest on the old version, with the new one wanted.
    pub fn new(members: u32, leader: u32) -> Self {
        Self::from(rest(members, leader))
    }

    /// At rest on the old version under OnDelete, with the new one wanted.
    pub fn on_delete(members: u32, leader: u32) -> Self {
        Self::from(rest_on_delete(members, leader))
    }

    pub fn from(view: View) -> Self {
        Self {
            want: want(super::NEW),
            view,
            now: at(100_000),
            steps: vec![],
            deleted: vec![],
            frozen: false,
            clings: false,
            broken: BTreeSet::new(),
            keeper: None,
            only_unready_are_broken: false,
            made: vec![],
            outcome: Progress::Done(snapshot()),
            unpullable: BTreeSet::new(),
            asked: BTreeMap::new(),
            pulled: BTreeSet::new(),
        }
    }

    /// At rest on the old version, where somebody else writes the template.
    pub fn following(members: u32, leader: u32) -> Self {
        let mut world = Self::on_delete(members, leader);
        world.want.trigger = Trigger::Template;
        world.want.target = target(super::OLD);
        world
    }

    /// Somebody else writes the template.
    pub fn edit(&mut self, to: &str) {
        self.want.target = target(to);
        self.view.workload.image = image(to);
        self.view.workload.observed = false;
    }

    /// One pass of the operator, and what Kubernetes makes of it.
    pub fn pass(&mut self) -> Decision {
        self.look_at_nodes();
        let plan = rolling::plan(&self.want, &self.view, self.now);
        assert_eq!(rolling::plan(&self.want, &self.view, self.now), plan, "the same view gives the same plan");
        self.view.record = plan.record;
        self.view.approvals = plan.approvals;
        self.view.given_up = plan.given_up;
        self.view.requests = Requests::default();
        if let Some(keeper) = &mut self.keeper {
            keeper.look(&self.view, self.now);
            if let Decision::Act(step) = &plan.decision {
                keeper.object(step, &self.want, &self.view, self.now);
            }
        }
        self.view.attempt = plan.attempt;
        self.view.parked = plan.kept;
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

    /// The node under a member: each has its own.
    fn node(index: u32) -> String {
        format!("node-{index}")
    }

    /// What the operator would see of the new image on the nodes under members that don't run it.
    fn look_at_nodes(&mut self) {
        if self.want.pre_pull.is_none() {
            return;
        }
        let wanted = self.view.record.as_ref();
        let wanted = wanted.map_or(&self.want.target, |record| record.next_target.as_ref().unwrap_or(&record.target));
        let runs = revision(&wanted.version.to_string());
        let look = |pod: &Pod| {
            let (node, bad) = (Self::node(pod.index), self.unpullable.contains(&pod.index));
            let key = (node.clone(), wanted.image.clone());
            let trouble = bad.then(|| "manifest unknown".to_owned());
            let pull = match self.asked.get(&key) {
                _ if self.pulled.contains(&key) => Pull::Done,
                Some(since) => Pull::Running { since: *since, trouble },
                None => Pull::Missing,
            };
            (node, pull)
        };
        let nodes = self.view.pods.iter().filter(|pod| pod.revision != runs).map(look).collect();
        self.view.pulls = Fact::Known(Pulls { image: wanted.image.clone(), nodes });
    }

    fn pull_on(&mut self, image: &str, nodes: &[String]) {
        for node in nodes {
            self.asked.insert((node.clone(), image.to_owned()), self.now);
        }
    }

    /// Nobody is taken down whose node lacks the image.
    fn object_to_pulls(&self, pod: &MemberName) {
        let rolling_back = self.view.record.as_ref().is_some_and(|record| record.rolling_back);
        let aside = self.want.overrides.get("ImagePulled").is_some_and(|until| self.now < *until);
        let (Some(record), Some(pod)) = (&self.view.record, self.view.pod(pod)) else { return };
        if self.want.pre_pull.is_some() && !rolling_back && !aside {
            let key = (Self::node(pod.index), record.target.image.clone());
            assert!(self.pulled.contains(&key), "{} goes, and its node lacks the image", pod.name);
        }
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
        let runs = self.only_unready_are_broken && pod.is_up();
        !runs && self.broken.iter().any(|version| pod.revision == revision(version))
    }

    /// It is broken, or was replaced for a target that was given up and serves nobody.
    fn is_given_up(&self, pod: &Pod) -> bool {
        let abandoned = self.view.record.as_ref().is_some_and(|record| record.abandoned.contains(&pod.name));
        self.is_broken(pod)
            || (abandoned && self.view.quorum.member(&pod.name).is_some_and(|member| member.healthy.is(&false)))
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
            Step::Job(_)
            | Step::WriteTemplate { .. }
            | Step::SwitchStrategy { .. }
            | Step::PutBackStrategy
            | Step::HoldEvictions
            | Step::HandOver { .. }
            | Step::TakeBack { .. }
            | Step::DeletePod { .. }
            | Step::Replace { .. }
            | Step::ReleaseEvictions
            | Step::Park { .. } => None,
        };
        self.steps.iter().filter_map(index).collect()
    }

    /// The sound members whose pods we deleted, in order.
    pub fn replaced(&self) -> Vec<MemberName> {
        let pod = |step: &Step| if let Step::Replace { pod, .. } = step { Some(pod.clone()) } else { None };
        self.steps.iter().filter_map(pod).collect()
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
    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    fn object(&self, step: &Step) {
        let replicas = self.view.workload.replicas;
        let highest = self.view.outdated().next_back();
        match step {
            Step::Job(JobStep::TakeSnapshot { .. }) => {
                let another = self.view.record.as_ref().is_none_or(|record| record.next_target.is_some());
                assert!(self.want.snapshot.is_some() && another);
                assert_ne!(self.view.snapshot, Fact::Known(Progress::Running), "H6: one Job at a time");
            }
            Step::Job(JobStep::Answer { gate }) => {
                let lacking = self.view.external.iter().any(|external| external.name == *gate && external.lacks_job);
                assert!(lacking, "{gate} lacks no Job");
            }
            Step::Job(JobStep::PullImage { image, nodes }) => {
                assert!(self.want.pre_pull.is_some() && !nodes.is_empty());
                let Fact::Known(pulls) = &self.view.pulls else { panic!("nobody knows what is missing") };
                assert_eq!(pulls.image, *image);
                assert!(nodes.iter().all(|node| pulls.nodes[node] == Pull::Missing), "H6: one Job per node");
            }
            Step::WriteTemplate { strategy, .. } => {
                assert_eq!(self.want.trigger, Trigger::Version, "X7: it is somebody else's");
                let record = self.view.record.as_ref().expect("recorded first");
                let holding = match record.order {
                    Order::ReverseOrdinal => Strategy::RollingUpdate { partition: replicas },
                    Order::LeaderLast => Strategy::OnDelete,
                };
                assert_eq!(*strategy, Some(holding), "H8");
                if record.order == Order::ReverseOrdinal {
                    assert!(partition(&self.view).is_some(), "H7: under OnDelete no partition holds anybody");
                    let switched = matches!(self.steps.last(), Some(Step::SwitchStrategy { .. }));
                    let caught_up = self.view.workload.current_revision == self.view.workload.update_revision;
                    assert!(!switched || caught_up, "H7: held pods would come back from the first template");
                }
            }
            Step::SwitchStrategy { partition } => {
                assert_eq!((self.view.workload.strategy, *partition), (Strategy::OnDelete, 0), "H7");
                assert!(highest.is_none() && self.all_well(), "H7: nobody can be replaced");
            }
            Step::PutBackStrategy => {
                assert_eq!(
                    (partition(&self.view), &self.view.record),
                    (Some(0), &None),
                    "only a switch that came to nothing"
                );
            }
            Step::Replace { pod, uid, through, .. } => {
                self.object_to_pulls(pod);
                self.object_to_replacing(pod, uid);
                let theirs = matches!(self.view.evictions, Evictions::Theirs(_));
                assert_eq!(
                    theirs,
                    through.is_some(),
                    "H12: what somebody else's budget covers is evicted, and only that"
                );
            }
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
                let held = super::partition(&self.view).expect("H7: a permit needs RollingUpdate");
                assert!(*partition < held, "a permit lowers the partition from {held} to {partition}");
                assert!(replicas == 1 || !self.view.quorum.leader.is(pod), "C3: {pod} leads");
                assert!(self.all_well() || self.is_given_up(highest), "C2, C5: {:?}", self.view);
                assert_ne!(self.view.evictions, Evictions::Open, "H12");
                if !self.is_given_up(highest) {
                    self.object_to_pulls(pod);
                }
            }
            Step::TakeBack { pod, partition, .. } => {
                assert_eq!(Some(pod), highest.map(|pod| &pod.name));
                assert_eq!(*partition, highest.map_or(0, |pod| pod.index + 1));
                let reverts = self.view.record.as_ref().is_some_and(|record| record.rolling_back);
                assert!(reverts || self.view.updated().all(|pod| pod.index >= *partition), "H10");
            }
            Step::DeletePod { pod, uid, .. } => {
                let pod = self.view.pod(pod).expect("it is there");
                let record = self.view.record.as_ref().expect("recorded first");
                let given_up = record.abandoned.contains(&pod.name) && !pod.is_up();
                let unhealthy = self.view.quorum.member(&pod.name).is_some_and(|member| match member.healthy {
                    Fact::Known(healthy) => !healthy,
                    Fact::Unknown(_) => given_up,
                });
                let lost = match record.order {
                    Order::ReverseOrdinal => !pod.is_up(),
                    Order::LeaderLast => !pod.is_up() || record.abandoned.contains(&pod.name),
                };
                assert!(pod.uid == *uid && unhealthy && lost, "H44, H13: {pod:?}");
                // A quorum of one or two is down while one of them is, and a person accepted that (H14).
                let down_anyway = self.want.accept_downtime && replicas <= 2;
                let survives = self.view.quorum.survives_losing(&pod.name) || down_anyway;
                assert!(self.view.is_outdated(pod) && survives, "C4");
                assert!(self.view.comes_back_updated(pod.index), "H44: {:?}", self.view.workload);
                assert!(down_anyway || !self.view.quorum.leader.is(&pod.name), "C3");
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

    /// The pod of a sound member is deleted under OnDelete.
    fn object_to_replacing(&self, name: &MemberName, uid: &str) {
        let pod = self.view.pod(name).expect("it is there");
        assert!(pod.uid == *uid && pod.is_up() && self.view.is_outdated(pod), "{pod:?}");
        assert_eq!(self.view.workload.strategy, Strategy::OnDelete);
        assert!(self.view.comes_back_updated(pod.index), "{:?}", self.view.workload);
        assert!(self.view.workload.replicas == 1 || !self.view.quorum.leader.is(name), "C3: {name} leads");
        assert!(self.all_well(), "C2, C5, H21: {:?}", self.view);
        assert_ne!(self.view.evictions, Evictions::Open, "H12");
        let above = self.view.outdated().filter(|other| !self.view.quorum.leader.is(&other.name));
        assert!(above.max_by_key(|other| other.index).is_none_or(|highest| highest == pod), "followers from the top");
    }

    fn all_up(&self) -> bool {
        self.view.pods.len() == self.replicas() && self.view.pods.iter().all(Pod::is_up)
    }

    fn carry_out(&mut self, step: &Step) {
        match step {
            Step::Job(JobStep::TakeSnapshot { .. }) => self.view.snapshot = Fact::Known(Progress::Running),
            Step::Job(JobStep::Answer { gate }) => {
                let started = self.view.external.iter_mut().filter(|external| external.name == *gate);
                started.for_each(|external| external.lacks_job = false);
            }
            Step::Job(JobStep::PullImage { image, nodes }) => self.pull_on(image, nodes),
            Step::WriteTemplate { image, strategy } => {
                self.view.workload.image.clone_from(image);
                self.view.workload.strategy = strategy.unwrap_or(self.view.workload.strategy);
                self.view.workload.observed = false;
            }
            Step::Replace { pod, .. } => {
                let index = self.view.pod(pod).map(|pod| pod.index).expect("it is there");
                self.delete(index);
            }
            Step::SwitchStrategy { partition }
            | Step::Permit { partition, .. }
            | Step::TakeBack { partition, .. }
            | Step::Park { partition } => {
                self.view.workload.strategy = Strategy::RollingUpdate { partition: *partition };
                self.view.workload.observed = false;
            }
            Step::PutBackStrategy => {
                self.view.workload.strategy = Strategy::OnDelete;
                self.view.workload.observed = false;
            }
            Step::DeletePod { pod, .. } => {
                let index = self.view.pod(pod).map(|pod| pod.index).expect("it is there");
                pod_mut(&mut self.view, index).terminating = true;
            }
            Step::HoldEvictions => self.view.evictions = Evictions::HeldByUs,
            Step::ReleaseEvictions => self.view.evictions = Evictions::Open,
            Step::HandOver { .. } if self.clings => {}
            Step::HandOver { to, .. } => self.view.quorum.leader = Fact::Known(to.clone()),
        }
    }

    /// One small move of the controller, the kubelet or a member.
    pub fn let_kubernetes_work(&mut self) {
        self.now += Duration::from_secs(1);
        if self.frozen {
            return;
        }
        let comes = |(node, _): &&(String, String)| !self.unpullable.iter().any(|index| *node == Self::node(*index));
        let coming = self.asked.keys().filter(|key| !self.pulled.contains(*key)).find(comes).cloned();
        if let Some(key) = coming {
            self.pulled.insert(key);
        } else if self.view.snapshot == Fact::Known(Progress::Running) {
            self.view.snapshot = Fact::Known(self.outcome.clone());
        } else if !self.view.workload.observed {
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
        } else if let Some(lowest) = self.followed() {
            self.view.quorum.agreed = Some(lowest);
        } else if let Some(index) = self.view.permitted().map(|pod| pod.index) {
            self.delete(index);
        } else if self.view.outdated().next().is_none() && self.view.workload.strategy != Strategy::OnDelete {
            self.view.workload.current_revision = self.view.workload.update_revision.clone();
        }
    }

    /// What the whole system follows its members to, if it has not.
    fn followed(&self) -> Option<windlass_plan::Version> {
        let lowest = self.view.quorum.voters().map(|(_, member)| member.version.known()).min().flatten()?;
        (self.view.quorum.agreed.as_ref().is_some_and(|agreed| agreed.minor() < lowest.minor())).then(|| lowest.clone())
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
        self.made.push(made_from.clone());
        let uid = format!("{index}-at-{}", self.now);
        let fresh = Pod { uid, revision: made_from, ready_since: None, ..pod(index, super::NEW) };
        self.view.pods.push(fresh);
        self.view.pods.sort_by_key(|pod| pod.index);
    }
}

/// How many random stories a test tells.
pub const RANDOM_STORIES: u64 = 1_500;

/// A few numbers that look random and are the same every time.
/// Numbers from a seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A seed decides the size, the order, what breaks, what people ask for and which writes are lost; in the end all is mended, and it
/// must come to rest. [`World`] objects to steps that would hurt.
pub fn random_story(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66);
    let members = [3, 3, 4, 5][dice.below(4) as usize];
    let leader = dice.below(members);
    let mut world = if dice.below(3) == 0 { World::new(members, leader) } else { World::on_delete(members, leader) };
    world.want.order = [None, None, Some(Order::ReverseOrdinal), Some(Order::LeaderLast)][dice.below(4) as usize];
    for _ in 0..dice.below(8) {
        for _ in 0..dice.below(25) {
            let _ = world.pass();
        }
        world.strike(&mut dice);
    }
    world.broken.clear();
    (world.want.paused, world.want.allow_downgrade) = (false, true);
    world.view.evictions = Evictions::Open;
    for _ in 0..PATIENCE {
        // A person looks once in a while and resumes what waits for one.
        let decision = world.pass();
        if decision == Decision::Done {
            assert!(world.all_well(), "story {seed}: {:?}", world.view);
            let wanted = world.want.target.version.to_string();
            assert!(world.everybody_runs(&wanted), "story {seed}: {:?}", world.steps);
            return;
        }
        world.view.resumed =
            matches!(&decision, Decision::Halt { on } if on.reason == windlass_plan::Reason::TemplateReverted);
    }
    let last = world.pass();
    panic!("story {seed} never ends: {last:?} after {:#?} in {:#?}", world.steps, world.view)
}

impl World {
    /// Something happens.
    fn strike(&mut self, dice: &mut Dice) {
        let members = self.view.workload.replicas;
        let index = dice.below(members);
        let spare = self.all_well();
        match dice.below(9) {
            // Nobody but us takes a member down while another is.
            0 if spare && !self.view.quorum.leader.is(&name(index)) => {
                pod_mut(&mut self.view, index).terminating = true;
                member_mut(&mut self.view, index).healthy = Fact::Known(false);
            }
            1 if self.caught_up(&name(index))
                && self.view.quorum.member(&name(index)).is_some_and(windlass_plan::Member::is_healthy) =>
            {
                self.view.quorum.leader = Fact::Known(name(index));
            }
            2 => self.want.target = target([super::OLD, super::NEW, super::NEWER][dice.below(3) as usize]),
            3 => self.want.paused = !self.want.paused,
            4 => {
                self.only_unready_are_broken = true;
                self.broken = [[super::OLD, super::NEW, super::NEWER][dice.below(3) as usize]].into();
            }
            5 => self.broken.clear(),
            6 => {
                self.want.order = [None, Some(Order::ReverseOrdinal), Some(Order::LeaderLast)][dice.below(3) as usize];
            }
            7 => {
                // A write is lost.
                let before = self.view.clone();
                let deleted = self.deleted.len();
                let steps = self.steps.len();
                let _ = self.pass();
                if self.steps.len() > steps {
                    let record = self.view.record.take();
                    self.view = View { record, ..before };
                    self.deleted.truncate(deleted);
                    self.steps.pop();
                }
            }
            _ => self.want.allow_downgrade = !self.want.allow_downgrade,
        }
    }
}
