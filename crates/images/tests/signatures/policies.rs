//! What people write into a policy, and what they are told about it.

use rstest::rstest;
use windlass_images::verify::{Identity, Policy, PolicyError, SIGNATURE, TrustRoot, Verdict, verify};

use super::fixtures::{alone, fixture, is_verified, key, policy, trust_root};

const P384: &str = "-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
-----END PUBLIC KEY-----
";

fn somebody() -> Identity {
    Identity { identity: "release@example.com".to_owned(), issuer: "https://login.example.com".to_owned() }
}

fn logs() -> TrustRoot {
    TrustRoot::parse(&trust_root("logs")).expect("a trust root")
}

/// A trust root without some of its parts.
fn without(parts: &[&str]) -> TrustRoot {
    let mut root: serde_json::Value = serde_json::from_slice(&trust_root("logs")).expect("JSON");
    for part in parts {
        root.as_object_mut().expect("an object").remove(*part);
    }
    TrustRoot::parse(root.to_string().as_bytes()).expect("a trust root")
}

#[rstest]
#[case::nothing("", "no PUBLIC KEY in PEM")]
#[case::other_text("ssh-ed25519 AAAA", "no PUBLIC KEY in PEM")]
#[case::private("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n", "no PUBLIC KEY in PEM")]
#[case::no_key("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "Invalid key")]
#[case::another_curve(P384, "EcdsaP384")]
fn a_key_that_can_t_be_used(#[case] pem: &str, #[case] why: &str) {
    let error = Policy::by_keys(&[key("key").as_str(), pem], None).expect_err("such a key");
    let PolicyError::Key { number: 2, problem } = &error else { panic!("{error:?}") };
    assert!(problem.contains(why), "{problem}");
    assert!(!error.to_string().contains("c2VjcmV0"), "{error}");
}

#[rstest]
#[case::nothing(b"".as_slice())]
#[case::not_text(b"\xff")]
#[case::another_thing(br#"{"mediaType":"application/json"}"#)]
#[case::nonsense(br#"{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1","tlogs":[{}]}"#)]
fn a_trust_root_that_can_t_be_used(#[case] json: &[u8]) {
    let error = TrustRoot::parse(json).expect_err("such a trust root");
    assert!(error.to_string().starts_with("the trust root can't be used: "), "{error}");
}

#[test]
fn nobody_and_too_many() {
    assert!(matches!(Policy::by_keys::<&str>(&[], None), Err(PolicyError::Nobody)));
    assert!(matches!(Policy::by_identities(vec![], logs()), Err(PolicyError::Nobody)));
    assert!(matches!(Policy::by_keys(&vec![key("key"); 33], None), Err(PolicyError::TooMany)));
}

#[rstest]
#[case::no_identity("", "https://login.example.com")]
#[case::no_issuer("release@example.com", "")]
fn half_an_identity(#[case] identity: &str, #[case] issuer: &str) {
    let half = Identity { identity: identity.to_owned(), issuer: issuer.to_owned() };
    assert!(matches!(Policy::by_identities(vec![somebody(), half], logs()), Err(PolicyError::Identity { number: 2 })));
}

#[rstest]
#[case::nobody_vouches(&["certificateAuthorities"])]
#[case::nobody_tells_the_time(&["tlogs", "timestampAuthorities"])]
fn identities_need_more_of_a_trust_root(#[case] missing: &[&str]) {
    let result = Policy::by_identities(vec![somebody()], without(missing));
    assert!(matches!(result, Err(PolicyError::TrustRoot(_))), "{result:?}");
}

#[test]
fn one_of_several_signers_is_enough() {
    let keys = Policy::by_keys(&[key("key-other"), key("rsa"), key("key")], None).expect("a policy");
    let tag = fixture("key-tag");
    assert!(is_verified(&verify(&keys, &tag.subject(), &alone(tag.candidate.candidate()))));

    let other = Identity { identity: "somebody@example.com".to_owned(), ..somebody() };
    let identities = Policy::by_identities(vec![other, somebody()], logs()).expect("a policy");
    let keyless = fixture("keyless-bundle");
    assert!(is_verified(&verify(&identities, &keyless.subject(), &alone(keyless.candidate.candidate()))));
}

/// One half of each of two identities is neither of them.
#[test]
fn halves_of_two_identities_are_nobody() {
    let wrong_issuer = Identity { issuer: "https://login.example.org".to_owned(), ..somebody() };
    let wrong_name = Identity { identity: "somebody@example.com".to_owned(), ..somebody() };
    let policy = Policy::by_identities(vec![wrong_issuer, wrong_name], logs()).expect("a policy");
    let keyless = fixture("keyless-bundle");
    let verdict = verify(&policy, &keyless.subject(), &alone(keyless.candidate.candidate()));
    assert!(matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
}

#[test]
fn other_predicate_types_count_when_named() {
    let sbom = fixture("sbom-bundle");
    let accepting = policy("key").clone().with_predicate_types(["https://spdx.dev/Document"]).expect("a policy");
    assert!(is_verified(&verify(&accepting, &sbom.subject(), &alone(sbom.candidate.candidate()))));
    // The list is the whole list.
    let signed = fixture("key-bundle");
    assert!(!is_verified(&verify(&accepting, &signed.subject(), &alone(signed.candidate.candidate()))));
    assert!(matches!(policy("key").clone().with_predicate_types::<&str>([]), Err(PolicyError::NoPredicateType)));
}

#[test]
fn fingerprints_tell_policies_apart() {
    let identities = |list: Vec<Identity>| Policy::by_identities(list, logs()).expect("a policy");
    let other = Identity { issuer: "https://login.example.net".to_owned(), ..somebody() };
    let policies = [
        policy("key").clone(),
        policy("key-log").clone(),
        policy("key-other").clone(),
        policy("identity-sct").clone(),
        Policy::by_keys(&[key("key"), key("key-other")], None).expect("a policy"),
        policy("key").clone().with_predicate_types([SIGNATURE, "https://spdx.dev/Document"]).expect("a policy"),
        policy("key").clone().with_predicate_types([format!("{SIGNATURE}\nhttps://spdx.dev/Document")]).expect("one"),
        identities(vec![somebody()]),
        identities(vec![other.clone()]),
        identities(vec![somebody(), other.clone()]),
    ];
    let fingerprints: std::collections::BTreeSet<_> = policies.iter().map(Policy::fingerprint).collect();
    assert_eq!(fingerprints.len(), policies.len());
    assert_eq!(
        identities(vec![other.clone(), somebody()]).fingerprint(),
        identities(vec![somebody(), other]).fingerprint()
    );
}
