//! Under a partition we delete only a pod that is broken, only when the template it is to come back from is written, and it comes back from
//! that one (H44).

use std::collections::BTreeSet;

use windlass_sim::journal::{Change, Event};

use super::{
    EVIDENCE, Judge, Verdict,
    deed::{Deed, Gone, Step},
    record::{Name, images, is_ready},
};

/// Pods that we deleted ourselves and that are not back.
#[derive(Default)]
pub(super) struct Mends(BTreeSet<Name>);

impl Judge for Mends {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        let Event::Write(change) = step.event else { return };
        match step.deed {
            Deed::Deleted(gone) => {
                self.0.insert(gone.pod.clone());
                deleted(gone, change, step, verdict);
            }
            Deed::Made(made) => {
                if self.0.remove(&made.pod) {
                    is_back(made, change, step, verdict);
                }
            }
            Deed::Wrote(_) | Deed::Replaced(..) | Deed::Drained(_) | Deed::Other => {}
        }
    }
}

fn deleted(gone: &Gone, change: &Change, step: &Step<'_>, verdict: &mut Verdict) {
    let (Some(set), Some(before)) = (step.record.set(&gone.set), change.before.as_deref()) else { return };
    let pod = &gone.pod.1;
    if !set.is_on_delete() && is_ready(before) {
        verdict.object(step.at, &format!("{pod} deleted by us although it is ready"));
    }
    let images = images(before.get("spec"));
    if images != set.template() {
        return;
    }
    // A pod can't be deleted on condition of its StatefulSet: what stood a moment ago is what could be known.
    let stood = set.last_template.as_ref().filter(|(until, _)| *until + EVIDENCE > step.at);
    if stood.is_none_or(|(_, stood)| *stood == images) {
        verdict.object(step.at, &format!("{pod} deleted by us before the template was mended"));
    } else {
        verdict.races += 1;
    }
}

/// A pod that we deleted is made anew.
fn is_back(made: &Gone, change: &Change, step: &Step<'_>, verdict: &mut Verdict) {
    let (Some(set), Some(pod)) = (step.record.set(&made.set), change.after.as_deref()) else { return };
    let (wanted, from) = (set.template(), images(pod.get("spec")));
    if wanted != from {
        let text = format!("{} was deleted by us and came back from {from:?}, not from {wanted:?}", made.pod.1);
        verdict.object(step.at, &text);
    }
}
