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
    Stamp { image: image.into(), at, round, elsewhere: false }
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

/// What a tenant makes of its resource: how it is and which image it has, every ten seconds.
type Claims = fn(u32, Timestamp) -> (Fact<Progress>, &'static str);

fn moving(since: Timestamp) -> Fact<Progress> {
    Fact::Known(Progress::Moving { since: Some(since) })
}

/// It removes UpToDate every nine minutes, and writes it back with the time of that.
pub fn nothing_now_and_then(number: u32, now: Timestamp) -> (Fact<Progress>, &'static str) {
    if number.is_multiple_of(54) { (Fact::Unknown("nothing".into()), V2) } else { (moving(now), V2) }
}

#[rstest]
#[case::a_time_in_the_future(|_, _| (moving(at(3_000_000)), V2))]
#[case::a_time_that_moves(|_, now| (moving(now), V2))]
#[case::nothing_now_and_then(nothing_now_and_then)]
#[case::nothing_and_a_time_in_turn(|number: u32, now| (if number.is_multiple_of(2) { Fact::Unknown(String::new()) } else { moving(now) }, V2))]
#[case::a_failure_that_is_taken_back(|number: u32, now| {
    (if number.is_multiple_of(54) { Fact::Known(Progress::Failed("so it says".into())) } else { moving(now) }, V2)
})]
#[case::no_time_now_and_then(|number: u32, now| {
    (if number.is_multiple_of(54) { Fact::Known(Progress::Moving { since: None }) } else { moving(now) }, V2)
})]
#[case::another_image_for_a_moment(|number: u32, now| (moving(now), if number.is_multiple_of(54) { V1 } else { V2 }))]
#[case::another_image_that_it_is_up_to_date_with(|number: u32, now| {
    if number.is_multiple_of(54) { (Fact::Known(Progress::Ready), V1) } else { (moving(now), V2) }
})]
pub fn nobody_gets_more_time_by_writing_times(#[case] claims: Claims) {
    let mut world = two();
    world.step();
    world.arrive(&id("b"));
    for number in 0..140 {
        world.wait(10);
        let (claimed, (progress, image)) = (world.now, claims(number, world.now));
        world.change(&id("a"), |item| {
            (item.progress, item.image) = (progress, Some(image.to_owned()));
            item.stamp = Some(forged(V2, claimed, 1));
        });
    }
    assert_eq!((world.standing("a"), reason(&world.step())), (Standing::Failed, "ResourceFailed"));
}

#[test]
fn what_it_tells_is_believed_once() {
    let mut world = two();
    world.step();
    world.arrive_all();
    world.step();
    // A new one that says nothing at first: it gets its time from when it says that it is on its way.
    world.wait(7_200);
    let mut late = serving("late", "", V2);
    late.progress = Fact::Unknown("nothing".into());
    world.add("late", late);
    let now = world.now;
    world.change(&id("late"), |item| item.progress = moving(now));
    world.wait(599);
    assert_eq!(world.standing("late"), Standing::Moving);
    world.wait(1);
    assert_eq!(world.standing("late"), Standing::Failed);
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
