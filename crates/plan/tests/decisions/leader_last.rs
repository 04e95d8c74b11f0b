//! The order LeaderLast: followers from the top, the leader last, each pod deleted by us under OnDelete (H7, H13, H16, H22, D13).

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Hold, MemberName, Order, Reason, Step, View, Want,
    approval::Mode,
    rolling::{
        self, handover,
        known::{
            parked::Parked,
            stage::HandOver,
            template_trial::TemplateTrial,
            workload::{Evictions, Strategy},
        },
        permit,
    },
    strategy::known::{snapshot::Progress, step::Step as _, want::Trigger},
};

use crate::support::{
    Answer, NEW, NEWER, OLD, answer, as_seen, decide, half_way_on_delete, hold, image, member, member_mut, name, noon,
    plan, pod, pod_mut, record_mut, remove_pod, rest, rest_on_delete, resumed, revision, snapshot, target, theirs,
    unknown, version, want, window, world::World,
};

use Answer::{Act, Halt, Wait};

/// Followers from the top, then the leader.
fn turns(members: u32, leader: u32) -> Vec<MemberName> {
    (0..members).rev().filter(|index| *index != leader).chain([leader]).map(name).collect()
}

#[rstest]
fn every_size_and_every_leader_come_to_rest(
    #[values((3, 0), (3, 1), (3, 2), (4, 0), (4, 3), (5, 0), (5, 2), (5, 4), (7, 0), (7, 3), (7, 6))] quorum: (
        u32,
        u32,
    ),
) {
    let (members, leader) = quorum;
    let mut world = World::on_delete(members, leader);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(world.replaced(), turns(members, leader), "each once, the leader last");
    assert_eq!(world.templates(), [image(NEW)], "written once (C6)");
    let first = turns(members, leader)[0].clone();
    let moves: Vec<&Step> = world.steps.iter().filter(|step| step.name() == "HandOver").collect();
    assert_eq!(moves, [&Step::HandOver { from: name(leader), to: first }], "once, to a new one (H16)");
    let place = |wanted: &str| world.steps.iter().rposition(|step| step.name() == wanted).unwrap();
    assert_eq!(place("HandOver") + 1, place("MemberReplaced"), "right before the old leader goes");
    assert_eq!(world.steps.last().map(Step::name), Some("EvictionsReleased"), "nothing to park");
    assert_eq!((&world.view.record, &world.view.evictions), (&None, &Evictions::Open));
    assert_eq!(world.view.workload.strategy, Strategy::OnDelete);
    assert_eq!(world.view.workload.current_revision, revision(OLD), "which never advances (H7)");
    let steps = world.steps.len();
    for _ in 0..10 {
        assert_eq!(world.pass(), Decision::Done);
    }
    assert_eq!(world.steps.len(), steps, "what is done stays done");
}

/// The first template is long forgotten, and its revision is still the current one.
#[test]
fn a_set_that_was_upgraded_under_on_delete_before_is_upgraded_again() {
    let mut world = World::on_delete(3, 1);
    for to in [NEW, NEWER] {
        world.want.target = target(to);
        assert_eq!(world.run(), Decision::Done);
        assert!(world.everybody_runs(to));
    }
    assert_eq!(world.view.workload.current_revision, revision(OLD));
}

#[rstest]
fn a_lost_write_is_made_again(#[values(0, 1, 2)] leader: u32) {
    let mut whole = World::on_delete(3, leader);
    assert_eq!(whole.run(), Decision::Done);
    for lost in 0..whole.steps.len() {
        let mut world = World::on_delete(3, leader);
        while world.steps.len() < lost {
            let _ = world.pass();
        }
        let (before, deleted) = (world.view.clone(), world.deleted.len());
        while world.steps.len() == lost {
            let _ = world.pass();
        }
        let record = world.view.record.take();
        world.view = View { record, ..before };
        world.steps.pop();
        world.deleted.truncate(deleted);
        assert_eq!(world.run(), Decision::Done, "step {lost} was lost");
        assert!(world.everybody_runs(NEW));
        assert_eq!(world.replaced(), whole.replaced());
    }
}

