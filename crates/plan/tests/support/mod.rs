//! Builders of what is wanted and what was seen: a quorum named `pd` that goes from 8.5.0 to 8.5.1 unless told otherwise.

pub mod arbitrary;
pub mod gatekeeper;
pub mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use windlass_plan::{
    Decision, Fact, Hold, Member, MemberName, Order, Pod, Quorum, Reason, Record, Seen, Snapshot, Step, Version, View,
    Want, Workload,
    approval::Mode,
    path,
    quorum::Seat,
    rolling::{
        self,
        known::{
            owners::{Field, Operation, Owner, Owners},
            stage::{Stage, StageKind},
            step::Plan,
            template_trial::TemplateTrial,
            workload::{Budget, Counts, Evictions, Revision, Strategy},
        },
    },
    strategy::known::{
        approval::{Approvals, Question},
        request::Requests,
        snapshot::Progress,
        step::Step as _,
        want::{Deadlines, OnDeadline, Target, Trigger},
    },
    window::Window,
};

/// What runs.
pub const OLD: &str = "8.5.0";
/// What is wanted.
pub const NEW: &str = "8.5.1";
/// What is wanted after that.
pub const NEWER: &str = "8.5.2";

/// How far everybody's log is applied.
pub const POSITION: u64 = 10_000;

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// When tests that need one moment take place.
pub fn noon() -> Timestamp {
    at(43_200)
}

pub fn name(index: u32) -> MemberName {
    MemberName::new(format!("pd-{index}"))
}

pub fn version(text: &str) -> Version {
    text.parse().unwrap()
}

pub fn image(version: &str) -> String {
    format!("pd:v{version}")
}

pub fn revision(version: &str) -> Revision {
    Revision::new(version)
}

pub fn target(to: &str) -> Target {
    Target { version: version(to), image: image(to) }
}

/// A wish, with limits that differ from each other so that a mix-up shows.
pub fn want(to: &str) -> Want {
    Want {
        target: target(to),
        path: path::PD,
        accept_non_voters: false,
        accept_owners: BTreeSet::new(),
        order: None,
        names_target: true,
        paused: false,
        allow_downgrade: false,
        accept_downtime: false,
        deadlines: Deadlines {
            handover: Duration::from_secs(30),
            ready: Duration::from_mins(5),
            health: Duration::from_mins(2),
            sync: Duration::from_secs(90),
        },
        snapshot: None,
        pre_pull: None,
        max_lag: 100,
        soak: Duration::ZERO,
        windows: vec![],
        approval: Mode::None,
        trigger: Trigger::Version,
        on_deadline: OnDeadline::Hold,
        overrides: BTreeMap::new(),
    }
}

/// A window of so many minutes.
pub fn window(schedule: &str, minutes: u64, zone: &str) -> Window {
    Window::parse(schedule, Duration::from_mins(minutes), zone).unwrap()
}

/// What a person is asked on the way to a version.
pub fn question(to: &str, hand_over: Option<u32>) -> Question {
    Question { target: target(to), hand_over: hand_over.map(name) }
}

pub fn pod(index: u32, made_from: &str) -> Pod {
    let ready_since = Some(at(i64::from(index)));
    let uid = format!("{index}-of-{made_from}");
    Pod {
        name: name(index),
        uid,
        index,
        revision: revision(made_from),
        ready_since,
        young: false,
        terminating: false,
        trouble: None,
        log: None,
    }
}

/// The pod at this index.
pub fn seat(index: u32) -> Seat {
    Seat { set: "pd".into(), ordinal: index }
}

/// The member in the pod at this index, well.
pub fn member(index: u32, runs: &str) -> Member {
    Member {
        votes: true,
        seat: Some(seat(index)),
        healthy: Fact::Known(true),
        trouble: None,
        version: Fact::Known(version(runs)),
        position: Fact::Known(Some(POSITION)),
        priority: 0,
    }
}

