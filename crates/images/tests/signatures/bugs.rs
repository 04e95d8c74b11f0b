//! The tests here would notice: each mistake is planted, and the test that guards against it has to fail.
#![cfg(feature = "seeded-bugs")]

use std::panic::catch_unwind;

use rstest::rstest;
use windlass_images::verify::{Verdict, verify};
use windlass_plan::bug::{Bug, plant};

use super::{
    fixtures::{alone, fixture, policy},
    judged::{a_timestamp_is_no_log_entry, what_was_not_read_is_unknown},
    remembered::a_changed_policy_verifies_again,
};

fn refused(names: &[(&str, &str)]) {
    for (name, under) in names {
        let fixture = fixture(name);
        let verdict = verify(policy(under), &fixture.subject(), &alone(fixture.candidate.candidate()));
        assert!(matches!(verdict, Verdict::Refused(_)), "{name} under {under}: {verdict:?}");
    }
}

fn an_sbom_by_key() {
    refused(&[("sbom-bundle-log", "key-log")]);
}

fn an_sbom_by_identity() {
    refused(&[("sbom-keyless-bundle", "identity")]);
}

fn another_image_by_key() {
    refused(&[("other-image-tag", "key")]);
}

fn another_image_by_identity() {
    refused(&[("other-image-keyless-tag", "identity")]);
}

fn another_image_in_a_bundle() {
    refused(&[("other-image-bundle-log", "key")]);
}

fn another_identity() {
    refused(&[("other-identity-bundle", "identity")]);
}

fn another_issuer() {
    refused(&[("other-issuer-tag", "identity")]);
}

fn no_log_under_a_tag() {
    refused(&[("key-tag", "key-log")]);
}

fn no_log_in_a_bundle() {
    refused(&[("key-bundle", "key-log")]);
}

#[rstest]
#[case(Bug::AttestationCounts, an_sbom_by_key)]
#[case(Bug::AttestationCounts, an_sbom_by_identity)]
#[case(Bug::PayloadDigestIgnored, another_image_by_key)]
#[case(Bug::PayloadDigestIgnored, another_image_by_identity)]
#[case(Bug::PayloadDigestIgnored, another_image_in_a_bundle)]
#[case(Bug::AnyIdentity, another_identity)]
#[case(Bug::AnyIdentity, another_issuer)]
#[case(Bug::LogSkipped, no_log_under_a_tag)]
#[case(Bug::LogSkipped, no_log_in_a_bundle)]
#[case(Bug::LogSkipped, a_timestamp_is_no_log_entry)]
#[case(Bug::UnknownVerifies, what_was_not_read_is_unknown)]
#[case(Bug::CacheIgnoresPolicy, a_changed_policy_verifies_again)]
fn it_is_noticed(#[case] bug: Bug, #[case] test: fn()) {
    test();
    plant(Some(bug));
    let told = catch_unwind(test);
    plant(None);
    assert!(told.is_err(), "{bug:?} was not noticed");
}
