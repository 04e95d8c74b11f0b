//! Inputs that nobody would write: `cargo test` replays those that were kept, and a few mutations of each; `cargo xtask fuzz --minutes 10` makes
//! new ones.
//!
//! A target must neither panic nor read or write where it should not. An input is worth keeping when it brings an answer of a kind that no kept
//! one brings (`--keep`); one that breaks a target is kept always, and fails from then on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod mutate;
mod overlay;
#[path = "../support/mod.rs"]
mod support;
mod targets;

use std::{
    collections::BTreeSet,
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    time::{Duration, Instant},
};

use mutate::Random;
use targets::{TARGETS, Target};
use windlass_images::Digest;

/// What all kept inputs together may weigh.
const CORPUS_LIMIT: u64 = 200 << 10;

/// No input is longer than this.
const INPUT_LIMIT: usize = 16 << 10;

fn corpus(target: &Target) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "corpus", target.name].iter().collect()
}

/// The kept inputs of a target, in an order that is the same everywhere.
fn kept(target: &Target) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(corpus(target)) else { return Vec::new() };
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    inputs
}

fn keep(target: &Target, kind: &str, input: &[u8]) -> PathBuf {
    let folder = corpus(target);
    fs::create_dir_all(&folder).unwrap();
    let name = format!("{kind}-{}", &Digest::of(input).hex()[..8]);
    fs::write(folder.join(&name), input).unwrap();
    folder.join(name)
}

/// A mutated input: of one that is there, sometimes with a part of another.
fn mutated(target: &Target, pool: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.of(pool).cloned().unwrap_or_default();
    for _ in 0..=random.below(3) {
        mutate::mutate(&mut input, random.of(pool).map_or(&[], Vec::as_slice), target.words, random);
    }
    input.truncate(INPUT_LIMIT);
    // Now and then what is wrong stays wrong.
    if random.below(8) > 0 {
        (target.repair)(&mut input);
    }
    input
}

#[test]
fn kept_inputs_are_answered_as_their_names_say() {
    for target in TARGETS {
        let kept = kept(target);
        assert!(kept.len() > 1, "nothing is kept for {}", target.name);
        for (name, input) in &kept {
            let kind = name.rsplit_once('-').map_or(name.as_str(), |(kind, _)| kind);
            assert_eq!((target.run)(input), kind, "{}/{name}", target.name);
        }
        assert!(kept.iter().any(|(name, _)| name.starts_with("Ok-")), "{} accepts nothing", target.name);
    }
}

#[test]
fn mutations_of_what_is_kept_break_nothing() {
    for target in TARGETS {
        let pool: Vec<Vec<u8>> = kept(target).into_iter().map(|(_, input)| input).collect();
        let mut random = Random::new(1);
        for _ in 0..400 {
            (target.run)(&mutated(target, &pool, &mut random));
        }
    }
}

#[test]
fn the_corpus_is_small() {
    let size: usize = TARGETS.iter().flat_map(kept).map(|(_, input)| input.len()).sum();
    assert!(size as u64 <= CORPUS_LIMIT, "{size} bytes");
}

/// Every folder of the corpus has a target that reads it.
#[test]
fn the_corpus_is_read() {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "corpus"].iter().collect();
    let folders: BTreeSet<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(folders, TARGETS.iter().map(|target| target.name.to_owned()).collect());
}

/// A target that breaks must be noticed, or all of this proves nothing.
#[test]
fn a_target_that_breaks_is_noticed() {
    let target = Target {
        name: "broken",
        run: |input| {
            assert!(!input.contains(&0xff), "broken");
            "Ok".into()
        },
        seeds: || vec![b"windlass".to_vec()],
        words: &[],
        repair: |_| {},
    };
    let broken = run(&target, &mut Random::new(1), 2000, |_, _| {});
    assert!(broken.is_some_and(|input| input.contains(&0xff)));
}

/// Mutates a target's inputs so many times; the input that broke it, if one did.
fn run(target: &Target, random: &mut Random, times: usize, mut found: impl FnMut(&str, &[u8])) -> Option<Vec<u8>> {
    let mut pool = (target.seeds)();
    let kept = kept(target);
    let mut kinds = BTreeSet::new();
    for (_, input) in kept {
        kinds.insert((target.run)(&input));
        pool.push(input);
    }
    let mut fresh: Vec<Vec<u8>> = (target.seeds)();
    for _ in 0..times {
        let input = fresh.pop().unwrap_or_else(|| mutated(target, &pool, random));
        let Ok(kind) = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))) else { return Some(input) };
        if kinds.insert(kind.clone()) {
            found(&kind, &input);
            pool.push(input);
        }
    }
    None
}

/// Layers are held against what they come to when applied from below: that must notice, too.
#[cfg(feature = "seeded-bugs")]
#[test]
fn deletions_that_are_ignored_are_caught() {
    support::caught(windlass_plan::bug::Bug::WhiteoutIgnored, || {
        (overlay::run)(b"f usr/bin/minio\n-\nw usr/bin\n");
    });
}

/// Run by `cargo xtask fuzz`, which says for how long.
#[test]
#[ignore = "runs for as long as it is told to"]
fn minutes() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let minutes = number("WINDLASS_FUZZ_MINUTES").unwrap_or(1);
    let seed = number("WINDLASS_FUZZ_SEED").unwrap_or(1);
    let keeps = env::var("WINDLASS_FUZZ_KEEP").is_ok();
    let (end, mut random) = (Instant::now() + Duration::from_secs(60 * minutes), Random::new(seed));
    let (mut rounds, mut broken) = (0, Vec::new());
    println!("seed {seed}");
    while Instant::now() < end && broken.is_empty() {
        for target in TARGETS {
            let result = run(target, &mut random, 500, |kind, input| {
                println!("{}: {kind}, which no kept input brings ({} bytes)", target.name, input.len());
                if keeps {
                    println!("    kept as {}", keep(target, kind, input).display());
                }
            });
            broken.extend(result.map(|input| keep(target, "Broken", &input)));
        }
        rounds += 1;
    }
    assert!(broken.is_empty(), "broken by {broken:?}");
    println!("fuzz: {} inputs in {minutes} minutes, nothing broken", rounds * 500 * TARGETS.len());
}