#[rstest]
fn a_pause_at_any_point_begins_nothing_and_costs_nothing(#[values(0, 1, 2)] leader: u32) {
    let passes_of_all = {
        let (mut world, mut passes) = (World::on_delete(3, leader), 0);
        while world.pass() != Decision::Done {
            passes += 1;
        }
        passes
    };
    for passes in 0..passes_of_all {
        let mut world = World::on_delete(3, leader);
        for _ in 0..passes {
            let _ = world.pass();
        }
        world.want.paused = true;
        let before = world.steps.len();
        for _ in 0..40 {
            let _ = world.pass();
        }
        assert!(world.steps[before..].iter().all(|step| *step == Step::ReleaseEvictions), "after {passes} passes");
        assert_eq!(answer(&world.pass()), Wait(Reason::Paused));
        assert_eq!(world.view.evictions, Evictions::Open, "drains go on while it is paused");
        world.want.paused = false;
        assert_eq!(world.run(), Decision::Done, "paused after {passes} passes");
        assert_eq!(world.deleted.len(), 3, "nobody is replaced twice");
        assert_eq!(world.count("HandOver"), 1, "nor handed over to once more");
    }
}

#[rstest]
#[case::alone(1, 0, 0)]
#[case::two_and_the_first_leads(2, 0, 1)]
#[case::two_and_the_last_leads(2, 1, 1)]
fn one_or_two_members_need_downtime_to_be_accepted(#[case] members: u32, #[case] leader: u32, #[case] moves: usize) {
    let mut world = World::on_delete(members, leader);
    assert_eq!(answer(&world.run()), Halt(Reason::TooFewMembers));
    assert_eq!(world.steps, []);
    world.want.accept_downtime = true;
    assert_eq!(world.run(), Decision::Done);
    assert_eq!((world.replaced(), world.count("HandOver")), (turns(members, leader), moves));
}

// The order, and the strategy that it needs.

fn rolling(partition: u32) -> Strategy {
    Strategy::RollingUpdate { partition }
}

#[rstest]
#[case::rolling_update(rolling(0), None, Order::ReverseOrdinal)]
#[case::on_delete(Strategy::OnDelete, None, Order::LeaderLast)]
#[case::rolling_update_asked(rolling(0), Some(Order::ReverseOrdinal), Order::ReverseOrdinal)]
#[case::on_delete_asked(Strategy::OnDelete, Some(Order::LeaderLast), Order::LeaderLast)]
#[case::rolling_update_told_otherwise(rolling(0), Some(Order::LeaderLast), Order::LeaderLast)]
#[case::parked_and_told_otherwise(rolling(3), Some(Order::LeaderLast), Order::LeaderLast)]
fn the_order_is_what_is_asked_for_or_what_the_strategy_suggests(
    #[case] strategy: Strategy,
    #[case] asked: Option<Order>,
    #[case] order: Order,
) {
    let mut view = rest(3, 0);
    view.workload.strategy = strategy;
    let begun = plan(&Want { order: asked, ..want(NEW) }, &view);
    let holding = if order == Order::LeaderLast { Strategy::OnDelete } else { rolling(3) };
    let expected = Step::WriteTemplate { image: image(NEW), strategy: Some(holding) };
    assert_eq!(begun.decision, Decision::Act(expected), "one write (H8, H22)");
    assert_eq!(begun.record.map(|record| record.order), Some(order));
}

#[rstest]
fn a_rolling_set_goes_to_on_delete_with_its_template(#[values(0, 3)] partition: u32) {
    let mut world = World::new(3, 2);
    world.view.workload.strategy = rolling(partition);
    world.want.order = Some(Order::LeaderLast);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!((world.replaced(), world.count("HandOver")), (turns(3, 2), 1));
    assert_eq!(world.view.workload.strategy, Strategy::OnDelete);
}

#[test]
fn the_order_of_an_upgrade_stays_what_it_was() {
    let mut world = World::new(3, 0);
    world.run_until_replaced(1);
    world.want.order = Some(Order::LeaderLast);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!((world.permits(), world.replaced()), (vec![2, 1, 0], vec![]));

    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(1);
    world.want.order = Some(Order::ReverseOrdinal);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!((world.permits(), world.replaced()), (vec![], turns(3, 0)));
}

