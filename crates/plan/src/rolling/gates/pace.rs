//! How long members take to be replaced, and how long they have been well since: for windows and soaks.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    gate::Outcome,
    hold::Hold,
    reason::Reason,
    rolling::{
        gates::{ask::Ask, member},
        known::{
            record::{Record, Replacing},
            step::{Decision, Step},
            view::View,
            workload::Pod,
        },
    },
    strategy::known::want::Want,
};

/// Brings the record up to what the cluster shows: who is well since when, and how long that took.
pub(crate) fn note(want: &Want, view: &View, record: &mut Record, now: Timestamp) {
    let version = record.target.version.clone();
    let well: Vec<&Pod> = view.updated().filter(|pod| member::settled(want, view, &version, pod).is_ok()).collect();
    record.healthy_since.retain(|name, since| {
        let pod = well.iter().find(|pod| pod.name == *name);
        // One that was down between two looks is Ready again since a later moment.
        pod.is_some_and(|pod| pod.ready_since.is_some_and(|ready| ready <= *since))
            || (bug::active(Bug::SoakGoesOn) && view.pod(name).is_some())
    });
    for pod in well {
        record.healthy_since.entry(pod.name.clone()).or_insert(now);
        // What it was waited for has come. A clock that ran on would end at once when it is down for a moment after a long hold.
        record.stage.take_if(|stage| stage.pod == pod.name);
        if let Some(replacing) = record.replacing.take_if(|replacing| replacing.pod == pod.name) {
            // A clock that was set back measures nothing.
            if now >= replacing.since {
                record.durations.insert(replacing.pod, now.duration_since(replacing.since).unsigned_abs());
            }
        }
    }
}

/// Notes that a member is about to be disturbed, or is left alone after all.
pub(crate) fn begun(decision: &Decision, record: &mut Record, now: Timestamp) {
    let Decision::Act(step) = decision else { return };
    match step {
        Step::Permit { pod, .. } | Step::Replace { pod, .. } | Step::DeletePod { pod, .. } => {
            if record.replacing.as_ref().is_none_or(|replacing| replacing.pod != *pod) {
                record.replacing = Some(Replacing { pod: pod.clone(), since: now });
            }
        }
        Step::TakeBack { .. } | Step::WriteTemplate { .. } => record.replacing = None,
        // A hand-over is no part of it: a gate may hold for days between the two.
        Step::Job(_)
        | Step::HandOver { .. }
        | Step::SwitchStrategy { .. }
        | Step::PutBackStrategy
        | Step::HoldEvictions
        | Step::ReleaseEvictions
        | Step::Park { .. } => {}
    }
}

/// Every member that was replaced has been well for long enough, before the next one goes and before it may lead.
pub(crate) fn soaked(ask: &Ask<'_>) -> Outcome {
    let Some(record) = ask.record.filter(|_| ask.want.soak > Duration::ZERO) else { return Outcome::Pass };
    // A revert goes back to those who never left, and they have proven themselves already.
    let new = |pod: &&Pod| !record.rolling_back || record.abandoned.contains(&pod.name);
    let mut last: Option<(&Pod, Timestamp)> = None;
    for pod in ask.view.updated().filter(new) {
        let Some(since) = record.healthy_since.get(&pod.name) else {
            let message = format!("since when {} is well is not known yet", pod.name);
            return Outcome::Unknown(Hold::new(Reason::Soaking, message));
        };
        let over = since.saturating_add(ask.want.soak).unwrap_or(Timestamp::MAX);
        if over > ask.now && last.is_none_or(|(_, latest)| over > latest) {
            last = Some((pod, over));
        }
    }
    let Some((pod, over)) = last else { return Outcome::Pass };
    let message = format!("{} was replaced and must have been well until {over} before anybody else goes", pod.name);
    Outcome::Hold(Hold::new(Reason::Soaking, message).until(Some(over)))
}
