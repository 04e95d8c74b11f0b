//! After a take-over has settled, no write of the operator before it lands (H1, X2).

use windlass_sim::journal::{Change, Event};

use super::{
    Judge, Verdict,
    deed::Step,
    record::{claims, is_of_matter},
};
use crate::trial::is_ours;

pub(super) struct Fence;

impl Judge for Fence {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        let Event::Write(change) = step.event else { return };
        if !is_ours(&change.user) || !is_of_matter(change) || claims(change).is_some() || counts_alone(change) {
            return;
        }
        if let Some((owner, true)) = &step.record.owner
            && *owner != change.user
        {
            let (user, resource, name) = (&change.user, &change.resource, &change.name);
            verdict.object(step.at, &format!("{user} wrote {resource}/{name} after {owner} had taken over"));
        }
    }
}

/// An eviction that comes too late takes one from the budget before its preconditions are looked at, and ends nobody.
fn counts_alone(change: &Change) -> bool {
    let spec = |object: Option<&serde_json::Value>| object.map(|object| object["spec"].clone());
    change.resource == "poddisruptionbudgets.policy"
        && change.before.is_some()
        && spec(change.before.as_deref()) == spec(change.after.as_deref())
}
