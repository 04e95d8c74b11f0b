//! Resources that can't be given their image harm nobody else, and resources that another ServiceImage has are left to it.

use rstest::rstest;
use windlass_plan::fleet::{Amount, ItemId, Plan, Standing, Verdict};

use super::world::{V1, V2, V3, World, at, first, id, names, reason, serving, tier, want};

const WHY: &str = "metadata.annotations: Too long";

/// One round in which the writes to these are refused.
fn step(world: &mut World, refused: &[&str]) -> Plan {
    let plan = world.plan();
    world.keep(&plan);
    let is_done = |name: &windlass_plan::fleet::TierName| plan.record.tiers.get(name).is_some_and(|kept| kept.complete);
    for stamp in &plan.stamps {
        if refused.contains(&stamp.id.name()) {
            world.index.refuse(&stamp.id, &stamp.image, WHY.into(), world.now);
        } else {
            world.stamp(stamp);
        }
    }
    world.index.forgive(false, is_done, world.now);
    plan
}

fn three(halts: bool) -> World {
    let items = ["a", "b", "c"].map(|name| {
        let mut item = serving(name, if name == "c" { "late" } else { "" }, V1);
        item.failure_halts = halts;
        (name, item)
    });
    World::new(want(vec![tier("", V2, 1), tier("late", V2, 0)]), items)
}

#[test]
pub fn e4_one_that_can_not_be_written_halts_nobody_unless_it_says_so() {
    let mut world = three(false);
    step(&mut world, &["a"]);
    assert_eq!(world.standing("a"), Standing::Ignored);
    world.arrive(&id("b"));
    let plan = step(&mut world, &["a"]);
    assert_eq!(names(&plan), ["c"].into(), "the next tier goes on: {plan:?}");
    world.arrive(&id("c"));
    let plan = step(&mut world, &["a"]);
    assert_eq!((reason(&plan), plan.tiers[0].ignored), ("Done", 1));
    let named: Vec<(&ItemId, &str)> = plan.refused.iter().map(|one| (&one.id, one.why.as_str())).collect();
    assert_eq!(named, [(&id("a"), WHY)], "and is named");
}

#[test]
fn e4_one_that_halts_is_named_and_tried_again_after_a_rest() {
    let mut world = three(true);
    step(&mut world, &["a"]);
    world.arrive(&id("b"));
    let plan = step(&mut world, &["a"]);
    let Verdict::Halt(hold) = &plan.verdict else { panic!("{plan:?}") };
    assert_eq!((hold.reason.name(), hold.until), ("StampRefused", Some(at(15))));
    assert!(hold.message.contains("clinic/a can't be given its image: metadata.annotations: Too long"), "{hold}");
    let mut tried = Vec::new();
    for second in 1..=400 {
        world.wait(1);
        if !step(&mut world, &["a"]).stamps.is_empty() {
            tried.push(second);
        }
    }
    assert_eq!(tried, [16, 47, 108, 229], "seldom and more seldom");
    world.wait(300);
    step(&mut world, &[]);
    assert_eq!(names(&step(&mut world, &[])), ["a"].into());
    assert_eq!(world.standing("a"), Standing::Moving);
}

#[test]
fn other_wishes_are_tried_at_once() {
    let mut world = three(true);
    step(&mut world, &["a", "b"]);
    assert!(step(&mut world, &[]).stamps.is_empty());
    let mut other = world.want.clone();
    other.tiers[0].image = V3.into();
    world.wish(other);
    assert_eq!(names(&step(&mut world, &[])), ["a", "b"].into(), "another image was not refused yet");
    let mut world = three(true);
    step(&mut world, &["a"]);
    world.index.forgive(true, |_| false, world.now);
    assert_eq!(names(&step(&mut world, &[])), ["a"].into(), "a person asks again");
}

