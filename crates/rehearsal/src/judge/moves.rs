//! Leadership moves as few times as possible (C8, D13).

use windlass_sim::journal::{Event, QuorumTruth};

use super::{Judge, Verdict, deed::Step, record::set_of};

pub(super) struct Moves {
    /// So often, where that is known beforehand.
    pub(super) allowed: Option<usize>,
}

impl Judge for Moves {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        let Event::Quorum(truth) = step.event else { return };
        let Some(set) = step.record.set(&set_of(truth)).filter(|set| set.upgrading) else { return };
        let last = set.truths.iter().rev().find_map(|(_, truth)| leader(truth));
        if let (Some(old), Some(new)) = (last, leader(truth))
            && old != new
        {
            verdict.leader_moves += 1;
        }
    }

    fn end(&mut self, verdict: &mut Verdict) {
        let moves = verdict.leader_moves;
        if let Some(allowed) = self.allowed.filter(|allowed| moves > *allowed) {
            verdict.violations.push(format!("leadership moved {moves} times, {allowed} are enough"));
        }
    }
}

fn leader(truth: &QuorumTruth) -> Option<&str> {
    truth.members.iter().find(|member| member.leader).map(|member| member.pod.as_str())
}
