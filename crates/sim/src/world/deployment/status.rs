//! What is told of a Deployment: counts, whether enough pods are available, and whether the rollout moves.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::json::{list, number, since, text, time};
use super::super::replicaset::FAILURE;
use super::set::Set;
use super::wanted::Wanted;

pub(super) const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// One condition to be set.
pub(super) struct Word<'a> {
    pub kind: &'a str,
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

/// A Deployment's status while a look changes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Status {
    pub observed: i64,
    pub replicas: i64,
    pub updated: i64,
    pub ready: i64,
    pub available: i64,
    pub unavailable: i64,
    pub collisions: Option<i64>,
    conditions: Vec<Value>,
}

impl Status {
    pub fn of(deployment: &Value) -> Self {
        let count = |field: &str| number(deployment, &format!("/status/{field}"));
        Self {
            observed: count("observedGeneration").unwrap_or(0),
            replicas: count("replicas").unwrap_or(0),
            updated: count("updatedReplicas").unwrap_or(0),
            ready: count("readyReplicas").unwrap_or(0),
            available: count("availableReplicas").unwrap_or(0),
            unavailable: count("unavailableReplicas").unwrap_or(0),
            collisions: count("collisionCount"),
            conditions: list(deployment, "/status/conditions").to_vec(),
        }
    }

    /// As it is written: counts that are zero are left out.
    pub fn to_value(&self) -> Value {
        let some = |count: i64| if count == 0 { Value::Null } else { json!(count) };
        json!({
            "observedGeneration": some(self.observed),
            "replicas": some(self.replicas),
            "updatedReplicas": some(self.updated),
            "readyReplicas": some(self.ready),
            "availableReplicas": some(self.available),
            "unavailableReplicas": some(self.unavailable),
            "collisionCount": self.collisions,
            "conditions": if self.conditions.is_empty() { Value::Null } else { json!(self.conditions) },
        })
    }

    pub fn condition(&self, kind: &str) -> Option<&Value> {
        self.conditions.iter().find(|condition| text(condition, "/type") == kind)
    }

    fn reason(&self, kind: &str) -> Option<&str> {
        self.condition(kind).map(|condition| text(condition, "/reason"))
    }

    pub fn remove(&mut self, kind: &str) {
        self.conditions.retain(|condition| text(condition, "/type") != kind);
    }

    /// Sets a condition, unless it says the same for the same reason already.
    pub fn set(&mut self, word: &Word<'_>, now: Timestamp) {
        let known = self.condition(word.kind);
        let same_status = known.filter(|known| text(known, "/status") == word.status);
        if same_status.is_some_and(|known| text(known, "/reason") == word.reason) {
            return;
        }
        let turned =
            same_status.and_then(|known| known.get("lastTransitionTime").cloned()).unwrap_or_else(|| time(now));
        self.remove(word.kind);
        self.conditions.push(json!({
            "type": word.kind,
            "status": word.status,
            "reason": word.reason,
            "message": word.message,
            "lastUpdateTime": time(now),
            "lastTransitionTime": turned,
        }));
    }

