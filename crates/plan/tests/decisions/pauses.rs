//! A pause at any point stops everything that is not on its way already, and costs nothing (H43).

use rstest::rstest;
use windlass_plan::{Decision, Reason, Step, rolling::known::workload::Evictions};

use crate::support::{Answer, NEW, answer, world::World};

/// More passes than one member's replacement takes.
const LONG: usize = 40;

#[rstest]
fn a_pause_at_any_point_begins_nothing_and_leaves_no_permit(#[values(0, 1, 2)] leader: u32) {
    for passes in 0..passes_of_a_whole_way(leader) {
        let mut world = paused_after(passes, leader);
        let before = world.steps.len();
        for _ in 0..LONG {
            let _ = world.pass();
        }
        for step in &world.steps[before..] {
            let allowed = matches!(step, Step::TakeBack { .. } | Step::ReleaseEvictions);
            assert!(allowed, "{step} while paused after {passes} passes");
        }
        assert!(world.view.permitted().is_none() || world.view.record.is_none(), "after {passes} passes");
        assert!(world.all_well(), "what was on its way has arrived");
        assert_eq!(world.view.evictions, Evictions::Open, "drains go on while it is paused");
        assert_eq!(answer(&world.pass()), Answer::Wait(Reason::Paused));
    }
}

#[rstest]
fn a_way_that_was_paused_at_any_point_ends_the_same(#[values(0, 1, 2)] leader: u32) {
    for passes in 0..passes_of_a_whole_way(leader) {
        let mut world = paused_after(passes, leader);
        for _ in 0..LONG {
            let _ = world.pass();
        }
        world.want.paused = false;
        assert_eq!(world.run(), Decision::Done, "paused after {passes} passes");
        assert!(world.everybody_runs(NEW));
        assert_eq!(world.deleted.len(), 3, "nobody is replaced twice");
        assert!(world.count("HandOver") <= 2, "nor handed over to once more");
    }
}

#[test]
fn a_short_pause_takes_a_permit_back_and_gives_it_again() {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.permits() == [2]);
    world.want.paused = true;
    let _ = world.pass();
    world.want.paused = false;
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.permits(), [2, 2, 1, 0]);
    assert_eq!(world.count("ReplacementWithdrawn"), 1);
}

#[test]
fn a_pause_with_nothing_to_begin_is_no_reason_not_to_be_ready() {
    let mut world = World::new(3, 0);
    assert_eq!(world.run(), Decision::Done);
    world.want.paused = true;
    assert_eq!(world.pass(), Decision::Done);
    crate::support::member_mut(&mut world.view, 1).healthy = windlass_plan::Fact::Known(false);
    assert_eq!(answer(&world.pass()), Answer::Wait(Reason::Paused), "not all is well");
}

fn passes_of_a_whole_way(leader: u32) -> usize {
    let mut world = World::new(3, leader);
    let mut passes = 0;
    while world.pass() != Decision::Done {
        passes += 1;
    }
    passes
}

fn paused_after(passes: usize, leader: u32) -> World {
    let mut world = World::new(3, leader);
    for _ in 0..passes {
        let _ = world.pass();
    }
    world.want.paused = true;
    world
}