/// The controller's current revision is that of a template which nobody runs any more.
fn to_be_switched() -> World {
    let mut world = World::on_delete(3, 0);
    world.view.workload.current_revision = revision("7.1.0");
    world.want.order = Some(Order::ReverseOrdinal);
    world
}

/// Nothing is written, and partition 0 does not stand while anybody waits for a window.
#[test]
fn a_switch_waits_for_a_window() {
    let mut world = to_be_switched();
    world.want.windows = vec![window("0 0 29 2 *", 1, "UTC")];
    assert_eq!((answer(&world.pass()), world.steps.len()), (Wait(Reason::WindowClosed), 0));
    world.want.windows = vec![];
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

#[test]
fn an_on_delete_set_is_concluded_before_its_partition_holds_anybody() {
    let mut world = to_be_switched();
    let _ = world.run_until(|world| world.count("StrategySwitched") == 1);
    assert_eq!((world.view.workload.strategy, world.steps.len()), (rolling(0), 1));
    world.frozen = true;
    world.view.workload.observed = true;
    for _ in 0..5 {
        assert_eq!(answer(&world.pass()), Wait(Reason::AwaitingConclusion));
    }
    world.frozen = false;
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.permits(), [2, 1, 0]);
    assert!(world.everybody_runs(NEW));
}

/// A pod that is lost between the switch and the conclusion.
#[test]
fn a_pod_that_is_lost_after_the_switch_comes_back_as_it_was() {
    let mut world = to_be_switched();
    let _ = world.run_until(|world| world.count("StrategySwitched") == 1);
    pod_mut(&mut world.view, 1).terminating = true;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert!(world.made.iter().all(|made| *made != revision("7.1.0")), "{:?}", world.made);
}

#[rstest]
#[case::nothing(|_: &mut Want, _: &mut View| {}, Act("StrategySwitched"))]
#[case::a_pod_is_outdated(|_: &mut Want, view: &mut View| pod_mut(view, 1).revision = revision("other"), Halt(Reason::RolloutPending))]
#[case::a_pod_is_not_ready(|_: &mut Want, view: &mut View| pod_mut(view, 1).ready_since = None, Wait(Reason::PodNotReady))]
#[case::a_member_is_unhealthy(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = Fact::Known(false), Wait(Reason::MemberUnhealthy))]
#[case::a_member_is_unknown(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = unknown(), Wait(Reason::MembersUnknown))]
#[case::the_controller_is_behind(|_: &mut Want, view: &mut View| view.workload.observed = false, Wait(Reason::ControllerBehind))]
#[case::a_pod_is_gone(|_: &mut Want, view: &mut View| remove_pod(view, 1), Wait(Reason::PodNotReady))]
#[case::it_is_paused(|want: &mut Want, _: &mut View| want.paused = true, Wait(Reason::Paused))]
#[case::nothing_is_wanted(|want: &mut Want, _: &mut View| want.target = target(OLD), Answer::Done)]
#[case::a_downgrade_is_wanted(|want: &mut Want, _: &mut View| want.target = target("8.4.0"), Halt(Reason::DowngradeNotAllowed))]
fn the_strategy_is_switched_only_when(#[case] change: fn(&mut Want, &mut View), #[case] expected: Answer) {
    let (mut want, mut view) = (Want { order: Some(Order::ReverseOrdinal), ..want(NEW) }, rest_on_delete(3, 0));
    change(&mut want, &mut view);
    let told = plan(&want, &view);
    assert_eq!(answer(&told.decision), expected, "{:?}", told.decision);
    assert_eq!(told.record, None, "nothing is under way yet");
}

