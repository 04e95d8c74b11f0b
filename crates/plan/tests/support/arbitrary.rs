//! Any world at all, and worlds that are nearly right: the second kind is where decisions to act come from.

use std::{collections::BTreeMap, time::Duration};

use proptest::{collection, option, prelude::*, sample};
use windlass_plan::{
    Fact, Member, MemberName, Order, Pod, Quorum, Record, View, Want, Workload, path,
    rolling::known::{
        stage::{HandOver, Stage, StageKind},
        template_trial::TemplateTrial,
        workload::{Evictions, Strategy as UpdateStrategy},
    },
    strategy::known::{
        pulls::{Pull, Pulls},
        request::{GivenUp, Outcome, Requests},
        snapshot::{Attempt, Progress},
        want::{Deadlines, OnDeadline, Target, Trigger},
    },
    trouble::Trouble,
};

use super::{
    NEW, NEWER, OLD, POSITION, as_seen, at, half_way, half_way_on_delete, image, member_mut, noon, permitted, pod_mut,
    record_mut, remove_pod, rest, rest_on_delete, revision, snapshot, target, theirs, version, want,
};

const ORDERS: [Order; 2] = [Order::ReverseOrdinal, Order::LeaderLast];

/// One more than any index of a pod or a member here.
const INDICES: u32 = 6;

fn text() -> impl Strategy<Value = &'static str> {
    sample::select(vec![OLD, NEW, NEWER])
}

fn any_target() -> impl Strategy<Value = Target> {
    (text(), text()).prop_map(|(says, brings)| Target { version: version(says), image: image(brings) })
}

fn fact<T: Clone + std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Fact<T>> {
    prop_oneof![4 => value.prop_map(Fact::Known), 1 => Just(Fact::Unknown("timed out".into()))]
}

fn any_want() -> impl Strategy<Value = Want> {
    let seconds = || (0_u64..400).prop_map(Duration::from_secs);
    let deadlines = (seconds(), seconds(), seconds(), seconds())
        .prop_map(|(handover, ready, health, sync)| Deadlines { handover, ready, health, sync });
    let switches = (prop::bool::weighted(0.1), any::<bool>(), any::<bool>());
    let orders = sample::select(vec![None, Some(Order::ReverseOrdinal), Some(Order::LeaderLast)]);
    let path = prop_oneof![Just(path::PD), Just(path::ETCD)];
    let snapshot = option::weighted(0.3, seconds());
    (any_target(), switches, deadlines, 0_u64..200, path, orders, any::<bool>(), snapshot).prop_map(
        |(target, (paused, back, down), deadlines, max_lag, path, order, names_target, snapshot)| Want {
            target,
            path,
            order,
            names_target,
            paused,
            allow_downgrade: back,
            accept_downtime: down,
            deadlines,
            snapshot,
            max_lag,
            ..want(NEW)
        },
    )
}

fn any_attempt() -> impl Strategy<Value = Attempt> {
    (0_u32..9, any_target(), 0_i64..5_000, any::<bool>()).prop_map(|(number, target, ago, used)| Attempt {
        number,
        target,
        since: at(noon().as_second() - ago),
        used,
    })
}

fn any_progress() -> impl Strategy<Value = Progress> {
    prop_oneof![
        Just(Progress::Missing),
        Just(Progress::Running),
        Just(Progress::Done(snapshot())),
        Just(Progress::Failed("no space left".into())),
    ]
}

fn any_member() -> impl Strategy<Value = Member> {
    let position = prop_oneof![Just(None), (0..=POSITION).prop_map(Some), Just(Some(u64::MAX))];
    (fact(prop::bool::weighted(0.8)), fact(text()), fact(position), prop_oneof![4 => Just(0), 1 => any::<i64>()])
        .prop_map(|(healthy, runs, position, priority)| Member {
            votes: true,
            seat: None,
            healthy,
            trouble: None,
            version: match runs {
                Fact::Known(runs) => Fact::Known(version(runs)),
                Fact::Unknown(why) => Fact::Unknown(why),
            },
            position,
            priority,
        })
}

fn any_stage() -> impl Strategy<Value = Stage> {
    let kinds = vec![StageKind::Replace, StageKind::Join, StageKind::Sync];
    (sample::select(kinds), 0..INDICES, -1000_i64..1000).prop_map(|(kind, index, ago)| Stage {
        kind,
        pod: super::name(index),
        since: at(noon().as_second() - ago),
    })
}

fn any_hand_over() -> impl Strategy<Value = HandOver> {
    (0..INDICES, -1000_i64..1000, 0_u32..5, option::of(text())).prop_map(|(index, ago, attempts, error)| HandOver {
        pod: super::name(index),
        since: at(noon().as_second() - ago),
        attempts,
        last_error: error.map(str::to_owned),
    })
}

