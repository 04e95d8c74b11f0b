//! Nobody is taken down who leads, or whom a majority needs (C3, C4): by a write of ours that lets Kubernetes do it, by what Kubernetes does
//! under that permit later, and by a deletion of ours.

use jiff::Timestamp;
use windlass_sim::journal::QuorumTruth;

use super::{
    EVIDENCE, Judge, REACTION, Verdict,
    deed::{Cause, Deed, Gone, Step},
    record::{Name, Record, Set},
};

pub(super) struct Takedown;

impl Judge for Takedown {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        match step.deed {
            Deed::Wrote(wrote) => {
                for pod in &wrote.freed {
                    if let Some(wrong) = wrong_throughout(step.record, &wrote.set, pod, step.at) {
                        verdict.object(step.at, &format!("{pod} let go although {wrong}"));
                    }
                }
            }
            Deed::Deleted(gone) => deleted(gone, step, verdict),
            Deed::Replaced(gone, Cause::Us) => replaced(gone, step, verdict),
            Deed::Replaced(_, Cause::Others(_) | Cause::Nobody) | Deed::Drained(_) | Deed::Made(_) | Deed::Other => {}
        }
    }
}

fn deleted(gone: &Gone, step: &Step<'_>, verdict: &mut Verdict) {
    let Some(set) = step.record.set(&gone.set) else { return };
    let pod = &gone.pod.1;
    let leads = set.sound_and_leading(pod).1 && !set.is_alone();
    if let Some(wrong) = wrong_throughout(step.record, &gone.set, pod, step.at) {
        verdict.object(step.at, &format!("{pod} deleted by us although {wrong}"));
        verdict.leader_restarts += usize::from(leads);
    } else if leads {
        // It was elected after we had looked.
        verdict.races += 1;
    }
}

/// The controller uses a permit of ours, some time after it was given.
fn replaced(gone: &Gone, step: &Step<'_>, verdict: &mut Verdict) {
    let Some(set) = step.record.set(&gone.set) else { return };
    let pod = &gone.pod.1;
    let leads = set.sound_and_leading(pod).1 && !set.is_alone();
    let wrong_since = set.truths.last().and_then(|(since, truth)| Some((wrong(set, truth, pod)?, *since)));
    let Some((wrong_now, mut began)) = wrong_since else {
        verdict.leader_restarts += usize::from(leads);
        return;
    };
    // Since when it has been wrong without a break.
    for (since, truth) in set.truths.iter().rev() {
        if wrong(set, truth, pod).is_none() {
            break;
        }
        began = *since;
    }
    if step.at.duration_since(began).unsigned_abs() < REACTION || step.record.was_absent(began, step.at) {
        verdict.races += 1;
    } else {
        verdict.leader_restarts += usize::from(leads);
        verdict.object(step.at, &format!("{pod} deleted because of us although {wrong_now}"));
    }
}

/// What was wrong with taking `pod` down, if it was wrong at every moment of the evidence.
fn wrong_throughout(record: &Record, name: &Name, pod: &str, at: Timestamp) -> Option<String> {
    let set = record.set(name)?;
    let oldest = at - EVIDENCE;
    let mut last = None;
    for (index, (_, truth)) in set.truths.iter().enumerate() {
        let until = set.truths.get(index + 1).map_or(at, |(until, _)| *until);
        if until < oldest {
            continue;
        }
        last = Some(wrong(set, truth, pod)?);
    }
    last
}

/// What would be wrong with taking `pod` down in this state.
fn wrong(set: &Set, truth: &QuorumTruth, pod: &str) -> Option<String> {
    let members = truth.members.len();
    let needed = members / 2 + 1;
    let others = truth.members.iter().filter(|member| member.pod != pod && member.healthy).count();
    if others < needed && !(set.wish.accept_downtime && members <= 2) {
        return Some(format!("only {others} of {members} others are healthy and {needed} are needed"));
    }
    if members > 1 && truth.members.iter().any(|member| member.pod == pod && member.leader) {
        return Some("it leads".to_owned());
    }
    None
}
