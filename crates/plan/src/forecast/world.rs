//! The world of a forecast: a copy of what was seen, in which the best happens.
//!
//! Only what is on its way arrives: a template that was written, a pod that was let go, a member that was replaced, leadership that was asked to
//! move. It never heals what is wrong for other reasons.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    fact::Fact,
    gate::{ExternalGate, NODE_DRAIN, Outcome},
    hold::Hold,
    quorum::{Member, MemberName},
    reason::Reason,
    rolling::{
        self, handover,
        known::{
            step::{Plan, Step},
            view::View,
            workload::{Evictions, Pod, Revision, Strategy},
        },
    },
    strategy::known::{
        pulls::{Pull, Pulls},
        request::Requests,
        snapshot::{Progress, Snapshot},
        step::JobStep,
        want::Want,
    },
    version::Version,
};

/// How long each small thing takes: only the order of moments matters.
const MOMENT: Duration = Duration::from_secs(1);

pub(super) struct World {
    want: Want,
    view: View,
    now: Timestamp,
    /// What the operator looks at only once an upgrade is under way.
    later: Vec<ExternalGate>,
    /// Which revision the controller made of which image, as far as that can be told.
    revisions: BTreeMap<String, Revision>,
    /// Members that were taken down for an upgrade, here or before.
    taken_down: BTreeSet<MemberName>,
    /// Who was asked to lead.
    heir: Option<MemberName>,
}

impl World {
    pub(super) fn new(want: Want, mut view: View, now: Timestamp) -> Self {
        // Who is asked again says the same again.
        view.external.iter_mut().for_each(|gate| gate.asked = None);
        let mut later = Vec::new();
        if view.record.is_none() {
            (later, view.external) =
                std::mem::take(&mut view.external).into_iter().partition(|gate| gate.name == NODE_DRAIN);
        }
        let (revisions, taken_down) = (revisions(&view), taken_down(&view));
        Self { want, view, now, later, revisions, taken_down, heir: None }
    }

    /// Nothing is under way.
    pub(super) fn is_at_rest(&self) -> bool {
        self.view.record.is_none()
    }

    /// The next answer, recorded as the operator would.
    pub(super) fn plan(&mut self) -> Plan {
        self.look_at_nodes();
        let plan = rolling::plan(&self.want, &self.view, self.now);
        self.view.record.clone_from(&plan.record);
        self.view.approvals.clone_from(&plan.approvals);
        self.view.given_up.clone_from(&plan.given_up);
        self.view.attempt.clone_from(&plan.attempt);
        self.view.parked = plan.kept;
        self.view.requests = Requests::default();
        if plan.record.is_some() {
            // A request is handled once.
            self.view.resumed = false;
            self.view.external.append(&mut self.later);
        }
        plan
    }

    /// Of an image that comes after the one that the nodes were asked about, nobody has pulled anything yet.
    fn look_at_nodes(&mut self) {
        let View { seen, record, .. } = &mut self.view;
        let target =
            record.as_ref().map_or(&self.want.target, |record| record.next_target.as_ref().unwrap_or(&record.target));
        let Fact::Known(Pulls { image, nodes }) = &mut seen.pulls else { return };
        if *image != target.image {
            image.clone_from(&target.image);
            for pull in nodes.values_mut() {
                *pull = Pull::Missing;
            }
        }
    }

