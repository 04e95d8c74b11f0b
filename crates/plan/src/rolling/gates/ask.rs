//! The question that every gate is asked: may this pod be taken down now?

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    quorum::MemberName,
    rolling::known::{Rolling, record::Record, view::View, workload::Pod},
    strategy::{
        gates,
        known::{
            ask,
            seen::Seen,
            want::{Target, Want},
        },
    },
    version::Version,
};

/// A gate of this strategy.
pub(crate) type Gate = gates::Gate<Rolling>;

/// The question: may this pod be taken down now?
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// What is wanted.
    pub want: &'a Want,
    /// What was seen.
    pub view: &'a View,
    /// The upgrade that is under way; none before it begins.
    pub record: Option<&'a Record>,
    /// What replaced members must run.
    pub version: &'a Version,
    /// Who would be taken down.
    pub victim: &'a Pod,
    /// When.
    pub now: Timestamp,
}

impl gates::Asks for Rolling {
    type Ask<'a> = Ask<'a>;
}

impl ask::Ask for Ask<'_> {
    fn want(&self) -> &Want {
        self.want
    }

    fn seen(&self) -> &Seen {
        self.view
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn under_way(&self) -> Option<&Target> {
        self.record.map(|record| &record.target)
    }

    fn member(&self) -> &MemberName {
        &self.victim.name
    }

    fn needs_no_pull(&self) -> bool {
        // It was asked about before the permit was given. A Job that is gone since says nothing against that.
        let permitted = self.view.permitted().is_some_and(|pod| pod.name == self.victim.name);
        permitted || self.record.is_some_and(|record| record.rolling_back)
    }

    fn last_settled(&self) -> Option<(&MemberName, Timestamp)> {
        let settled = self.record?.healthy_since.iter().max_by_key(|(_, since)| **since);
        settled.map(|(member, since)| (member, *since))
    }

    fn expected(&self) -> Option<Duration> {
        self.record.and_then(Record::expected)
    }
}
