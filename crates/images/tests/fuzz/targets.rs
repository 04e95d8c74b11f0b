//! What is fed with inputs. To add one, add a line to [`TARGETS`], run `cargo xtask fuzz --minutes 1 --keep`, and look at what was kept.

use std::{fmt::Debug, path::Path};

use windlass_images::{
    Digest, Reference,
    contents::{Corruption, Error, Limits, Packing},
    minisig::{Binding, Key, Minisig, Unsigned},
    sha256sum::Sha256sum,
};
use windlass_plan::version::{Age, Release, tag_for};

use crate::{
    overlay,
    support::{Header, Image, Tar, gzip, names, scratch, zstd},
};

/// Something that reads what others wrote.
pub struct Target {
    /// Also the name of its folder in the corpus.
    pub name: &'static str,
    /// Answers an input with the kind of its answer, `Ok` or an error's name. Panics where the target does something that it must not do.
    pub run: fn(&[u8]) -> String,
    /// To begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// What means something in such inputs.
    pub words: &'static [&'static str],
    /// Makes sums right again that every change breaks, so that what is behind them is reached.
    pub repair: fn(&mut [u8]),
}

const fn text(
    name: &'static str,
    run: fn(&[u8]) -> String,
    seeds: fn() -> Vec<Vec<u8>>,
    words: &'static [&'static str],
) -> Target {
    Target { name, run, seeds, words, repair: |_| {} }
}

pub const TARGETS: &[Target] = &[
    text(
        "references",
        references,
        || texts(&["registry.example:5000/team/pd:v8.5.1", DIGESTED, "[::1]:5000/pd"]),
        &["localhost/", "@sha256:", ":", "/", "..", "__", "[::1]", "A", "é"],
    ),
    text(
        "releases",
        releases,
        || {
            texts(&[
                "RELEASE.2026-03-12T20-18-48Z.hotfix.a1b2",
                "2026-03-12T20:18:48Z",
                "2025.7.23-debian-12-r3",
                "v3.6.5-debian-12-r1",
            ])
        },
        &["RELEASE.", ".hotfix.", "T", "Z", "-rc.1", "3.6.5", "0", "60", "-02-29", "é"],
    ),
    text("sha256sum", sha256sum, || texts(&[SUM]), &["  ", " *", "\n", "\\", "/", "minio.", "é"]),
    text(
        "minisig",
        minisig,
        || texts(&[&format!("{KEY}{SEPARATOR}{MINISIG}"), &format!("{KEY}{SEPARATOR}{LEGACY}")]),
        &[SEPARATOR, "\n", "trusted comment: ", "untrusted comment: ", "\tfile:minio.", "RW", "RU", "=", "é"],
    ),
    text("overlay", overlay::run, overlay::seeds, overlay::WORDS),
    Target {
        name: "tar",
        run: |input| archive(Packing::Plain, input),
        seeds: || archives().into_iter().map(Tar::done).collect(),
        words: &[
            "usr/bin/minio",
            "../",
            "/",
            "./",
            ".wh.",
            "ustar\0",
            "ustar  \0",
            "10 size=7\n",
            "22 GNU.sparse.major=1\n",
        ],
        repair: checksums,
    },
    Target {
        name: "gzip",
        run: |input| archive(Packing::Gzip, input),
        seeds: || archives().into_iter().map(|tar| gzip(&tar.done())).collect(),
        words: &["\x1f\u{8b}\x08"],
        repair: |_| {},
    },
    Target {
        name: "zstd",
        run: |input| archive(Packing::Zstd, input),
        seeds: || archives().into_iter().map(|tar| zstd(&tar.done())).collect(),
        words: &["(\u{b5}/\u{fd}", "P*M\x18\x04\0\0\0"],
        repair: |_| {},
    },
];

const DIGESTED: &str = "pd:v8@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const SUM: &str =
    "d4dfbde09fe1c96e0e173d7ca04d8733c08e81a6b52b72112b051eb4af56b3a6  minio.RELEASE.2026-03-12T20-18-48Z\n";
const FILE: &[u8] = include_bytes!("../fixtures/minisign/minio.RELEASE.2026-03-12T20-18-48Z");
const KEY: &str = include_str!("../fixtures/minisign/minisign.pub");
const MINISIG: &str = include_str!("../fixtures/minisign/minio.RELEASE.2026-03-12T20-18-48Z.minisig");
const LEGACY: &str = include_str!("../fixtures/minisign/legacy.minisig");
const COMMENT: &str = include_str!("../fixtures/minisign/comment.minisig");
/// Between a key and a signature.
const SEPARATOR: &str = "---\n";

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// The name of an error, without what is in it.
fn kind<T, E: Debug>(result: Result<T, E>) -> String {
    match result {
        Ok(_) => "Ok".to_owned(),
        Err(error) => name(&error),
    }
}

