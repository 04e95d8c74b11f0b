//! Shares of a tier that go first, and soak (E12).

use windlass_plan::{
    Fact, Hold, Reason,
    fleet::{Progress, TierName, Verdict},
    gate::{ExternalGate, Outcome},
};

use super::world::{V1, V2, World, first, reason, serving, tier, want};

const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

fn ten() -> World {
    let mut wanted = want(vec![tier("", V2, 0)]);
    wanted.tiers[0].canary = vec![first(1, 60), first(50, 300)];
    World::new(wanted, NAMES.map(|name| (name, serving(name, "", V1))))
}

#[test]
fn e12_one_then_half_then_all_each_after_its_soak() {
    let mut world = ten();
    assert_eq!(world.step().stamps.len(), 1, "a hundredth of ten is one");
    assert_eq!(reason(&world.step()), "AwaitingResources");
    world.arrive_all();
    assert_eq!(reason(&world.step()), "Soaking");
    world.wait(59);
    assert_eq!(reason(&world.step()), "Soaking");
    world.wait(1);
    assert_eq!(world.step().stamps.len(), 4, "half of ten, with the first");
    world.arrive_all();
    assert_eq!(reason(&world.step()), "Soaking");
    world.wait(300);
    assert_eq!(world.step().stamps.len(), 5);
    world.arrive_all();
    assert_eq!(world.step().verdict, Verdict::Done);
}

#[test]
fn the_same_ones_go_first_after_a_restart() {
    let mut world = ten();
    let before = world.plan().stamps[0].id.clone();
    world.look_again();
    assert_eq!(world.plan().stamps[0].id, before);
}

#[test]
fn a_soak_begins_anew_when_one_of_them_is_not_well() {
    let mut world = ten();
    let gone = world.step().stamps[0].id.clone();
    world.arrive_all();
    world.step();
    world.wait(40);
    world.change(&gone, |item| item.progress = Fact::Known(Progress::Moving { since: None }));
    assert_eq!(reason(&world.step()), "AwaitingResources");
    world.arrive(&gone);
    world.step();
    world.wait(40);
    assert_eq!(reason(&world.step()), "Soaking");
    world.wait(20);
    assert_eq!(world.step().stamps.len(), 4);
}

#[test]
fn a_first_one_that_fails_is_what_it_was_for() {
    let mut world = ten();
    let gone = world.step().stamps[0].id.clone();
    world.change(&gone, |item| {
        item.failure_halts = false;
        item.progress = Fact::Known(Progress::Failed("crashed".into()));
    });
    assert_eq!(reason(&world.step()), "TooManyFailures");
}

/// What an older release called otherwise is gone from the status; that it is this tier's turn is not.
#[test]
pub fn a_tier_that_an_older_release_began_is_asked_about_all_the_same() {
    let mut world = World::new(want(vec![tier("", V2, 0)]), [("a", serving("a", "", V1))]);
    world.step();
    let bad = Outcome::Hold(Hold::new(Reason::AnalysisFailed, "errors: 7, and at most 1 may be"));
    world.tier_gates.insert(TierName::default(), vec![ExternalGate::new("Analysis/errors", bad)]);
    world.arrive_all();
    for kept in world.record.tiers.values_mut() {
        kept.started_at = None;
    }
    assert_eq!(reason(&world.step()), "AnalysisFailed");
}

#[test]
pub fn an_analysis_is_asked_before_more_go_and_before_the_tier_is_done() {
    let mut world = World::new(want(vec![tier("", V2, 0)]), [("a", serving("a", "", V1))]);
    let bad = Outcome::Hold(Hold::new(Reason::AnalysisFailed, "errors: 7, and at most 1 may be"));
    let said = |outcome| vec![ExternalGate::new("Analysis/errors", outcome)];
    world.step();
    world.tier_gates.insert(TierName::default(), said(bad.clone()));
    world.arrive_all();
    assert_eq!(reason(&world.step()), "AnalysisFailed", "everybody is up to date, and it is not good");
    world.tier_gates.insert(TierName::default(), said(Outcome::Pass));
    assert_eq!(world.step().verdict, Verdict::Done);
    world.tier_gates.insert(TierName::default(), said(bad));
    assert_eq!(world.step().verdict, Verdict::Done, "done is done");
}
