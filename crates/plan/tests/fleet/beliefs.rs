//! What whoever owns a resource may write on it decides nothing for others: our annotation, times in the future, times that move.

use jiff::Timestamp;
use rstest::rstest;
use windlass_plan::{
    Fact,
    fleet::{Progress, Stamp, Standing, Verdict},
};

use super::world::{V1, V2, World, at, id, names, reason, serving, tier, want};

fn two() -> World {
    World::new(want(vec![tier("", V2, 0)]), [("a", serving("a", "", V1)), ("b", serving("b", "", V1))])
}

fn forged(image: &str, at: Timestamp, round: u32) -> Stamp {
    Stamp { image: image.into(), at, round }
}

#[rstest]
#[case::while_it_is_watched(false)]
#[case::before_a_restart(true)]
pub fn a_forged_fight_halts_nobody(#[case] restart: bool) {
    let mut world = two();
    world.change(&id("a"), |item| item.stamp = Some(forged(V2, at(3_000_000), 9)));
    if restart {
        world.look_again();
    }
    assert_eq!(names(&world.step()), ["a", "b"].into());
    world.arrive_all();
    assert_eq!(world.step().verdict, Verdict::Done);
}

#[test]
fn what_is_removed_with_the_image_is_remembered() {
    let mut world = two();
    for _ in 0..3 {
        assert!(names(&world.step()).contains("a"));
        world.wait(30);
        world.change(&id("a"), |item| (item.image, item.stamp) = (None, None));
    }
    assert_eq!((world.standing("a"), reason(&world.step())), (Standing::Contested, "FieldContested"));
}

#[rstest]
#[case::a_time_in_the_future(|_| at(3_000_000))]
#[case::a_time_that_moves(|now| now)]
pub fn nobody_gets_more_time_by_writing_times(#[case] claims: fn(Timestamp) -> Timestamp) {
    let mut world = two();
    world.step();
    world.arrive(&id("b"));
    for _ in 0..70 {
        world.wait(10);
        let claimed = claims(world.now);
        world.change(&id("a"), |item| {
            item.progress = Fact::Known(Progress::Moving { since: Some(claimed) });
            item.stamp = Some(forged(V2, claimed, 1));
        });
    }
    assert_eq!((world.standing("a"), reason(&world.step())), (Standing::Failed, "ResourceFailed"));
}

#[test]
fn who_was_well_and_is_not_any_more_gets_its_time_from_then_on() {
    let mut world = two();
    world.step();
    world.arrive_all();
    world.step();
    world.wait(7_200);
    world.change(&id("a"), |item| item.progress = Fact::Known(Progress::Moving { since: None }));
    assert_eq!(world.standing("a"), Standing::Moving);
    world.wait(599);
    assert_eq!(world.standing("a"), Standing::Moving);
    world.wait(1);
    assert_eq!(world.standing("a"), Standing::Failed);
}

#[test]
fn a_time_in_the_future_does_not_outlive_a_retry() {
    let mut world = two();
    for _ in 0..3 {
        world.step();
        world.wait(30);
        world.change(&id("a"), |item| {
            item.image = Some(V1.into());
            item.stamp = Some(forged(V2, at(3_000_000), 9));
        });
    }
    assert_eq!(world.standing("a"), Standing::Contested);
    world.retry = true;
    world.step();
    assert_eq!(world.standing("a"), Standing::Outdated);
}
