//! One member at a time: nobody is let go while another one is, or is still down because of us (C2, H21).

use super::{
    Judge, Verdict,
    deed::{Deed, Gone, Step, Wrote},
};

pub(super) struct OneAtATime;

impl Judge for OneAtATime {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        match step.deed {
            Deed::Wrote(wrote) => let_go(wrote, step, verdict),
            Deed::Deleted(gone) => deleted(gone, step, verdict),
            Deed::Replaced(..) | Deed::Drained(_) | Deed::Made(_) | Deed::Other => {}
        }
    }
}

fn let_go(wrote: &Wrote, step: &Step<'_>, verdict: &mut Verdict) {
    let Wrote { held, freed, .. } = wrote;
    if let (Some(pod), Some(other)) = (freed.first(), held.first()) {
        verdict.object(step.at, &format!("{pod} let go while the permit for {other} still stands"));
    }
    if freed.len() > 1 {
        verdict.object(step.at, &format!("{} let go at once", freed.join(" and ")));
    }
    let down = step.record.set(&wrote.set).map_or(&[][..], |set| &set.down);
    for pod in freed {
        if let Some(other) = down.iter().find(|other| *other != pod) {
            verdict.object(step.at, &format!("{pod} let go while {other} is still down because of us"));
        }
    }
}

/// Under OnDelete a deletion is what lets a pod go. One that is broken may be made anew all the same.
fn deleted(gone: &Gone, step: &Step<'_>, verdict: &mut Verdict) {
    let Some(set) = step.record.set(&gone.set) else { return };
    let pod = &gone.pod.1;
    let other = set.down.iter().find(|other| *other != pod);
    if let Some(other) = other.filter(|_| set.is_on_delete() && set.sound_and_leading(pod).0) {
        verdict.object(step.at, &format!("{pod} deleted by us while {other} is still down because of us"));
    }
}
