//! A replaced member must have been well for a while before the next one goes, and before it leads.

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{Decision, Fact, Pod, Reason, Step, View, Want, rolling};

use crate::support::{
    Answer, NEW, OLD, answer, half_way, member_mut, name, noon, pod_mut, record_mut, target, theirs, unknown, want,
    world::World,
};

const SOAK: Duration = Duration::from_mins(10);
const TICK: Duration = Duration::from_nanos(1);

/// `pd-2` of three is replaced, and well since noon.
fn scene() -> (Want, View) {
    let mut view = half_way(3, 0, 1);
    view.evictions = theirs(3, 3);
    record_mut(&mut view).healthy_since = [(name(2), noon())].into();
    (Want { soak: SOAK, ..want(NEW) }, view)
}

#[test]
fn the_next_one_goes_when_the_soak_is_over_and_not_a_tick_earlier() {
    let (want, view) = scene();
    let early = rolling::plan(&want, &view, noon() + Duration::from_secs(1)).decision;
    let Decision::Wait { on, recheck } = early else { panic!("{early:?}") };
    assert_eq!((on.reason, on.until, recheck), (Reason::Soaking, Some(noon() + SOAK), Duration::from_secs(599)));
    assert!(on.message.contains("pd-2") && on.message.contains("1970-01-01T12:10:00Z"), "{}", on.message);
    assert_eq!(answer(&rolling::plan(&want, &view, noon() + SOAK - TICK).decision), Answer::Wait(Reason::Soaking));
    assert_eq!(answer(&rolling::plan(&want, &view, noon() + SOAK).decision), Answer::Act("ReplacementAllowed"));
}

#[test]
fn leadership_waits_as_well() {
    let (want, mut view) = scene();
    view.quorum.leader = Fact::Known(name(1));
    assert_eq!(answer(&rolling::plan(&want, &view, noon() + SOAK - TICK).decision), Answer::Wait(Reason::Soaking));
    let over = rolling::plan(&want, &view, noon() + SOAK).decision;
    assert_eq!(over, Decision::Act(Step::HandOver { from: name(1), to: name(2) }));
}

type Flap = fn(&mut View);

#[rstest]
#[case::not_ready(|view: &mut View| pod_mut(view, 2).ready_since = None)]
#[case::unhealthy(|view: &mut View| member_mut(view, 2).healthy = Fact::Known(false))]
#[case::behind(|view: &mut View| member_mut(view, 2).position = Fact::Known(Some(0)))]
#[case::not_known(|view: &mut View| member_mut(view, 2).healthy = unknown())]
fn a_member_that_flaps_begins_anew(#[case] flap: Flap) {
    let (want, view) = scene();
    let mut flapped = view.clone();
    flap(&mut flapped);
    let seen = rolling::plan(&want, &flapped, noon() + Duration::from_mins(9)).record;
    assert_eq!(seen.as_ref().map(|record| record.healthy_since.len()), Some(0));
    let back = noon() + Duration::from_mins(9) + Duration::from_secs(1);
    let well = View { record: seen, ..view };
    let again = rolling::plan(&want, &well, back);
    let Decision::Wait { on, .. } = again.decision else { panic!("{:?}", again.decision) };
    assert_eq!(on.until, Some(back + SOAK));
}

#[test]
fn a_flap_between_two_looks_begins_anew() {
    let (want, mut view) = scene();
    let back = noon() + Duration::from_mins(5);
    pod_mut(&mut view, 2).ready_since = Some(back);
    let look = noon() + SOAK;
    let plan = rolling::plan(&want, &view, look);
    assert_eq!(plan.record.unwrap().healthy_since.get(&name(2)), Some(&look));
    assert_eq!(answer(&plan.decision), Answer::Wait(Reason::Soaking));
}

#[test]
fn a_whole_way_takes_a_soak_for_each_but_the_last() {
    let mut quick = World::new(3, 0);
    assert_eq!(quick.run(), Decision::Done);
    let mut slow = World::new(3, 0);
    slow.want.soak = SOAK;
    let begun = slow.now;
    assert_eq!(slow.run(), Decision::Done);
    assert_eq!(slow.permits(), quick.permits());
    assert_eq!(slow.count("HandOver"), quick.count("HandOver"));
    let took = slow.now.duration_since(begun).unsigned_abs();
    assert!(took > 2 * SOAK && took < 3 * SOAK, "{took:?}");
    assert!(slow.count("EvictionsReleased") >= 3, "drains go on while it soaks");
}

#[test]
fn a_revert_does_not_wait_for_those_who_never_left() {
    let mut world = World::new(3, 0);
    world.want.soak = SOAK;
    world.run_until_replaced(1);
    world.want.target = target(OLD);
    let asked = world.now;
    let _ = world.run_until(|world| world.deleted.len() == 2);
    assert!(world.now.duration_since(asked).unsigned_abs() < SOAK, "the old ones have proven themselves");
    assert_eq!(world.run(), Decision::Done);
}

#[test]
fn how_long_a_member_took_is_measured_from_its_permit() {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.permits() == [2]);
    let begun = world.now;
    let _ = world.run_until(|world| world.view.record.as_ref().is_some_and(|record| !record.durations.is_empty()));
    let record = world.view.record.clone().unwrap();
    let measured = record.durations.get(&name(2)).copied().unwrap();
    assert!(measured <= world.now.duration_since(begun).unsigned_abs());
    assert!(measured > Duration::from_secs(3), "{measured:?}");
    assert!(record.healthy_since.contains_key(&name(2)));
    assert!(world.view.pods.iter().all(Pod::is_up));
}
