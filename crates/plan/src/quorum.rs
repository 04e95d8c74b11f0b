//! The members of a quorum as they were seen, and what the quorum can spare.

use std::{collections::BTreeMap, fmt};

use crate::{
    bug::{self, Bug},
    fact::Fact,
    version::Version,
};

/// A member's name, which is its pod's name too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberName(String);

impl MemberName {
    /// A member of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One voter, as seen in this pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Serves, and takes part in the quorum.
    pub healthy: Fact<bool>,
    /// What it says keeps it from being healthy, where it says anything.
    pub trouble: Option<Complaint>,
    /// What the running process says it is.
    pub version: Fact<Version>,
    /// How far its log is applied; known to be `None` where the system does not tell.
    pub position: Fact<Option<u64>>,
    /// How much it wants to lead: a member with a higher number takes leadership by itself (H19). 0 where there is no such thing.
    pub priority: i64,
}

/// What keeps a member from being healthy, as it or its peers say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// It has its data and not the key: an auto-unseal brings that, or a person.
    Sealed,
    /// Anything else.
    Other(String),
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sealed => f.write_str("it is sealed, and a person must unseal it unless an auto-unseal does"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

/// All voters and who leads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// Every voter that the system itself lists. Known only if everyone who answered lists the same.
    pub members: Fact<BTreeMap<MemberName, Member>>,
    /// Who leads: known only if everyone who answered names the same one, and every notion of leadership agrees.
    pub leader: Fact<MemberName>,
    /// Members without a vote: they count in no quorum and lead nobody.
    pub learners: Vec<String>,
    /// The version that the system was told to go back to, where it has such a thing and everyone who answered says so (H20).
    pub downgrade: Option<Version>,
    /// The version that the system as a whole has agreed on, which follows the members some time after the last one was replaced: where it
    /// has such a thing and everyone who answered says the same (H20).
    pub agreed: Option<Version>,
    /// Nothing is known because the system refuses the token that it was shown.
    pub refused: bool,
}

/// How many of `members` must be up for the quorum to work (H14).
pub fn majority(members: usize) -> usize {
    if bug::active(Bug::QuorumOffByOne) {
        return members / 2;
    }
    // Integer division on purpose: 1→1, 2→2, 3→2, 4→3, 5→3, 7→4.
    (members / 2).saturating_add(1)
}

/// Whether a quorum of this size can ever lose a member and go on (H14).
pub fn can_spare_one(members: usize) -> bool {
    members.saturating_sub(1) >= majority(members)
}

impl Quorum {
    /// Voters alone.
    pub fn new(members: Fact<BTreeMap<MemberName, Member>>, leader: Fact<MemberName>) -> Self {
        Self { members, leader, learners: Vec::new(), downgrade: None, agreed: None, refused: false }
    }

    /// A quorum of which nothing is known.
    pub fn unknown(why: &str) -> Self {
        Self::new(Fact::Unknown(why.to_owned()), Fact::Unknown(why.to_owned()))
    }

    /// The same, for nobody is told anything without a token that is valid.
    pub fn refused(why: &str) -> Self {
        Self { refused: true, ..Self::unknown(why) }
    }

    /// One member, if the members are known and it is one.
    pub fn member(&self, name: &MemberName) -> Option<&Member> {
        self.members.known()?.get(name)
    }

    /// A silent member whose process is known not to run is down, not unknown: where members tell of nobody but themselves, only
    /// Kubernetes can say so.
    pub fn note_stopped(&mut self, name: &MemberName, why: &str) {
        let Fact::Known(members) = &mut self.members else { return };
        if let Some(member) = members.get_mut(name).filter(|member| member.healthy.known().is_none()) {
            member.healthy = Fact::Known(false);
            member.trouble = Some(Complaint::Other(why.to_owned()));
        }
    }

    /// How many voters there are; 0 where that is not known.
    pub fn size(&self) -> usize {
        self.members.known().map_or(0, BTreeMap::len)
    }

    /// True only if the health of every other voter is known and enough of them are healthy without `one` (C4).
    pub fn survives_losing(&self, one: &MemberName) -> bool {
        let Some(members) = self.members.known() else { return false };
        let others = || members.iter().filter(|(name, _)| *name != one).map(|(_, member)| member);
        let up = others().filter(|member| member.is_healthy()).count();
        others().all(|member| member.healthy.known().is_some()) && up >= majority(members.len())
    }

