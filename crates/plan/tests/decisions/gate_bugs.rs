//! Each seeded bug in a gate is caught by the walks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use rstest::rstest;
use windlass_plan::bug::{Bug, plant};

use super::gate_walks::{any_script, walk};

/// More walks than any of them needs.
const WALKS: usize = 6_000;

#[rstest]
#[case::the_window_is_ignored_before_a_hand_over(Bug::WindowIgnored, "outside of the window")]
#[case::the_end_of_the_window_is_not_considered(Bug::WindowEndIgnored, "and it takes")]
#[case::any_gate_can_be_overridden(Bug::AnyGateOverridden, "")]
#[case::an_override_outlives_itself(Bug::OverrideOutlivesItself, "")]
#[case::an_approval_of_another_target_counts(Bug::ApprovalOfAnother, "nobody approved")]
#[case::a_flap_does_not_restart_the_soak(Bug::SoakGoesOn, "well since")]
#[case::unknown_passes(Bug::UnknownGatePasses, "Unknown")]
fn a_bug_in_a_gate_is_caught(#[case] bug: Bug, #[case] words: &str) {
    let mut runner = TestRunner::deterministic();
    let caught = (0..WALKS).find_map(|number| {
        let script = any_script().new_tree(&mut runner).unwrap().current();
        plant(Some(bug));
        let result = catch_unwind(AssertUnwindSafe(|| walk(&script)));
        plant(None);
        let said = result.err()?;
        let said = said.downcast_ref::<String>().cloned().unwrap_or_default();
        said.contains(words).then_some((number, said))
    });
    let (number, said) = caught.unwrap_or_else(|| panic!("{bug:?} was not caught in {WALKS} walks"));
    println!("{bug:?} was caught by walk {number}: {said}");
}
