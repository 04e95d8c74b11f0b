//! The rolling strategy played forward: what its steps lead to when the best happens.
//!
//! Only what is on its way arrives: a template that was written, a pod that was let go, a member that was replaced, leadership that was asked to
//! move. It never heals what is wrong for other reasons.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;

use crate::{
    fact::Fact,
    forecast::{self, Foresee, Foreseen, Note, forecast},
    quorum::{Member, MemberName},
    rolling::{
        gates::list,
        handover,
        known::{
            Rolling,
            order::Order,
            record::Record,
            step::{Plan, Step},
            view::View,
            workload::{Evictions, Pod, Revision, Strategy},
        },
    },
    strategy::known::want::Want,
    version::Version,
};

/// What would happen to a quorum that is rolled.
pub type Forecast = forecast::Forecast<Step>;

/// What would happen from here, if nothing goes wrong and nobody changes their mind.
pub fn foresee(want: &Want, view: &View, now: Timestamp) -> Forecast {
    forecast::<Rolling>(want, view, now)
}

/// What the copy knows beside what can be seen.
pub struct Scene {
    /// Which revision the controller made of which image, as far as that can be told.
    revisions: BTreeMap<String, Revision>,
    /// Members that were taken down for an upgrade, here or before.
    taken_down: BTreeSet<MemberName>,
    /// Who was asked to lead.
    heir: Option<MemberName>,
}

impl Foresee for Rolling {
    type Scene = Scene;

    fn scene(view: &View) -> Scene {
        Scene { revisions: revisions(view), taken_down: taken_down(view), heir: None }
    }

    fn keep(view: &mut View, plan: &Plan) {
        view.record.clone_from(&plan.record);
        view.parked = plan.kept;
    }

    fn carry_out(scene: &mut Scene, view: &mut View, step: &Step) {
        match step {
            // Jobs are everybody's, and done by then.
            Step::Job(_) => {}
            Step::WriteTemplate { image, strategy } => {
                view.workload.image.clone_from(image);
                view.workload.strategy = strategy.unwrap_or(view.workload.strategy);
                view.workload.observed = false;
            }
            Step::SwitchStrategy { partition }
            | Step::Permit { partition, .. }
            | Step::TakeBack { partition, .. }
            | Step::Park { partition } => {
                view.workload.strategy = Strategy::RollingUpdate { partition: *partition };
                view.workload.observed = false;
            }
            Step::PutBackStrategy => {
                view.workload.strategy = Strategy::OnDelete;
                view.workload.observed = false;
            }
            Step::Replace { pod, .. } | Step::DeletePod { pod, .. } => Stage { scene, view }.take_down(pod),
            Step::HoldEvictions => view.evictions = Evictions::HeldByUs,
            Step::ReleaseEvictions => view.evictions = Evictions::Open,
            Step::HandOver { to, .. } => scene.heir = Some(to.clone()),
        }
    }

    fn arrive(scene: &mut Scene, want: &Want, view: &mut View, now: Timestamp) -> bool {
        let under_way = view.record.is_some();
        let mut stage = Stage { scene, view };
        stage.observe()
            || (under_way
                && (stage.make_room()
                    || stage.make_pod()
                    || stage.ready(now)
                    || stage.join()
                    || stage.follow()
                    || stage.catch_up()))
            || stage.lead(want)
            || stage.replace_permitted()
            || stage.conclude()
    }

    fn order(record: &Record) -> Option<Order> {
        Some(record.order)
    }

    fn to_begin() -> Vec<Cow<'static, str>> {
        list::to_begin().map(Cow::Borrowed).collect()
    }

    fn notes(view: &View, steps: &[Foreseen<Step>]) -> Vec<Note> {
        let steps = || steps.iter().map(|foreseen| &foreseen.step);
        let found = view.workload.strategy;
        let kind = std::mem::discriminant::<Strategy>;
        let set = steps().find_map(|step| match step {
            Step::WriteTemplate { strategy, .. } => *strategy,
            Step::SwitchStrategy { partition } => Some(Strategy::RollingUpdate { partition: *partition }),
            Step::Job(_)
            | Step::PutBackStrategy
            | Step::HoldEvictions
            | Step::HandOver { .. }
            | Step::Permit { .. }
            | Step::TakeBack { .. }
            | Step::DeletePod { .. }
            | Step::Replace { .. }
            | Step::ReleaseEvictions
            | Step::Park { .. } => None,
        });
        let switched = set.filter(|set| kind(set) != kind(&found)).map(|to| Note::StrategySwitched { from: found, to });
        let parked = steps().find_map(|step| if let Step::Park { partition } = step { Some(*partition) } else { None });
        let parked = parked.filter(|to| view.record.is_none() && found != Strategy::RollingUpdate { partition: *to });
        switched.into_iter().chain(parked.map(|partition| Note::RolloutLocked { partition })).collect()
    }
}

/// The scene and what can be seen of it.
struct Stage<'a> {
    scene: &'a mut Scene,
    view: &'a mut View,
}

impl Stage<'_> {
    /// The controller sees the newest spec.
    fn observe(&mut self) -> bool {
        if self.view.workload.observed {
            return false;
        }
        let image = &self.view.workload.image;
        let made = || Revision::new(format!("of {image}"));
        self.view.workload.update_revision = self.scene.revisions.entry(image.clone()).or_insert_with(made).clone();
        self.view.workload.observed = true;
        true
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
        self.scene.taken_down.insert(name.clone());
        let uid = "the one to come".to_owned();
        let (ready_since, terminating, trouble, log) = (None, false, None, None);
        self.view.pods.push(Pod { name, uid, index, revision, ready_since, young: false, terminating, trouble, log });
        self.view.pods.sort_by_key(|pod| pod.index);
        true
    }

    /// Whether a member is on its way back if it is not well.
    fn returns(&self, pod: &Pod) -> bool {
        self.scene.taken_down.contains(&pod.name) || !self.view.is_outdated(pod)
    }

    fn ready(&mut self, now: Timestamp) -> bool {
        // As long ago as it takes to count.
        let min_ready = self.view.workload.min_ready;
        let since = now.saturating_sub(min_ready).unwrap_or(Timestamp::MIN);
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
    fn lead(&mut self, want: &Want) -> bool {
        let asked = self.view.record.as_ref().and_then(|record| record.hand_over.as_ref());
        let Some(from) = asked.and_then(|asked| self.view.pod(&asked.pod)) else { return false };
        let leader = &self.view.quorum.leader;
        if leader.known().is_some_and(|leader| *leader != from.name) {
            return false;
        }
        let heir = handover::target(want, self.view, from).ok().map(|pod| pod.name.clone());
        let Some(heir) = self.scene.heir.take().or(heir) else { return false };
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
        self.scene.taken_down.insert(name.clone());
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
