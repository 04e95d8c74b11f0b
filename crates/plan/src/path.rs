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
    /// Ways that are known to end badly although the system itself lets one try.
    pub pitfalls: &'static [Pitfall],
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
    pub from: Release,
}

/// A way that is known to end badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pitfall {
    /// Where it begins.
    pub from: Releases,
    /// Where it leads to.
    pub to: Releases,
    /// What happens there, and who says so.
    pub why: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

/// A release, like 3.5.26.
pub type Release = (u64, u64, u64);

/// Releases from one on, and below another. What comes before a release, like 2.6.0-beta, counts as that release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Releases {
    /// The first of them.
    pub first: Release,
    /// The first that is none of them; none where they have no end.
    pub end: Option<Release>,
}

impl Releases {
    const fn below(end: Release) -> Self {
        Self { first: (0, 0, 0), end: Some(end) }
    }

    const fn one((major, minor, patch): Release) -> Self {
        Self { first: (major, minor, patch), end: Some((major, minor, patch.saturating_add(1))) }
    }

    fn hold(&self, version: &Version) -> bool {
        let release = version.release();
        release >= self.first && self.end.is_none_or(|end| release < end)
    }
}

/// PD. Going back is a downgrade of the data and has a switch of its own (H15).
///
/// - 4.0 is passed through: docs.pingcap.com, "Upgrade TiDB Using TiUP", which is for PD as well (pd#1373).
pub const PD: Path = Path {
    system: "PD",
    minors: Minors::Freely,
    doorsteps: &[],
    pitfalls: &[Pitfall {
        from: Releases::below((4, 0, 0)),
        to: Releases { first: (5, 0, 0), end: None },
        why: "PingCAP does not support this way at one go",
        instead: "go to 4.0 first",
    }],
};

/// etcd.
///
/// - One minor release at a time: etcd.io/docs, "Upgrading etcd clusters and applications"; a process that is older than the
///   cluster's version ends at once ("invalid downgrade", `etcdserver/version/downgrade.go`), and the cluster's version rises when
///   the last member has been replaced.
/// - 3.6 from 3.5.26: etcd.io/docs, "Upgrade etcd from v3.5 to v3.6". Older ones can bring learners and removed members back to
///   life (etcd#19557, etcd#20793).
pub const ETCD: Path = Path {
    system: "etcd",
    minors: Minors::OneByOne,
    doorsteps: &[Doorstep { into: (3, 6), from: (3, 5, 26) }],
    pitfalls: &[],
};

/// OpenBao: releases may be skipped (openbao.org/docs, "Upgrading OpenBao"). Going back is a downgrade of the data and has a switch of
/// its own (H15).
///
/// - 2.6.0 renamed the service by which standbys forward requests and tell the leader that they live, so that beside an older leader they
///   can do neither (openbao#3899, openbao#3676). 2.6.3 answers to both names (openbao#3922). On the way back it is the old standbys that
///   can't, and staying would be worse.
pub const OPENBAO: Path = Path {
    system: "OpenBao",
    minors: Minors::Freely,
    doorsteps: &[],
    pitfalls: &[Pitfall {
        from: Releases::below((2, 6, 0)),
        to: Releases { first: (2, 6, 0), end: Some((2, 6, 3)) },
        why: "its standbys can't forward requests to an older leader (openbao#3899)",
        instead: "go to 2.6.3 or later",
    }],
};

/// Vault: releases may be skipped (developer.hashicorp.com/vault/docs, "Upgrading Vault"). Going back is a downgrade of the data and has a
/// switch of its own (H15).
///
/// - Performance standbys of 1.14.12, 1.15.8 and 1.16.2 fall back to plain ones at every unseal; HashiCorp asks to wait for the next patch
///   release (vault#27062).
pub const VAULT: Path = Path {
    system: "Vault",
    minors: Minors::Freely,
    doorsteps: &[],
    pitfalls: &[reverting_standbys((1, 14, 12)), reverting_standbys((1, 15, 8)), reverting_standbys((1, 16, 2))],
};

const fn reverting_standbys(release: Release) -> Pitfall {
    Pitfall {
        from: Releases::below(release),
        to: Releases::one(release),
        why: "its performance standbys don't stay such (vault#27062)",
        instead: "go to the next patch release",
    }
}

/// A system that a resource describes: no rule is known. Going back is a downgrade of the data and has a switch of its own (H15).
pub const HTTP: Path = Path { system: "the system", minors: Minors::Freely, doorsteps: &[], pitfalls: &[] };

impl Path {
    /// Whether there is a way from one version to another; if not, why, and which way there is. `told` is the version that the
    /// system itself was told to go back to, where it has such a thing.
    pub fn check(&self, from: &Version, to: &Version, told: Option<&Version>) -> Result<(), String> {
        if let Some(Pitfall { why, instead, .. }) =
            self.pitfalls.iter().find(|pit| pit.from.hold(from) && pit.to.hold(to))
        {
            return Err(format!("{} does not go well from {from} to {to}: {why}; {instead}", self.system));
        }
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

    use super::{ETCD, OPENBAO, PD, Path, VAULT};

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
    #[case::pd(PD, "6.5.0", "8.5.3")]
    #[case::pd_back(PD, "8.5.3", "6.5.0")]
    #[case::pd_to_what_is_passed_through(PD, "3.1.2", "4.0.16")]
    #[case::pd_from_there(PD, "4.0.16", "8.5.3")]
    #[case::openbao(OPENBAO, "2.2.0", "2.5.5")]
    #[case::openbao_to_where_it_was_mended(OPENBAO, "2.5.5", "2.6.3")]
    #[case::openbao_within(OPENBAO, "2.6.0", "2.6.2")]
    #[case::openbao_from_a_beta_that_has_the_new_name(OPENBAO, "2.6.0-beta20260622", "2.6.2")]
    #[case::openbao_back(OPENBAO, "2.6.1", "2.5.5")]
    #[case::vault(VAULT, "1.13.2", "1.16.3")]
    #[case::vault_that_is_there_already(VAULT, "1.16.2", "1.16.2")]
    fn there_is_a_way(#[case] path: Path, #[case] from: &str, #[case] to: &str) {
        assert_eq!(path.check(&from.parse().unwrap(), &to.parse().unwrap(), None), Ok(()));
    }

    #[rstest]
    #[case::pd(PD, "3.1.2", "5.0.0", "go to 4.0 first")]
    #[case::pd_far(PD, "2.1.19", "8.5.3", "go to 4.0 first")]
    #[case::openbao(OPENBAO, "2.5.5", "2.6.2", "go to 2.6.3 or later")]
    #[case::openbao_far(OPENBAO, "2.0.0", "2.6.0", "openbao#3899")]
    #[case::openbao_to_a_beta(OPENBAO, "2.5.5", "2.6.0-beta20260622", "openbao#3899")]
    #[case::vault(VAULT, "1.16.1", "1.16.2", "next patch release")]
    fn a_way_that_ends_badly_is_not_taken(
        #[case] path: Path,
        #[case] from: &str,
        #[case] to: &str,
        #[case] words: &str,
    ) {
        let why = path.check(&from.parse().unwrap(), &to.parse().unwrap(), None).unwrap_err();
        assert!(why.contains(words) && why.starts_with(path.system), "{why}");
    }
}
