//! Tiers: who belongs where, who goes first, when one is done (E2–E5, E7, H38).

use std::collections::BTreeSet;

use windlass_plan::{
    Fact,
    fleet::{Progress, Standing, TierName, Verdict},
};

use super::world::{V1, V2, V3, World, at, id, names, reason, serving, tier, want};

/// The source document's example: everybody on v1, earlyAccess on v2.
fn document() -> World {
    let tiers = vec![tier("", V2, 0), tier("earlyAccess", V3, 1)];
    World::new(
        want(tiers),
        [
            ("a", serving("a", "", V1)),
            ("b", serving("b", "unheard-of", V1)),
            ("e", serving("e", "earlyAccess", V2)),
            ("f", serving("f", "earlyAccess", V2)),
        ],
    )
}

fn new_image(world: &World, name: &str) -> String {
    world.record.tiers[&TierName(name.to_owned())].new_image.clone()
}

#[test]
fn e3_the_higher_priority_goes_first_and_the_next_one_waits_for_it() {
    let mut world = document();
    let plan = world.step();
    assert_eq!(names(&plan), BTreeSet::from(["e", "f"]));
    assert_eq!(plan.record.current.map(|(priority, _)| priority), Some(1));
    assert!(plan.tiers[0].in_progress && !plan.tiers[1].in_progress, "{:?}", plan.tiers);
    // As the document shows it: the old images for new ones, both tiers unfinished.
    assert_eq!((new_image(&world, ""), new_image(&world, "earlyAccess")), (V1.to_owned(), V2.to_owned()));

    world.arrive(&id("e"));
    let plan = world.step();
    assert_eq!((names(&plan), reason(&plan)), (BTreeSet::new(), "AwaitingResources"));
    world.arrive(&id("f"));
    let plan = world.step();
    assert_eq!(names(&plan), BTreeSet::from(["a", "b"]), "the empty tier takes what no other names");
    assert_eq!(new_image(&world, "earlyAccess"), V3);
    world.arrive_all();
    assert_eq!(world.step().verdict, Verdict::Done);
    assert_eq!((new_image(&world, ""), new_image(&world, "earlyAccess")), (V2.to_owned(), V3.to_owned()));
    assert_eq!(world.record.current, None);
}

#[test]
fn e2_without_an_empty_tier_nobody_else_is_touched() {
    let mut world = World::new(
        want(vec![tier("a", V2, 0)]),
        [("a", serving("a", "a", V1)), ("b", serving("b", "", V1)), ("c", serving("c", "c", V1))],
    );
    assert_eq!(names(&world.step()), BTreeSet::from(["a"]));
    assert_eq!(world.index.untaken(), 2);
    world.arrive_all();
    assert_eq!(world.step().verdict, Verdict::Done);
}

#[test]
fn h38_health_alone_is_not_enough_and_neither_is_the_image() {
    let mut world = document();
    world.step();
    world.change(&id("e"), |item| item.image = Some(V2.to_owned()));
    world.arrive_all();
    assert_eq!(names(&world.step()), BTreeSet::from(["e"]), "it is well, with another image");
    let plan = world.step();
    assert_eq!(reason(&plan), "AwaitingResources", "it has the image, and is not well");
}

#[test]
fn e4_a_manual_image_is_left_alone_and_holds_nobody_up() {
    let mut world = document();
    world.change(&id("e"), |item| item.manual = Fact::Known(true));
    assert_eq!(names(&world.step()), BTreeSet::from(["f"]));
    world.arrive(&id("f"));
    assert_eq!(names(&world.step()), BTreeSet::from(["a", "b"]));
    assert_eq!(world.images()["e"], V2);
}

#[test]
fn e4_what_can_not_be_told_is_not_touched_and_holds_its_tier() {
    let mut world = document();
    world.change(&id("e"), |item| item.manual = Fact::Unknown("no such key".into()));
    assert_eq!(names(&world.step()), BTreeSet::from(["f"]));
    world.arrive(&id("f"));
    assert_eq!(reason(&world.step()), "ResourceUnknown");
}