/// The same, with other things seen that every strategy looks at.
pub fn as_seen(mut view: View, change: impl FnOnce(&mut Seen)) -> View {
    change(&mut view.seen);
    view
}

/// The same, and a person says resume.
pub fn resumed(view: View) -> View {
    as_seen(view, |seen| seen.resumed = true)
}

/// Nothing is under way, and everybody is well and on [`OLD`].
pub fn rest(members: u32, leader: u32) -> View {
    View {
        workload: Workload {
            name: "pd".into(),
            first_ordinal: 0,
            replicas: members,
            min_ready: Duration::ZERO,
            images_agree: true,
            strategy: Strategy::RollingUpdate { partition: 0 },
            image: image(OLD),
            observed: true,
            current_revision: revision(OLD),
            update_revision: revision(OLD),
        },
        pods: (0..members).map(|index| pod(index, OLD)).collect(),
        owners: Fact::Known(Owners::default()),
        evictions: Evictions::Open,
        record: None,
        parked: None,
        unwatched: false,
        seen: Seen {
            quorum: Quorum {
                agreed: Some(version(OLD)),
                ..Quorum::new(
                    Fact::Known((0..members).map(|index| (name(index), member(index, OLD))).collect()),
                    Fact::Known(name(leader)),
                )
            },
            attempt: None,
            snapshot: Fact::Known(Progress::Missing),
            pulls: unknown(),
            resumed: false,
            requests: Requests::default(),
            given_up: None,
            approvals: Approvals::default(),
            external: vec![],
        },
    }
}

/// On the way from [`OLD`] to [`NEW`]: the highest `replaced` members are done, the next one is not permitted yet.
pub fn half_way(members: u32, leader: u32, replaced: u32) -> View {
    let mut view = rest(members, leader);
    let partition = members - replaced;
    view.workload.image = image(NEW);
    view.workload.update_revision = revision(NEW);
    view.workload.strategy = Strategy::RollingUpdate { partition };
    for index in partition..members {
        let up_since = noon() - Duration::from_secs(u64::from(1000 * (index + 1)));
        let done = Pod { ready_since: Some(up_since), ..pod(index, NEW) };
        *pod_mut(&mut view, index) = done;
        member_mut(&mut view, index).version = Fact::Known(version(NEW));
    }
    let mut record = Record::begin(Order::ReverseOrdinal, target(OLD), target(NEW), partition, partition, at(0));
    record.revision = Some(revision(NEW));
    view.record = Some(record);
    view.evictions = Evictions::HeldByUs;
    view
}

/// [`half_way`], and Kubernetes may replace the next member since [`noon`].
pub fn permitted(members: u32, leader: u32, replaced: u32) -> View {
    let mut view = half_way(members, leader, replaced);
    let next = members - replaced - 1;
    view.workload.strategy = Strategy::RollingUpdate { partition: next };
    let record = record_mut(&mut view);
    record.move_partition(next + 1, next);
    record.stage = Some(stage(StageKind::Replace, next));
    view
}

/// [`rest`], with the strategy OnDelete.
pub fn rest_on_delete(members: u32, leader: u32) -> View {
    let mut view = rest(members, leader);
    view.workload.strategy = Strategy::OnDelete;
    view
}

/// [`half_way`], with the strategy OnDelete: the highest `replaced` followers are done, and the leader is old unless all are.
pub fn half_way_on_delete(members: u32, leader: u32, replaced: u32) -> View {
    let mut view = rest_on_delete(members, leader);
    view.workload.image = image(NEW);
    view.workload.update_revision = revision(NEW);
    let followers = (0..members).rev().filter(|index| *index != leader);
    for index in followers.chain([leader]).take(replaced as usize) {
        let up_since = noon() - Duration::from_secs(u64::from(1000 * (index + 1)));
        *pod_mut(&mut view, index) = Pod { ready_since: Some(up_since), ..pod(index, NEW) };
        member_mut(&mut view, index).version = Fact::Known(version(NEW));
    }
    let mut record = Record::begin(Order::LeaderLast, target(OLD), target(NEW), 0, 0, at(0));
    record.revision = Some(revision(NEW));
    record.template_trial = if replaced == 0 { TemplateTrial::Running } else { TemplateTrial::Passed };
    view.record = Some(record);
    view.evictions = Evictions::HeldByUs;
    view
}