    /// What follows from the sets, with the conditions of before but for the one about availability.
    pub fn counted(&self, wanted: &Wanted, generation: i64, sets: &[Set], new: Option<&Set>, now: Timestamp) -> Self {
        let sum = |field: fn(&Set) -> i64| sets.iter().map(field).sum::<i64>();
        let available = sum(|set| set.available);
        let mut status = Self {
            observed: generation,
            replicas: sum(|set| set.replicas),
            updated: new.map_or(0, |new| new.replicas),
            ready: sum(|set| set.ready),
            available,
            unavailable: (sum(|set| set.size) - available).max(0),
            collisions: self.collisions,
            conditions: self.conditions.clone(),
        };
        let enough = available >= wanted.least();
        status.set(
            &Word {
                kind: AVAILABLE,
                status: if enough { "True" } else { "False" },
                reason: if enough { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" },
                message: if enough {
                    "Deployment has minimum availability."
                } else {
                    "Deployment does not have minimum availability."
                },
            },
            now,
        );
        status
    }

    /// Whether all pods are new and available, and there are no others.
    pub fn is_complete(&self, wanted: &Wanted, generation: i64) -> bool {
        let all = [self.updated, self.replicas, self.available];
        all.iter().all(|count| *count == wanted.replicas) && self.observed >= generation
    }

    fn moved_since(&self, before: &Self) -> bool {
        self.updated > before.updated
            || self.replicas - self.updated < before.replicas - before.updated
            || self.ready > before.ready
            || self.available > before.available
    }

    /// How long until nothing has moved for as long as may be; none where that does not count.
    pub fn left(&self, wanted: &Wanted, now: Timestamp) -> Option<Duration> {
        let (deadline, condition) = wanted.deadline.zip(self.condition(PROGRESSING))?;
        let since = since(condition, "/lastUpdateTime", now).unwrap_or_default();
        (text(condition, "/reason") != TIMED_OUT).then(|| deadline.saturating_sub(since))
    }

    fn timed_out(&self, wanted: &Wanted, now: Timestamp) -> bool {
        match self.reason(PROGRESSING) {
            None | Some(COMPLETE) => false,
            Some(TIMED_OUT) => true,
            Some(_) => {
                let since = self.condition(PROGRESSING).and_then(|known| since(known, "/lastUpdateTime", now));
                wanted.deadline.zip(since).is_some_and(|(deadline, since)| since > deadline)
            }
        }
    }

    /// Tells whether the rollout moves, by comparison with the status of before. `subject` is whose progress it is.
    pub fn judge(&mut self, before: &Self, wanted: &Wanted, generation: i64, subject: &str, now: Timestamp) {
        if wanted.deadline.is_none() {
            self.remove(PROGRESSING);
            return;
        }
        // A rollout that was done and has no old pods is done for good: what happens to its pods is no progress.
        if self.replicas == self.updated && before.reason(PROGRESSING) == Some(COMPLETE) {
            return;
        }
        let kind = PROGRESSING;
        if self.is_complete(wanted, generation) {
            let message = format!("{subject} has successfully progressed.");
            self.set(&Word { kind, status: "True", reason: COMPLETE, message: &message }, now);
        } else if self.moved_since(before) {
            // The time of the last move counts, so the condition is set anew even where it said so before.
            let known = before.condition(kind).filter(|known| text(known, "/status") == "True");
            let turned = known.and_then(|known| known.get("lastTransitionTime").cloned());
            self.remove(kind);
            let message = format!("{subject} is progressing.");
            self.set(&Word { kind, status: "True", reason: "ReplicaSetUpdated", message: &message }, now);
            if let (Some(turned), Some(condition)) = (turned, self.conditions.last_mut()) {
                condition["lastTransitionTime"] = turned;
            }
        } else if self.timed_out(wanted, now) {
            let message = format!("{subject} has timed out progressing.");
            self.set(&Word { kind, status: "False", reason: TIMED_OUT, message: &message }, now);
        }
    }

    /// Takes over what keeps a set from making pods, the new one's first.
    pub fn blame(&mut self, sets: &[Set], new: Option<&Set>) {
        let failed = |set: &Set| super::super::json::condition(&set.object, FAILURE).cloned();
        match new.and_then(failed).or_else(|| sets.iter().find_map(failed)) {
            Some(mut failure) => {
                failure["lastUpdateTime"] = failure["lastTransitionTime"].clone();
                let told = self.condition(FAILURE).is_some_and(|known| {
                    ["status", "reason"].iter().all(|field| known.get(field) == failure.get(field))
                });
                if !told {
                    self.remove(FAILURE);
                    self.conditions.push(failure);
                }
            }
            None => self.remove(FAILURE),
        }
    }

    /// Notes that a Deployment was paused or resumed, so that the time meanwhile does not count; true where that is news.
    pub fn note_pause(&mut self, wanted: &Wanted, now: Timestamp) -> bool {
        let reason = self.reason(PROGRESSING);
        if wanted.deadline.is_none() || reason == Some(TIMED_OUT) || wanted.paused == (reason == Some(PAUSED)) {
            return false;
        }
        let (reason, message) = if wanted.paused {
            (PAUSED, "Deployment is paused")
        } else {
            ("DeploymentResumed", "Deployment is resumed")
        };
        self.set(&Word { kind: PROGRESSING, status: "Unknown", reason, message }, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::EPOCH;

    fn wanted() -> Wanted {
        Wanted::of(&json!({"spec": {"replicas": 1, "progressDeadlineSeconds": 60}}))
    }

    fn later(seconds: u64) -> Timestamp {
        EPOCH.saturating_add(Duration::from_secs(seconds)).unwrap()
    }

    fn begun() -> Status {
        let mut status = Status { replicas: 1, updated: 1, observed: 1, ..Status::default() };
        let reason = "NewReplicaSetCreated";
        status.set(&Word { kind: PROGRESSING, status: "True", reason, message: "" }, EPOCH);
        status
    }

    fn judged(before: &Status, ready: i64, at: u64) -> Status {
        let mut status = Status { ready, available: 0, ..before.clone() };
        status.judge(before, &wanted(), 1, "It", later(at));
        status
    }

    #[test]
    fn a_rollout_is_stuck_when_nothing_has_moved_for_longer_than_the_deadline() {
        assert_eq!(judged(&begun(), 0, 60).reason(PROGRESSING), Some("NewReplicaSetCreated"));
        let stuck = judged(&begun(), 0, 61);
        assert_eq!(stuck.reason(PROGRESSING), Some(TIMED_OUT));
        // A move gives it all its time again.
        let moved = judged(&stuck, 1, 100);
        assert_eq!(moved.reason(PROGRESSING), Some("ReplicaSetUpdated"));
        assert_eq!(judged(&moved, 1, 160).reason(PROGRESSING), Some("ReplicaSetUpdated"));
        assert_eq!(judged(&moved, 1, 161).reason(PROGRESSING), Some(TIMED_OUT));
    }

    #[test]
    fn a_rollout_that_is_done_is_not_undone_by_a_pod_that_fails() {
        let done = {
            let mut status = Status { ready: 1, available: 1, ..begun() };
            status.judge(&begun(), &wanted(), 1, "It", later(1));
            status
        };
        assert_eq!(done.reason(PROGRESSING), Some(COMPLETE));
        assert_eq!(judged(&done, 0, 1000).reason(PROGRESSING), Some(COMPLETE));
    }

    #[test]
    fn a_pause_is_noted_once_and_stops_the_clock() {
        let (running, mut paused) = (wanted(), wanted());
        paused.paused = true;
        let mut status = begun();
        assert!(!status.note_pause(&running, later(1)));
        assert!(status.note_pause(&paused, later(1)));
        assert!(!status.note_pause(&paused, later(500)));
        assert!(status.note_pause(&running, later(1000)));
        assert_eq!(status.left(&running, later(1010)), Some(Duration::from_secs(50)));
    }
}