fn mute(world: &mut World, names: &[&str]) {
    for name in names {
        world.change(&id(name), |item| item.progress = Fact::Unknown("its status has no condition UpToDate".into()));
    }
}

#[test]
pub fn e4_where_nobody_says_how_it_is_nobody_is_changed_and_nothing_is_done() {
    let mut world = document();
    mute(&mut world, &["a", "b", "e", "f"]);
    let plan = world.step();
    assert_eq!((names(&plan), reason(&plan)), (BTreeSet::new(), "ContractNotSeen"));
    let Verdict::Wait(hold) = &plan.verdict else { panic!("{plan:?}") };
    let words = "tier earlyAccess: none of its 2 resources says how it is, such as clinic/";
    assert!(hold.message.starts_with(words) && hold.message.contains("condition UpToDate"), "{}", hold.message);
    world.arrive(&id("e"));
    assert_eq!(names(&world.step()), BTreeSet::from(["e", "f"]), "one of them speaks, so they can");
}

#[test]
fn e4_also_where_all_have_their_image_already() {
    let mut world = World::new(want(vec![tier("", V2, 0)]), [("a", serving("a", "", V2))]);
    mute(&mut world, &["a"]);
    assert_eq!(reason(&world.step()), "ContractNotSeen");
    world.arrive(&id("a"));
    assert_eq!(world.step().verdict, Verdict::Done);
}

#[test]
pub fn e4_who_says_nothing_is_no_failure_that_could_be_passed_by() {
    let mut world = document();
    world.want.tiers[1].max_in_flight = Some(super::world::at_most(1));
    world.change(&id("e"), |item| item.failure_halts = false);
    world.change(&id("f"), |item| item.failure_halts = false);
    let first = world.step().stamps[0].id.clone();
    mute(&mut world, &[first.name()]);
    world.wait(600);
    assert_eq!(world.standing(first.name()), Standing::Silent);
    let plan = world.step();
    assert_eq!((names(&plan), reason(&plan)), (BTreeSet::new(), "ResourceUnknown"), "nobody else of its tier or below");
    let Verdict::Wait(hold) = &plan.verdict else { panic!("{plan:?}") };
    assert!(hold.message.contains("its status has no condition UpToDate"), "{}", hold.message);
    world.arrive(&first);
    assert_eq!(world.step().stamps.len(), 1);
}

#[test]
fn e4_h38_a_new_one_that_says_nothing_at_all_is_waited_for() {
    let mut world = World::new(want(vec![tier("", V2, 0)]), [("a", serving("a", "", V2))]);
    let mut new = serving("n", "", V2);
    (new.image, new.deployed) = (None, false);
    world.add("n", new);
    mute(&mut world, &["n"]);
    assert_eq!(world.step().verdict, Verdict::Done, "it has nothing yet");
    assert_eq!((world.images()["n"].as_str(), world.standing("n")), (V2, Standing::Starting));
    mute(&mut world, &["n"]);
    assert_eq!(world.standing("n"), Standing::Moving, "it may have served");
}

#[test]
pub fn e4_a_failure_halts_only_where_it_says_so() {
    let mut world = document();
    world.change(&id("e"), |item| item.failure_halts = false);
    world.step();
    let fails = |world: &mut World, name| {
        world.change(&id(name), |item| item.progress = Fact::Known(Progress::Failed("no room".into())));
    };
    fails(&mut world, "e");
    world.arrive(&id("f"));
    world.want.tiers[1].max_failures = Some(super::world::at_most(0));
    assert_eq!(reason(&world.step()), "TooManyFailures", "somebody set the brake");
    world.want.tiers[1].max_failures = None;
    assert_eq!(names(&world.step()), BTreeSet::from(["a", "b"]), "a failure that is ignored");
    fails(&mut world, "a");
    let plan = world.step();
    let Verdict::Halt(hold) = &plan.verdict else { panic!("{plan:?}") };
    assert_eq!(hold.reason.name(), "ResourceFailed");
    assert!(hold.message.contains("clinic/a failed: no room"), "{}", hold.message);
    world.arrive(&id("a"));
    world.arrive(&id("b"));
    assert_eq!(world.step().verdict, Verdict::Done, "repaired");
}