fn any_record() -> impl Strategy<Value = Record> {
    let flags = (any::<bool>(), option::of(text()), collection::btree_set((0..INDICES).prop_map(super::name), 0..3));
    let stages = (option::of(any_stage()), option::of(any_hand_over()));
    let kinds = (
        sample::select(ORDERS.to_vec()),
        sample::select(vec![TemplateTrial::Running, TemplateTrial::Reverted, TemplateTrial::Passed]),
    );
    (any_target(), any_target(), flags, (0..=INDICES, 0..=INDICES), option::of(text()), stages, kinds).prop_map(
        |(
            from,
            target,
            (rolling_back, seen, abandoned),
            (partition, previous),
            led,
            (stage, hand_over),
            (order, template_trial),
        )| {
            let mut record = Record::begin(order, from, target, partition, previous, at(0));
            (record.rolling_back, record.revision) = (rolling_back, seen.map(revision));
            (record.abandoned, record.hand_over) = (abandoned, hand_over);
            record.template_trial = template_trial;
            record.highest_led = led.map(version);
            record.stage = stage;
            record
        },
    )
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let strategy = prop_oneof![
        4 => (0..=INDICES).prop_map(|partition| UpdateStrategy::RollingUpdate { partition }),
        1 => Just(UpdateStrategy::OnDelete),
    ];
    (0..=INDICES, 0_u32..2, strategy, text(), prop::bool::weighted(0.9), text(), text()).prop_map(
        |(replicas, first_ordinal, strategy, names, observed, current, update)| Workload {
            name: "pd".into(),
            first_ordinal,
            replicas,
            min_ready: Duration::ZERO,
            images_agree: true,
            strategy,
            image: image(names),
            observed,
            current_revision: revision(current),
            update_revision: revision(update),
        },
    )
}

fn any_evictions() -> impl Strategy<Value = Evictions> {
    let theirs = sample::select(vec![theirs(3, 3), theirs(3, 2), theirs(4, 2), theirs(5, 4)]);
    prop_oneof![1 => Just(Evictions::Open), 2 => Just(Evictions::HeldByUs), 1 => theirs]
}

/// Parts that have nothing to do with each other.
fn any_view() -> impl Strategy<Value = View> {
    let pods = collection::btree_map(
        0..INDICES,
        (text(), option::of(0_i64..1000), prop::bool::weighted(0.1)),
        0..=INDICES as usize,
    );
    let members = collection::btree_map(0..INDICES, any_member(), 0..=INDICES as usize);
    (any_workload(), pods, fact(members), fact(0..INDICES), any_evictions(), option::of(any_record()), any::<bool>())
        .prop_map(|(workload, pods, members, leader, evictions, record, resumed)| {
            let named = |index: u32| workload.member(index);
            let pods = pods.into_iter().map(|(index, (made_from, ready, terminating))| Pod {
                name: named(index),
                uid: format!("uid-{index}"),
                index,
                revision: revision(made_from),
                ready_since: ready.map(at),
                young: false,
                terminating,
                trouble: None,
                log: None,
            });
            let pods = pods.collect();
            let members = known_as(members, |members: BTreeMap<u32, Member>| {
                let seated = |index, member| Member { seat: Some(workload.seat(index)), ..member };
                members.into_iter().map(|(index, member)| (named(index), seated(index, member))).collect()
            });
            let quorum = Quorum::new(members, known_as(leader, named));
            as_seen(View { workload, pods, evictions, record, ..rest(1, 0) }, |seen| {
                seen.quorum = quorum;
                seen.resumed = resumed;
            })
        })
}

