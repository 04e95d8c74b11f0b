//! A reference to a container image, read once and kept as it was written.
//!
//! Used wherever an image is compared or its tag changed. It must never normalise: `pd` and `docker.io/library/pd` may
//! be the same image to a container runtime, and are two texts here.

use std::{fmt, str::FromStr};

use crate::{Digest, grammar};

/// `[registry[:port]/]repository[:tag][@digest]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    text: String,
    registry: Option<String>,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl Reference {
    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The registry with its port, where one is written.
    pub fn registry(&self) -> Option<&str> {
        self.registry.as_deref()
    }

    /// The repository, without the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, where one is written.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest with its algorithm, where one is written. It decides what is run; a tag beside it is only a remark.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The same image, named by this digest too. Registry, repository and tag stay as they are written, so that people still see which version
    /// it is; the digest decides what is run. Another digest that was written there is replaced.
    #[must_use]
    pub fn pinned(&self, digest: &Digest) -> Self {
        let name = self.text.split_once('@').map_or(self.text.as_str(), |(name, _)| name);
        Self { text: format!("{name}@{digest}"), digest: Some(digest.to_string()), ..self.clone() }
    }

    /// The same repository with another tag. A digest is dropped: it would keep the old image running under the new
    /// tag.
    pub fn with_tag(&self, tag: &str) -> Result<Self, InvalidReference> {
        let name = self.registry.iter().chain([&self.repository]).map(String::as_str).collect::<Vec<_>>().join("/");
        let text = format!("{name}:{tag}");
        grammar::tag(tag).map_err(|problem| InvalidReference::new(&text, Part::Tag, problem))?;
        Ok(Self {
            text,
            registry: self.registry.clone(),
            repository: self.repository.clone(),
            tag: Some(tag.to_owned()),
            digest: None,
        })
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let wrong = |part: Part| move |problem: Problem| InvalidReference::new(text, part, problem);
        if text.is_empty() {
            return Err(wrong(Part::Image)(Problem::Empty));
        }
        let (rest, digest) = split(text, '@');
        // A colon before the last slash belongs to the registry's port.
        let last = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (directory, file) = rest.split_at(last);
        let (file, tag) = split(file, ':');
        let (registry, repository) = match directory.split_once('/') {
            Some((first, others)) if grammar::is_registry(first) => (Some(first), format!("{others}{file}")),
            Some(_) | None => (None, format!("{directory}{file}")),
        };
        if let Some(registry) = registry {
            grammar::registry(registry).map_err(wrong(Part::Registry))?;
        }
        grammar::repository(&repository).map_err(wrong(Part::Repository))?;
        if let Some(tag) = tag {
            grammar::tag(tag).map_err(wrong(Part::Tag))?;
        }
        if let Some(digest) = digest {
            grammar::digest(digest).map_err(wrong(Part::Digest))?;
        }
        if text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(wrong(Part::Image)(Problem::LooksLikeAnId));
        }
        Ok(Self {
            text: text.to_owned(),
            registry: registry.map(str::to_owned),
            repository,
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }
}

fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A part of a reference, to say where something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Image,
    /// What stands before the first slash, if it has a dot or a colon or is `localhost`.
    Registry,
    /// The path in the registry.
    Repository,
    /// What stands after the colon.
    Tag,
    /// What stands after the at sign.
    Digest,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Image => "the image",
            Self::Registry => "the registry",
            Self::Repository => "the repository",
            Self::Tag => "the tag",
            Self::Digest => "the digest",
        })
    }
}

