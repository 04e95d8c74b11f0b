//! A quorum is not called ready for minutes although a member is not well (X4).

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use windlass_sim::journal::{Change, Event, QuorumTruth, Verb};

use super::{
    Judge, Verdict,
    deed::Step,
    record::{Name, goes_or_comes, has, set_of, wish},
};

/// For so long a quorum may be called ready although a member is not well: everybody looks at it in less, also after bad luck.
const READY_FOR: Duration = Duration::from_mins(3);

#[derive(Default)]
pub(super) struct Ready {
    sets: BTreeMap<Name, Said>,
    /// When one of our processes last died, froze or thawed.
    away: Option<Timestamp>,
}

#[derive(Default)]
struct Said {
    /// It is said to be ready.
    ready: bool,
    /// The members that are not well, and since when.
    sick: BTreeMap<String, Timestamp>,
}

impl Judge for Ready {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        match step.event {
            Event::Write(change) => self.say(change),
            Event::Quorum(truth) => self.truth(truth, step.at),
            Event::Note(note) => {
                if goes_or_comes(note).is_some() {
                    self.away = Some(step.at);
                }
            }
            Event::Verb { .. } => {}
        }
        if let Some(untrue) = self.untrue(step.at) {
            verdict.object(step.at, &untrue);
        }
    }
}

impl Ready {
    fn say(&mut self, change: &Change) {
        let (Some((name, _)), Some(object)) = (wish(change), change.after.as_deref()) else { return };
        self.sets.entry(name).or_default().ready = change.verb != Verb::Delete && has(object, "Ready");
    }

    fn truth(&mut self, truth: &QuorumTruth, at: Timestamp) {
        let said = self.sets.entry(set_of(truth)).or_default();
        let sick = |pod: &String| truth.members.iter().any(|member| member.pod == *pod && !member.healthy);
        said.sick.retain(|pod, _| sick(pod));
        for member in truth.members.iter().filter(|member| !member.healthy) {
            said.sick.entry(member.pod.clone()).or_insert(at);
        }
    }

    /// Who has been called ready for too long.
    fn untrue(&mut self, at: Timestamp) -> Option<String> {
        let gone = |since: Timestamp| at.duration_since(since).unsigned_abs() > READY_FOR;
        if self.away.is_some_and(|away| !gone(away)) {
            return None;
        }
        for ((_, set), said) in self.sets.iter_mut().filter(|(_, said)| said.ready) {
            if let Some((pod, _)) = said.sick.iter().find(|(_, since)| gone(**since)) {
                let text = format!("{set} is said to be ready, and {pod} has not been well for minutes");
                // Once is enough.
                said.ready = false;
                return Some(text);
            }
        }
        None
    }
}