/// A budget of somebody else's over exactly the pods of a set of so many, which keeps so many of them healthy.
pub fn theirs(members: u32, keeps: u32) -> Evictions {
    let counts = Counts { expected: members, desired: keeps, allowed: members - keeps };
    Evictions::Theirs(vec![Budget { name: "pd-pdb".into(), selects_all: true, counts: Some(counts) }])
}

/// A stage that began at [`noon`].
pub fn stage(kind: StageKind, index: u32) -> Stage {
    Stage { kind, pod: name(index), since: noon() }
}

pub fn pod_mut(view: &mut View, index: u32) -> &mut Pod {
    view.pods.iter_mut().find(|pod| pod.index == index).expect("the pod exists")
}

pub fn member_mut(view: &mut View, index: u32) -> &mut Member {
    match &mut view.quorum.members {
        Fact::Known(members) => members.get_mut(&name(index)).expect("the member exists"),
        Fact::Unknown(why) => panic!("the members are not known: {why}"),
    }
}

/// Somebody without a vote, who is called like this.
pub fn add_learner(view: &mut View, called: &str) {
    let learner = Member { votes: false, seat: Seat::of_pod(called), ..Member::unknown("it was not asked") };
    match &mut view.quorum.members {
        Fact::Known(members) => members.insert(MemberName::new(called), learner),
        Fact::Unknown(why) => panic!("the members are not known: {why}"),
    };
}

pub fn record_mut(view: &mut View) -> &mut Record {
    view.record.as_mut().expect("an upgrade is under way")
}

pub fn remove_pod(view: &mut View, index: u32) {
    view.pods.retain(|pod| pod.index != index);
}

pub fn unknown<T>() -> Fact<T> {
    Fact::Unknown("timed out".into())
}

/// A snapshot that was taken.
pub fn snapshot() -> Snapshot {
    Snapshot { bytes: 4096, sha256: "5f".repeat(32), location: "volume backups/pd/1.db".into() }
}

pub fn partition(view: &View) -> Option<u32> {
    match view.workload.strategy {
        Strategy::RollingUpdate { partition } => Some(partition),
        Strategy::OnDelete => None,
    }
}

/// The plan at [`noon`].
pub fn plan(want: &Want, view: &View) -> Plan {
    rolling::plan(want, view, noon())
}

/// The decision at [`noon`].
pub fn decide(want: &Want, view: &View) -> Decision {
    plan(want, view).decision
}

/// What kind of answer it is, and why: what most tests compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Act(&'static str),
    Wait(Reason),
    Halt(Reason),
    Done,
}

pub fn answer(decision: &Decision) -> Answer {
    match decision {
        Decision::Act(step) => Answer::Act(step.name()),
        Decision::Wait { on, .. } => Answer::Wait(on.reason),
        Decision::Halt { on } => Answer::Halt(on.reason),
        Decision::Done => Answer::Done,
    }
}

/// The hold of a decision that is one.
pub fn hold(decision: &Decision) -> &Hold {
    match decision {
        Decision::Wait { on, .. } | Decision::Halt { on } => on,
        Decision::Act(Step::TakeBack { because, .. }) => because,
        Decision::Act(_) | Decision::Done => panic!("{decision:?} holds nothing"),
    }
}

/// A manager of these fields of the StatefulSet, since [`noon`].
pub fn owner(manager: &str, operation: Operation, fields: &[Field]) -> Owner {
    let fields = fields.iter().copied().collect();
    Owner { manager: manager.into(), operation, scales: false, at: Some(noon()), fields }
}

/// These managers, and no others.
pub fn owned_by(managers: Vec<Owner>) -> Fact<Owners> {
    Fact::Known(Owners { controller: None, managers })
}
