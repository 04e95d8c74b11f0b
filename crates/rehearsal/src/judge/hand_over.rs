//! A leader that stays is not asked to hand over again and again (D4).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_sim::journal::{Change, Event, QuorumTruth, Verb};

use super::{
    Judge, Verdict,
    deed::Step,
    record::{Name, set_of, wish},
};
use crate::trial::is_ours;

/// So often leadership may be asked to move that does not, until a person says something: as often as is said, and once for every
/// take-over in between.
const ASKED: usize = 8;

#[derive(Default)]
pub(super) struct HandOvers(BTreeMap<Name, Asked>);

#[derive(Default)]
struct Asked {
    leader: Option<String>,
    /// How often leadership was asked to leave it in vain.
    times: usize,
    /// What people asked for.
    requests: Value,
}

impl Judge for HandOvers {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        match step.event {
            Event::Write(change) => self.wish(change),
            Event::Quorum(truth) => self.truth(truth),
            Event::Verb { user, pod, what, .. } => {
                if let Some(times) = self.ask(pod, what).filter(|times| *times == ASKED + 1 && is_ours(user)) {
                    verdict.object(step.at, &format!("{pod} was asked to hand over {times} times and leads"));
                }
            }
            Event::Note(_) => {}
        }
    }
}

impl HandOvers {
    fn wish(&mut self, change: &Change) {
        let Some((name, spec)) = wish(change) else { return };
        let asked = self.0.entry(name).or_default();
        let gone = change.verb == Verb::Delete;
        let requests = if gone { Value::Null } else { json!([spec["requests"], spec["version"]]) };
        if asked.requests != requests {
            (asked.requests, asked.times) = (requests, 0);
        }
    }

    fn truth(&mut self, truth: &QuorumTruth) {
        let asked = self.0.entry(set_of(truth)).or_default();
        let leader = truth.members.iter().find(|member| member.leader).map(|member| member.pod.clone());
        if leader != asked.leader {
            (asked.leader, asked.times) = (leader, 0);
        }
    }

    /// Somebody asks a member for something: how often it was asked to hand over by now, where it leads.
    fn ask(&mut self, pod: &str, what: &str) -> Option<usize> {
        if !what.contains("/leader/transfer/") && !what.contains("transfer-leadership") && !what.contains("step-down") {
            return None;
        }
        let leads = |asked: &&mut Asked| asked.leader.as_deref().is_some_and(|leader| pod.ends_with(leader));
        let asked = self.0.values_mut().find(leads)?;
        asked.times += 1;
        Some(asked.times)
    }
}
