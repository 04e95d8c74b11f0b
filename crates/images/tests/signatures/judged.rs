//! Every fixture under its own policy, with its own reason; and every fixture under every policy, compared with cosign.

use rstest::rstest;
use windlass_images::verify::{Candidate, Gathered, Identity, Layout, Refusal, SIZE_LIMIT, Signer, Verdict, verify};

use super::fixtures::{alone, fixture, fixtures, is_verified, policy, text};

/// A name for each verdict, without what differs from run to run of the program that makes the fixtures.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Verified { layout: Layout::Tag, .. } => "verified by tag",
        Verdict::Verified { layout: Layout::Bundle, .. } => "verified by bundle",
        Verdict::Unknown(_) => "unknown",
        Verdict::Refused(refusal) => match refusal {
            Refusal::Unsigned => "unsigned",
            Refusal::NotASignature(_) => "not a signature",
            Refusal::Malformed(_) => "malformed",
            Refusal::OtherSubject(_) => "other subject",
            Refusal::WrongKey => "wrong key",
            Refusal::NotTrusted(_) => "not trusted",
            Refusal::WrongIdentity(_) => "wrong identity",
            Refusal::WrongIssuer(_) => "wrong issuer",
            Refusal::NotInLog(_) => "not in log",
        },
    }
}

#[rstest]
#[case("key-tag", "verified by tag")]
#[case("key-tag-log", "verified by tag")]
#[case("key-bundle", "verified by bundle")]
#[case("key-bundle-log", "verified by bundle")]
#[case("key-bundle-log2", "verified by bundle")]
#[case("rsa-tag", "verified by tag")]
#[case("rsa-bundle-log", "verified by bundle")]
// What a tag's log entry has is a hash, and RSA over a hash can't be computed here.
#[case("rsa-tag-log", "not in log")]
#[case("ed25519-plain-tag", "verified by tag")]
// cosign signs a hash with such a key, and refuses that itself.
#[case("ed25519-tag", "wrong key")]
#[case("keyless-tag", "verified by tag")]
#[case("keyless-bundle", "verified by bundle")]
#[case("keyless-bundle-log2", "verified by bundle")]
#[case("keyless-bundle-ct", "verified by bundle")]
#[case("other-key-tag", "wrong key")]
#[case("other-key-bundle-log", "wrong key")]
#[case("other-identity-tag", "wrong identity")]
#[case("other-identity-bundle", "wrong identity")]
#[case("other-issuer-tag", "wrong issuer")]
#[case("other-issuer-bundle-log2", "wrong issuer")]
#[case("other-image-tag", "other subject")]
#[case("other-image-bundle-log", "other subject")]
#[case("other-image-keyless-tag", "other subject")]
#[case("other-image-keyless-bundle", "other subject")]
#[case("sbom-bundle", "not a signature")]
#[case("sbom-bundle-log", "not a signature")]
#[case("sbom-keyless-bundle", "not a signature")]
fn a_fixture_under_its_own_policy(#[case] name: &str, #[case] wanted: &str) {
    let verdict = fixture(name).verdict();
    assert_eq!(word(&verdict), wanted, "{verdict:?}");
}

#[rstest]
// The right key, and a log that it should be in.
#[case("key-tag", "key-log", "not in log")]
#[case("key-bundle", "key-log", "not in log")]
// Nobody asks for a log.
#[case("key-tag-log", "key", "verified by tag")]
#[case("key-bundle-log", "key", "verified by bundle")]
#[case("key-bundle-log2", "key", "verified by bundle")]
// A key where an identity is wanted, and the other way round.
#[case("key-tag-log", "identity", "not trusted")]
#[case("key-bundle-log", "identity", "not trusted")]
#[case("keyless-tag", "key-log", "wrong key")]
#[case("keyless-bundle", "key-log", "wrong key")]
// The certificate is in no log of certificates, and the trust root names one.
#[case("keyless-tag", "identity-sct", "not trusted")]
#[case("keyless-bundle", "identity-sct", "not trusted")]
// The certificate is another authority's.
#[case("keyless-bundle", "identity-ct", "not trusted")]
#[case("keyless-bundle-ct", "identity", "not trusted")]
// Without a log, a timestamp is enough.
#[case("keyless-tag", "identity-no-log", "verified by tag")]
#[case("keyless-bundle", "identity-no-log", "verified by bundle")]
#[case("keyless-bundle-log2", "identity-no-log", "verified by bundle")]
fn a_fixture_under_another_policy(#[case] name: &str, #[case] under: &str, #[case] wanted: &str) {
    let fixture = fixture(name);
    let verdict = verify(policy(under), &fixture.subject(), &alone(fixture.candidate.candidate()));
    assert_eq!(word(&verdict), wanted, "{verdict:?}");
}

/// Where cosign accepts a fixture under a policy and we don't, with the reason.
fn why_we_refuse_more(name: &str, verdict: &Verdict) -> Option<&'static str> {
    match word(verdict) {
        // cosign does not look at the type of a statement (H49).
        "not a signature" if name.starts_with("sbom-") => Some("an SBOM is not a signature"),
        "not in log" if name == "rsa-tag-log" => Some("RSA over a hash can't be computed here"),
        _ => None,
    }
}

