//! Limits: how many at once, in a tier and in a lane, and how many may fail (H2, H36).

use rstest::rstest;
use windlass_plan::{
    Fact,
    fleet::{Amount, Lane, Progress, Stamp, Standing, Verdict},
};

use super::world::{V1, V2, World, at_most, id, reason, serving, tier, want};

const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

fn ten() -> World {
    World::new(want(vec![tier("", V2, 0)]), NAMES.map(|name| (name, serving(name, "", V1))))
}

#[rstest]
#[case::a_number(Amount::Count(4), 4)]
#[case::a_share(Amount::Percent(35), 3)]
#[case::never_nobody(Amount::Percent(5), 1)]
fn so_many_are_on_their_way_at_once(#[case] limit: Amount, #[case] count: usize) {
    let mut world = ten();
    world.want.tiers[0].max_in_flight = Some(limit);
    let first = world.step();
    assert_eq!(first.stamps.len(), count);
    assert_eq!(reason(&world.step()), "InFlightLimit");
    world.arrive(&first.stamps[0].id);
    assert_eq!(world.step().stamps.len(), 1);
}

#[test]
pub fn h2_what_is_reserved_counts_as_if_it_were_on_its_way() {
    let mut world = ten();
    world.want.tiers[0].max_in_flight = Some(at_most(4));
    let plan = world.plan();
    for stamp in &plan.stamps[..3] {
        world.index.reserve(&stamp.id);
    }
    let next = world.plan();
    assert_eq!(next.stamps.len(), 1, "{next:?}");
    assert!(!plan.stamps[..3].iter().any(|stamp| stamp.id == next.stamps[0].id));
    world.index.release(&plan.stamps[0].id);
    assert_eq!(world.plan().stamps.len(), 2);
}

#[test]
pub fn h2_what_another_service_image_set_on_its_way_counts() {
    let mut world = ten();
    world.want.tiers[0].max_in_flight = Some(at_most(4));
    // It wrote to another field and is gone by now; what it wrote to is not back yet.
    for name in &NAMES[7..] {
        let now = world.now;
        world.change(&id(name), |item| {
            item.stamp = Some(Stamp { image: "another".into(), at: now, round: 0, elsewhere: true });
            item.progress = Fact::Known(Progress::Moving { since: None });
        });
    }
    // Everything is read anew when another one goes.
    world.look_again();
    let plan = world.step();
    assert_eq!(plan.stamps.len(), 1, "three are disturbed already: {plan:?}");
    assert!(!NAMES[7..].contains(&plan.stamps[0].id.name()));
    // One that arrives is outdated as all the others are, and makes room.
    world.change(&id(NAMES[7]), |item| item.progress = Fact::Known(Progress::Ready));
    assert_eq!(world.step().stamps.len(), 1);
}

/// One in a tier below was set on its way to what nobody wants, and will not arrive before its turn: those above need its lane.
#[test]
pub fn who_is_astray_in_a_tier_below_is_not_waited_for_for_ever() {
    let tiers = vec![tier("", V2, 1), tier("late", V2, 0)];
    let mut world = World::new(want(tiers), [("a", serving("a", "", V1)), ("b", serving("b", "late", V1))]);
    let now = world.now;
    world.change(&id("a"), |item| item.lane = Lane("n1".into()));
    world.change(&id("b"), |item| {
        item.lane = Lane("n1".into());
        item.stamp = Some(Stamp { image: "broken".into(), at: now, round: 0, elsewhere: true });
        item.progress = Fact::Known(Progress::Moving { since: None });
    });
    world.want.lane_limit = Some(1);
    world.wish(world.want.clone());
    world.look_again();
    assert_eq!(reason(&world.step()), "InFlightLimit");
    world.wait(599);
    assert_eq!(reason(&world.step()), "InFlightLimit");
    world.wait(1);
    let plan = world.step();
    assert_eq!(plan.stamps.iter().map(|stamp| stamp.id.name()).collect::<Vec<_>>(), ["a"], "{plan:?}");
}