#[test]
fn one_that_is_never_answered_fails_like_a_refused_one_and_nothing_is_decided_about_it_until_it_is_settled() {
    let mut world = three(false);
    let plan = world.plan();
    world.keep(&plan);
    world.index.reserve(&id("a"));
    assert_eq!(world.standing("a"), Standing::Reserved, "it may still arrive");
    world.index.refuse(&id("a"), V2, WHY.into(), world.now);
    world.index.unsettle(&id("a"));
    assert_eq!((world.standing("a"), world.index.refusals().count()), (Standing::Ignored, 1));
    // Neither another wish, nor time, nor a person changes that.
    let mut other = world.want.clone();
    other.tiers[0].image = V3.into();
    world.wish(other);
    world.wait(400);
    world.index.forgive(true, |_| false, world.now);
    assert_eq!(world.standing("a"), Standing::Ignored);
    assert!(!names(&world.plan()).contains("a"));
    world.index.release(&id("a"));
    assert!(names(&world.plan()).contains("a"), "a touch has landed");
}

#[test]
fn a_new_one_that_can_not_be_written_is_tried_again_and_holds_nobody_up() {
    let mut world = three(true);
    let mut new = serving("n", "", V1);
    (new.image, new.deployed) = (None, false);
    world.add("n", new);
    step(&mut world, &["n"]);
    assert_eq!(world.standing("n"), Standing::Refused);
    world.arrive_all();
    for _ in 0..3 {
        let plan = step(&mut world, &["n"]);
        assert!(!names(&plan).contains("n"), "it rests: {plan:?}");
        world.arrive_all();
    }
    assert_eq!(reason(&step(&mut world, &["n"])), "Done");
    world.wait(15);
    step(&mut world, &["n"]);
    assert_eq!(names(&step(&mut world, &["n"])), ["n"].into());
}

#[test]
pub fn who_can_not_be_given_the_image_is_no_canary() {
    let names = ["a", "b", "c", "d", "e"];
    let items = names.map(|name| {
        let mut item = serving(name, "", V1);
        item.failure_halts = false;
        (name, item)
    });
    let mut world = World::new(want(vec![tier("", V2, 0)]), items);
    world.want.tiers[0].canary = vec![first(20, 60)];
    let plan = world.plan();
    let refused = plan.stamps[0].id.name().to_owned();
    step(&mut world, &[&refused]);
    let plan = step(&mut world, &[&refused]);
    assert_eq!(plan.stamps.len(), 1, "another one goes first instead: {:?}", plan.verdict);
    assert_ne!(plan.stamps[0].id.name(), refused);
    assert_eq!(reason(&step(&mut world, &[&refused])), "AwaitingResources");
}

#[rstest]
#[case::nobody_says(None, false)]
#[case::people_say_none(Some(Amount::Count(0)), true)]
#[case::people_say_one(Some(Amount::Count(1)), false)]
fn a_refusal_counts_among_failures_where_people_say_how_many(#[case] limit: Option<Amount>, #[case] halts: bool) {
    let mut world = three(false);
    for tier in &mut world.want.tiers {
        tier.max_failures = limit;
    }
    step(&mut world, &["a"]);
    world.arrive(&id("b"));
    let plan = step(&mut world, &["a"]);
    assert_eq!(matches!(plan.verdict, Verdict::Halt(_)), halts, "{:?}", plan.verdict);
}

#[test]
pub fn what_another_service_image_has_is_left_to_it() {
    let mut world = three(true);
    for name in ["a", "c"] {
        world.change(&id(name), |item| item.taken_by = Some("dicom".into()));
    }
    assert_eq!(names(&world.step()), ["b"].into());
    world.arrive(&id("b"));
    let plan = world.step();
    let Verdict::Halt(hold) = &plan.verdict else { panic!("{plan:?}") };
    assert_eq!(hold.reason.name(), "ResourcesTaken");
    assert!(hold.message.contains("clinic/a and one more belong to ServiceImage dicom"), "{hold}");
    assert_eq!(plan.tiers.iter().map(|tier| (tier.total, tier.taken)).collect::<Vec<_>>(), [(1, 1), (0, 1)]);
    for name in ["a", "c"] {
        world.change(&id(name), |item| item.taken_by = None);
    }
    assert_eq!(names(&world.step()), ["a"].into(), "it goes on when they are its own");
}