/// Between the switch and the template something comes in the way. Partition 0 does not stay: a stray template would roll everybody.
#[rstest]
#[case::withdrawn(|world: &mut World| world.want.target = target(OLD), Answer::Done)]
#[case::paused(|world: &mut World| world.want.paused = true, Wait(Reason::Paused))]
#[case::no_way(|world: &mut World| world.want.target = target("8.4.0"), Halt(Reason::DowngradeNotAllowed))]
#[case::not_approved(|world: &mut World| world.want.approval = Mode::BeforeUpgrade, Wait(Reason::AwaitingApproval))]
#[case::the_snapshot_is_too_old(|world: &mut World| {
    (world.want.snapshot, world.outcome) = (Some(Duration::from_mins(10)), Progress::Failed("no space left".into()));
}, Halt(Reason::SnapshotFailed))]
fn a_switch_that_comes_to_nothing_is_put_back(
    #[case] change: fn(&mut World),
    #[case] expected: Answer,
    #[values(false, true)] concluded: bool,
) {
    let mut world = to_be_switched();
    let _ = world.run_until(|world| world.count("StrategySwitched") == 1);
    world.view.workload.observed = true;
    if concluded {
        world.view.workload.current_revision = world.view.workload.update_revision.clone();
    }
    change(&mut world);
    for _ in 0..12 {
        let _ = world.pass();
        world.view.workload.observed = true;
    }
    assert_eq!(world.view.workload.strategy, Strategy::OnDelete, "{:?}", world.steps);
    assert_eq!((answer(&world.pass()), world.view.parked), (expected, None), "{:?}", world.steps);
    assert_eq!(world.templates(), Vec::<&str>::new());
}

/// The controller does not conclude while somebody is not ready.
#[test]
fn a_switch_that_is_not_concluded_is_put_back_when_somebody_is_down() {
    let mut world = to_be_switched();
    let _ = world.run_until(|world| world.count("StrategySwitched") == 1);
    (world.view.workload.observed, world.frozen) = (true, true);
    pod_mut(&mut world.view, 1).ready_since = None;
    assert_eq!(answer(&world.pass()), Act("StrategyPutBack"));
    world.view.workload.observed = true;
    assert_eq!(answer(&world.pass()), Wait(Reason::PodNotReady));
}

#[test]
fn a_switch_is_put_back_although_the_spec_cannot_be_read() {
    let mut world = to_be_switched();
    let _ = world.run_until(|world| world.count("StrategySwitched") == 1);
    let hold = Hold::new(Reason::InvalidSpec, "spec.image: PD:8:5");
    let plan = permit::stand_down(Trigger::Version, &world.view, &hold).expect("there is something to do");
    assert_eq!(answer(&plan.decision), Act("StrategyPutBack"));
}

/// Gates, approval and snapshot come before the switch.
#[test]
fn nothing_is_switched_before_the_snapshot_is_there() {
    let mut world = to_be_switched();
    world.want.snapshot = Some(Duration::from_mins(10));
    world.outcome = Progress::Failed("no space left".into());
    assert_eq!(answer(&world.run()), Halt(Reason::SnapshotFailed));
    assert_eq!((world.count("StrategySwitched"), world.view.workload.strategy), (0, Strategy::OnDelete));
    world.outcome = Progress::Done(snapshot());
    world.view.resumed = true;
    let _ = world.pass();
    world.view.resumed = false;
    assert_eq!(world.run(), Decision::Done);
    assert_eq!((world.count("SnapshotBegun"), world.count("StrategySwitched")), (2, 1));
    assert!(world.everybody_runs(NEW));
}

/// Members that are added at rest are above the partition that held everybody.
#[test]
fn a_set_that_is_scaled_up_at_rest_is_parked_again() {
    for mut world in [World::new(3, 0), to_be_switched()] {
        assert_eq!(world.run(), Decision::Done);
        assert_eq!((world.view.workload.strategy, world.view.parked), (rolling(3), Some(Parked::at(3))));
        scale_up(&mut world);
        let (parks, decision) = (world.count("RolloutLocked"), world.run());
        assert_eq!((decision, world.count("RolloutLocked")), (Decision::Done, parks + 1), "{:?}", world.steps);
        assert_eq!(world.view.workload.strategy, rolling(4));
    }
}

#[test]
fn a_set_that_is_paused_or_cannot_be_read_is_parked_again() {
    let mut world = World::new(3, 0);
    assert_eq!(world.run(), Decision::Done);
    scale_up(&mut world);
    world.want.paused = true;
    assert_eq!(answer(&world.pass()), Act("RolloutLocked"));
    world.view.workload.strategy = rolling(3);
    (world.view.parked, world.view.workload.observed) = (Some(Parked::at(3)), true);
    let plan = permit::stand_down(Trigger::Version, &world.view, &Hold::new(Reason::InvalidSpec, ""))
        .expect("there is something to do");
    assert_eq!(
        (answer(&plan.decision), plan.kept),
        (Act("RolloutLocked"), Some(Parked { before: Some(3), ..Parked::at(4) }))
    );
}

