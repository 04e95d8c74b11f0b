//! The tag that a version has, after the habits of the tag that runs today.

use std::fmt;

use super::Version;

/// What marks a suffix as part of the version: it comes before the release, and goes with it.
const BEFORE_A_RELEASE: &[&str] = &["alpha", "beta", "dev", "nightly", "pre", "rc", "snapshot"];

/// A tag that does not show how another version would be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoHabit {
    /// There is no tag.
    NoTag,
    /// No version is in it.
    NoVersion(String),
    /// More than one version is in it.
    SeveralVersions(String),
}

impl fmt::Display for NoHabit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTag => f.write_str("today's image has no tag that shows how a version is written there"),
            Self::NoVersion(tag) => write!(f, "today's tag {tag:?} has no version in it"),
            Self::SeveralVersions(tag) => write!(f, "today's tag {tag:?} has more than one version in it"),
        }
    }
}

impl std::error::Error for NoHabit {}

/// The tag for a version, with everything around the version as it is today: `v3.6.5-debian-12-r1` and 3.6.6 make `v3.6.6-debian-12-r1`.
///
/// A version with a suffix of its own, such as `3.6.6-debian-12-r2`, is the rest of the tag. Nothing is guessed: a tag without exactly one version
/// shows no habit.
pub fn tag_for(version: &str, today: Option<&str>) -> Result<String, NoHabit> {
    let today = today.ok_or(NoHabit::NoTag)?;
    let (before, after) = around_version(today)?;
    let bare = version.strip_prefix('v').unwrap_or(version);
    // A tag can't hold build metadata's plus sign; registries write an underscore for it.
    let written = bare.replace('+', "_");
    Ok(if is_decorated(bare) { format!("{before}{written}") } else { format!("{before}{written}{after}") })
}

/// What stands before and after the only version in a tag.
fn around_version(tag: &str) -> Result<(&str, &str), NoHabit> {
    let numbers = |run: &str| run.split('.').filter(|number| !number.is_empty()).count();
    let is_numeric = |c: char| c.is_ascii_digit() || c == '.';
    let mut found = None;
    let mut rest = tag;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let from = rest.get(start..).unwrap_or_default();
        let (run, behind) = from.split_at(from.find(|c| !is_numeric(c)).unwrap_or(from.len()));
        // Two numbers are a base image's, as in alpine3.20; three are a version, whoever's.
        if numbers(run) >= 3 {
            if found.is_some() {
                return Err(NoHabit::SeveralVersions(tag.to_owned()));
            }
            found = Some((run, behind));
        }
        rest = behind;
    }
    let none = || NoHabit::NoVersion(tag.to_owned());
    let (run, behind) = found.ok_or_else(none)?;
    run.parse::<Version>().map_err(|_| none())?;
    let before = tag.strip_suffix(behind).and_then(|front| front.strip_suffix(run)).unwrap_or_default();
    match behind.chars().next() {
        // Build metadata is of the version, not of the tag.
        None | Some('_') => Ok((before, "")),
        Some('-') => Ok((before, without_pre_release(behind))),
        // 3.6.5rc1 is nobody's version.
        Some(_) => Err(none()),
    }
}

/// A suffix without the part that says how far the version is from its release: `-rc.1-debian-12` is `-debian-12`.
fn without_pre_release(suffix: &str) -> &str {
    let inside = suffix.strip_prefix('-').unwrap_or(suffix);
    if !is_pre_release(inside) {
        return suffix;
    }
    // What is left may be such a part once more: -alpha-nightly.
    inside.find('-').and_then(|next| inside.get(next..)).map_or("", without_pre_release)
}

fn is_pre_release(suffix: &str) -> bool {
    let word = suffix.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    BEFORE_A_RELEASE.contains(&word)
}

/// Whether somebody wrote a version together with its decoration.
fn is_decorated(version: &str) -> bool {
    let suffix = version.split_once(['-', '+']).map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| version.contains('+') || !is_pre_release(suffix))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("8.5.3", "8.5.1", "8.5.3")]
    #[case::with_v("8.5.3", "v8.5.1", "v8.5.3")]
    #[case::v_is_the_tags_habit("v8.5.3", "8.5.1", "8.5.3")]
    #[case::bitnami("3.6.6", "v3.6.5-debian-12-r1", "v3.6.6-debian-12-r1")]
    #[case::alpine("3.5.36", "3.5.35-alpine", "3.5.36-alpine")]
    #[case::alpine_of_a_version("3.5.36", "3.5.35-alpine3.20", "3.5.36-alpine3.20")]
    #[case::something_in_front("8.5.3", "pd-v8.5.1", "pd-v8.5.3")]
    #[case::own_decoration("3.6.6-debian-12-r2", "v3.6.5-debian-12-r1", "v3.6.6-debian-12-r2")]
    #[case::own_build("3.6.6+k3s1", "v3.6.5-k3s1", "v3.6.6_k3s1")]
    #[case::from_a_pre_release("8.5.0", "v8.5.0-alpha.1", "v8.5.0")]
    #[case::from_a_decorated_pre_release("8.5.0", "v8.5.0-rc.1-debian-12", "v8.5.0-debian-12")]
    #[case::from_two_at_once("8.5.0", "v8.5.0-alpha-nightly", "v8.5.0")]
    #[case::to_a_pre_release("8.5.0-rc.1", "v8.4.0-debian-12", "v8.5.0-rc.1-debian-12")]
    #[case::from_a_build("8.5.1", "8.5.0_hotfix", "8.5.1")]
    #[case::words_that_only_begin_like_that("3.6.6", "3.6.5-prepared", "3.6.6-prepared")]
    fn a_tag_keeps_its_decoration(#[case] version: &str, #[case] today: &str, #[case] expected: &str) {
        assert_eq!(tag_for(version, Some(today)).as_deref(), Ok(expected));
    }

    #[rstest]
    #[case::a_word("latest")]
    #[case::a_minor_release("3.6")]
    #[case::four_numbers("3.6.5.1")]
    #[case::glued("3.6.5rc1")]
    #[case::a_dot_behind("3.6.5.Final")]
    #[case::zeros_in_front("2025.07.23")]
    #[case::a_commit("sha-0a1b2c")]
    fn a_tag_without_a_version_shows_nothing(#[case] today: &str) {
        assert_eq!(tag_for("3.6.6", Some(today)), Err(NoHabit::NoVersion(today.into())));
    }

    #[rstest]
    #[case::of_the_base("3.6.5-alpine3.20.1")]
    #[case::of_a_chart("1.2.3-v3.6.5")]
    #[case::of_a_day("3.6.5-2025.07.23")]
    fn a_tag_with_two_versions_shows_nothing(#[case] today: &str) {
        assert_eq!(tag_for("3.6.6", Some(today)), Err(NoHabit::SeveralVersions(today.into())));
    }

    #[test]
    fn no_tag_shows_nothing() {
        assert_eq!(tag_for("3.6.6", None), Err(NoHabit::NoTag));
    }
}
