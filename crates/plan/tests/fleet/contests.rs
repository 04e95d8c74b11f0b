//! A field that somebody else keeps setting back (E13).

use windlass_plan::fleet::{Standing, Verdict};

use super::world::{V1, V2, World, id, serving, tier, want};

fn set_back(world: &mut World) {
    world.change(&id("a"), |item| {
        item.image = Some(V1.into());
        item.set_by = Some("argocd-controller".into());
    });
}

fn world() -> World {
    World::new(want(vec![tier("", V2, 0)]), [("a", serving("a", "", V1))])
}

#[test]
fn e13_after_a_few_rounds_it_is_reported_and_not_fought_over() {
    let mut world = world();
    for round in 1..=3 {
        let plan = world.step();
        assert_eq!(plan.stamps.iter().map(|stamp| stamp.round).collect::<Vec<_>>(), [round]);
        world.wait(30);
        set_back(&mut world);
    }
    assert_eq!(world.standing("a"), Standing::Contested);
    let plan = world.step();
    let Verdict::Halt(hold) = &plan.verdict else { panic!("{plan:?}") };
    assert_eq!((hold.reason.name(), plan.stamps.len()), ("FieldContested", 0));
    assert!(hold.message.contains("argocd-controller set it back"), "{}", hold.message);
    world.look_again();
    assert_eq!(
        world.step().stamps.iter().map(|stamp| stamp.round).collect::<Vec<_>>(),
        [3],
        "a restart costs one more"
    );
    set_back(&mut world);
    assert_eq!(world.standing("a"), Standing::Contested);
    world.wait(1);
    world.retry = true;
    world.step();
    assert_eq!(world.step().stamps.iter().map(|stamp| stamp.round).collect::<Vec<_>>(), [1], "a person says again");
}

#[test]
fn e13_removing_it_again_and_again_is_setting_it_back() {
    let mut world = world();
    for round in 1..=3 {
        assert_eq!(world.step().stamps.iter().map(|stamp| stamp.round).collect::<Vec<_>>(), [round]);
        world.wait(30);
        world.change(&id("a"), |item| item.image = None);
    }
    let plan = world.step();
    let Verdict::Halt(hold) = &plan.verdict else { panic!("{plan:?}") };
    assert_eq!((hold.reason.name(), plan.stamps.len()), ("FieldContested", 0));
    assert!(hold.message.contains("somebody else removed it"), "{}", hold.message);
}

#[test]
fn e13_also_of_one_that_never_served() {
    let mut new = serving("a", "", V1);
    (new.image, new.deployed) = (None, false);
    let mut world = World::new(want(vec![tier("", V2, 0)]), [("a", new), ("b", serving("b", "", V1))]);
    world.want.paused = true;
    for _ in 0..3 {
        assert_eq!(world.step().stamps.len(), 1, "the old image, whatever else is held");
        world.wait(30);
        world.change(&id("a"), |item| item.image = None);
    }
    assert_eq!((world.standing("a"), world.step().stamps.len()), (Standing::Contested, 0));
}

#[test]
fn once_in_a_while_is_no_fight() {
    let mut world = world();
    for _ in 0..6 {
        assert_eq!(world.step().stamps.len(), 1);
        world.wait(2 * 3600);
        set_back(&mut world);
    }
    assert_eq!(world.standing("a"), Standing::Outdated);
}