/// What somebody else set at rest is theirs.
#[rstest]
#[case::never_parked(None, 0)]
#[case::never_parked_and_scaled(None, 2)]
#[case::lowered_since(Some(3), 0)]
#[case::raised_since(Some(3), 5)]
fn a_partition_of_somebody_else_is_left_alone_at_rest(#[case] parked: Option<u32>, #[case] partition: u32) {
    let mut view = rest(3, 0);
    (view.parked, view.workload.strategy) = (parked.map(Parked::at), rolling(partition));
    assert_eq!(decide(&want(OLD), &view), Decision::Done);
}

/// The write that was to hold everybody was refused, or is late: what stood before is still ours.
#[test]
fn a_set_whose_parking_was_lost_is_parked_again() {
    let mut view = rest(4, 0);
    view.workload.strategy = rolling(3);
    view.parked = Some(Parked { before: Some(3), ..Parked::at(4) });
    let plan = plan(&want(OLD), &view);
    assert_eq!((answer(&plan.decision), plan.kept), (Act("RolloutLocked"), view.parked));
    view.workload.strategy = rolling(4);
    let plan = self::plan(&want(OLD), &view);
    assert_eq!((plan.decision, plan.kept), (Decision::Done, Some(Parked::at(4))), "seen, the other one is forgotten");
}

fn scale_up(world: &mut World) {
    world.view.workload.replicas += 1;
    world.view.workload.observed = true;
    world.view.pods.push(windlass_plan::Pod { index: 3, ..pod(3, NEW) });
    let Fact::Known(members) = &mut world.view.quorum.members else { panic!("known") };
    members.insert(name(3), member(3, NEW));
}

#[rstest]
#[case::rolling_update(rolling(2), "RollingUpdate with partition 2")]
#[case::held(rolling(3), "RollingUpdate with partition 3")]
fn a_strategy_that_somebody_changes_is_noticed(#[case] strategy: Strategy, #[case] words: &str) {
    let mut view = half_way_on_delete(3, 0, 1);
    (view.workload.strategy, view.evictions) = (strategy, theirs(3, 2));
    let told = decide(&want(NEW), &view);
    assert_eq!(answer(&told), Halt(Reason::StrategyChanged));
    assert!(hold(&told).message.contains(words), "{told:?}");
}

// Whose turn it is.

type Change = fn(&mut Want, &mut View);

/// Five members of which the top one is done, `pd-3` is next and `pd-0` leads.
#[rstest]
#[case::nothing(|_: &mut Want, _: &mut View| {}, Act("MemberReplaced"))]
#[case::evictions_are_open(|_: &mut Want, view: &mut View| view.evictions = Evictions::Open, Act("EvictionsHeld"))]
#[case::a_loose_budget(|_: &mut Want, view: &mut View| view.evictions = theirs(5, 2), Halt(Reason::DisruptionBudgetTooLoose))]
#[case::the_leader_is_unknown(|_: &mut Want, view: &mut View| view.quorum.leader = unknown(), Wait(Reason::LeaderUnknown))]
#[case::a_member_is_unknown(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = unknown(), Wait(Reason::MembersUnknown))]
#[case::a_new_one_is_behind(|_: &mut Want, view: &mut View| member_mut(view, 4).position = Fact::Known(Some(0)), Wait(Reason::MemberBehind))]
#[case::a_new_one_is_unhealthy(|_: &mut Want, view: &mut View| member_mut(view, 4).healthy = Fact::Known(false), Wait(Reason::MemberUnhealthy))]
#[case::an_old_one_is_unhealthy(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = Fact::Known(false), Wait(Reason::MemberUnhealthy))]
#[case::an_old_one_is_not_ready_and_healthy(|_: &mut Want, view: &mut View| pod_mut(view, 1).ready_since = None, Wait(Reason::PodNotReady))]
#[case::a_pod_is_gone(|_: &mut Want, view: &mut View| remove_pod(view, 1), Wait(Reason::PodNotReady))]
#[case::a_pod_is_terminating(|_: &mut Want, view: &mut View| pod_mut(view, 1).terminating = true, Wait(Reason::PodNotReady))]
#[case::a_priority(|_: &mut Want, view: &mut View| member_mut(view, 1).priority = 1, Halt(Reason::LeaderPriority))]
#[case::the_controller_is_behind(|_: &mut Want, view: &mut View| view.workload.observed = false, Wait(Reason::ControllerBehind))]
#[case::somebody_changed_the_template(|_: &mut Want, view: &mut View| view.workload.update_revision = revision("other"), Halt(Reason::TemplateChanged))]
#[case::it_is_paused(|want: &mut Want, _: &mut View| want.paused = true, Wait(Reason::Paused))]
#[case::a_member_without_a_pod(|_: &mut Want, view: &mut View| {
    if let Fact::Known(members) = &mut view.quorum.members {
        members.insert(name(7), member(7, OLD));
    }
}, Halt(Reason::MembersDoNotMatch))]
fn the_next_one_is_deleted_only_when(#[case] change: Change, #[case] expected: Answer) {
    let (mut want, mut view) = (want(NEW), half_way_on_delete(5, 0, 1));
    view.evictions = theirs(5, 4);
    change(&mut want, &mut view);
    let decision = decide(&want, &view);
    assert_eq!(answer(&decision), expected, "{decision:?}");
}

