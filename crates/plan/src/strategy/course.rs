//! Where an upgrade stands, by its record alone. Before anything is seen this tells whose word counts, so that everybody can be asked at once.
//!
//! ```text
//!   at rest       nobody's                                             a record     whoever is asked before every member
//!   wanted        whoever is asked before an upgrade and a member      another one  and those asked before an upgrade
//!                                                                      all done     and those asked after it
//! ```
//! Should it be wrong, because what was recorded is older than what is the case, then the gates that count were not asked, and hold.

use jiff::Timestamp;

use crate::{
    gate::When,
    quorum::MemberName,
    strategy::{contract::Record, known::want::Target},
};

/// Where an upgrade stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// The upgrade that is under way, if one is.
    pub under_way: Option<UnderWay>,
    /// What is wanted is there, as far as the last look told; nobody is asked anything.
    pub at_rest: bool,
}

/// An upgrade that is under way, as far as others are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// When it began.
    pub since: Timestamp,
    /// Where it goes, or where another one goes that is to take its place.
    pub coming: Target,
    /// Another one is to take its place.
    pub gives_way: bool,
    /// Members that are done.
    pub done: Vec<MemberName>,
    /// Whose turn it is.
    pub next: Option<MemberName>,
    /// When the last member that was replaced was well again: what was said before says nothing of it.
    pub settled: Option<Timestamp>,
}

impl UnderWay {
    /// What is on record.
    pub fn of(record: &impl Record) -> Self {
        Self {
            since: record.since(),
            coming: record.coming().clone(),
            gives_way: record.coming() != record.target(),
            done: record.done().to_vec(),
            next: record.next().cloned(),
            settled: record.settled(),
        }
    }
}

impl Course {
    /// Whether the word of those counts who are asked then, of a quorum of so many members.
    pub fn asks(&self, when: When, members: usize) -> bool {
        let Some(under_way) = &self.under_way else {
            return match when {
                When::BeforeEachMember | When::BeforeUpgrade => !self.at_rest,
                When::AfterUpgrade => false,
            };
        };
        match when {
            When::BeforeEachMember => true,
            When::BeforeUpgrade => under_way.gives_way,
            When::AfterUpgrade => !under_way.gives_way && under_way.done.len() >= members,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Course, UnderWay};
    use crate::{gate::When, quorum::MemberName, strategy::known::want::Target};

    fn under_way(done: usize, gives_way: bool) -> Course {
        let coming = Target { version: "2.0.0".parse().unwrap(), image: "x:2.0.0".to_owned() };
        let done = (0..done).map(|index| MemberName::new(format!("x-{index}"))).collect();
        let since = jiff::Timestamp::UNIX_EPOCH;
        let under_way = UnderWay { since, coming, gives_way, done, next: None, settled: None };
        Course { under_way: Some(under_way), at_rest: false }
    }

    #[rstest]
    #[case::at_rest(Course { under_way: None, at_rest: true }, &[])]
    #[case::wanted(Course::default(), &[When::BeforeEachMember, When::BeforeUpgrade])]
    #[case::half_way(under_way(2, false), &[When::BeforeEachMember])]
    #[case::all_done(under_way(3, false), &[When::BeforeEachMember, When::AfterUpgrade])]
    #[case::another_one(under_way(3, true), &[When::BeforeEachMember, When::BeforeUpgrade])]
    fn whose_word_counts(#[case] course: Course, #[case] asked: &[When]) {
        for when in [When::BeforeEachMember, When::BeforeUpgrade, When::AfterUpgrade] {
            assert_eq!(course.asks(when, 3), asked.contains(&when), "{when:?}");
        }
    }
}
