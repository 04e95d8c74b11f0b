//! Minds that change half way: back, or on to something else.

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Hold, Reason, Step,
    approval::Mode,
    gate::{CONCURRENT_OPERATION, ExternalGate, Outcome, When},
    rolling::known::{
        owners::{Field, Operation},
        workload::Evictions,
    },
    strategy::known::{snapshot::Progress, step::Step as _},
};

use crate::support::{
    Answer, NEW, NEWER, OLD, answer, hold, image, member_mut, name, owned_by, owner, partition, question, revision,
    target, unknown, window, world::World,
};

use Answer::Halt;

/// Goes on until so many of three are replaced; `pd-0` has led all the time, and is old.
fn replaced(count: usize) -> World {
    let mut world = World::new(3, 0);
    world.run_until_replaced(count);
    world
}

#[rstest]
#[case::one_replaced(1, &[2])]
#[case::two_replaced(2, &[2, 1])]
fn an_upgrade_goes_back_while_nobody_new_has_led(#[case] count: usize, #[case] back: &[u32]) {
    let mut world = replaced(count);
    world.steps.clear();
    world.want.target = target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
    assert_eq!(world.templates(), [image(OLD)]);
    assert_eq!(world.permits(), back, "only the replaced ones, highest first");
    assert_eq!(world.count("HandOver"), 0);
    assert_eq!((partition(&world.view), &world.view.evictions), (Some(3), &Evictions::Open));
}

/// Somebody newer is elected on the way back, by no doing of ours.
#[rstest]
fn nobody_goes_back_once_somebody_newer_has_led(#[values(World::new, World::on_delete)] begin: fn(u32, u32) -> World) {
    somebody_newer_leads_on_the_way_back(begin);
}

pub fn somebody_newer_leads_on_the_way_back(begin: fn(u32, u32) -> World) {
    let mut world = begin(5, 0);
    world.run_until_replaced(3);
    world.want.target = target(OLD);
    let back = |world: &World| world.view.pods.iter().filter(|pod| pod.revision == revision(OLD)).count();
    let before = back(&world);
    let _ = world.run_until(|world| back(world) > before);
    let (gone, newer) = (back(&world), world.view.pods.iter().find(|pod| pod.revision == revision(NEW)));
    world.view.quorum.leader = Fact::Known(newer.expect("one is new").name.clone());
    let decision = world.run();
    assert_eq!((hold(&decision).reason, back(&world)), (Reason::DowngradeNotAllowed, gone), "{decision:?}");
    world.want.allow_downgrade = true;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
}

#[rstest]
#[case::still_leads(1, 2)]
#[case::has_led(1, 0)]
#[case::still_leads_among_two(2, 1)]
#[case::has_led_among_two(2, 0)]
fn an_upgrade_does_not_go_back_once_a_new_one_has_led(#[case] count: usize, #[case] leads_now: u32) {
    let mut world = new_one_has_led(count, leads_now);
    world.steps.clear();
    world.want.target = target(OLD);
    let decision = world.run();
    assert_eq!(answer(&decision), Halt(Reason::DowngradeNotAllowed));
    assert!(hold(&decision).message.contains(NEW) && hold(&decision).message.contains(OLD), "{decision:?}");
    assert_eq!(world.templates().len() + world.permits().len() + world.count("HandOver"), 0, "{:?}", world.steps);
    assert_eq!(world.view.evictions, Evictions::Open, "drains go on while a person is waited for");

    world.want.target = target(NEW);
    assert_eq!(world.run(), Decision::Done, "forward is still open");
    assert!(world.everybody_runs(NEW));
}

#[rstest]
#[case::still_leads(1, 2)]
#[case::has_led(1, 0)]
#[case::still_leads_among_two(2, 1)]
#[case::has_led_among_two(2, 0)]
fn an_upgrade_goes_back_from_a_new_leader_where_that_is_allowed(#[case] count: usize, #[case] leads_now: u32) {
    let mut world = new_one_has_led(count, leads_now);
    world.want.target = target(OLD);
    world.want.allow_downgrade = true;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
}