#[test]
fn a_pod_is_named_by_its_uid() {
    let expected = Step::Replace { pod: name(3), uid: "3-of-8.5.0".into(), image: image(NEW), through: None };
    assert_eq!(decide(&want(NEW), &half_way_on_delete(5, 0, 1)), Decision::Act(expected));
}

/// `pd-1` of five is down: its pod is not ready and its member is known to be unhealthy.
fn down(index: u32) -> View {
    let mut view = half_way_on_delete(5, 0, 0);
    pod_mut(&mut view, index).ready_since = None;
    member_mut(&mut view, index).healthy = Fact::Known(false);
    view
}

#[test]
fn whoever_is_down_already_goes_first() {
    let expected = Step::DeletePod { pod: name(1), uid: "1-of-8.5.0".into(), image: image(NEW) };
    assert_eq!(decide(&want(NEW), &down(1)), Decision::Act(expected), "H13");
}

/// With OrderedReady a pod is not made anew while one below it is not ready.
#[test]
fn of_two_that_are_down_the_lower_one_goes_first() {
    let mut view = down(1);
    pod_mut(&mut view, 3).ready_since = None;
    member_mut(&mut view, 3).healthy = Fact::Known(false);
    let expected = Step::DeletePod { pod: name(1), uid: "1-of-8.5.0".into(), image: image(NEW) };
    assert_eq!(decide(&want(NEW), &view), Decision::Act(expected));
}

#[rstest]
#[case::another_is_down(|_: &mut Want, view: &mut View| {
    member_mut(view, 2).healthy = Fact::Known(false);
    member_mut(view, 3).healthy = Fact::Known(false);
}, Wait(Reason::QuorumAtRisk))]
#[case::another_is_unknown(|_: &mut Want, view: &mut View| member_mut(view, 2).healthy = unknown(), Wait(Reason::QuorumAtRisk))]
#[case::it_is_unknown(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = unknown(), Wait(Reason::PodNotReady))]
#[case::it_is_said_to_lead(|_: &mut Want, view: &mut View| view.quorum.leader = Fact::Known(name(1)), Wait(Reason::LeaderUnknown))]
#[case::nobody_is_known_to_lead(|_: &mut Want, view: &mut View| view.quorum.leader = unknown(), Wait(Reason::LeaderUnknown))]
#[case::its_pod_is_going(|_: &mut Want, view: &mut View| pod_mut(view, 1).terminating = true, Wait(Reason::PodNotReady))]
#[case::its_pod_is_ready(|_: &mut Want, view: &mut View| pod_mut(view, 1).ready_since = Some(noon()), Wait(Reason::MemberUnhealthy))]
#[case::evictions_are_open(|_: &mut Want, view: &mut View| view.evictions = Evictions::Open, Act("EvictionsHeld"))]
#[case::it_is_paused(|want: &mut Want, _: &mut View| want.paused = true, Wait(Reason::Paused))]
fn whoever_is_down_waits_when(#[case] change: Change, #[case] expected: Answer) {
    let (mut want, mut view) = (want(NEW), down(1));
    change(&mut want, &mut view);
    let decision = decide(&want, &view);
    assert_eq!(answer(&decision), expected, "{decision:?}");
}