pub fn name(error: &impl Debug) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn references(input: &[u8]) -> String {
    match String::from_utf8_lossy(input).parse::<Reference>() {
        Ok(reference) => {
            assert_eq!(reference.as_str().as_bytes(), input, "it is kept as it was written");
            let changed = reference.with_tag("next").unwrap();
            assert_eq!(changed.as_str().parse(), Ok(changed.clone()));
            "Ok".to_owned()
        }
        Err(error) => name(&error.problem()),
    }
}

fn releases(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    if let Ok(tag) = tag_for("1.2.3", Some(&text)) {
        assert!(tag.contains("1.2.3"), "{tag}");
        assert_eq!(tag_for("1.2.3", Some(&tag)).as_deref(), Ok(tag.as_str()), "what is there already stays");
    }
    let release = text.parse::<Release>();
    if let Ok(release) = &release {
        let again: Release = release.to_string().parse().unwrap();
        assert_eq!((again.next_to(release), &again), (Age::Same, release));
    }
    kind(release)
}

fn sha256sum(input: &[u8]) -> String {
    let release = "RELEASE.2026-03-12T20-18-48Z".parse().unwrap();
    kind(String::from_utf8_lossy(input).parse::<Sha256sum>().and_then(|sum| sum.check(&Digest::of(FILE), &release)))
}

/// A key and a signature. Nobody has the secret key, so whatever verifies under its public one must say what was signed.
fn minisig(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let (key, minisig) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
    let verified = || {
        let (key, minisig): (Key, Minisig) = (key.parse()?, minisig.parse()?);
        let mut verifying = key.verify(&minisig)?;
        verifying.update(FILE);
        let signed = verifying.finish()?;
        if Ok(key) == KEY.parse() {
            let comment = format!("trusted comment: {}", signed.trusted_comment());
            assert!([MINISIG, COMMENT].iter().any(|made| made.lines().any(|line| line == comment)), "forged");
        }
        signed.is(&"RELEASE.2026-03-12T20-18-48Z".parse().unwrap(), Binding::None)
    };
    kind::<(), Unsigned>(verified())
}

/// An image of one layer. Nothing may appear outside of the folder, or in it under a name that was not asked for.
fn archive(packing: Packing, input: &[u8]) -> String {
    let top = scratch();
    let folder = top.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let mut diff_id = Digest::of(b"");
    loop {
        let mut image = Image::default().blob(packing, input.to_vec(), diff_id.clone());
        let result = image.take_all(&["/usr/bin/minio"], &folder, &Limits { file: 1 << 20, ..Limits::default() });
        written(top.path(), &folder, result.is_ok());
        return match result {
            Ok(_) => "Ok".to_owned(),
            Err(Error::Refused { refusal, .. }) => name(&refusal),
            // Nobody knows it beforehand; this is what it should have been.
            Err(Error::Corrupt { corruption: Corruption::DiffId { found, .. }, .. }) if found != diff_id => {
                diff_id = found;
                continue;
            }
            Err(error @ (Error::Missing { .. } | Error::Corrupt { .. })) => name(&error),
            Err(error @ (Error::Names | Error::Source { .. } | Error::Store { .. })) => panic!("{error}"),
        };
    }
}

fn written(top: &Path, folder: &Path, ok: bool) {
    assert_eq!(names(top), ["folder"], "something is outside of the folder");
    let expected: &[&str] = if ok { &[".contents.json", "minio"] } else { &[] };
    assert_eq!(names(folder), expected);
}

/// Archives with something of everything.
fn archives() -> Vec<Tar> {
    let file = |tar: Tar| tar.file("usr/bin/minio", b"abc");
    let gnu = Header { name: b"usr/bin/minio", size: b"3", magic: b"ustar  \0", ..Header::default() };
    vec![
        file(Tar::default().folder("usr/").folder("usr/bin/")),
        file(Tar::default().pax(&[("mtime", "1.5"), ("path", "usr/bin/mc")]).file("x", b"")),
        Tar::default().pax(&[("size", "3")]).entry("usr/bin/minio", b'0', b"abc").entry("l", b'2', b""),
        file(Tar::default().entry("././@LongLink", b'L', b"usr/bin/mc\0").file("x", b"y")),
        Tar::default().raw(gnu, b"abc").file("usr/bin/.wh.mc", b""),
        file(Tar::default().raw(Header { name: b"mc", prefix: b"usr/bin", ..Header::default() }, b"")),
        Tar::default().entry("usr", b'2', b"").entry("h", b'1', b"").entry("g", b'g', b"11 size=19\n"),
        Tar::default().file("usr/bin/minio/x", b"").entry("dev", b'3', b"").entry("pipe", b'6', b""),
    ]
}

/// Makes the checksum right of everything that stands where a header would.
fn checksums(input: &mut [u8]) {
    for block in input.chunks_exact_mut(512).filter(|block| block[148..156].iter().any(|byte| *byte != 0)) {
        block[148..156].copy_from_slice(b"        ");
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}
