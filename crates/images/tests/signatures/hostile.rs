//! Whatever is beside an image: it is judged without a panic, and what is not one of the signatures that we know is never verified.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use rstest::rstest;
use windlass_images::verify::{
    Candidate, PublicKey, TrustRoot, bundle_statement, log_entry, payload, statement, timestamp, verify,
};

use super::fixtures::{alone, fixture, fixtures, is_verified, policy, trust_root};

const ANNOTATIONS: [&str; 5] = [
    "dev.cosignproject.cosign/signature",
    "dev.sigstore.cosign/certificate",
    "dev.sigstore.cosign/chain",
    "dev.sigstore.cosign/bundle",
    "dev.sigstore.cosign/rfc3161timestamp",
];

fn verified_by_anybody(candidate: &Candidate) -> bool {
    let subject = fixture("key-tag").subject();
    let policies = ["key", "key-log", "rsa", "ed25519", "identity", "identity-ct", "identity-no-log"];
    policies.iter().any(|name| is_verified(&verify(policy(name), &subject, &alone(candidate.clone()))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes(content in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = (payload(&content), log_entry(&content), timestamp(&content));
        let _ = (statement(&content), bundle_statement(&content));
        let _ = (PublicKey::parse(&content), TrustRoot::parse(&content));
        prop_assert!(!verified_by_anybody(&Candidate::Bundle(Bytes::from(content.clone()))));
        let annotations = ANNOTATIONS.map(|name| (name.to_owned(), String::from_utf8_lossy(&content).into_owned()));
        let candidate = Candidate::Simple { payload: content.into(), annotations: BTreeMap::from(annotations) };
        prop_assert!(!verified_by_anybody(&candidate));
    }

    /// Parts of good signatures, put together as they were never signed.
    #[test]
    fn any_mixture_of_annotations(picked in proptest::array::uniform5(any::<prop::sample::Index>())) {
        let tags: Vec<_> = fixtures().filter(|fixture| fixture.candidate.bundle.is_empty()).collect();
        let payload = &fixture("other-image-tag").candidate.payload;
        let mut annotations = BTreeMap::new();
        for (name, index) in ANNOTATIONS.into_iter().zip(picked) {
            if let Some(value) = index.get(&tags).candidate.annotations.get(name) {
                annotations.insert(name.to_owned(), value.clone());
            }
        }
        let candidate = Candidate::Simple { payload: payload.clone().into(), annotations };
        prop_assert!(!verified_by_anybody(&candidate));
    }

    /// A good bundle that ends too soon.
    #[test]
    fn any_beginning(index in any::<prop::sample::Index>()) {
        for fixture in fixtures() {
            let text = fixture.candidate.bundle.as_bytes();
            if !text.is_empty() {
                let cut = Bytes::copy_from_slice(&text[..index.index(text.len())]);
                prop_assert!(!verified_by_anybody(&Candidate::Bundle(cut)));
            }
        }
        let root = trust_root("logs");
        prop_assert!(TrustRoot::parse(&root[..index.index(root.len())]).is_err());
    }
}

/// What two readers could read in two ways.
#[rstest]
#[case::two_contents(r#""dsseEnvelope":"#, r#""messageSignature":{"signature":"AAAA"},"dsseEnvelope":"#)]
#[case::two_signers(r#""publicKey":"#, r#""certificate":{"rawBytes":"AAAA"},"publicKey":"#)]
#[case::two_payloads(r#""payload":"#, r#""payload":"AAAA","payload":"#)]
#[case::two_signatures(r#""signatures":["#, r#""signatures":[{"sig":"AAAA"},"#)]
#[case::another_version("bundle.v0.3+json", "bundle+json;version=0.1")]
#[case::a_member_of_tomorrow(r#""payload":"#, r#""notes":"","payload":"#)]
fn an_ambiguous_bundle(#[case] before: &str, #[case] after: &str) {
    let good = &fixture("key-bundle").candidate.bundle;
    // Some programs write a space after a colon.
    let good = serde_json::from_str::<serde_json::Value>(good).expect("JSON").to_string();
    assert!(verified_by_anybody(&Candidate::Bundle(good.clone().into())));
    assert!(good.contains(before), "{good}");
    let bad = good.replacen(before, after, 1);
    assert!(!verified_by_anybody(&Candidate::Bundle(bad.into())));
}