#[test]
fn a_failure_above_stops_what_is_below() {
    let mut world = document();
    world.step();
    world.arrive_all();
    world.want.tiers[0].max_in_flight = Some(super::world::at_most(1));
    assert_eq!(world.step().stamps.len(), 1);
    world.change(&id("e"), |item| item.progress = Fact::Known(Progress::Failed("fell over".into())));
    world.arrive(&id("a"));
    world.arrive(&id("b"));
    let plan = world.step();
    assert_eq!((names(&plan), reason(&plan)), (BTreeSet::new(), "ResourceFailed"));
}

#[test]
fn e5_a_new_one_gets_the_old_image_until_its_tier_is_done() {
    let mut world = document();
    let blank = |tier: &str| {
        let mut item = serving("n", tier, V1);
        (item.image, item.deployed) = (None, false);
        item.progress = Fact::Known(Progress::Moving { since: None });
        item
    };
    world.step();
    world.add("n", blank("earlyAccess"));
    world.step();
    assert_eq!(world.images()["n"], V2, "the old one");
    assert_eq!(world.standing("n"), Standing::Fresh);
    world.arrive(&id("e"));
    world.arrive(&id("f"));
    let plan = world.step();
    assert_eq!(names(&plan), BTreeSet::from(["n"]), "its image is proven, and it follows");
    assert_eq!((world.images()["n"].as_str(), world.standing("n")), (V3, Standing::Starting));
    assert_eq!(names(&world.step()), BTreeSet::from(["a", "b"]), "who never served holds nobody up (H38)");
    assert!(world.record.tiers[&TierName("earlyAccess".into())].complete);
    world.add("m", blank("earlyAccess"));
    assert!(names(&world.step()).contains("m"));
    assert_eq!(world.images()["m"], V3, "the new one");
}

#[test]
fn e5_paused_or_halted_a_new_one_still_gets_its_image() {
    let mut world = document();
    world.want.paused = true;
    let mut item = serving("n", "", V1);
    (item.image, item.deployed) = (None, false);
    world.add("n", item);
    let plan = world.step();
    assert_eq!(names(&plan), BTreeSet::from(["n"]));
    assert_eq!(reason(&world.step()), "Paused");
}

#[test]
pub fn e7_a_late_one_on_the_old_image_takes_its_tier_back_also_before_it_served() {
    let mut world = document();
    for _ in 0..3 {
        world.step();
        world.arrive_all();
    }
    assert_eq!(world.step().verdict, Verdict::Done);
    let mut late = serving("late", "earlyAccess", V2);
    (late.deployed, late.progress) = (false, Fact::Known(Progress::Moving { since: None }));
    world.add("late", late);
    let plan = world.step();
    assert_eq!((names(&plan), &plan.verdict), (BTreeSet::from(["late"]), &Verdict::Going));
    assert!(plan.tiers[0].in_progress && !plan.record.tiers[&TierName("earlyAccess".into())].complete);
    assert_eq!(world.images()["late"], V3);
    assert_eq!(world.step().verdict, Verdict::Done, "and it holds nobody up while it starts (H38)");
}

#[test]
pub fn e3_e5_a_tier_below_an_unfinished_one_gives_new_ones_the_old_image() {
    let tiers = vec![tier("", V2, 0), tier("early", V2, 1)];
    let mut world = World::new(want(tiers), [("e", serving("e", "early", V1))]);
    let mut new = serving("n", "", V1);
    (new.image, new.deployed) = (None, false);
    world.add("n", new);
    let plan = world.step();
    assert_eq!(names(&plan), BTreeSet::from(["e", "n"]));
    assert_eq!(world.images()["n"], V1, "nobody of its tier has served, and the tier above is not done");
    assert!(!plan.record.tiers[&TierName::default()].complete);
    world.arrive(&id("e"));
    world.step();
    assert_eq!(world.images()["n"], V2);
    assert_eq!(world.step().verdict, Verdict::Done);
}

