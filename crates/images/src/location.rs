//! Where a registry keeps what a reference names: for the registry's API alone.
//!
//! A [`Reference`] is never rewritten. To ask a registry, though, somebody has to know that `pd` means `library/pd` at `registry-1.docker.io`;
//! that knowledge is here and nowhere else.

use std::fmt;

use crate::{
    Digest, Reference,
    reference::{InvalidReference, Part, Problem},
};

/// What references without a registry mean.
const DOCKER_HUB: &str = "docker.io";
/// The name under which the Hub is still known to old configurations.
const DOCKER_INDEX: &str = "index.docker.io";
/// Where the Hub answers.
const DOCKER_HOST: &str = "registry-1.docker.io";
/// What references without a tag mean.
const DEFAULT_TAG: &str = "latest";

/// A repository in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    registry: String,
    host: String,
    port: Option<u16>,
    repository: String,
}

impl Location {
    /// The registry as people and pull secrets name it, with its port where one is written: `docker.io` for the Hub.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The host that answers, in lower case and without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, where one is written.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The repository as the registry knows it: with `library/` where the Hub wants that.
    pub fn repository(&self) -> &str {
        &self.repository
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)
    }
}

/// What of a repository is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whatever has this tag now.
    Tag(String),
    /// Exactly this.
    Digest(Digest),
}

impl Wanted {
    /// As it stands in a path.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tag(tag) => tag,
            Self::Digest(digest) => digest.as_str(),
        }
    }
}

impl Reference {
    /// Where to ask for it.
    pub fn locate(&self) -> Result<Location, InvalidReference> {
        let written = self.registry().unwrap_or(DOCKER_HUB).to_ascii_lowercase();
        if written == DOCKER_HUB || written == DOCKER_INDEX {
            let repository = self.repository();
            let library = if repository.contains('/') { "" } else { "library/" };
            return Ok(Location {
                registry: DOCKER_HUB.to_owned(),
                host: DOCKER_HOST.to_owned(),
                port: None,
                repository: format!("{library}{repository}"),
            });
        }
        // The colons inside brackets belong to the address.
        let (host, port) = match written.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, rest)) => (address, rest.strip_prefix(':')),
            None => written.split_once(':').map_or((written.as_str(), None), |(host, port)| (host, Some(port))),
        };
        let port = port
            .map(str::parse)
            .transpose()
            .map_err(|_| InvalidReference::new(self.as_str(), Part::Registry, Problem::RegistryPort))?;
        Ok(Location { host: host.to_owned(), port, repository: self.repository().to_owned(), registry: written })
    }

    /// What to ask for there: the digest where there is one, for a tag beside it is only a remark.
    pub fn wanted(&self) -> Result<Wanted, InvalidReference> {
        match self.digest() {
            Some(digest) => digest
                .parse()
                .map(Wanted::Digest)
                .map_err(|_| InvalidReference::new(self.as_str(), Part::Digest, Problem::DigestAlgorithm)),
            None => Ok(Wanted::Tag(self.tag().unwrap_or(DEFAULT_TAG).to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::bare("pd", "docker.io", "registry-1.docker.io", None, "library/pd")]
    #[case::a_team("tikv/pd", "docker.io", "registry-1.docker.io", None, "tikv/pd")]
    #[case::the_hub_by_name("docker.io/pd", "docker.io", "registry-1.docker.io", None, "library/pd")]
    #[case::the_hub_by_its_old_name("index.docker.io/tikv/pd", "docker.io", "registry-1.docker.io", None, "tikv/pd")]
    #[case::elsewhere("Quay.io/pd:v1", "quay.io", "quay.io", None, "pd")]
    #[case::a_port("localhost:5000/a/b", "localhost:5000", "localhost", Some(5000), "a/b")]
    #[case::an_address("[fd00::1]:5000/a", "[fd00::1]:5000", "fd00::1", Some(5000), "a")]
    #[case::an_address_without_a_port("[fd00::1]/a", "[fd00::1]", "fd00::1", None, "a")]
    fn a_reference_is_located_and_not_rewritten(
        #[case] text: &str,
        #[case] registry: &str,
        #[case] host: &str,
        #[case] port: Option<u16>,
        #[case] repository: &str,
    ) {
        let reference: Reference = text.parse().unwrap();
        let location = reference.locate().unwrap();
        assert_eq!(
            (location.registry(), location.host(), location.port(), location.repository()),
            (registry, host, port, repository)
        );
        assert_eq!(reference.as_str(), text);
    }

    #[rstest]
    #[case("pd", Wanted::Tag("latest".into()))]
    #[case("pd:v1", Wanted::Tag("v1".into()))]
    #[case(
        "pd:v1@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        Wanted::Digest(Digest::of(b""))
    )]
    fn the_digest_decides(#[case] text: &str, #[case] wanted: Wanted) {
        assert_eq!(text.parse::<Reference>().unwrap().wanted(), Ok(wanted));
    }

    #[test]
    fn what_no_registry_has_is_refused() {
        let reference = |text: &str| text.parse::<Reference>().unwrap();
        let port = reference("localhost:99999/a").locate().unwrap_err();
        assert_eq!((port.part(), port.problem()), (Part::Registry, Problem::RegistryPort));
        let digest = reference(&format!("a@sha512:{}", "0".repeat(128))).wanted().unwrap_err();
        assert_eq!((digest.part(), digest.problem()), (Part::Digest, Problem::DigestAlgorithm));
    }
}
