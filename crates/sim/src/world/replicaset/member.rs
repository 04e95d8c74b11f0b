//! One pod of a ReplicaSet as its controller sees it, and which of several are given up first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::super::json::{condition, is_true, list, number, since, terminating, text, uid};

/// What somebody thinks a pod's loss would cost, in an annotation.
const DELETION_COST: &str = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost";

/// Whether a pod counts at all: one that has ended, or is about to, is as good as gone.
pub(in crate::world) fn is_active(pod: &Value) -> bool {
    !terminating(pod) && !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

pub(super) struct Member {
    pub pod: Arc<Value>,
    pub ready: bool,
    /// How long until a ready pod counts as available; none while it isn't ready.
    pub available_in: Option<Duration>,
}

impl Member {
    pub fn of(pod: Arc<Value>, min_ready: Duration, now: Timestamp) -> Self {
        let ready = is_true(&pod, "Ready");
        let age = condition(&pod, "Ready").and_then(|ready| since(ready, "/lastTransitionTime", now));
        let left = min_ready.saturating_sub(age.unwrap_or_default());
        Self { pod, ready, available_in: ready.then_some(left) }
    }

    pub fn available(&self) -> bool {
        self.available_in.is_some_and(|left| left.is_zero())
    }

    fn node(&self) -> &str {
        text(&self.pod, "/spec/nodeName")
    }

    /// The lower, the sooner it is given up: what has come least far, what shares its node with the most siblings, what is
    /// youngest. Ages are compared by their magnitude only, so that pods of about one age are as good as each other.
    fn worth(&self, crowds: &BTreeMap<String, usize>, now: Timestamp) -> impl Ord + use<> {
        let phase = match text(&self.pod, "/status/phase") {
            "Pending" => 0,
            "Running" => 2,
            _ => 1,
        };
        let ready_for = condition(&self.pod, "Ready").filter(|_| self.ready);
        let restarts = list(&self.pod, "/status/containerStatuses").iter();
        let restarts = restarts.filter_map(|container| number(container, "/restartCount")).max().unwrap_or(0);
        (
            !self.node().is_empty(),
            phase,
            self.ready,
            text(&self.pod, DELETION_COST).parse::<i64>().unwrap_or(0),
            Reverse(crowds.get(self.node()).copied().unwrap_or(0)),
            ready_for.map(|ready| magnitude(ready, "/lastTransitionTime", now)),
            Reverse(restarts),
            magnitude(&self.pod, "/metadata/creationTimestamp", now),
            uid(&self.pod).to_owned(),
        )
    }
}

/// The order of magnitude of the time since then.
fn magnitude(value: &Value, pointer: &str, now: Timestamp) -> Option<u32> {
    since(value, pointer, now).and_then(|age| age.as_nanos().checked_ilog2())
}

/// The pods that are given up when so many are too many. `related` are those of all ReplicaSets of one Deployment.
pub(super) fn surplus<'a>(
    members: &'a [Member],
    count: usize,
    related: &[Arc<Value>],
    now: Timestamp,
    best_first: bool,
) -> Vec<&'a Member> {
    let mut crowds: BTreeMap<String, usize> = BTreeMap::new();
    for pod in related.iter().filter(|pod| is_active(pod)) {
        *crowds.entry(text(pod, "/spec/nodeName").to_owned()).or_default() += 1;
    }
    let mut ranked: Vec<&Member> = members.iter().collect();
    ranked.sort_by_cached_key(|member| member.worth(&crowds, now));
    if best_first {
        ranked.reverse();
    }
    ranked.truncate(count);
    ranked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::EPOCH;

    /// A pod in this state, ready for so many seconds where it is ready.
    fn pod(uid: &str, node: &str, phase: &str, ready: Option<i64>) -> Value {
        let since = |seconds: i64| Timestamp::from_second(EPOCH.as_second() - seconds).unwrap().to_string();
        let condition = |age: i64| json!([{"type": "Ready", "status": "True", "lastTransitionTime": since(age)}]);
        json!({
            "metadata": {"uid": uid, "creationTimestamp": since(100_000)},
            "spec": {"nodeName": node},
            "status": {"phase": phase, "conditions": ready.map_or(json!([]), condition)},
        })
    }

    fn first(pods: Vec<Value>, related: &[Value]) -> String {
        let members: Vec<Member> =
            pods.into_iter().map(|pod| Member::of(Arc::new(pod), Duration::ZERO, EPOCH)).collect();
        let related: Vec<Arc<Value>> = related.iter().cloned().map(Arc::new).collect();
        surplus(&members, 1, &related, EPOCH, false).first().map(|member| uid(&member.pod).to_owned()).unwrap()
    }

    #[test]
    fn what_has_come_least_far_goes_first() {
        let ready = || pod("a", "n", "Running", Some(5000));
        assert_eq!(first(vec![ready(), pod("b", "n", "Running", None)], &[]), "b");
        assert_eq!(first(vec![pod("b", "n", "Running", None), pod("c", "n", "Pending", None)], &[]), "c");
        assert_eq!(first(vec![pod("c", "n", "Pending", None), pod("d", "", "Pending", None)], &[]), "d");
        assert_eq!(first(vec![ready(), pod("b", "n", "Running", Some(5))], &[]), "b");
    }

    #[test]
    fn a_price_and_a_crowded_node_count_before_age() {
        let old = || pod("a", "n", "Running", Some(5000));
        let young = || pod("b", "m", "Running", Some(5));
        assert_eq!(first(vec![old(), young()], &[old(), pod("c", "n", "Running", Some(9))]), "a");
        let mut dear = young();
        dear["metadata"]["annotations"] = json!({"controller.kubernetes.io/pod-deletion-cost": "7"});
        assert_eq!(first(vec![old(), dear], &[]), "a");
    }
}
