//! What is counted and judged by nobody.

use windlass_sim::journal::Event;

use super::{
    Judge, Verdict,
    deed::{Cause, Deed, Step},
    record::{QUORUM_CLUSTERS, is_of_matter, set_of},
};
use crate::trial::is_ours;

pub(super) struct Tally;

impl Judge for Tally {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        match step.event {
            Event::Write(change) => {
                verdict.writes += usize::from(is_ours(&change.user) && is_of_matter(change));
                let states = ["statefulsets.apps", "pods", QUORUM_CLUSTERS];
                verdict.checked += usize::from(states.contains(&change.resource.as_str()));
            }
            Event::Quorum(truth) => {
                verdict.checked += 1;
                if step.record.set(&set_of(truth)).is_some_and(|set| set.upgrading) {
                    let healthy = truth.members.iter().filter(|member| member.healthy).count();
                    verdict.min_healthy = Some(verdict.min_healthy.unwrap_or(usize::MAX).min(healthy));
                }
            }
            Event::Verb { .. } | Event::Note(_) => {}
        }
        match step.deed {
            Deed::Deleted(gone) | Deed::Replaced(gone, Cause::Us) => verdict.restarts.push(gone.pod.1.clone()),
            Deed::Replaced(_, Cause::Others(_) | Cause::Nobody)
            | Deed::Wrote(_)
            | Deed::Drained(_)
            | Deed::Made(_)
            | Deed::Other => {}
        }
    }
}
