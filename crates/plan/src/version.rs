//! Versions of the systems that are upgraded.

mod release;
mod tag;

use std::{fmt, str::FromStr};

pub use release::{Age, Blocked, NotARelease, Release, Step};
pub use tag::{NoHabit, tag_for};

/// A system's version. Written with or without a leading `v`, compared as a semantic version, build metadata ignored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(semver::Version);

/// The text is no semantic version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAVersion {
    text: String,
    why: String,
}

impl fmt::Display for NotAVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a version like 8.5.1: {}", self.text, self.why)
    }
}

impl std::error::Error for NotAVersion {}

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let mut version = semver::Version::parse(text.strip_prefix('v').unwrap_or(text))
            .map_err(|error| NotAVersion { text: text.to_owned(), why: error.to_string() })?;
        // Two builds of one version are one version: semver orders them, an upgrade must not.
        version.build = semver::BuildMetadata::EMPTY;
        Ok(Self(version))
    }
}

impl Version {
    /// Its minor release, like 3.6.
    pub fn minor(&self) -> (u64, u64) {
        (self.0.major, self.0.minor)
    }

    /// The release that it is, or comes before.
    pub fn release(&self) -> (u64, u64, u64) {
        (self.0.major, self.0.minor, self.0.patch)
    }

    /// This release or a later one.
    pub fn is_at_least(&self, (major, minor, patch): (u64, u64, u64)) -> bool {
        self.0 >= semver::Version::new(major, minor, patch)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Version;

    #[rstest]
    #[case::plain("8.5.1", Some("8.5.1"))]
    #[case::with_v("v8.5.1", Some("8.5.1"))]
    #[case::pre_release("v8.5.0-alpha.1", Some("8.5.0-alpha.1"))]
    #[case::build_is_dropped("8.5.1+hotfix", Some("8.5.1"))]
    #[case::two_numbers("8.5", None)]
    #[case::word("latest", None)]
    #[case::empty("", None)]
    #[case::nightly("nightly-2024", None)]
    fn versions_are_read_as_systems_write_them(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(text.parse::<Version>().ok().map(|v| v.to_string()).as_deref(), expected);
    }

    #[test]
    fn a_pre_release_comes_before_its_release() {
        let parse = |text: &str| text.parse::<Version>().unwrap();
        assert!(parse("v8.5.0-alpha") < parse("8.5.0"));
        assert!(parse("8.5.10") > parse("v8.5.9"));
    }
}
