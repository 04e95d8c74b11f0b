//! Signatures by the original program, and by a second implementation where something has to be wrong with them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::io::Cursor;

use minisign::KeyPair;
use rstest::rstest;
use windlass_images::{
    Digest,
    minisig::{Binding, Key, Minisig, Signed, Unsigned},
};
use windlass_plan::version::Release;

const FILE: &[u8] = include_bytes!("fixtures/minisign/minio.RELEASE.2026-03-12T20-18-48Z");
const KEY: &str = include_str!("fixtures/minisign/minisign.pub");
const MINISIG: &str = include_str!("fixtures/minisign/minio.RELEASE.2026-03-12T20-18-48Z.minisig");
const LEGACY: &str = include_str!("fixtures/minisign/legacy.minisig");
const COMMENT: &str = include_str!("fixtures/minisign/comment.minisig");
const RELEASE: &str = "RELEASE.2026-03-12T20-18-48Z";

fn verified(key: &str, minisig: &str, file: &[u8]) -> Result<Signed, Unsigned> {
    let (key, minisig): (Key, Minisig) = (key.parse()?, minisig.parse()?);
    let mut verifying = key.verify(&minisig)?;
    for piece in file.chunks(7) {
        verifying.update(piece);
    }
    verifying.finish()
}

fn release(text: &str) -> Release {
    text.parse().unwrap()
}

/// A minisig of [`FILE`] with this trusted comment, and its key.
fn signed(comment: &str) -> (String, String) {
    let KeyPair { pk, sk } = KeyPair::generate_unencrypted_keypair().unwrap();
    let minisig = minisign::sign(Some(&pk), &sk, Cursor::new(FILE), Some(comment), None).unwrap();
    (pk.to_base64(), minisig.to_string())
}

#[rstest]
#[case::the_file(KEY)]
#[case::its_second_line(KEY.lines().nth(1).unwrap())]
#[case::with_two_line_ends("untrusted comment: x\r\nRWTQvDYOOIA5lGg333pUsJ1v1n07yf3ZueWhDajtE3hQARCwE05610j7\r\n")]
fn what_the_original_program_signed_is_accepted(#[case] key: &str) {
    let signed = verified(key, MINISIG, FILE).unwrap();
    assert!(signed.trusted_comment().contains("file:minio.RELEASE.2026-03-12T20-18-48Z"));
    assert_eq!(signed.is(&release(RELEASE), Binding::None), Ok(()));
}

#[test]
fn what_a_second_implementation_signed_is_accepted() {
    let (key, minisig) = signed(&format!("timestamp:1\tfile:minio.{RELEASE}"));
    assert_eq!(verified(&key, &minisig, FILE).unwrap().is(&release(RELEASE), Binding::None), Ok(()));
}

#[rstest]
#[case::another_file(KEY, MINISIG, b"another file", Unsigned::Wrong)]
#[case::a_cut_file(KEY, MINISIG, &FILE[1..], Unsigned::Wrong)]
#[case::a_changed_comment(KEY, &MINISIG.replace("20-18-48", "20-18-49"), FILE, Unsigned::Wrong)]
// Both are of the same bytes by the same key; the comment goes with its own signature only.
#[case::the_comment_of_another_signature(KEY, &{
    let mut lines: Vec<&str> = MINISIG.lines().collect();
    lines[2] = COMMENT.lines().nth(2).unwrap();
    lines.join("\n")
}, FILE, Unsigned::Wrong)]
#[case::another_key(&signed("").0, MINISIG, FILE, Unsigned::AnotherKey)]
#[case::a_legacy_signature(KEY, LEGACY, FILE, Unsigned::Legacy)]
#[case::a_fifth_line(KEY, &format!("{MINISIG}more\n"), FILE, Unsigned::Signature)]
#[case::no_comment(KEY, &MINISIG.lines().skip(1).collect::<Vec<_>>().join("\n"), FILE, Unsigned::Signature)]
#[case::nothing(KEY, "", FILE, Unsigned::Signature)]
#[case::an_endless_comment(KEY, &MINISIG.replace("signature from", &"x".repeat(20_000)), FILE, Unsigned::Signature)]
#[case::no_key("", MINISIG, FILE, Unsigned::Key)]
#[case::a_cut_key(&KEY[..KEY.len() - 5], MINISIG, FILE, Unsigned::Key)]
#[case::two_keys(&format!("{KEY}{KEY}"), MINISIG, FILE, Unsigned::Key)]
#[case::a_key_of_another_kind(&KEY.replace("RWT", "RUT"), MINISIG, FILE, Unsigned::Key)]
fn anything_else_is_refused_by_name(
    #[case] key: &str,
    #[case] minisig: &str,
    #[case] file: &[u8],
    #[case] expected: Unsigned,
) {
    let error = verified(key, minisig, file).unwrap_err();
    assert!(!error.next_step().is_empty());
    assert_eq!(error, expected);
}