#[test]
fn a_quorum_with_one_down_is_upgraded_and_well_afterwards() {
    let mut world = World::on_delete(5, 0);
    world.broken = [OLD].into();
    pod_mut(&mut world.view, 1).ready_since = None;
    for index in [0, 2, 3, 4] {
        // The others were started before the image was lost.
        pod_mut(&mut world.view, index).trouble = None;
    }
    member_mut(&mut world.view, 1).healthy = Fact::Known(false);
    world.only_unready_are_broken = true;
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.mended(), [&name(1)], "first");
    assert_eq!(world.replaced(), [4, 3, 2, 0].map(name));
    assert!(world.everybody_runs(NEW));
}

/// Leadership moves by itself onto whoever is next: that one goes last, and nobody is handed over to twice.
#[rstest]
#[case::onto_the_next(2)]
#[case::onto_another_old_one(1)]
fn whoever_leads_when_its_turn_comes_goes_last(#[case] elected: u32) {
    let mut world = World::on_delete(4, 0);
    world.run_until_replaced(1);
    world.view.quorum.leader = Fact::Known(name(elected));
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.replaced().last(), Some(&name(elected)));
    assert_eq!(world.count("HandOver"), 1);
}

#[test]
fn nobody_is_handed_over_to_when_a_new_one_leads_already() {
    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(1);
    world.view.quorum.leader = Fact::Known(name(2));
    assert_eq!(world.run(), Decision::Done);
    assert_eq!((world.replaced(), world.count("HandOver")), ([2, 1, 0].map(name).to_vec(), 0));
}

// Systems that can't name who leads next.

fn stepping_down(attempts: u32) -> (Want, View) {
    let mut view = half_way_on_delete(3, 0, 2);
    view.evictions = theirs(3, 2);
    record_mut(&mut view).hand_over = Some(HandOver { pod: name(0), since: noon(), attempts, last_error: None });
    (Want { names_target: false, ..want(NEW) }, view)
}

#[test]
fn a_leader_that_keeps_coming_back_is_asked_only_so_often() {
    let later = noon() + want(NEW).deadlines.handover;
    let ask = |attempts| {
        let (want, view) = stepping_down(attempts);
        answer(&rolling::plan(&want, &view, later).decision)
    };
    assert_eq!((ask(1), ask(3)), (Act("HandOver"), Act("HandOver")));
    assert_eq!(ask(4), Halt(Reason::HandOverFailed));
    let (want, mut view) = stepping_down(4);
    view.resumed = true;
    let again = rolling::plan(&want, &view, later);
    assert_eq!(answer(&again.decision), Act("HandOver"), "a person asks to try again");
    assert_eq!(again.record.and_then(|record| record.hand_over).map(|asked| asked.attempts), Some(1));
}

/// Whoever is elected must not be older than the one that steps down (H15).
#[test]
fn nobody_steps_down_while_an_older_one_could_be_elected() {
    let mut view = half_way_on_delete(3, 0, 1);
    view.quorum.leader = Fact::Known(name(2));
    let victim = view.pod(&name(2)).unwrap().clone();
    let heir = |names_target| handover::target(&Want { names_target, ..want(NEW) }, &view, &victim);
    assert_eq!(heir(false).unwrap_err().reason, Reason::DowngradeNotAllowed);
    member_mut(&mut view, 0).version = Fact::Known(version(NEW));
    member_mut(&mut view, 1).version = Fact::Known(version(NEW));
    assert!(handover::target(&Want { names_target: false, ..want(NEW) }, &view, &victim).is_ok());
}

// Minds that change half way.

#[rstest]
#[case::one_replaced(1, &[2])]
#[case::two_replaced(2, &[2, 1])]
fn an_upgrade_goes_back_while_nobody_new_has_led(#[case] count: usize, #[case] back: &[u32]) {
    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(count);
    world.steps.clear();
    world.want.target = target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
    assert_eq!((world.templates(), world.count("HandOver")), (vec![image(OLD).as_str()], 0));
    assert_eq!(world.replaced(), back.iter().map(|index| name(*index)).collect::<Vec<_>>());
}

