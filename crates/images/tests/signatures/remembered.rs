//! What is remembered, and under which policy.

use windlass_images::{
    Digest,
    verify::{Gathered, Verdict, Verdicts, verify},
};

use super::fixtures::{alone, fixture, is_verified, policy};

/// What one policy accepted says nothing about another.
pub fn a_changed_policy_verifies_again() {
    let fixture = fixture("key-tag");
    let (image, gathered) = (fixture.subject(), alone(fixture.candidate.candidate()));
    let mut verdicts = Verdicts::default();
    let verdict = verify(policy("key"), &image, &gathered);
    assert!(is_verified(&verdict));
    verdicts.remember(&image, policy("key"), &verdict);
    assert_eq!(verdicts.recall(&image, policy("key")), Some(verdict));
    // The same key with a log that signatures must be in, and another key.
    assert_eq!(verdicts.recall(&image, policy("key-log")), None);
    assert_eq!(verdicts.recall(&image, policy("key-other")), None);
    assert_eq!(verdicts.recall(&Digest::of(b"another image"), policy("key")), None);
}

#[test]
fn policies_are_told_apart() {
    a_changed_policy_verifies_again();
}

#[test]
fn only_what_is_verified_is_remembered() {
    let image = fixture("key-tag").subject();
    let mut verdicts = Verdicts::default();
    let refused = verify(policy("key"), &image, &Gathered::default());
    let unknown = Verdict::Unknown("the registry is silent".to_owned());
    for verdict in [refused, unknown] {
        verdicts.remember(&image, policy("key"), &verdict);
        assert_eq!(verdicts.recall(&image, policy("key")), None, "{verdict:?}");
    }
}

#[test]
fn the_oldest_is_forgotten() {
    let verdict = fixture("key-tag").verdict();
    let mut verdicts = Verdicts::default();
    let images: Vec<Digest> = (0..1025_u32).map(|number| Digest::of(&number.to_be_bytes())).collect();
    for image in &images {
        verdicts.remember(image, policy("key"), &verdict);
    }
    assert_eq!(verdicts.recall(&images[0], policy("key")), None);
    assert!(verdicts.recall(&images[1], policy("key")).is_some());
    assert!(verdicts.recall(&images[1024], policy("key")).is_some());
}