fn unbound() -> Result<(), Unsigned> {
    Err(Unsigned::Unbound { wanted: RELEASE.into() })
}

fn another(signed: &str) -> Result<(), Unsigned> {
    Err(Unsigned::AnotherRelease { signed: format!("{signed:?}"), wanted: RELEASE.into() })
}

/// H48: the first answer is for a file that came by itself, the second for one out of a verified image.
#[rstest]
#[case::its_own_release("timestamp:1\tfile:minio.RELEASE.2026-03-12T20-18-48Z\thashed", Ok(()), Ok(()))]
#[case::nothing_else("file:minio.RELEASE.2026-03-12T20-18-48Z", Ok(()), Ok(()))]
#[case::an_older_release(
    "file:minio.RELEASE.2025-03-12T20-18-48Z",
    another("minio.RELEASE.2025-03-12T20-18-48Z"),
    another("minio.RELEASE.2025-03-12T20-18-48Z")
)]
#[case::a_hotfix_of_it(
    "file:minio.RELEASE.2026-03-12T20-18-48Z.hotfix.a1",
    another("minio.RELEASE.2026-03-12T20-18-48Z.hotfix.a1"),
    another("minio.RELEASE.2026-03-12T20-18-48Z.hotfix.a1")
)]
#[case::two_names(
    "file:minio.RELEASE.2026-03-12T20-18-48Z\tfile:minio",
    another("file:minio.RELEASE.2026-03-12T20-18-48Z\tfile:minio"),
    another("file:minio.RELEASE.2026-03-12T20-18-48Z\tfile:minio")
)]
#[case::a_name_without_a_release("timestamp:1\tfile:minio\thashed", unbound(), Ok(()))]
#[case::no_name("built by hand", unbound(), Ok(()))]
#[case::nothing("", unbound(), Ok(()))]
#[case::the_name_in_the_middle_of_words("not file:minio.RELEASE.2026-03-12T20-18-48Z", unbound(), Ok(()))]
fn h48_a_signature_binds_the_release_that_it_names(
    #[case] comment: &str,
    #[case] alone: Result<(), Unsigned>,
    #[case] in_an_image: Result<(), Unsigned>,
) {
    let (key, minisig) = signed(comment);
    let signed = verified(&key, &minisig, FILE).unwrap();
    let image = Digest::of(b"an image");
    assert_eq!(signed.is(&release(RELEASE), Binding::None), alone);
    assert_eq!(signed.is(&release(RELEASE), Binding::VerifiedImage(&image)), in_an_image);
}

#[cfg(feature = "seeded-bugs")]
#[test]
fn a_release_that_is_believed_by_its_name_is_caught() {
    support::caught(windlass_plan::bug::Bug::ReleaseNameTrusted, || {
        let older = "file:minio.RELEASE.2025-03-12T20-18-48Z";
        let refused = another("minio.RELEASE.2025-03-12T20-18-48Z");
        h48_a_signature_binds_the_release_that_it_names(older, refused.clone(), refused);
    });
}
