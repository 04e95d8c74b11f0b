//! What must outlive a restart of the operator: kept in the custom resource's status, written before every act.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    quorum::MemberName,
    rolling::known::{
        contest::Contest,
        mark::Mark,
        order::Order,
        stage::{HandOver, Stage, StageKind},
        template_trial::TemplateTrial,
        workload::Revision,
    },
    strategy::known::{snapshot::Snapshot, want::Target},
    version::Version,
};

/// The upgrade that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it goes.
    pub target: Target,
    /// Where it came from, and where a revert goes.
    pub from: Target,
    /// How its members are let go. It stays what it was when the upgrade began, whatever is asked for meanwhile.
    pub order: Order,
    /// It goes back to where an unfinished upgrade came from.
    pub rolling_back: bool,
    /// The revision that the controller made of the target's template, once it was seen. Another image or another revision later is
    /// somebody else's doing.
    pub revision: Option<Revision>,
    /// When it began.
    pub started_at: Timestamp,
    /// The partition that we wrote last or are about to write; under OnDelete, the one that was found.
    pub partition: u32,
    /// What else the partition may still be, written by us or found, until our last write was seen: a write that was lost leaves it there.
    /// Afterwards whoever brings it back is somebody else, also where it is what was found.
    pub previous_partitions: BTreeSet<u32>,
    /// When the template was last written, or was about to be.
    pub template_at: Timestamp,
    /// How often in a row, without anybody having seen it stand.
    pub template_writes: u32,
    /// Somebody else set the strategy back, and no person has said yet that this is over.
    pub contest: Option<Contest>,
    /// Members that are done, in the order of their indices.
    pub completed: Vec<MemberName>,
    /// The newest version that has led: going below it is a downgrade of the data (H15).
    pub highest_led: Option<Version>,
    /// Raft's term when the leader was seen last.
    pub term: Option<u64>,
    /// Hand-overs that were asked for since it began, turned round, or a person asked to go on.
    pub hand_overs: u32,
    /// The hand-over that was asked for and has not been seen yet. Its clock is its own: what other members do meanwhile does not
    /// start it again.
    pub hand_over: Option<HandOver>,
    /// Whether a member has served from the target's template (H21).
    pub template_trial: TemplateTrial,
    /// Members that were replaced for a target that was given up since. One of them that is broken may be deleted (H44).
    pub abandoned: BTreeSet<MemberName>,
    /// The target that takes this one's place as soon as its gates let it. Nobody is let go for this one meanwhile.
    pub next_target: Option<Target>,
    /// The snapshot that was taken before it began.
    pub snapshot: Option<Snapshot>,
    /// What is being waited for, and since when.
    pub stage: Option<Stage>,
    /// The member that is being replaced, from the permit until it is well again.
    pub replacing: Option<Replacing>,
    /// How long that took for the members that were replaced so far.
    pub durations: BTreeMap<MemberName, Duration>,
    /// Since when each replaced member was seen well at every look.
    pub healthy_since: BTreeMap<MemberName, Timestamp>,
    /// Where the leader was when members were seen to be behind it, for those who are.
    pub marks: BTreeMap<MemberName, Mark>,
    /// Whose turn it is next: about that one people's hooks are asked.
    pub next: Option<MemberName>,
}

/// A member that is being replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacing {
    /// Which.
    pub pod: MemberName,
    /// Since when Kubernetes may replace it.
    pub since: Timestamp,
}

impl Record {
    /// How long the next member is expected to take: as long as the slowest one so far. None before the first was measured.
    pub fn expected(&self) -> Option<Duration> {
        self.durations.values().max().copied()
    }

    /// The beginning of a way from one target to another, with everything held.
    pub fn begin(order: Order, from: Target, target: Target, partition: u32, found: u32, now: Timestamp) -> Self {
        Self {
            target,
            from,
            order,
            rolling_back: false,
            revision: None,
            started_at: now,
            partition,
            previous_partitions: BTreeSet::from([found]),
            template_at: now,
            template_writes: 0,
            contest: None,
            completed: Vec::new(),
            highest_led: None,
            term: None,
            hand_overs: 0,
            hand_over: None,
            template_trial: TemplateTrial::Running,
            abandoned: BTreeSet::new(),
            next_target: None,
            snapshot: None,
            stage: None,
            replacing: None,
            durations: BTreeMap::new(),
            healthy_since: BTreeMap::new(),
            marks: BTreeMap::new(),
            next: None,
        }
    }

    /// Another target takes the place of the one before: what was learnt on the way to that stays known.
    pub(crate) fn instead_of(self, before: Self) -> Self {
        let Self { highest_led, term, abandoned, snapshot, durations, .. } = before;
        Self { highest_led, term, abandoned, snapshot, durations, ..self }
    }

    /// Whether this member was seen to have reached where the leader was, not long ago.
    pub fn keeps_up(&self, name: &MemberName) -> bool {
        self.marks.get(name).is_some_and(|mark| mark.reached.is_some())
    }

    /// Notes that this stage has begun, unless it has already: its clock keeps running.
    pub fn enter(&mut self, kind: StageKind, pod: &MemberName, now: Timestamp) -> &Stage {
        let stage = match self.stage.take() {
            Some(stage) if stage.kind == kind && stage.pod == *pod => stage,
            Some(_) | None => Stage { kind, pod: pod.clone(), since: now },
        };
        self.stage.insert(stage)
    }

    /// The template before the target's stands, because nobody could live on that (H21).
    pub fn is_put_back(&self) -> bool {
        self.order == Order::LeaderLast && self.template_trial == TemplateTrial::Reverted
    }

    /// Notes a write of the partition, from what was seen. A write of ours that has not been seen yet may still land, and stays ours.
    pub fn move_partition(&mut self, seen: u32, to: u32) {
        self.previous_partitions.extend([seen, self.partition]);
        self.previous_partitions.remove(&to);
        self.partition = to;
    }

    /// Whether the partition is one that we wrote. Under OnDelete none is.
    pub fn accounts_for(&self, partition: u32) -> bool {
        self.order == Order::ReverseOrdinal
            && (partition == self.partition || self.previous_partitions.contains(&partition))
    }

    /// Notes the term in which somebody leads; whether others may have led since the last one. A term has one leader at most, and one that is
    /// older than what was seen is of another log.
    pub fn note_term(&mut self, term: u64) -> bool {
        let seen = self.term.replace(term);
        seen.is_some_and(|seen| term != seen && Some(term) != seen.checked_add(1))
    }

    /// Notes who leads: the newest version that ever did counts.
    pub fn note_leader(&mut self, version: &Version) {
        if self.highest_led.as_ref().is_none_or(|highest| highest < version) {
            self.highest_led = Some(version.clone());
        }
    }
}
