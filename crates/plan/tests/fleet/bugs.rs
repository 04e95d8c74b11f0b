//! Each seeded bug of the fleet's planner is caught by the walks.

use std::panic::catch_unwind;

use rstest::rstest;
use windlass_plan::bug::{Bug, plant};

use super::{beliefs, diagnoses, gates, limits, refusals, shares, tiers, walks::walk};

/// More walks than any of them needs.
const WALKS: u64 = 3_000;

#[rstest]
#[case::order(Bug::TierOrderIgnored, "before")]
#[case::health_alone(Bug::HealthAlone, "")]
#[case::stamped_is_done(Bug::StampedIsDone, "before")]
#[case::limits(Bug::InFlightUnlimited, "on their way")]
#[case::shares(Bug::CanarySkipped, "")]
#[case::manual(Bug::ManualStamped, "is manual")]
#[case::failures(Bug::FailureIgnored, "failed")]
#[case::new_ones(Bug::NewImageTooEarly, "new image too early")]
#[case::contests(Bug::ContestedFought, "fought over")]
#[case::lanes(Bug::LanesOfEachTier, "on their way in lane")]
#[case::tiers_below(Bug::TierBelowCompletes, "is done before")]
#[case::lost_images(Bug::LostImageIsNew, "backwards")]
#[case::late_ones(Bug::LateOneUnnoticed, "has another image")]
#[case::tenants(Bug::TenantsBelieved, "nobody wrote to it")]
#[case::silence(Bug::SilencePassedBy, "is well")]
#[case::times(Bug::TimesBelievedAgain, "is still waited for")]
#[case::mute_tiers(Bug::ContractNotAwaited, "nobody of its tier says")]
fn a_bug_in_the_fleet_is_caught(#[case] bug: Bug, #[case] words: &str) {
    let caught = (0..WALKS).find_map(|seed| {
        plant(Some(bug));
        let result = catch_unwind(|| walk(seed));
        plant(None);
        let said = result.err()?.downcast_ref::<String>().cloned().unwrap_or_default();
        said.contains(words).then_some((seed, said))
    });
    let (seed, said) = caught.unwrap_or_else(|| panic!("{bug:?} was not caught in {WALKS} walks"));
    println!("{bug:?} was caught by walk {seed}: {said}");
}

#[rstest]
#[case::reserved(Bug::ReservedNotCounted, limits::h2_what_is_reserved_counts_as_if_it_were_on_its_way)]
#[case::elsewhere(Bug::StampElsewhereForgotten, limits::h2_what_another_service_image_set_on_its_way_counts)]
#[case::astray(Bug::AstrayForEver, limits::who_is_astray_in_a_tier_below_is_not_waited_for_for_ever)]
#[case::begun(Bug::BegunForgotten, shares::a_tier_that_an_older_release_began_is_asked_about_all_the_same)]
#[case::analysis(Bug::TierAnalysisIgnored, shares::an_analysis_is_asked_before_more_go_and_before_the_tier_is_done)]
#[case::failures_that_do_not_halt(Bug::AnyFailureHalts, tiers::e4_a_failure_halts_only_where_it_says_so)]
#[case::two_owners(Bug::TwoOwnersDuel, refusals::what_another_service_image_has_is_left_to_it)]
#[case::refused_share(Bug::RefusedCountsAsShare, refusals::who_can_not_be_given_the_image_is_no_canary)]
#[case::times(Bug::TimesBelievedAgain, || beliefs::nobody_gets_more_time_by_writing_times(beliefs::nothing_now_and_then))]
#[case::hooks_before(Bug::HooksNotAwaited, gates::hooks_before_are_asked_once_for_a_set_of_images)]
#[case::hooks_after(Bug::HooksNotAwaited, gates::hooks_after_have_the_last_word)]
fn a_bug_that_walks_do_not_show_is_caught(#[case] bug: Bug, #[case] test: fn()) {
    test();
    plant(Some(bug));
    let result = catch_unwind(test);
    plant(None);
    assert!(result.is_err(), "{bug:?}");
}

#[test]
fn marching_on_with_an_image_that_nobody_can_run_is_caught() {
    plant(Some(Bug::HopelessIgnored));
    let result = catch_unwind(diagnoses::e12_an_image_that_nobody_can_pull_is_not_waited_for);
    plant(None);
    assert!(result.is_err());
}