#[test]
fn e5_without_any_old_image_a_new_one_waits_for_the_tiers_above() {
    let tiers = vec![tier("", V2, 0), tier("early", V2, 1)];
    let mut unclear = serving("e", "early", V1);
    (unclear.image, unclear.manual) = (None, Fact::Unknown("no such key".into()));
    let mut new = serving("n", "", V1);
    (new.image, new.deployed) = (None, false);
    let mut world = World::new(want(tiers), [("e", unclear), ("n", new)]);
    assert_eq!((names(&world.step()), new_image(&world, "")), (BTreeSet::new(), String::new()));
    world.change(&id("e"), |item| item.manual = Fact::Known(true));
    assert_eq!(names(&world.step()), BTreeSet::from(["n"]));
    assert_eq!(world.images()["n"], V2);
}

#[test]
pub fn e5_one_that_served_and_lost_its_image_is_not_new_and_goes_forward_only() {
    let mut world = document();
    world.step();
    world.arrive(&id("e"));
    world.change(&id("e"), |item| item.image = None);
    world.change(&id("a"), |item| item.image = None);
    assert_eq!((world.standing("e"), world.standing("a")), (Standing::Outdated, Standing::Outdated));
    let plan = world.step();
    assert_eq!(names(&plan), BTreeSet::from(["e"]), "the other one's turn comes later");
    assert_eq!(world.images()["e"], V3, "and not the old one, which new ones still get");
    world.arrive_all();
    assert_eq!(names(&world.step()), BTreeSet::from(["a", "b"]));
    assert_eq!(world.images()["a"], V2);
}

#[test]
fn e7_a_late_one_or_another_tier_takes_a_tier_back() {
    let mut world = document();
    for _ in 0..3 {
        world.step();
        world.arrive_all();
    }
    assert_eq!(world.step().verdict, Verdict::Done);
    world.add("late", serving("late", "earlyAccess", V1));
    let plan = world.step();
    assert_eq!(names(&plan), BTreeSet::from(["late"]));
    assert!(plan.tiers[0].in_progress);
    assert_eq!(new_image(&world, "earlyAccess"), V3, "new ones keep what was proven");
    world.arrive_all();
    assert_eq!(world.step().verdict, Verdict::Done);
    world.change(&id("a"), |item| item.tier = "earlyAccess".into());
    assert_eq!(names(&world.step()), BTreeSet::from(["a"]));
    assert_eq!(world.images()["a"], V3);
}

#[test]
fn a_moment_of_illness_does_not_take_a_done_tier_back() {
    let mut world = document();
    for _ in 0..3 {
        world.step();
        world.arrive_all();
    }
    let ill = Progress::Moving { since: Some(at(7200)) };
    world.wait(7200);
    world.change(&id("e"), |item| item.progress = Fact::Known(ill));
    assert_eq!(world.step().verdict, Verdict::Done);
}

#[test]
fn e11_another_image_half_way_drops_the_first() {
    let mut world = document();
    world.step();
    let mut other = world.want.clone();
    other.tiers[1].image = "r/dicom:v4".into();
    world.wish(other);
    assert_eq!(names(&world.step()), BTreeSet::from(["e", "f"]));
    assert_eq!(new_image(&world, "earlyAccess"), V2, "what was last proven");
    world.arrive_all();
    assert_eq!(names(&world.step()), BTreeSet::from(["a", "b"]));
}

#[test]
fn nobody_to_change_is_done_at_once() {
    let mut world = World::new(want(vec![tier("", V2, 0)]), []);
    assert_eq!(world.step().verdict, Verdict::Done);
    assert_eq!(new_image(&world, ""), V2);
}

#[test]
fn an_approval_is_asked_for_each_image_and_shown_before_it_counts() {
    let mut world = document();
    world.want.tiers[1].approval = true;
    world.approve = true;
    assert_eq!(reason(&world.step()), "AwaitingApproval", "nothing was shown yet");
    world.approve = true;
    assert_eq!(names(&world.step()), BTreeSet::from(["e", "f"]));
    let mut other = world.want.clone();
    other.tiers[1].image = "r/dicom:v4".into();
    world.wish(other);
    assert_eq!(reason(&world.step()), "AwaitingApproval");
}