/// What is wrong with a part of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing is written there.
    #[error("is empty")]
    Empty,
    /// A character that is not allowed there.
    #[error("can't contain {character:?}")]
    Character {
        /// The first such character.
        character: char,
    },
    /// Registries know lower case only.
    #[error("must be in lower case and contains {character:?}")]
    UpperCase {
        /// The first such character.
        character: char,
    },
    /// A dot, dash or underscore at an end or next to another.
    #[error("has a dot, dash or underscore where a letter or digit is needed")]
    Separator,
    /// Two slashes in a row, or one at an end.
    #[error("has an empty component: a slash too many")]
    EmptyComponent,
    /// There is only a registry, tag or digest.
    #[error("is missing")]
    NoRepository,
    /// More characters than registries accept.
    #[error("is longer than {limit} characters")]
    TooLong {
        /// How many are accepted.
        limit: usize,
    },
    /// Not a host name or address.
    #[error("is not a host name or address")]
    RegistryHost,
    /// Not a port.
    #[error("has a port that is not a number")]
    RegistryPort,
    /// Not `algorithm:encoded`.
    #[error("is not of the form algorithm:encoded, such as sha256:… with 64 hexadecimal digits")]
    DigestForm,
    /// The wrong number of digits for its algorithm, or not digits.
    #[error("needs {digits} lower-case hexadecimal digits")]
    DigestLength {
        /// How many the algorithm has.
        digits: usize,
    },
    /// An algorithm that no registry must know.
    #[error("is not a sha256 digest, the only kind that Windlass checks")]
    DigestAlgorithm,
    /// 64 hexadecimal digits: container runtimes read these as an image's id.
    #[error("looks like an image id, which can't be pulled; name a repository")]
    LooksLikeAnId,
}

/// A text that is no reference, with the place and the problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image {text}: {part} {problem}")]
pub struct InvalidReference {
    text: String,
    part: Part,
    problem: Problem,
}

impl InvalidReference {
    pub(crate) fn new(text: &str, part: Part, problem: Problem) -> Self {
        // Quoted and cut: the text comes from a person and goes into conditions and events.
        let mut characters = text.chars();
        let shown: String = characters.by_ref().take(300).collect();
        let more = if characters.next().is_some() { "…" } else { "" };
        Self { text: format!("{shown:?}{more}"), part, problem }
    }

    /// Where it is wrong.
    pub fn part(&self) -> Part {
        self.part
    }

    /// What is wrong there.
    pub fn problem(&self) -> Problem {
        self.problem
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_bare_name("pd", "pd@")]
    #[case::a_tag_stays("quay.io:443/tikv/pd:v8.5.3", "quay.io:443/tikv/pd:v8.5.3@")]
    #[case::a_registry_with_capitals("Registry.Example.COM/pd:v1", "Registry.Example.COM/pd:v1@")]
    #[case::another_digest_is_replaced(
        "pd:v1@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "pd:v1@"
    )]
    fn a_pinned_reference_keeps_what_was_written(#[case] text: &str, #[case] before: &str) {
        let digest = Digest::of(b"index");
        let pinned = text.parse::<Reference>().unwrap().pinned(&digest);
        assert_eq!(pinned.as_str(), format!("{before}{digest}"));
        assert_eq!(pinned.digest(), Some(digest.as_str()));
    }

    proptest! {
        /// What is written into a template must mean the same when it is read again.
        #[test]
        fn a_pinned_reference_reads_as_itself(
            text in "([a-zA-Z0-9-]{1,9}\\.[a-z]{2,4}(:[0-9]{1,4})?/)?[a-z0-9]{1,8}(/[a-z0-9]{1,8}(__|-)?[a-z0-9]{1,3}){0,2}(:[a-zA-Z0-9_.-]{1,20})?"
        ) {
            if let Ok(reference) = text.parse::<Reference>() {
                let pinned = reference.pinned(&Digest::of(text.as_bytes()));
                prop_assert_eq!(pinned.as_str().parse::<Reference>(), Ok(pinned.clone()));
                prop_assert_eq!(pinned.tag(), reference.tag());
                prop_assert_eq!(pinned.repository(), reference.repository());
                prop_assert_eq!(pinned.pinned(&Digest::of(text.as_bytes())), pinned);
            }
        }
    }
}
