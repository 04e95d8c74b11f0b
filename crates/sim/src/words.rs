//! What is said of a quorum although it is not so, and what its leader is asked too often. Kept from what truly happened, for the
//! invariants.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use crate::journal::{Change, QuorumTruth, Verb};

/// For so long a quorum may be called ready although a member is not well: everybody looks at it in less, also after bad luck.
const READY_FOR: Duration = Duration::from_mins(3);
/// So often leadership may be asked to move that does not, until a person says something: as often as is said, and once for every
/// take-over in between.
const ASKED: usize = 8;

/// Namespace and name of a StatefulSet.
type Name = (String, String);

#[derive(Default)]
pub(crate) struct Words {
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
    leader: Option<String>,
    /// How often leadership was asked to leave it in vain.
    asked: usize,
    requests: Value,
}

impl Words {
    /// One of our processes died, froze or thawed.
    pub(crate) fn is_away(&mut self, at: Timestamp) {
        self.away = Some(at);
    }

    /// Takes a write of a QuorumCluster in.
    pub(crate) fn see(&mut self, change: &Change) {
        let after = change.after.as_deref().filter(|_| change.verb != Verb::Delete);
        let Some(set) = change.after.as_deref().and_then(|after| after.pointer("/spec/workload/statefulSet")?.as_str())
        else {
            return;
        };
        let said = self.sets.entry((change.namespace.clone(), set.to_owned())).or_default();
        let conditions = after.and_then(|after| after.pointer("/status/conditions")?.as_array());
        let ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        said.ready = conditions.is_some_and(|conditions| conditions.iter().any(ready));
        let asked = after.map(|after| (&after["spec"]["requests"], &after["spec"]["version"]));
        let requests = asked.map(|(requests, version)| serde_json::json!([requests, version])).unwrap_or_default();
        if said.requests != requests {
            (said.requests, said.asked) = (requests, 0);
        }
    }

    /// Takes the truth in.
    pub(crate) fn truth(&mut self, at: Timestamp, truth: &QuorumTruth) {
        let said = self.sets.entry((truth.namespace.clone(), truth.workload.clone())).or_default();
        let sick = |pod: &String| truth.members.iter().any(|member| member.pod == *pod && !member.healthy);
        said.sick.retain(|pod, _| sick(pod));
        for member in truth.members.iter().filter(|member| !member.healthy) {
            said.sick.entry(member.pod.clone()).or_insert(at);
        }
        let leader = truth.members.iter().find(|member| member.leader).map(|member| member.pod.clone());
        if leader != said.leader {
            (said.leader, said.asked) = (leader, 0);
        }
    }

    /// One of us asks a member for something. What is wrong with that, if anything.
    pub(crate) fn verb(&mut self, pod: &str, what: &str) -> Option<String> {
        if !what.contains("/leader/transfer/") && !what.contains("transfer-leadership") && !what.contains("step-down") {
            return None;
        }
        let said =
            self.sets.values_mut().find(|said| said.leader.as_deref().is_some_and(|leader| pod.ends_with(leader)))?;
        said.asked += 1;
        (said.asked == ASKED + 1).then(|| format!("{pod} was asked to hand over {} times and leads", said.asked))
    }

    /// Who has been called ready for too long.
    pub(crate) fn untrue(&mut self, at: Timestamp) -> Option<String> {
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
