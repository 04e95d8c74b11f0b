//! Whole ways, from rest to rest.

use rstest::rstest;
use windlass_plan::{Decision, Reason, Step, rolling::known::workload::Evictions, strategy::known::step::Step as _};

use crate::support::{Answer, NEW, answer, image, name, partition, theirs, world::World};

/// How often leadership moves: twice where the first victim leads, otherwise once.
fn expected_moves(members: u32, leader: u32) -> usize {
    if leader + 1 == members { 2 } else { 1 }
}

#[rstest]
fn every_size_and_every_leader_come_to_rest_on_the_new_version(
    #[values((3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (4, 3), (5, 0), (5, 1), (5, 2), (5, 3), (5, 4))] quorum: (
        u32,
        u32,
    ),
) {
    walk(quorum.0, quorum.1);
}

#[rstest]
fn seven_members_come_to_rest_on_the_new_version(#[values(0, 1, 2, 3, 4, 5, 6)] leader: u32) {
    walk(7, leader);
}

/// The world itself objects to every step that is out of order; what is left is the whole.
fn walk(members: u32, leader: u32) {
    let mut world = World::new(members, leader);
    assert_eq!(world.run(), Decision::Done);

    assert!(world.everybody_runs(NEW));
    assert_eq!(world.permits(), (0..members).rev().collect::<Vec<_>>(), "highest first, each once (C1)");
    let deleted: Vec<_> = world.deleted.iter().map(|(pod, _)| pod.clone()).collect();
    assert_eq!(deleted, (0..members).rev().map(name).collect::<Vec<_>>(), "one at a time, each once (C2)");
    assert_eq!(world.count("HandOver"), expected_moves(members, leader), "the fewest moves (H16)");
    assert_eq!(world.templates(), [image(NEW)], "written once (C6)");
    assert_eq!(world.count("ReplacementWithdrawn"), 0);
    ends_at_rest(&world, members);
}

/// Held evictions frame the way, and the parked partition ends it.
fn ends_at_rest(world: &World, members: u32) {
    let names: Vec<&str> = world.steps.iter().map(Step::name).collect();
    let position = |step: &str| names.iter().position(|name| *name == step).unwrap();
    assert_eq!(names.first(), Some(&"TemplateWritten"));
    assert!(position("EvictionsHeld") < position("ReplacementAllowed"), "H12: {names:?}");
    assert_eq!(world.count("EvictionsHeld"), 1);
    assert_eq!(names[names.len() - 2..], ["EvictionsReleased", "RolloutLocked"], "H11, H12");
    assert_eq!(partition(&world.view), Some(members));
    assert_eq!(world.view.evictions, Evictions::Open);
    assert_eq!(world.view.record, None);
}

#[rstest]
fn what_is_done_stays_done(#[values(3, 4, 5, 7)] members: u32) {
    let mut world = World::new(members, 0);
    assert_eq!(world.run(), Decision::Done);
    let (view, steps) = (world.view.clone(), world.steps.len());
    for _ in 0..20 {
        assert_eq!(world.pass(), Decision::Done);
    }
    assert_eq!(world.view, view);
    assert_eq!(world.steps.len(), steps);
}

#[rstest]
#[case::of_three_the_last_victim_leads(3, 0, &[(0, 2)])]
#[case::of_three_the_middle_one_leads(3, 1, &[(1, 2)])]
#[case::of_three_the_first_victim_leads(3, 2, &[(2, 0), (0, 2)])]
#[case::of_five_the_last_victim_leads(5, 0, &[(0, 4)])]
#[case::of_five_the_fourth_victim_leads(5, 1, &[(1, 4)])]
#[case::of_five_the_middle_one_leads(5, 2, &[(2, 4)])]
#[case::of_five_the_second_victim_leads(5, 3, &[(3, 4)])]
#[case::of_five_the_first_victim_leads(5, 4, &[(4, 0), (0, 4)])]
fn leadership_moves_as_few_times_as_the_order_allows(
    #[case] members: u32,
    #[case] leader: u32,
    #[case] moves: &[(u32, u32)],
) {
    let mut world = World::new(members, leader);
    assert_eq!(world.run(), Decision::Done);
    let expected: Vec<Step> =
        moves.iter().map(|(from, to)| Step::HandOver { from: name(*from), to: name(*to) }).collect();
    let made: Vec<Step> = world.steps.iter().filter(|step| step.name() == "HandOver").cloned().collect();
    assert_eq!(made, expected);
}

#[test]
fn a_budget_of_somebody_else_is_used_and_left_alone() {
    let mut world = World::new(3, 0);
    world.view.evictions = theirs(3, 3);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.count("EvictionsHeld") + world.count("EvictionsReleased"), 0);
    assert_eq!(world.view.evictions, theirs(3, 3));
}

#[rstest]
fn one_or_two_members_are_not_touched_unasked(#[values(1, 2)] members: u32) {
    let mut world = World::new(members, 0);
    assert_eq!(answer(&world.run()), Answer::Halt(Reason::TooFewMembers));
    assert_eq!(world.steps, []);
}

#[rstest]
#[case::alone(1, 0, 0)]
#[case::two_and_the_last_leads(2, 0, 1)]
#[case::two_and_the_first_leads(2, 1, 2)]
fn one_or_two_members_are_replaced_where_downtime_is_accepted(
    #[case] members: u32,
    #[case] leader: u32,
    #[case] moves: usize,
) {
    let mut world = World::new(members, leader);
    world.want.accept_downtime = true;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(world.permits(), (0..members).rev().collect::<Vec<_>>());
    assert_eq!(world.count("HandOver"), moves);
    ends_at_rest(&world, members);
}

#[test]
fn accepted_downtime_changes_nothing_for_three() {
    let mut usual = World::new(3, 1);
    let mut accepting = World::new(3, 1);
    accepting.want.accept_downtime = true;
    assert_eq!(usual.run(), accepting.run());
    assert_eq!(usual.steps, accepting.steps);
}

#[test]
fn a_parked_set_is_upgraded_the_same_way() {
    let mut world = World::new(3, 1);
    assert_eq!(world.run(), Decision::Done);
    let first = std::mem::take(&mut world.steps);
    world.want.target = crate::support::target(crate::support::NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(crate::support::NEWER));
    assert_eq!(first.len(), world.steps.len() - 1, "it leads from the top now, so leadership moves once more");
}

/// The operator forgets everything but the record between any two passes anyway; here its writes get lost as well (X3).
#[rstest]
fn a_lost_write_is_made_again(#[values(0, 1, 2)] leader: u32) {
    let mut whole = World::new(3, leader);
    assert_eq!(whole.run(), Decision::Done);
    for lost in 0..whole.steps.len() {
        let mut world = World::new(3, leader);
        while world.steps.len() < lost {
            let _ = world.pass();
        }
        let before = world.view.clone();
        while world.steps.len() == lost {
            let _ = world.pass();
        }
        let record = world.view.record.take();
        world.view = windlass_plan::View { record, ..before };
        world.steps.pop();
        // A hand-over that was lost is asked for again after its deadline.
        assert_eq!(world.run(), Decision::Done, "step {lost} was lost");
        assert!(world.everybody_runs(NEW));
        assert_eq!(world.permits(), whole.permits());
    }
}