fn new_one_has_led(count: usize, leads_now: u32) -> World {
    let mut world = replaced(count);
    // Any pass notes who leads, and a pause begins nothing.
    world.want.paused = true;
    for leader in [2, leads_now] {
        world.view.quorum.leader = Fact::Known(name(leader));
        let _ = world.pass();
    }
    world.want.paused = false;
    world
}

#[test]
fn a_revert_is_finished_before_its_mind_changes_again() {
    let mut world = replaced(2);
    world.steps.clear();
    world.want.target = target(OLD);
    let _ = world.run_until(|world| world.permits() == [2]);
    world.want.target = target(NEW);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.templates(), [image(OLD), image(NEW)]);
    assert_eq!(world.permits(), [2, 1, 2, 1, 0]);
    assert!(world.everybody_runs(NEW));
}

#[test]
fn a_member_of_the_new_version_that_leads_during_a_revert_is_not_deposed() {
    let mut world = replaced(1);
    world.want.target = target(OLD);
    let _ = world.run_until(|world| world.templates().len() == 2);
    world.view.quorum.leader = Fact::Known(name(2));
    assert_eq!(answer(&world.run()), Halt(Reason::DowngradeNotAllowed));
    assert_eq!(world.count("HandOver"), 0);
}

#[test]
fn a_revert_before_anybody_is_replaced_replaces_nobody() {
    let mut world = World::new(3, 2);
    let _ = world.run_until(|world| world.templates().len() == 1 && world.view.workload.observed);
    world.want.target = target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!((world.templates(), world.deleted.len()), (vec![image(NEW).as_str(), image(OLD).as_str()], 0));
    assert_eq!(world.count("HandOver"), 0);
}

/// Between the old pod and the new one there is none, and one member too many (H15 asks for the leader, not for the pods).
#[test]
fn a_revert_while_a_pod_is_gone_does_not_wait_for_a_person() {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.view.pods.len() == 2);
    world.want.target = target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
    assert_eq!(world.deleted.len(), 1, "it comes back on the old version by itself");
}

#[rstest]
#[case::the_leader(|world: &mut World| world.view.quorum.leader = unknown(), Reason::LeaderUnknown)]
#[case::what_it_runs(|world: &mut World| member_mut(&mut world.view, 0).version = unknown(), Reason::MembersUnknown)]
fn a_revert_waits_until_it_is_known(#[case] lose: fn(&mut World), #[case] reason: Reason) {
    let mut world = replaced(1);
    world.want.target = target(OLD);
    let before = world.steps.len();
    let well = world.view.quorum.clone();
    lose(&mut world);
    assert_eq!(answer(&world.pass()), Answer::Wait(reason));
    assert_eq!(world.steps.len(), before);
    world.view.quorum = well;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
}

#[test]
fn a_revert_while_a_permit_stands_takes_it_back_first() {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.permits() == [2]);
    world.steps.clear();
    world.want.target = target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.steps.first().map(Step::name), Some("ReplacementWithdrawn"));
    assert!(world.everybody_runs(OLD) && world.deleted.is_empty());
}

/// The write may be on its way, seen, or with leadership moved already: nobody was replaced for it.
#[rstest]
fn a_new_target_is_taken_at_once_before_anybody_is_replaced(#[values(0, 1, 2)] leader: u32) {
    let before_the_first_permit = {
        let mut world = World::new(3, leader);
        let mut passes = 0;
        while world.permits().is_empty() {
            let _ = world.pass();
            passes += 1;
        }
        passes
    };
    for passes in 1..before_the_first_permit {
        let mut world = World::new(3, leader);
        for _ in 0..passes {
            let _ = world.pass();
        }
        world.want.target = target(NEWER);
        assert_eq!(world.run(), Decision::Done, "changed after {passes} passes");
        assert!(world.everybody_runs(NEWER));
        assert_eq!(world.templates(), [image(NEW), image(NEWER)]);
        assert_eq!(world.deleted.len(), 3, "nobody is replaced for {NEW}");
    }
}

