//! Decisions are pure: what this crate is built from can neither wait, nor ask, nor look at a clock.

use std::collections::BTreeSet;

const MANIFEST: &str = include_str!("../../Cargo.toml");

/// The keys of one table of the manifest.
fn keys(table: &str) -> BTreeSet<&'static str> {
    MANIFEST
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != format!("[{table}]"))
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .collect()
}

#[test]
fn the_crate_depends_on_times_versions_and_names_alone() {
    assert_eq!(keys("dependencies"), BTreeSet::from(["cronexpr", "jiff", "semver", "serde", "strum"]));
    assert_eq!(keys("dev-dependencies"), BTreeSet::from(["proptest", "rstest"]));
}

#[test]
fn nothing_else_brings_dependencies_in() {
    let tables: Vec<&str> = MANIFEST.lines().map(str::trim).filter(|line| line.starts_with('[')).collect();
    assert_eq!(tables, ["[package]", "[lints]", "[dependencies]", "[features]", "[dev-dependencies]"]);
    assert_eq!(keys("features"), BTreeSet::from(["seeded-bugs"]));
}

#[test]
fn no_feature_is_on_by_default() {
    assert!(MANIFEST.lines().any(|line| line.trim() == "seeded-bugs = []"));
    assert!(!keys("features").contains("default"));
}