#[test]
fn an_upgrade_does_not_go_back_once_a_new_one_has_led() {
    let mut world = World::on_delete(3, 0);
    let _ = world.run_until(|world| world.count("HandOver") == 1);
    world.steps.clear();
    world.want.target = target(OLD);
    assert_eq!(answer(&world.run()), Halt(Reason::DowngradeNotAllowed));
    assert_eq!(world.templates().len() + world.replaced().len(), 0);
    world.want.target = target(NEW);
    assert_eq!(world.run(), Decision::Done, "forward is still open");
}

/// No partition holds an old revision, so nobody goes back on the way (H10): B is left where it is.
#[rstest]
fn a_new_target_is_taken_at_once_half_way(#[values(0, 1, 2)] count: usize) {
    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(count);
    if count == 0 {
        let _ = world.run_until(|world| world.templates().len() == 1);
    }
    world.want.target = target(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEWER));
    assert_eq!(world.templates(), [image(NEW), image(NEWER)]);
    assert_eq!(world.replaced().last(), Some(&name(0)), "the leader last");
    assert_eq!((world.deleted.len(), world.count("HandOver")), (3 + count, 1));
}

#[test]
fn a_new_target_that_is_older_waits_until_the_present_one_is_reached() {
    let mut world = World::on_delete(3, 0);
    world.want.target = target(NEWER);
    let _ = world.run_until(|world| world.replaced().len() == 1 && world.all_well());
    world.want.target = target(NEW);
    assert_eq!(answer(&world.run()), Halt(Reason::DowngradeNotAllowed));
    assert!(world.everybody_runs(NEWER));
}

#[test]
fn a_revert_is_left_again_for_what_it_came_from() {
    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(2);
    world.want.target = target(OLD);
    let _ = world.run_until(|world| world.templates().len() == 2);
    world.want.target = target(NEW);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

// Sets that somebody else left half done (H40).

fn adopted(resumed: bool) -> View {
    as_seen(View { record: None, evictions: Evictions::Open, ..half_way_on_delete(3, 0, 1) }, |seen| {
        seen.resumed = resumed;
    })
}

#[test]
fn a_half_upgraded_set_is_left_alone_until_a_person_says_so() {
    let mut world = World::from(adopted(false));
    assert_eq!(answer(&world.run()), Halt(Reason::RolloutPending));
    assert_eq!((world.steps, world.view.record), (vec![], None));
}

#[rstest]
fn a_half_upgraded_set_is_finished_in_the_order_of_its_strategy(
    #[values(None, Some(Order::LeaderLast), Some(Order::ReverseOrdinal))] order: Option<Order>,
) {
    let mut world = World::from(adopted(true));
    world.want.order = order;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!((world.replaced(), world.templates().len()), ([1, 0].map(name).to_vec(), 0));
}

/// A template was written by hand and no pod was deleted yet.
#[test]
fn a_template_that_nobody_runs_yet_is_a_half_done_rollout() {
    let mut view = rest_on_delete(3, 1);
    (view.workload.image, view.workload.update_revision) = (image(NEW), revision(NEW));
    assert_eq!(answer(&decide(&want(NEW), &view)), Halt(Reason::RolloutPending));
    view.resumed = true;
    let mut world = World::from(view);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.replaced(), turns(3, 1));
    assert_eq!(world.view.record, None);
}

/// What was there before is not known, so nothing can be put back; nobody else is touched all the same (H21).
#[test]
fn an_adopted_set_whose_first_new_member_breaks_is_held() {
    let mut world = World::from(adopted(true));
    world.broken = [NEW].into();
    world.view = resumed(rest_on_delete(3, 0));
    (world.view.workload.image, world.view.workload.update_revision) = (image(NEW), revision(NEW));
    assert_eq!(answer(&world.run()), Halt(Reason::ImagePullFailed));
    assert_eq!((world.deleted.len(), world.templates().len()), (1, 0));
    assert_eq!(record_mut(&mut world.view).template_trial, TemplateTrial::Running);
}
