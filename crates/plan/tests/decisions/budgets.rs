//! PodDisruptionBudgets of somebody else's, and drains that count on them (H12).

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason, Step, View,
    rolling::known::workload::{Budget, Counts, Evictions},
};

use crate::support::{
    Answer, NEW, answer, decide, half_way, half_way_on_delete, hold, image, member_mut, name, permitted, pod_mut, rest,
    rest_on_delete, theirs, want, world::World,
};
use Answer::{Act, Halt, Wait};

fn budget(selects_all: bool, counts: Option<(u32, u32, u32)>) -> Budget {
    let counts = counts.map(|(expected, desired, allowed)| Counts { expected, desired, allowed });
    Budget { name: "pd-pdb".into(), selects_all, counts }
}

fn one(selects_all: bool, counts: Option<(u32, u32, u32)>) -> Evictions {
    Evictions::Theirs(vec![budget(selects_all, counts)])
}

fn two(selects_all: bool) -> Evictions {
    let another = Budget { name: "other".into(), ..budget(selects_all, Some((3, 2, 1))) };
    Evictions::Theirs(vec![budget(selects_all, Some((3, 2, 1))), another])
}

/// Three members, of which the top one is done.
#[rstest]
#[case::it_spares_one(theirs(3, 2), Act("MemberReplaced"), Halt(Reason::DisruptionBudgetTooLoose), "LeaderLast")]
#[case::it_lets_nobody_go(
    theirs(3, 3),
    Halt(Reason::DisruptionBudgetTooTight),
    Act("ReplacementAllowed"),
    "lets none of 3 pods go"
)]
#[case::it_spares_two(
    theirs(3, 1),
    Halt(Reason::DisruptionBudgetTooLoose),
    Halt(Reason::DisruptionBudgetTooLoose),
    "2 are a majority"
)]
#[case::it_is_used_up(one(true, Some((3, 2, 0))), Wait(Reason::AwaitingBudget), Halt(Reason::DisruptionBudgetTooLoose), "pd-pdb")]
#[case::it_covers_others(one(true, Some((6, 5, 1))), Halt(Reason::DisruptionBudgetTooLoose), Halt(Reason::DisruptionBudgetTooLoose), "counts 6 pods")]
#[case::it_covers_some(one(false, Some((3, 2, 1))), Halt(Reason::DisruptionBudgetTooLoose), Halt(Reason::DisruptionBudgetTooLoose), "not all")]
#[case::it_was_not_counted(one(true, None), Wait(Reason::AwaitingBudget), Wait(Reason::AwaitingBudget), "newest spec")]
#[case::it_was_counted_before(one(true, Some((2, 2, 0))), Wait(Reason::AwaitingBudget), Wait(Reason::AwaitingBudget), "2 of 3")]
#[case::there_are_two(two(true), Halt(Reason::DisruptionBudgetTooTight), Act("ReplacementAllowed"), "other")]
#[case::there_are_two_halves(
    two(false),
    Halt(Reason::DisruptionBudgetTooLoose),
    Halt(Reason::DisruptionBudgetTooLoose),
    "other"
)]
fn a_budget_of_somebody_else_counts_only_when(
    #[case] evictions: Evictions,
    #[case] evicted: Answer,
    #[case] permitted: Answer,
    #[case] words: &str,
) {
    let views = [half_way_on_delete(3, 0, 1), half_way(3, 0, 1)];
    let mut said = Vec::new();
    for (view, expected) in views.into_iter().zip([evicted, permitted]) {
        let told = decide(&want(NEW), &View { evictions: evictions.clone(), ..view });
        assert_eq!(answer(&told), expected, "{told:?}");
        if !matches!(told, Decision::Act(_)) {
            said.push(hold(&told).message.clone());
        }
    }
    assert!(said.iter().any(|message| message.contains(words)), "{said:?}");
}

/// Before anything is written, where a person must change the budget.
#[rstest]
#[case::loose(theirs(3, 1), Halt(Reason::DisruptionBudgetTooLoose), Halt(Reason::DisruptionBudgetTooLoose))]
#[case::sparing(theirs(3, 2), Act("TemplateWritten"), Halt(Reason::DisruptionBudgetTooLoose))]
#[case::tight(theirs(3, 3), Halt(Reason::DisruptionBudgetTooTight), Act("TemplateWritten"))]
#[case::not_counted_yet(one(true, None), Act("TemplateWritten"), Act("TemplateWritten"))]
fn it_is_told_before_an_upgrade_begins(
    #[case] evictions: Evictions,
    #[case] leader_last: Answer,
    #[case] reverse_ordinal: Answer,
) {
    for (view, expected) in [(rest_on_delete(3, 0), leader_last), (rest(3, 0), reverse_ordinal)] {
        let told = decide(&want(NEW), &View { evictions: evictions.clone(), ..view });
        assert_eq!(answer(&told), expected, "{told:?}");
    }
}

/// The budget leaves a majority even when the controller's delete is not counted.
#[rstest]
#[case::spare(4, Act("ReplacementAllowed"))]
#[case::tight(5, Act("ReplacementAllowed"))]
#[case::none_to_spare(3, Halt(Reason::DisruptionBudgetTooLoose))]
fn a_permit_needs_one_more_than_a_majority(#[case] keeps: u32, #[case] expected: Answer) {
    let view = View { evictions: theirs(5, keeps), ..half_way(5, 0, 1) };
    assert_eq!(answer(&decide(&want(NEW), &view)), expected);
}

#[test]
fn a_permit_is_taken_back_when_the_budget_is_loosened() {
    let view = View { evictions: theirs(3, 2), ..permitted(3, 0, 1) };
    assert_eq!(answer(&decide(&want(NEW), &view)), Act("ReplacementWithdrawn"));
}

#[test]
fn the_pod_is_named_with_its_budget() {
    let view = View { evictions: theirs(5, 4), ..half_way_on_delete(5, 0, 1) };
    let through = Some("pd-pdb".to_owned());
    let step = Step::Replace { pod: name(3), uid: "3-of-8.5.0".into(), image: image(NEW), through };
    assert_eq!(
        step.to_string(),
        "evict pod pd-3 (3-of-8.5.0) within PodDisruptionBudget pd-pdb so that it comes back from image pd:v8.5.1"
    );
    assert_eq!(decide(&want(NEW), &view), Decision::Act(step));
}

/// H44: an eviction of a broken pod could be refused, and the budget does not count it anyway.
#[rstest]
#[case::it_is_used_up(one(true, Some((5, 4, 0))), Act("BrokenPodDeleted"))]
#[case::it_lets_nobody_go(theirs(5, 5), Act("BrokenPodDeleted"))]
#[case::it_is_loose(theirs(5, 2), Halt(Reason::DisruptionBudgetTooLoose))]
fn a_broken_pod_is_deleted_whatever_the_budget_allows(#[case] evictions: Evictions, #[case] expected: Answer) {
    let mut view = View { evictions, ..half_way_on_delete(5, 0, 0) };
    pod_mut(&mut view, 1).ready_since = None;
    member_mut(&mut view, 1).healthy = Fact::Known(false);
    let told = decide(&want(NEW), &view);
    assert_eq!(answer(&told), expected, "{told:?}");
}

#[test]
fn a_set_is_upgraded_within_a_budget_of_somebody_else() {
    let mut world = World::on_delete(3, 0);
    world.view.evictions = theirs(3, 2);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(world.count("EvictionsHeld") + world.count("EvictionsReleased"), 0);
    assert_eq!(world.view.evictions, theirs(3, 2));
}
