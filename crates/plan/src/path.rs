//! Which ways from one version to another a system supports (H20): rules as data, each with its source.
//!
//! A [`Path`] is chosen by the system and comes with what is wanted. It is asked before anything begins, and before a target or a
//! direction changes half way.

use crate::version::Version;

/// A minor release, like 3.6.
pub type Minor = (u64, u64);

/// A system's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// What is said of the system in messages.
    pub system: &'static str,
    /// How minor releases are passed.
    pub minors: Minors,
    /// What must run before a minor release is entered.
    pub doorsteps: &'static [Doorstep],
}

/// How minor releases are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minors {
    /// In any stride, in both directions.
    Freely,
    /// One by one; and back only where the system itself was told to go back, or while a member has not left yet.
    OneByOne,
}

/// What must run before a minor release is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorstep {
    /// The release that is entered.
    pub into: Minor,
    /// The oldest patch release of the one before that may enter it.
    pub from: (u64, u64, u64),
}

/// PD: no rule of this kind is known. Going back is a downgrade of the data and has a switch of its own (H15).
pub const PD: Path = Path { system: "PD", minors: Minors::Freely, doorsteps: &[] };

/// etcd.
///
/// - One minor release at a time: etcd.io/docs, "Upgrading etcd clusters and applications"; a process that is older than the
///   cluster's version ends at once ("invalid downgrade", `etcdserver/version/downgrade.go`), and the cluster's version rises when
///   the last member has been replaced.
/// - 3.6 from 3.5.26: etcd.io/docs, "Upgrade etcd from v3.5 to v3.6". Older ones can bring learners and removed members back to
///   life (etcd#19557, etcd#20793).
pub const ETCD: Path =
    Path { system: "etcd", minors: Minors::OneByOne, doorsteps: &[Doorstep { into: (3, 6), from: (3, 5, 26) }] };

/// OpenBao and Vault: releases may be skipped. Going back is a downgrade of the data and has a switch of its own (H15).
pub const OPENBAO: Path = Path { system: "OpenBao", minors: Minors::Freely, doorsteps: &[] };

/// A system that a resource describes: no rule is known. Going back is a downgrade of the data and has a switch of its own (H15).
pub const HTTP: Path = Path { system: "the system", minors: Minors::Freely, doorsteps: &[] };

impl Path {
    /// Whether there is a way from one version to another; if not, why, and which way there is. `told` is the version that the
    /// system itself was told to go back to, where it has such a thing.
    pub fn check(&self, from: &Version, to: &Version, told: Option<&Version>) -> Result<(), String> {
        let (before, after) = (from.minor(), to.minor());
        if before == after || self.minors == Minors::Freely {
            return Ok(());
        }
        let system = self.system;
        if after < before {
            let one_back = before.0 == after.0 && before.1 == after.1.saturating_add(1);
            if one_back && told.is_some_and(|told| told.minor() == after) {
                return Ok(());
            }
            let (major, minor) = after;
            return Err(format!(
                "{system} does not go back from {from} to {to} unless it was told to: enable its downgrade to {major}.{minor} first"
            ));
        }
        let next = (before.0, before.1.saturating_add(1));
        if after != next {
            let (major, minor) = next;
            return Err(format!("{system} skips no minor release: from {from} go to {major}.{minor} before {to}"));
        }
        let doorstep = self.doorsteps.iter().find(|doorstep| doorstep.into == after);
        match doorstep {
            Some(Doorstep { from: (major, minor, patch), .. }) if !from.is_at_least((*major, *minor, *patch)) => {
                Err(format!("{system} {to} can be entered from {major}.{minor}.{patch} or later, and {from} runs"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{ETCD, PD};

    #[rstest]
    #[case::patch("3.5.26", "3.5.35", None, None)]
    #[case::patch_back("3.5.35", "3.5.21", None, None)]
    #[case::next_minor("3.4.34", "3.5.0", None, None)]
    #[case::next_minor_from_the_doorstep("3.5.26", "3.6.0", None, None)]
    #[case::next_minor_from_past_it("3.5.35", "3.6.16", None, None)]
    #[case::before_the_doorstep("3.5.25", "3.6.16", None, Some("3.5.26 or later, and 3.5.25 runs"))]
    #[case::a_release_candidate_is_before_its_release("3.5.26-rc.1", "3.6.0", None, Some("3.5.26 or later"))]
    #[case::skipped("3.4.34", "3.6.0", None, Some("from 3.4.34 go to 3.5 before 3.6.0"))]
    #[case::far_away("3.5.35", "3.8.1", None, Some("go to 3.6 before 3.8.1"))]
    #[case::another_major("3.6.0", "4.0.0", None, Some("go to 3.7 before 4.0.0"))]
    #[case::back("3.6.16", "3.5.35", None, Some("enable its downgrade to 3.5 first"))]
    #[case::back_as_told("3.6.16", "3.5.35", Some("3.5.0"), None)]
    #[case::back_elsewhere("3.6.16", "3.5.35", Some("3.4.0"), Some("unless it was told to"))]
    #[case::back_too_far("3.6.16", "3.4.34", Some("3.4.0"), Some("unless it was told to"))]
    fn etcd_goes_one_minor_release_at_a_time(
        #[case] from: &str,
        #[case] to: &str,
        #[case] told: Option<&str>,
        #[case] refused: Option<&str>,
    ) {
        let told = told.map(|told| told.parse().unwrap());
        let answer = ETCD.check(&from.parse().unwrap(), &to.parse().unwrap(), told.as_ref());
        match (answer, refused) {
            (Ok(()), None) => {}
            (Err(why), Some(words)) => assert!(why.contains(words), "{why}"),
            (answer, refused) => panic!("{from} to {to}: {answer:?} instead of {refused:?}"),
        }
    }

    #[rstest]
    #[case("6.5.0", "8.5.3")]
    #[case("8.5.3", "6.5.0")]
    fn pd_goes_anywhere(#[case] from: &str, #[case] to: &str) {
        assert_eq!(PD.check(&from.parse().unwrap(), &to.parse().unwrap(), None), Ok(()));
    }
}
