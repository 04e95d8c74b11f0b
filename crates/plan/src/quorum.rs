//! The members of a quorum as they were seen, and what the quorum can spare.

use std::{collections::BTreeMap, fmt};

use crate::{
    bug::{self, Bug},
    fact::Fact,
    version::Version,
};

/// A member's name: its pod's where it is in one, its own where it is in none that is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberName(String);

impl MemberName {
    /// A member of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The member in this pod.
    pub fn in_pod(seat: &Seat) -> Self {
        Self(seat.to_string())
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

/// A pod of a StatefulSet, whether or not it exists at the moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat {
    /// The StatefulSet's name.
    pub set: String,
    /// Which of its pods.
    pub ordinal: u32,
}

impl Seat {
    /// The pod of this name; none where the controller of no StatefulSet gives pods such names.
    pub fn of_pod(name: &str) -> Option<Self> {
        let (set, ordinal) = name.rsplit_once('-')?;
        let pod = Self { set: set.to_owned(), ordinal: ordinal.parse().ok()? };
        // A number can be written in other ways, too.
        (!set.is_empty() && pod.to_string() == name).then_some(pod)
    }
}

impl fmt::Display for Seat {
    /// The pod's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.set, self.ordinal)
    }
}

/// One member, as seen in this pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// It has a vote. One that has none counts for no majority and against none, and leads nobody.
    pub votes: bool,
    /// The pod that it is in; none where it is in none that is known.
    pub seat: Option<Seat>,
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

