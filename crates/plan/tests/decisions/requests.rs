//! What people ask for once: stop, go back, try again; and going back by itself at a deadline (X4).

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason,
    quorum::Complaint,
    strategy::known::{
        request::{Outcome, Requests},
        want::OnDeadline,
    },
};

use crate::support::{NEW, NEWER, OLD, hold, image, member_mut, target, world::World};

const ABORT: Requests = Requests { abort: true, retry: false, rollback: false };
const ROLLBACK: Requests = Requests { rollback: true, retry: false, abort: false };
const RETRY: Requests = Requests { retry: true, abort: false, rollback: false };

type Make = fn(u32, u32) -> World;

/// One member is replaced and well, and the old leader still leads.
fn half_way(make: Make) -> World {
    let mut world = make(3, 0);
    world.run_until_replaced(1);
    world
}

fn ask(world: &mut World, requests: Requests) -> Decision {
    world.view.requests = requests;
    world.run()
}

fn reason(decision: &Decision) -> Reason {
    hold(decision).reason
}

#[rstest]
fn an_upgrade_that_is_stopped_stays_where_it_is_until_somebody_says_retry(
    #[values(World::new, World::on_delete)] make: Make,
) {
    let mut world = half_way(make);
    assert_eq!(reason(&ask(&mut world, ABORT)), Reason::Aborted);
    assert_eq!(world.deleted.len(), 1, "{:?}", world.steps);
    // A person calms down for a day, and the operator restarts now and then.
    world.now += std::time::Duration::from_hours(24);
    assert_eq!(reason(&world.run()), Reason::Aborted);
    assert_eq!(ask(&mut world, RETRY), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

#[rstest]
fn an_upgrade_that_is_taken_back_ends_where_it_came_from_and_is_not_begun_again(
    #[values(World::new, World::on_delete)] make: Make,
) {
    let mut world = half_way(make);
    assert_eq!(reason(&ask(&mut world, ROLLBACK)), Reason::RolledBack);
    assert!(world.everybody_runs(OLD), "{:?}", world.steps);
    assert_eq!(world.view.workload.image, image(OLD));
    assert_eq!(reason(&world.run()), Reason::RolledBack, "and stays there");
    assert_eq!(ask(&mut world, RETRY), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

#[rstest]
fn another_target_is_begun_whatever_was_given_up(
    #[values(ABORT, ROLLBACK)] asked: Requests,
    #[values(World::new, World::on_delete)] make: Make,
) {
    let mut world = half_way(make);
    let _ = ask(&mut world, asked);
    world.want.target = target(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEWER));
    assert_eq!(world.view.given_up, None);
}

/// A token without anything that it could be about is spent.
#[rstest]
fn at_rest_there_is_nothing_to_stop_and_nothing_to_take_back(#[values(ABORT, ROLLBACK, RETRY)] asked: Requests) {
    let mut world = World::new(3, 0);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(ask(&mut world, asked), Decision::Done);
    assert_eq!(world.view.given_up, None);
}

#[test]
fn an_upgrade_can_be_stopped_before_it_begins() {
    let mut world = World::new(3, 0);
    assert_eq!(reason(&ask(&mut world, ABORT)), Reason::Aborted);
    assert!(world.steps.is_empty(), "{:?}", world.steps);
}

#[rstest]
#[case::it_goes_back(OnDeadline::RollBack, OLD, Reason::RolledBack)]
#[case::it_stays(OnDeadline::Hold, "", Reason::ImagePullFailed)]
fn at_a_deadline_it_does_what_was_asked_for(
    #[case] on_deadline: OnDeadline,
    #[case] runs: &str,
    #[case] expected: Reason,
) {
    let mut world = World::new(3, 0);
    world.want.on_deadline = on_deadline;
    world.broken = [NEW].into();
    assert_eq!(reason(&world.run()), expected, "{:?}", world.steps);
    assert!(runs.is_empty() || world.everybody_runs(runs), "{:?}", world.steps);
    assert_eq!(reason(&world.run()), expected, "and stays there");
}

#[test]
fn under_on_delete_a_template_that_was_put_back_is_given_up_at_the_deadline() {
    let mut world = World::on_delete(3, 0);
    world.want.on_deadline = OnDeadline::RollBack;
    world.broken = [NEW].into();
    assert_eq!(reason(&world.run()), Reason::RolledBack, "{:?}", world.steps);
    assert!(world.everybody_runs(OLD), "{:?}", world.steps);
}

/// What has led has written (H15).
#[rstest]
fn nobody_goes_back_by_itself_after_the_new_version_has_led(#[values(false, true)] allowed: bool) {
    let mut world = World::new(3, 2);
    world.want.on_deadline = OnDeadline::RollBack;
    world.run_until_replaced(1);
    world.view.quorum.leader = Fact::Known(crate::support::name(2));
    let _ = world.pass();
    world.broken = [NEW].into();
    world.only_unready_are_broken = true;
    world.want.allow_downgrade = allowed;
    let decision = world.run();
    let expected = if allowed { Reason::RolledBack } else { Reason::ImagePullFailed };
    assert_eq!(reason(&decision), expected, "{:?}", world.steps);
}

/// It wants its key, not another version.
#[test]
fn a_sealed_member_is_a_persons_business_and_no_reason_to_go_back() {
    let mut world = half_way(World::new);
    world.want.on_deadline = OnDeadline::RollBack;
    world.frozen = true;
    let member = member_mut(&mut world.view, 2);
    (member.healthy, member.trouble) = (Fact::Known(false), Some(Complaint::Sealed));
    let decision = world.run();
    assert_eq!(reason(&decision), Reason::MemberSealed);
    assert!(matches!(decision, Decision::Halt { .. }), "at its deadline a person is called");
    assert_eq!(world.view.seen.given_up.map(|given_up| given_up.outcome), None::<Outcome>);
}