#[rstest]
fn a_new_target_waits_until_a_half_done_one_is_reached(#[values(1, 2)] count: usize) {
    let mut world = replaced(count);
    world.want.target = target(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEWER));
    assert_eq!(world.templates(), [image(NEW), image(NEWER)]);
    assert_eq!(world.permits(), [2, 1, 0, 2, 1, 0]);
    let second = world.steps.iter().rposition(|step| step.name() == "TemplateWritten").unwrap();
    assert_eq!(world.steps[second - 1], Step::Park { partition: 3 }, "the first way ends first (H10)");
}

#[test]
fn a_new_target_waits_while_the_first_pod_is_on_its_way() {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.deleted.len() == 1);
    world.want.target = target(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.permits(), [2, 1, 0, 2, 1, 0]);
}

#[test]
fn a_new_target_that_is_older_than_what_runs_is_refused_before_anybody_is_replaced() {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.templates().len() == 1);
    world.want.target = target("8.4.0");
    assert_eq!(answer(&world.run()), Halt(Reason::DowngradeNotAllowed));
    world.want.target = target(NEW);
    assert_eq!(world.run(), Decision::Done, "and the first one is still open");
    assert_eq!(world.templates(), [image(NEW)]);
}

#[test]
fn a_declared_downgrade_goes_all_the_way_and_back() {
    let mut world = World::new(3, 1);
    world.want.target = target("8.4.0");
    world.want.allow_downgrade = true;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs("8.4.0"));

    world.want.allow_downgrade = false;
    world.want.target = target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
}

// Another target passes the gates that the first one passed.

type Close = fn(&mut World);

fn locked(world: &mut World) {
    let hold = Hold::new(Reason::Locked, "a restore");
    world.view.external.push(ExternalGate::new(CONCURRENT_OPERATION, Outcome::Hold(hold)));
}

/// Argo CD took the application over since the upgrade began.
fn owned(world: &mut World) {
    let fields = [Field::Image, Field::Partition, Field::Strategy];
    world.view.owners = owned_by(vec![owner("argocd-controller", Operation::Apply, &fields)]);
}

fn hooked(world: &mut World) {
    let hold = Hold::new(Reason::AwaitingHook, "Hook/smoke: its Job has not begun");
    world.view.external.push(ExternalGate {
        name: "Hook/smoke".into(),
        when: When::BeforeUpgrade,
        outcome: Outcome::Hold(hold),
        asked: None,
        lacks_job: true,
    });
}

fn unapproved(world: &mut World) {
    world.want.approval = Mode::BeforeUpgrade;
}

fn unsaved(world: &mut World) {
    (world.want.snapshot, world.outcome) = (Some(Duration::from_mins(10)), Progress::Failed("no space left".into()));
}

/// Nothing is replaced yet, by a partition.
fn untouched() -> World {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.count("TemplateWritten") == 1);
    world
}

/// One member is done, leader last.
fn begun() -> World {
    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(1);
    world
}

/// The first member is broken, by a partition.
fn broken() -> World {
    let mut world = World::new(3, 0);
    world.broken = [NEW].into();
    let _ = world.run_until(|world| world.view.pods.iter().any(|pod| pod.trouble.is_some()));
    world
}

/// The template of the first member that broke was put back, leader last.
fn put_back() -> World {
    let mut world = World::on_delete(3, 0);
    world.broken = [NEW].into();
    let _ = world.run_until(|world| world.view.record.as_ref().is_some_and(windlass_plan::Record::is_put_back));
    world
}

#[rstest]
#[case::approval(unapproved, Reason::AwaitingApproval)]
#[case::lock(locked, Reason::Locked)]
#[case::hook(hooked, Reason::AwaitingHook)]
#[case::owner(owned, Reason::FieldOwned)]
fn another_target_waits_for_its_gates(
    #[values(untouched, begun, broken, put_back)] begin: fn() -> World,
    #[case] close: Close,
    #[case] reason: Reason,
) {
    waits(begin(), close, reason);
}

