//! No quorum is lost to an eviction while a member is down because of us (H12), unless somebody had just taken their own budget away, or
//! accepts it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use windlass_sim::journal::{Change, Event, QuorumTruth, Verb};

use super::{
    Judge, REACTION, Verdict,
    deed::{Deed, Step},
    record::{Name, around, set_of},
};
use crate::trial::is_ours;

#[derive(Default)]
pub(super) struct Evictions {
    /// When a drain evicted a pod that is not back. One that somebody deletes by hand is no budget's business.
    evicted: BTreeMap<Name, Timestamp>,
    /// When somebody last removed or changed a budget of theirs, by namespace.
    uncovered: BTreeMap<String, Timestamp>,
}

impl Judge for Evictions {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        match step.event {
            Event::Write(change) => self.write(change, step.at),
            Event::Quorum(truth) => self.truth(truth, step, verdict),
            Event::Verb { .. } | Event::Note(_) => {}
        }
        if let Deed::Drained(pod) = step.deed {
            self.evicted.insert(pod.clone(), step.at);
        }
    }
}

impl Evictions {
    fn write(&mut self, change: &Change, at: Timestamp) {
        match change.resource.as_str() {
            "pods" if change.verb == Verb::Create => {
                self.evicted.remove(&(change.namespace.clone(), change.name.clone()));
            }
            "poddisruptionbudgets.policy" if !is_ours(&change.user) => {
                let (before, after) = around(change);
                if before["spec"] != after["spec"] {
                    self.uncovered.insert(change.namespace.clone(), at);
                }
            }
            _ => {}
        }
    }

    fn truth(&mut self, truth: &QuorumTruth, step: &Step<'_>, verdict: &mut Verdict) {
        let Some(set) = step.record.set(&set_of(truth)) else { return };
        let healthy = truth.members.iter().filter(|member| member.healthy).count();
        let still_down = step.record.still_down(truth);
        let Some(down) = still_down.first().filter(|_| healthy <= truth.members.len() / 2) else { return };
        let evicted = truth.members.iter().filter(|member| !member.healthy && member.pod != *down).find_map(|member| {
            let evicted = *self.evicted.get(&(truth.namespace.clone(), member.pod.clone()))?;
            set.template_written.is_some_and(|freed| evicted > freed).then_some((&member.pod, evicted))
        });
        let Some((pod, at)) = evicted else { return };
        let uncovered = self.uncovered.get(&truth.namespace).filter(|uncovered| **uncovered <= at);
        if uncovered.is_some_and(|uncovered| at.duration_since(*uncovered).unsigned_abs() < REACTION) {
            // Nobody could have held it in time.
            verdict.races += 1;
        } else if !set.wish.accept_downtime {
            let text = format!("{pod} was evicted while {down} was down because of us, and the quorum was lost");
            verdict.object(step.at, &text);
        }
    }
}