fn known_as<T, U>(fact: Fact<T>, change: impl FnOnce(T) -> U) -> Fact<U> {
    match fact {
        Fact::Known(value) => Fact::Known(change(value)),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

/// One thing that is not as it should be.
#[derive(Clone, Debug)]
enum Flaw {
    Member(u32, Member),
    NotReady(u32),
    Terminating(u32),
    Gone(u32),
    Leader(Fact<MemberName>),
    Partition(u32),
    Replicas(u32),
    Evictions(Evictions),
    NoRecord(bool),
    Stage(Stage),
    HandOver(HandOver),
    Broken { index: u32, made_from: &'static str, named: bool, abandoned: bool },
    Image(&'static str),
    Snapshot(Option<Attempt>, Fact<Progress>),
}

fn any_flaw() -> impl Strategy<Value = Flaw> {
    prop_oneof![
        (0..INDICES, any_member()).prop_map(|(index, member)| Flaw::Member(index, member)),
        (0..INDICES).prop_map(Flaw::NotReady),
        (0..INDICES).prop_map(Flaw::Terminating),
        (0..INDICES).prop_map(Flaw::Gone),
        fact((0..INDICES).prop_map(super::name)).prop_map(Flaw::Leader),
        (0..=INDICES).prop_map(Flaw::Partition),
        (0..=INDICES).prop_map(Flaw::Replicas),
        any_evictions().prop_map(Flaw::Evictions),
        any::<bool>().prop_map(Flaw::NoRecord),
        any_stage().prop_map(Flaw::Stage),
        any_hand_over().prop_map(Flaw::HandOver),
        (0..INDICES, sample::select(vec![OLD, NEW, NEWER, "9.9.9"]), any::<bool>(), any::<bool>())
            .prop_map(|(index, made_from, named, abandoned)| Flaw::Broken { index, made_from, named, abandoned }),
        text().prop_map(Flaw::Image),
        (option::of(any_attempt()), fact(any_progress()))
            .prop_map(|(attempt, progress)| Flaw::Snapshot(attempt, progress)),
    ]
}

fn spoil(view: &mut View, flaw: Flaw) {
    let has = |view: &View, index: u32| view.pods.iter().any(|pod| pod.index == index);
    match flaw {
        Flaw::Member(index, member) if index < view.workload.replicas => {
            *member_mut(view, index) = Member { seat: Some(view.workload.seat(index)), ..member };
        }
        Flaw::NotReady(index) if has(view, index) => pod_mut(view, index).ready_since = None,
        Flaw::Terminating(index) if has(view, index) => pod_mut(view, index).terminating = true,
        Flaw::Gone(index) => remove_pod(view, index),
        Flaw::Leader(leader) => view.quorum.leader = leader,
        Flaw::Partition(partition) if view.workload.strategy != UpdateStrategy::OnDelete => {
            view.workload.strategy = UpdateStrategy::RollingUpdate { partition };
            if let Some(record) = &mut view.record {
                record.partition = partition;
            }
        }
        Flaw::Replicas(replicas) if replicas <= view.workload.replicas => view.workload.replicas = replicas,
        Flaw::Evictions(evictions) => view.evictions = evictions,
        Flaw::NoRecord(resumed) => (view.record, view.resumed) = (None, resumed),
        Flaw::Stage(stage) if view.record.is_some() => record_mut(view).stage = Some(stage),
        Flaw::HandOver(asked) if view.record.is_some() => record_mut(view).hand_over = Some(asked),
        Flaw::Broken { index, made_from, named, abandoned } if has(view, index) && index < view.workload.replicas => {
            let pod = pod_mut(view, index);
            (pod.ready_since, pod.revision) = (None, revision(made_from));
            pod.trouble = named.then(|| Trouble::Unschedulable { message: "no node is left".into() });
            member_mut(view, index).healthy = Fact::Known(false);
            if let Some(record) = view.record.as_mut().filter(|_| abandoned) {
                record.abandoned.insert(super::name(index));
            }
        }
        Flaw::Image(text) => view.workload.image = image(text),
        Flaw::Snapshot(attempt, progress) => (view.attempt, view.snapshot) = (attempt, progress),
        Flaw::Member(..)
        | Flaw::Partition(_)
        | Flaw::NotReady(_)
        | Flaw::Terminating(_)
        | Flaw::Replicas(_)
        | Flaw::Stage(_)
        | Flaw::HandOver(_)
        | Flaw::Broken { .. } => {}
    }
}

/// A way that could be real, with a few flaws.
fn nearly_right() -> impl Strategy<Value = (Want, View)> {
    let members = 1..INDICES;
    let place = members.prop_flat_map(|members| (Just(members), 0..members, 0..=members, 0_u8..7));
    let snapshot = option::weighted(0.3, Just(Duration::from_mins(10)));
    let wish = (text(), any::<bool>(), any::<bool>(), option::of(sample::select(ORDERS.to_vec())), snapshot);
    let flaws = collection::vec(any_flaw(), 0..3);
    (place, any_evictions(), flaws, wish).prop_map(|((members, leader, replaced, kind), evictions, flaws, wish)| {
        let mut view = match kind {
            0 => rest(members, leader),
            1 if replaced < members => permitted(members, leader, replaced),
            3 => mending(members, leader, replaced),
            4 => rest_on_delete(members, leader),
            5 => half_way_on_delete(members, leader, replaced),
            6 => poisoned(members, leader, replaced),
            _ => half_way(members, leader, replaced),
        };
        if replaced == members && (1..4).contains(&kind) {
            view.workload.current_revision = revision(NEW);
        }
        view.evictions = evictions;
        for flaw in flaws {
            spoil(&mut view, flaw);
        }
        let (to, accept_downtime, allow_downgrade, order, snapshot) = wish;
        (Want { target: target(to), accept_downtime, allow_downgrade, order, snapshot, ..want(to) }, view)
    })
}

/// The highest member broke on [`NEW`], and the template of [`NEWER`] is written; or that of [`OLD`], where any member may be broken.
fn mending(members: u32, leader: u32, odd: u32) -> View {
    let mut view = half_way(members, leader, 1);
    let to = if odd.is_multiple_of(2) { NEWER } else { OLD };
    (view.workload.image, view.workload.update_revision) = (image(to), revision(to));
    let partition = if odd.is_multiple_of(3) { members } else { members - 1 };
    view.workload.strategy = UpdateStrategy::RollingUpdate { partition };
    let index = if to == OLD { odd.min(members - 1) } else { members - 1 };
    let pod = pod_mut(&mut view, index);
    (pod.ready_since, pod.revision) = (None, revision(NEW));
    pod.trouble = Some(Trouble::Unschedulable { message: "no node is left".into() });
    member_mut(&mut view, index).healthy = Fact::Known(false);
    let record = record_mut(&mut view);
    (record.target, record.revision, record.partition) = (target(to), Some(revision(to)), partition);
    record.abandoned = [super::name(index)].into();
    view
}

/// The first member of [`NEW`] is broken under OnDelete; its template stands, was put back, or was left for [`NEWER`].
fn poisoned(members: u32, leader: u32, odd: u32) -> View {
    let mut view = half_way_on_delete(members, leader, 1);
    let index = view.updated().map(|pod| pod.index).next().unwrap_or(0);
    let pod = pod_mut(&mut view, index);
    (pod.ready_since, pod.trouble) = (None, Some(Trouble::Unschedulable { message: "no node is left".into() }));
    member_mut(&mut view, index).healthy = Fact::Known(false);
    record_mut(&mut view).template_trial = TemplateTrial::Running;
    match odd % 3 {
        0 => {}
        1 => {
            record_mut(&mut view).template_trial = TemplateTrial::Reverted;
            (view.workload.image, view.workload.update_revision) = (image(OLD), revision(OLD));
        }
        _ => {
            (view.workload.image, view.workload.update_revision) = (image(NEWER), revision(NEWER));
            let record = record_mut(&mut view);
            (record.target, record.revision) = (target(NEWER), Some(revision(NEWER)));
        }
    }
    view
}

fn any_requests() -> impl Strategy<Value = Requests> {
    let asked = || prop::bool::weighted(0.1);
    (asked(), asked(), asked()).prop_map(|(retry, abort, rollback)| Requests { retry, abort, rollback })
}

fn any_pull() -> impl Strategy<Value = Pull> {
    let trouble = || option::of(Just("manifest unknown".to_owned()));
    let running = (0_i64..2_000, trouble());
    prop_oneof![
        3 => Just(Pull::Done),
        1 => Just(Pull::Missing),
        1 => Just(Pull::Failed("no space left".into())),
        1 => running.prop_map(|(ago, trouble)| Pull::Running { since: at(noon().as_second() - ago), trouble }),
    ]
}

/// What is wanted and what is seen, of either kind.
pub fn anything() -> impl Strategy<Value = (Want, View)> {
    let world = prop_oneof![(any_want(), any_view()), nearly_right(), nearly_right()];
    let given_up = option::weighted(0.2, sample::select(vec![Outcome::Stopped, Outcome::RolledBack]));
    let habits = (
        sample::select(vec![Trigger::Version, Trigger::Version, Trigger::Template]),
        sample::select(vec![OnDeadline::Hold, OnDeadline::RollBack]),
    );
    let nodes = fact(collection::btree_map("[a-c]", any_pull(), 0..4));
    let pulls = (option::weighted(0.3, Just(Duration::from_mins(10))), nodes);
    (world, any_requests(), given_up, habits, pulls).prop_map(
        |((mut want, mut view), requests, outcome, habits, pulls)| {
            let image = view.record.as_ref().map_or(&want.target, |record| &record.target).image.clone();
            (want.pre_pull, view.pulls) = (pulls.0, known_as(pulls.1, |nodes| Pulls { image, nodes }));
            (want.trigger, want.on_deadline) = habits;
            if want.trigger == Trigger::Template {
                want.target.image.clone_from(&view.workload.image);
            }
            view.requests = requests;
            view.given_up = outcome.map(|outcome| GivenUp { target: want.target.clone(), outcome, because: None });
            (want, view)
        },
    )
}