#[test]
fn lanes_have_a_limit_of_their_own() {
    let mut world = ten();
    world.want.lane_limit = Some(2);
    world.wish(world.want.clone());
    for (number, name) in NAMES.iter().enumerate() {
        let lane = if number < 7 { "node-1" } else { "node-2" };
        world.change(&id(name), |item| item.lane = Lane(lane.into()));
    }
    let plan = world.step();
    assert_eq!(plan.stamps.len(), 4, "two of each node");
    let full = world.step();
    assert_eq!(reason(&full), "InFlightLimit");
    let Verdict::Wait(hold) = &full.verdict else { panic!("{full:?}") };
    assert!(hold.message.contains("4 are on their way, and maxInFlight of spec.spread"), "{}", hold.message);
    let gone = plan.stamps.iter().find(|stamp| NAMES[..7].contains(&stamp.id.name())).unwrap();
    world.arrive(&gone.id);
    let plan = world.step();
    assert_eq!(plan.stamps.len(), 1);
    assert!(NAMES[..7].contains(&plan.stamps[0].id.name()), "its own node has room");
}

#[test]
pub fn lanes_are_shared_by_the_tiers_of_one_priority() {
    let tiers = vec![tier("", V2, 1), tier("early", V2, 1), tier("late", V2, 0)];
    let of = |number: usize| ["", "early", "late"][number % 3];
    let items = NAMES.iter().enumerate().map(|(number, name)| (*name, serving(name, of(number), V1)));
    let mut world = World::new(want(tiers), items);
    for (number, name) in NAMES.iter().enumerate() {
        world.change(&id(name), |item| item.lane = Lane(if number < 6 { "n1" } else { "n2" }.into()));
    }
    world.want.lane_limit = Some(2);
    world.wish(world.want.clone());
    let plan = world.step();
    assert_eq!(plan.stamps.len(), 4, "two of each node, in all tiers together: {:?}", plan.stamps);
    let on = |stamps: &[windlass_plan::fleet::Stamping], lane: &str| {
        stamps.iter().filter(|stamp| world.items[&stamp.id].lane.0 == lane).count()
    };
    assert_eq!((on(&plan.stamps, "n1"), on(&plan.stamps, "n2")), (2, 2));
}

#[test]
fn a_batch_is_bounded() {
    let mut world = ten();
    world.want.batch = 3;
    assert_eq!(world.step().stamps.len(), 3);
    assert_eq!(world.step().stamps.len(), 3);
}

#[rstest]
#[case::any_number_where_nobody_says(None, 8, false)]
#[case::as_many_as_allowed(Some(Amount::Count(5)), 5, false)]
#[case::none(Some(Amount::Count(0)), 1, true)]
#[case::a_share(Some(Amount::Percent(20)), 3, true)]
fn e4_h36_failures_that_do_not_halt_are_counted_where_somebody_says_how_many_may(
    #[case] limit: Option<Amount>,
    #[case] failed: usize,
    #[case] halts: bool,
) {
    let mut world = ten();
    world.want.tiers[0].max_failures = limit;
    world.want.tiers[0].max_in_flight = Some(at_most(8));
    let plan = world.step();
    for stamp in &plan.stamps[..failed] {
        world.change(&stamp.id, |item| {
            item.failure_halts = false;
            item.progress = Fact::Known(Progress::Failed("crashed".into()));
        });
    }
    let plan = world.step();
    assert_eq!(matches!(plan.verdict, Verdict::Halt(_)), halts, "{:?}", plan.verdict);
    assert_eq!(plan.stamps.is_empty(), halts);
}

#[test]
fn e12_taking_too_long_is_a_failure_and_retry_gives_another_chance() {
    let mut world = ten();
    world.step();
    world.wait(599);
    assert_eq!(world.standing("a"), Standing::Moving);
    world.wait(1);
    assert_eq!(world.standing("a"), Standing::Failed);
    let plan = world.step();
    let Verdict::Halt(hold) = &plan.verdict else { panic!("{plan:?}") };
    assert!(hold.message.contains("was not up to date within 10m"), "{}", hold.message);
    assert!(hold.message.contains("and 9 more"), "{}", hold.message);
    world.retry = true;
    world.step();
    assert_eq!(reason(&world.step()), "AwaitingResources");
}
