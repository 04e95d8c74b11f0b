//! Each seeded bug is caught by the test that guards its rule.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rstest::rstest;
use windlass_plan::bug::{Bug, plant};

use crate::{blobs, redirects};

#[rstest]
#[case::credentials(
    Bug::CredentialsFollowRedirect,
    redirects::credentials_do_not_follow_to_the_storage,
    "a password at somebody else's"
)]
#[case::redirects(Bug::RedirectAnywhere, redirects::no_redirect_leads_inside, "metadata.test")]
#[case::sizes(Bug::SizeUnbounded, blobs::nothing_past_its_size_is_handed_on, "a reader got")]
fn a_seeded_bug_is_caught(#[case] bug: Bug, #[case] test: fn(), #[case] words: &str) {
    plant(Some(bug));
    let result = catch_unwind(AssertUnwindSafe(test));
    plant(None);
    let said = result.expect_err("the test passes with the bug in place");
    let said = said.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(said.contains(words), "caught by something else: {said}");
}