    pub(super) fn carry_out(&mut self, step: &Step) {
        self.pass();
        match step {
            Step::WriteTemplate { image, strategy } => {
                self.view.workload.image.clone_from(image);
                self.view.workload.strategy = strategy.unwrap_or(self.view.workload.strategy);
                self.view.workload.observed = false;
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
            Step::Replace { pod, .. } | Step::DeletePod { pod, .. } => self.take_down(&pod.clone()),
            Step::Job(JobStep::TakeSnapshot { .. }) => {
                let stored = Snapshot { bytes: 0, sha256: String::new(), place: "the one to come".to_owned() };
                self.view.snapshot = Fact::Known(Progress::Done(stored));
            }
            Step::Job(JobStep::Answer { gate }) => {
                let started = self.view.external.iter_mut().filter(|external| external.name == *gate);
                started.for_each(|external| {
                    (external.outcome, external.lacks_job) = (Outcome::Pass, false);
                });
            }
            Step::Job(JobStep::PullImage { nodes, .. }) => {
                for node in nodes {
                    self.pull_on(node);
                }
            }
            Step::HoldEvictions => self.view.evictions = Evictions::HeldByUs,
            Step::ReleaseEvictions => self.view.evictions = Evictions::Open,
            Step::HandOver { to, .. } => self.heir = Some(to.clone()),
        }
    }

    /// Lets pass what people or the calendar hold; false where nobody could.
    pub(super) fn lift(&mut self, on: &Hold) -> bool {
        if let Some(until) = on.until.filter(|until| *until > self.now) {
            self.now = until;
            return true;
        }
        if on.reason == Reason::Paused {
            return std::mem::take(&mut self.want.paused);
        }
        if on.reason == Reason::AwaitingApproval {
            self.view.approvals.fresh = self.view.approvals.asked.is_some();
            return self.view.approvals.fresh;
        }
        let mut lifted = false;
        for gate in &mut self.view.external {
            let holds = match &gate.outcome {
                Outcome::Pass | Outcome::NotAsked(_) => false,
                Outcome::Hold(hold) | Outcome::Unknown(hold) => hold.reason == on.reason,
            };
            if holds {
                gate.outcome = Outcome::Pass;
                lifted = true;
            }
        }
        lifted
    }

    /// One thing that is on its way arrives; false where nothing is.
    pub(super) fn arrive(&mut self) -> bool {
        self.pass();
        let under_way = self.view.record.is_some();
        self.observe()
            || self.pull()
            || (under_way
                && (self.make_room()
                    || self.make_pod()
                    || self.ready()
                    || self.join()
                    || self.follow()
                    || self.catch_up()))
            || self.lead()
            || self.replace_permitted()
            || self.conclude()
    }

    fn pass(&mut self) {
        self.now = self.now.saturating_add(MOMENT).unwrap_or(Timestamp::MAX);
    }

    /// The controller sees the newest spec.
    fn observe(&mut self) -> bool {
        if self.view.workload.observed {
            return false;
        }
        let image = &self.view.workload.image;
        let made = || Revision::new(format!("of {image}"));
        self.view.workload.update_revision = self.revisions.entry(image.clone()).or_insert_with(made).clone();
        self.view.workload.observed = true;
        true
    }

    /// An image that is on its way, and that nobody complains of, is there.
    fn pull(&mut self) -> bool {
        let Fact::Known(pulls) = &self.view.pulls else { return false };
        let coming = pulls.nodes.iter().find(|(_, pull)| matches!(pull, Pull::Running { trouble: None, .. }));
        let Some(node) = coming.map(|(node, _)| node.clone()) else { return false };
        self.pull_on(&node);
        true
    }

    fn pull_on(&mut self, node: &str) {
        if let Fact::Known(pulls) = &mut self.view.pulls {
            pulls.nodes.insert(node.to_owned(), Pull::Done);
        }
    }

    fn make_room(&mut self) -> bool {
        let before = self.view.pods.len();
        let gone = self.view.pods.iter().position(|pod| pod.terminating);
        gone.map(|index| self.view.pods.remove(index));
        self.view.pods.len() < before
    }

    fn make_pod(&mut self) -> bool {
        let workload = &self.view.workload;
        let missing = (0..workload.replicas).find(|index| self.view.pod(&workload.member(*index)).is_none());
        let Some(index) = missing else { return false };
        let held = match workload.strategy {
            Strategy::RollingUpdate { partition } => index < partition,
            Strategy::OnDelete => false,
        };
        let revision = if held { &workload.current_revision } else { &workload.update_revision }.clone();
        let name = workload.member(index);
        self.taken_down.insert(name.clone());
        let uid = "the one to come".to_owned();
        let (ready_since, terminating, trouble, log) = (None, false, None, None);
        self.view.pods.push(Pod { name, uid, index, revision, ready_since, young: false, terminating, trouble, log });
        self.view.pods.sort_by_key(|pod| pod.index);
        true
    }

    /// Whether a member is on its way back if it is not well.
    fn returns(&self, pod: &Pod) -> bool {
        self.taken_down.contains(&pod.name) || !self.view.is_outdated(pod)
    }

    fn ready(&mut self) -> bool {
        // As long ago as it takes to count.
        let min_ready = self.view.workload.min_ready;
        let since = self.now.saturating_sub(min_ready).unwrap_or(Timestamp::MIN);
        let unready = |pod: &&Pod| !pod.is_up() && pod.trouble.is_none() && self.returns(pod);
        let Some(name) = self.view.pods.iter().find(unready).map(|pod| pod.name.clone()) else { return false };
        for pod in self.view.pods.iter_mut().filter(|pod| pod.name == name) {
            pod.ready_since = Some(since);
        }
        true
    }

    /// A member that is back is healthy, and of its template's version.
    fn join(&mut self) -> bool {
        let joined = |pod: &Pod| {
            let member = self.view.quorum.member(&pod.name)?;
            (member.is_healthy() && member.version.known().is_some()).then_some(())
        };
        // One that was replaced for another target and is up joins, whatever template stands by now.
        let given_up = |pod: &Pod| self.view.record.as_ref().is_some_and(|record| record.abandoned.contains(&pod.name));
        let absent = |pod: &&Pod| pod.is_up() && (self.returns(pod) || given_up(pod)) && joined(pod).is_none();
        let Some(pod) = self.view.pods.iter().find(absent).cloned() else { return false };
        let version = self.version_of(&pod);
        let seat = Some(self.view.workload.seat(pod.index));
        let Fact::Known(members) = &mut self.view.quorum.members else { return false };
        let new = || Member { seat, ..Member::unknown("it has not joined yet") };
        let member = members.entry(pod.name).or_insert_with(new);
        (member.healthy, member.trouble) = (Fact::Known(true), None);
        if let Some(version) = version {
            member.version = Fact::Known(version);
        }
        true
    }

    /// What a process made from this pod's template runs; none where that can't be told.
    fn version_of(&self, pod: &Pod) -> Option<Version> {
        let record = self.view.record.as_ref()?;
        let newest = !self.view.is_outdated(pod) && self.view.workload.image == record.target.image;
        Some(if newest { &record.target } else { &record.from }.version.clone())
    }

    /// Where the system as a whole has a version, it follows when every member is there.
    fn follow(&mut self) -> bool {
        let Some(agreed) = &self.view.quorum.agreed else { return false };
        let lowest = self.view.quorum.voters().map(|(_, member)| member.version.known()).min().flatten();
        let Some(lowest) = lowest.filter(|lowest| lowest.minor() > agreed.minor()) else { return false };
        self.view.quorum.agreed = Some(lowest.clone());
        true
    }

    fn catch_up(&mut self) -> bool {
        let leader = self.view.quorum.leader.known().and_then(|leader| self.view.quorum.voter(leader));
        let Some(Fact::Known(position)) = leader.map(|leader| leader.position.clone()) else { return false };
        let behind = |pod: &&Pod| {
            let member = self.view.quorum.voter(&pod.name);
            pod.is_up() && self.returns(pod) && member.is_some_and(|member| !member.position.is(&position))
        };
        let Some(name) = self.view.pods.iter().find(behind).map(|pod| pod.name.clone()) else { return false };
        let Fact::Known(members) = &mut self.view.quorum.members else { return false };
        let Some(member) = members.get_mut(&name) else { return false };
        member.position = Fact::Known(position);
        true
    }

    /// Leadership goes where it was asked to go.
    fn lead(&mut self) -> bool {
        let asked = self.view.record.as_ref().and_then(|record| record.hand_over.as_ref());
        let Some(from) = asked.and_then(|asked| self.view.pod(&asked.pod)) else { return false };
        let leader = &self.view.quorum.leader;
        if leader.known().is_some_and(|leader| *leader != from.name) {
            return false;
        }
        let heir = handover::target(&self.want, &self.view, from).ok().map(|pod| pod.name.clone());
        let Some(heir) = self.heir.take().or(heir) else { return false };
        self.view.quorum.leader = Fact::Known(heir);
        true
    }

    /// Kubernetes uses a permit while everybody is up.
    fn replace_permitted(&mut self) -> bool {
        let permitted = self.view.permitted().map(|pod| pod.name.clone());
        let Some(name) = permitted.filter(|_| self.view.pods.iter().all(Pod::is_up)) else { return false };
        self.take_down(&name);
        true
    }

    /// Under a partition the controller's current revision catches up when everybody is replaced.
    fn conclude(&mut self) -> bool {
        let open = self.view.workload.current_revision != self.view.workload.update_revision;
        let all = self.view.outdated().next().is_none() && self.view.pods.iter().all(Pod::is_up);
        if !open || !all || self.view.workload.strategy == Strategy::OnDelete {
            return false;
        }
        self.view.workload.current_revision = self.view.workload.update_revision.clone();
        true
    }

    fn take_down(&mut self, name: &MemberName) {
        for pod in self.view.pods.iter_mut().filter(|pod| pod.name == *name) {
            pod.terminating = true;
        }
        self.taken_down.insert(name.clone());
        // One that is alone is nobody's follower.
        let alone = self.view.quorum.size() == 1;
        let Fact::Known(members) = &mut self.view.quorum.members else { return };
        if let Some(member) = members.get_mut(name) {
            member.healthy = Fact::Known(false);
            if let Fact::Known(Some(position)) = &mut member.position
                && !alone
            {
                *position = 0;
            }
        }
    }
}

/// Members that were replaced for the upgrade that is under way, or for one that was given up.
fn taken_down(view: &View) -> BTreeSet<MemberName> {
    let Some(record) = &view.record else { return BTreeSet::new() };
    let replaced = view.updated().filter(|_| record.revision.is_some()).map(|pod| &pod.name);
    let replacing = record.replacing.iter().map(|replacing| &replacing.pod);
    replaced.chain(replacing).chain(&record.abandoned).cloned().collect()
}

/// What is known of images and their revisions: Kubernetes finds the old revision again when an old template is written.
fn revisions(view: &View) -> BTreeMap<String, Revision> {
    let workload = &view.workload;
    let mut revisions = BTreeMap::new();
    let Some(record) = &view.record else {
        revisions.insert(workload.image.clone(), workload.update_revision.clone());
        return revisions;
    };
    let runs = |pod: &&Pod| view.quorum.voter(&pod.name).is_some_and(|member| member.version.is(&record.from.version));
    let from = view.outdated().find(runs).map(|pod| &pod.revision);
    revisions.insert(record.from.image.clone(), from.unwrap_or(&workload.current_revision).clone());
    if let Some(revision) = &record.revision {
        revisions.insert(record.target.image.clone(), revision.clone());
    }
    if workload.observed {
        revisions.insert(workload.image.clone(), workload.update_revision.clone());
    }
    revisions
}