    /// How many entries `name` is behind the leader; known to be `None` where the system does not tell.
    pub fn lag(&self, name: &MemberName) -> Fact<Option<u64>> {
        let position = |name: &MemberName| match self.member(name) {
            Some(member) => member.position.clone(),
            None => Fact::Unknown(format!("{name} is no member")),
        };
        let leader = match &self.leader {
            Fact::Known(leader) => position(leader),
            Fact::Unknown(why) => Fact::Unknown(why.clone()),
        };
        match (leader, position(name)) {
            (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => Fact::Unknown(why),
            (Fact::Known(Some(leader)), Fact::Known(Some(own))) => Fact::Known(Some(leader.saturating_sub(own))),
            (Fact::Known(None), Fact::Known(_)) | (Fact::Known(_), Fact::Known(None)) => Fact::Known(None),
        }
    }
}

impl Member {
    /// A member of which nothing is known.
    pub fn unknown(why: &str) -> Self {
        let unknown = || why.to_owned();
        Self {
            healthy: Fact::Unknown(unknown()),
            trouble: None,
            version: Fact::Unknown(unknown()),
            position: Fact::Unknown(unknown()),
            priority: 0,
        }
    }

    /// Known to be healthy.
    pub fn is_healthy(&self) -> bool {
        self.healthy.is(&true)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Fact, Member, MemberName, Quorum, can_spare_one, majority};

    fn quorum(health: &[Fact<bool>]) -> Quorum {
        let members = health
            .iter()
            .enumerate()
            .map(|(index, healthy)| {
                let member = Member {
                    healthy: healthy.clone(),
                    trouble: None,
                    version: Fact::Known("8.5.0".parse().unwrap()),
                    position: Fact::Known(Some(100)),
                    priority: 0,
                };
                (MemberName::new(format!("pd-{index}")), member)
            })
            .collect();
        Quorum::new(Fact::Known(members), Fact::Known(MemberName::new("pd-0")))
    }

    #[rstest]
    #[case(1, 1, false)]
    #[case(2, 2, false)]
    #[case(3, 2, true)]
    #[case(4, 3, true)]
    #[case(5, 3, true)]
    #[case(7, 4, true)]
    fn the_quorum_rule_is_right_for_every_size(#[case] members: usize, #[case] needed: usize, #[case] spare: bool) {
        assert_eq!(majority(members), needed);
        assert_eq!(can_spare_one(members), spare);
        let healthy = vec![Fact::Known(true); members];
        assert_eq!(quorum(&healthy).survives_losing(&MemberName::new("pd-0")), spare);
    }

    #[rstest]
    #[case::three_with_one_down(3, 1, false)]
    #[case::four_with_one_down(4, 1, false)]
    #[case::five_with_one_down(5, 1, true)]
    #[case::five_with_two_down(5, 2, false)]
    #[case::seven_with_two_down(7, 2, true)]
    #[case::seven_with_three_down(7, 3, false)]
    fn members_that_are_down_already_count(#[case] members: usize, #[case] down: usize, #[case] survives: bool) {
        let mut health = vec![Fact::Known(true); members];
        for state in health.iter_mut().rev().take(down) {
            *state = Fact::Known(false);
        }
        assert_eq!(quorum(&health).survives_losing(&MemberName::new("pd-0")), survives);
    }

    #[test]
    fn losing_the_member_that_is_down_already_costs_nothing() {
        let health = [Fact::Known(true), Fact::Known(true), Fact::Known(false)];
        assert!(quorum(&health).survives_losing(&MemberName::new("pd-2")));
    }

    #[test]
    fn what_the_others_are_without_one_does_not_depend_on_that_one() {
        let health = [Fact::Known(true), Fact::Known(true), Fact::Unknown("timed out".into())];
        assert!(quorum(&health).survives_losing(&MemberName::new("pd-2")));
        assert!(!quorum(&health).survives_losing(&MemberName::new("pd-1")));
    }

    #[test]
    fn an_unknown_member_is_no_spare() {
        let health = [
            Fact::Known(true),
            Fact::Known(true),
            Fact::Known(true),
            Fact::Known(true),
            Fact::Unknown("timed out".into()),
        ];
        assert!(!quorum(&health).survives_losing(&MemberName::new("pd-0")));
        assert!(!Quorum::unknown("nobody answered").survives_losing(&MemberName::new("pd-0")));
    }

    #[test]
    fn a_process_that_does_not_run_is_down_and_one_that_answers_is_believed() {
        let mut quorum = quorum(&[Fact::Known(true), Fact::Known(true), Fact::Unknown("timed out".into())]);
        let [first, last] = ["pd-0", "pd-2"].map(MemberName::new);
        assert!(!quorum.survives_losing(&first));
        quorum.note_stopped(&last, "its container waits");
        quorum.note_stopped(&first, "an old status");
        assert_eq!(quorum.member(&last).unwrap().healthy, Fact::Known(false));
        assert_eq!(quorum.member(&first).unwrap().healthy, Fact::Known(true));
        assert!(!quorum.survives_losing(&first));
    }

    #[test]
    fn lag_is_unknown_without_a_leader() {
        let mut quorum = quorum(&[Fact::Known(true), Fact::Known(true), Fact::Known(true)]);
        assert_eq!(quorum.lag(&MemberName::new("pd-1")), Fact::Known(Some(0)));
        quorum.leader = Fact::Unknown("an election is under way".into());
        assert!(quorum.lag(&MemberName::new("pd-1")).known().is_none());
    }
}