#[test]
fn cosign_accepts_what_we_accept() {
    let mut compared = 0;
    let mut differences = Vec::new();
    for line in text("verdicts.txt").lines() {
        let [name, under, theirs] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let fixture = fixture(name);
        let ours = verify(policy(under), &fixture.subject(), &alone(fixture.candidate.candidate()));
        match (theirs, is_verified(&ours)) {
            ("accept", true) | ("refuse", false) => {}
            ("accept", false) if why_we_refuse_more(name, &ours).is_some() => {}
            _ => differences.push(format!("{line}, and we: {ours:?}")),
        }
        compared += 1;
    }
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(compared > 300, "{compared} are all of them?");
}

#[test]
fn who_signed_is_told() {
    let Verdict::Verified { by, .. } = fixture("keyless-bundle").verdict() else { panic!("it is not verified") };
    let identity = Identity { identity: "release@example.com".into(), issuer: "https://login.example.com".into() };
    assert_eq!(by, Signer::Identity(identity));
    assert_eq!(by.to_string(), "release@example.com (https://login.example.com)");
    let Verdict::Verified { by: Signer::Key(_), .. } = fixture("key-tag").verdict() else { panic!("it has no key") };
}

#[test]
fn one_good_candidate_suffices() {
    let mut gathered = Gathered::default();
    for name in ["other-key-tag", "other-image-tag", "sbom-bundle", "key-bundle"] {
        gathered.add(fixture(name).candidate.candidate());
    }
    let subject = fixture("key-bundle").subject();
    assert!(is_verified(&verify(policy("key"), &subject, &gathered)));
    // Also where others could not be read.
    gathered.not_read("the registry is silent");
    assert!(is_verified(&verify(policy("key"), &subject, &gathered)));
}

#[test]
fn nothing_is_unsigned() {
    let verdict = verify(policy("key"), &fixture("key-tag").subject(), &Gathered::default());
    assert_eq!(verdict, Verdict::Refused(Refusal::Unsigned));
}

#[rstest]
#[case::several_reasons(&["sbom-bundle", "other-image-tag", "other-key-tag"], "wrong key")]
#[case::whatever_their_order(&["other-key-tag", "other-image-tag", "sbom-bundle"], "wrong key")]
#[case::nearest(&["other-key-tag", "key-tag"], "not in log")]
fn the_most_telling_reason_is_told(#[case] names: &[&str], #[case] wanted: &str) {
    let mut gathered = Gathered::default();
    for name in names {
        gathered.add(fixture(name).candidate.candidate());
    }
    let verdict = verify(policy("key-log"), &fixture("key-tag").subject(), &gathered);
    assert_eq!(word(&verdict), wanted, "{verdict:?}");
}

/// A timestamp tells when something was signed, and not that it is in a log.
pub fn a_timestamp_is_no_log_entry() {
    let keyless = fixture("keyless-bundle");
    let mut bundle: serde_json::Value = serde_json::from_str(&keyless.candidate.bundle).expect("JSON");
    bundle["verificationMaterial"].as_object_mut().expect("an object").remove("tlogEntries");
    let candidate = Candidate::Bundle(bundle.to_string().into());
    let verdict = verify(policy("identity"), &keyless.subject(), &alone(candidate));
    assert_eq!(word(&verdict), "not in log", "{verdict:?}");
}

#[test]
fn a_timestamp_is_not_enough_where_there_is_a_log() {
    a_timestamp_is_no_log_entry();
}

/// What could not be read is unknown, whatever else was refused: it may be the good one.
pub fn what_was_not_read_is_unknown() {
    let subject = fixture("key-tag").subject();
    let mut gathered = Gathered::default();
    gathered.not_read("the registry is silent");
    let unknown = Verdict::Unknown("the registry is silent".to_owned());
    assert_eq!(verify(policy("key"), &subject, &gathered), unknown);
    gathered.add(fixture("other-key-tag").candidate.candidate());
    assert_eq!(verify(policy("key"), &subject, &gathered), unknown);
}

#[test]
fn what_was_not_read_is_unknown_and_nothing_else() {
    what_was_not_read_is_unknown();
}

#[test]
fn too_many_are_not_all_read() {
    let mut gathered = Gathered::default();
    for _ in 0..100 {
        gathered.add(fixture("other-key-tag").candidate.candidate());
    }
    assert_eq!(word(&verify(policy("key"), &fixture("key-tag").subject(), &gathered)), "unknown");
}

#[test]
fn what_is_too_long_is_refused() {
    // White space at its end changes nothing but its length.
    let mut parts = fixture("key-bundle").candidate.clone();
    parts.bundle.push_str(&" ".repeat(SIZE_LIMIT));
    let verdict = verify(policy("key"), &fixture("key-bundle").subject(), &alone(parts.candidate()));
    assert_eq!(word(&verdict), "malformed", "{verdict:?}");
}

#[test]
fn every_refusal_is_a_sentence_with_what_was_found() {
    for fixture in fixtures() {
        if let Verdict::Refused(refusal) = fixture.verdict() {
            let text = refusal.to_string();
            assert!(text.starts_with("the ") || text.starts_with("what "), "{text}");
            assert!(text.len() < 500, "{text}");
        }
    }
}