/// A snapshot is taken of what nobody has left yet.
#[rstest]
#[case::untouched(untouched, unsaved, Reason::SnapshotFailed)]
#[case::no_snapshot_at_all(begun, unsaved, Reason::SnapshotFailed)]
fn another_target_waits_for(#[case] begin: fn() -> World, #[case] close: Close, #[case] reason: Reason) {
    waits(begin(), close, reason);
}

/// A window is closed to everything that an upgrade writes.
#[rstest]
fn another_target_waits_for_a_window(#[values(begun, put_back)] begin: fn() -> World) {
    let mut world = begin();
    world.want.windows = vec![window("0 0 29 2 *", 1, "UTC")];
    world.want.target = target(NEWER);
    (world.view.workload.observed, world.view.evictions) = (true, Evictions::Open);
    let templates = world.templates().len();
    let decision = world.pass();
    assert_eq!((answer(&decision), world.templates().len()), (Answer::Wait(Reason::WindowClosed), templates));
    world.want.windows = vec![];
    assert_eq!(world.run(), Decision::Done, "{:?}", world.steps);
    assert!(world.everybody_runs(NEWER));
}

#[track_caller]
fn waits(mut world: World, close: Close, reason: Reason) {
    close(&mut world);
    world.want.target = target(NEWER);
    let before = (world.templates().len(), world.replaced(), world.permits(), world.mended().len());
    for _ in 0..20 {
        let _ = world.pass();
    }
    let record = world.view.record.clone().expect("it is under way");
    assert_eq!((record.target, record.next_target), (target(NEW), Some(target(NEWER))));
    let after = (world.templates().len(), world.replaced(), world.permits(), world.mended().len());
    assert_eq!(before, after, "nobody is let go for what nobody wants: {:?}", world.steps);
    let decision = world.pass();
    assert_eq!(hold(&decision).reason, reason, "{decision:?}");

    (world.want.approval, world.want.snapshot) = (Mode::None, None);
    world.view.external.clear();
    world.view.owners = owned_by(vec![]);
    assert_eq!(world.run(), Decision::Done, "{:?}", world.steps);
    assert!(world.everybody_runs(NEWER));
}

#[test]
fn what_is_asked_is_the_new_target_and_its_answer_counts() {
    for mut world in [untouched(), begun()] {
        unapproved(&mut world);
        world.want.target = target(NEWER);
        let _ = world.pass();
        let _ = world.pass();
        assert_eq!(world.view.approvals.asked, Some(question(NEWER, None)));
        world.view.approvals.fresh = true;
        assert_eq!(world.run(), Decision::Done, "{:?}", world.steps);
        assert!(world.everybody_runs(NEWER));
    }
}

/// Where it waits its turn, the one before goes on with what was approved for it.
#[test]
fn a_target_that_waits_its_turn_holds_nobody_up() {
    let mut world = replaced(1);
    world.view.approvals.granted = vec![question(NEW, None)];
    unapproved(&mut world);
    world.want.target = target(NEWER);
    let _ = world.run_until(|world| world.view.approvals.asked == Some(question(NEWER, None)));
    assert!(world.everybody_runs(NEW), "{:?}", world.steps);
    assert_eq!(world.templates(), [image(NEW)]);
}

/// The snapshot of before the first one is the state to go back to; before anybody was replaced, another one is newer.
#[test]
fn another_target_has_a_snapshot_of_its_own_only_while_nobody_was_replaced() {
    for (begin, taken) in [(World::new(3, 0), 2), (World::on_delete(3, 0), 1)] {
        let (mut world, order) = (begin, taken);
        world.want.snapshot = Some(Duration::from_mins(10));
        if order == 2 {
            let _ = world.run_until(|world| world.count("TemplateWritten") == 1);
        } else {
            world.run_until_replaced(1);
        }
        world.want.target = target(NEWER);
        assert_eq!(world.run(), Decision::Done, "{:?}", world.steps);
        assert_eq!((world.count("SnapshotBegun"), world.everybody_runs(NEWER)), (taken, true));
    }
}