/// All members and who leads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// Every member that the system itself lists. Known only if everyone who answered lists the same.
    pub members: Fact<BTreeMap<MemberName, Member>>,
    /// Who leads: known only if everyone who answered names the same one, and every notion of leadership agrees.
    pub leader: Fact<MemberName>,
    /// The version that the system was told to go back to, where it has such a thing and everyone who answered says so (H20).
    pub downgrade: Option<Version>,
    /// The version that the system as a whole has agreed on, which follows the members some time after the last one was replaced: where it
    /// has such a thing and everyone who answered says the same (H20).
    pub agreed: Option<Version>,
    /// Raft's term, in which the leader leads; none where the system does not tell. While it stays the same nobody else leads, and the next one
    /// belongs to the next leader alone.
    pub term: Option<u64>,
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
    /// Members and leader, and nothing else that is known.
    pub fn new(members: Fact<BTreeMap<MemberName, Member>>, leader: Fact<MemberName>) -> Self {
        Self { members, leader, downgrade: None, agreed: None, term: None, refused: false }
    }

    /// A quorum of which nothing is known.
    pub fn unknown(why: &str) -> Self {
        Self::new(Fact::Unknown(why.to_owned()), Fact::Unknown(why.to_owned()))
    }

    /// The same, for nobody is told anything without a token that is valid.
    pub fn refused(why: &str) -> Self {
        Self { refused: true, ..Self::unknown(why) }
    }

    /// One member, with a vote or without, if the members are known and it is one.
    pub fn member(&self, name: &MemberName) -> Option<&Member> {
        self.members.known()?.get(name)
    }

    /// One member, if it is known to have a vote.
    pub fn voter(&self, name: &MemberName) -> Option<&Member> {
        self.member(name).filter(|member| member.counts())
    }

    /// Those who have a vote; nobody where the members are not known.
    pub fn voters(&self) -> impl Iterator<Item = (&MemberName, &Member)> {
        self.members.known().into_iter().flatten().filter(|(_, member)| member.counts())
    }

    /// Those who have none; nobody where the members are not known.
    pub fn non_voters(&self) -> impl Iterator<Item = (&MemberName, &Member)> {
        self.members.known().into_iter().flatten().filter(|(_, member)| !member.votes)
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
        self.voters().count()
    }

    /// True only if the health of every other voter is known and enough of them are healthy without `one` (C4).
    pub fn survives_losing(&self, one: &MemberName) -> bool {
        let others = || self.voters().filter(|(name, _)| *name != one).map(|(_, member)| member);
        let up = others().filter(|member| member.is_healthy()).count();
        let known = self.members.known().is_some() && others().all(|member| member.healthy.known().is_some());
        known && up >= majority(self.size())
    }

    /// How many entries `name` is behind the leader; known to be `None` where the system does not tell.
    pub fn lag(&self, name: &MemberName) -> Fact<Option<u64>> {
        let position = |name: &MemberName| match self.voter(name) {
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
    /// A voter of which nothing else is known.
    pub fn unknown(why: &str) -> Self {
        let unknown = || why.to_owned();
        Self {
            votes: true,
            seat: None,
            healthy: Fact::Unknown(unknown()),
            trouble: None,
            version: Fact::Unknown(unknown()),
            position: Fact::Unknown(unknown()),
            priority: 0,
        }
    }

    fn counts(&self) -> bool {
        self.votes || bug::active(Bug::NonVotersCounted)
    }

    /// Known to be healthy.
    pub fn is_healthy(&self) -> bool {
        self.healthy.is(&true)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Fact, Member, MemberName, Quorum, Seat, can_spare_one, majority};

    fn quorum(health: &[Fact<bool>]) -> Quorum {
        let members = health
            .iter()
            .enumerate()
            .map(|(index, healthy)| {
                let member = Member {
                    votes: true,
                    seat: None,
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
    fn nobody_is_behind_a_leader_without_a_vote() {
        let mut quorum = quorum(&[Fact::Known(true), Fact::Known(true), Fact::Known(true)]);
        let behind = MemberName::new("pd-1");
        assert_eq!(quorum.lag(&behind), Fact::Known(Some(0)));
        if let Fact::Known(members) = &mut quorum.members {
            members.get_mut(&MemberName::new("pd-0")).unwrap().votes = false;
        }
        assert!(quorum.lag(&behind).known().is_none());
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

    /// Whatever they are: up, down or silent.
    #[rstest]
    #[case::nobody_is_down(&[true, true, true], true)]
    #[case::one_is_down(&[true, true, false], false)]
    #[case::four_voters(&[true, true, true, false], false)]
    fn who_has_no_vote_counts_for_no_majority_and_against_none(#[case] voters: &[bool], #[case] survives: bool) {
        let health: Vec<Fact<bool>> = voters.iter().copied().map(Fact::Known).collect();
        let plain = quorum(&health);
        for healthy in [Fact::Known(true), Fact::Known(false), Fact::Unknown("timed out".into())] {
            let mut quorum = plain.clone();
            let Fact::Known(members) = &mut quorum.members else { panic!("known") };
            for name in ["pd-green-0", "somewhere"] {
                let member = Member { votes: false, healthy: healthy.clone(), ..Member::unknown("no vote") };
                members.insert(MemberName::new(name), member);
            }
            assert_eq!((quorum.size(), quorum.non_voters().count()), (voters.len(), 2));
            for (index, _) in voters.iter().enumerate() {
                let name = MemberName::new(format!("pd-{index}"));
                assert_eq!(quorum.survives_losing(&name), plain.survives_losing(&name), "{name} beside {healthy:?}");
            }
            assert_eq!(quorum.survives_losing(&MemberName::new("pd-0")), survives);
            assert_eq!(quorum.voter(&MemberName::new("somewhere")), None);
        }
    }

    #[rstest]
    #[case::plain("pd-0", Some(("pd", 0)))]
    #[case::of_a_longer_name("pd-green-12", Some(("pd-green", 12)))]
    #[case::no_number("pd-x7f2k", None)]
    #[case::written_otherwise("pd-01", None)]
    #[case::a_sign("pd-+1", None)]
    #[case::of_no_set("-1", None)]
    #[case::no_pod_of_a_set("pd", None)]
    fn a_pod_tells_its_seat(#[case] pod: &str, #[case] expected: Option<(&str, u32)>) {
        let expected = expected.map(|(set, ordinal)| Seat { set: set.into(), ordinal });
        assert_eq!(Seat::of_pod(pod), expected);
        assert!(expected.is_none_or(|seat| MemberName::in_pod(&seat) == MemberName::new(pod)));
    }

    #[test]
    fn lag_is_unknown_without_a_leader() {
        let mut quorum = quorum(&[Fact::Known(true), Fact::Known(true), Fact::Known(true)]);
        assert_eq!(quorum.lag(&MemberName::new("pd-1")), Fact::Known(Some(0)));
        quorum.leader = Fact::Unknown("an election is under way".into());
        assert!(quorum.lag(&MemberName::new("pd-1")).known().is_none());
    }
}
