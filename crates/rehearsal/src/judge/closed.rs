//! No sound member is let go while people have closed the door: somebody else has locked the workload, a node under a member is cordoned or
//! emptied, or a ConfigMap says freeze (X1, X4). One that is broken may be mended all the same.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use windlass_sim::journal::{Change, Event, Verb};

use super::{
    EVIDENCE, Judge, Verdict,
    deed::{Deed, Step},
    record::{Name, QUORUM_CLUSTERS, is_ready},
};

/// Where somebody at work on a quorum says so.
const LOCK: &str = "/metadata/annotations/windlass.dev~1locked-by";

/// The check that no ConfigMap has the label `freeze=yes`, by its name.
const FREEZE: &str = "no-freeze";

/// What autoscalers put on a node that they are about to empty.
const LEAVING: [&str; 2] = ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"];

/// What is closed, and since when.
#[derive(Default)]
pub(super) struct Closed {
    /// Locks, by what carries them and by the StatefulSet that they are about.
    locks: BTreeMap<(String, Name), Timestamp>,
    nodes: BTreeMap<String, Timestamp>,
    /// ConfigMaps that say so, and the sets whose QuorumClusters have a check for them.
    freezes: BTreeMap<Name, Timestamp>,
    checked: BTreeMap<Name, Timestamp>,
    /// Gates that people set aside.
    aside: BTreeMap<Name, BTreeSet<String>>,
}

impl Judge for Closed {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        if let Event::Write(change) = step.event {
            self.write(step.at, change);
        }
        let Deed::Wrote(wrote) = step.deed else { return };
        for name in &wrote.freed {
            let pod = step.record.pod(&(wrote.set.0.clone(), name.clone()));
            if pod.is_some_and(is_ready)
                && let Some(closed) = self.against(&wrote.set, step.record.nodes(&wrote.set), step.at)
            {
                verdict.object(step.at, &format!("{name} let go although {closed}"));
            }
        }
    }
}

impl Closed {
    /// Takes a write in.
    fn write(&mut self, at: Timestamp, change: &Change) {
        let after = change.after.as_deref().filter(|_| change.verb != Verb::Delete);
        let text = |path: &str| after.and_then(|after| after.pointer(path)).and_then(Value::as_str).unwrap_or_default();
        match change.resource.as_str() {
            "nodes" => {
                let cordoned = after.and_then(|after| after.pointer("/spec/unschedulable")) == Some(&Value::Bool(true));
                let taints = after.and_then(|after| after.pointer("/spec/taints")).and_then(Value::as_array);
                let leaves = |taint: &Value| taint["key"].as_str().is_some_and(|key| LEAVING.contains(&key));
                let leaving = taints.is_some_and(|taints| taints.iter().any(leaves));
                note(&mut self.nodes, change.name.clone(), cordoned || leaving, at);
            }
            "configmaps" => {
                let says = text("/metadata/labels/freeze") == "yes";
                note(&mut self.freezes, (change.namespace.clone(), change.name.clone()), says, at);
            }
            "statefulsets.apps" | QUORUM_CLUSTERS => {
                let own = change.resource == "statefulsets.apps";
                let set = if own { change.name.as_str() } else { text("/spec/workload/statefulSet") };
                let set = (change.namespace.clone(), set.to_owned());
                let locked = after.is_some_and(|after| after.pointer(LOCK).is_some());
                note(&mut self.locks, (format!("{}/{}", change.resource, change.name), set.clone()), locked, at);
                if !own {
                    let checks = after.and_then(|after| after.pointer("/spec/gates/checks")).and_then(Value::as_array);
                    let checks = checks.is_some_and(|checks| checks.iter().any(|check| check["name"] == FREEZE));
                    note(&mut self.checked, set.clone(), checks, at);
                    let overrides = after.and_then(|after| after.pointer("/spec/gates/overrides"));
                    let gates = overrides.and_then(Value::as_array).into_iter().flatten();
                    let gates = gates.filter_map(|one| one["gate"].as_str()).map(str::to_owned).collect();
                    self.aside.insert(set, gates);
                }
            }
            _ => {}
        }
    }

    /// What speaks against letting a pod of this set go, and has for as long as evidence may be old.
    fn against<'a>(&self, set: &Name, mut nodes: impl Iterator<Item = &'a str>, at: Timestamp) -> Option<String> {
        let aside = |gate: &str| self.aside.get(set).is_some_and(|gates| gates.contains(gate));
        let long = |since: &Timestamp| *since + EVIDENCE < at;
        let lock = self.locks.iter().find(|((_, about), since)| about == set && long(since));
        if let Some(((what, _), _)) = lock.filter(|_| !aside("ConcurrentOperation")) {
            return Some(format!("{what} is locked"));
        }
        let frozen = self
            .checked
            .get(set)
            .filter(|since| long(since))
            .and_then(|_| self.freezes.iter().find(|((namespace, _), since)| *namespace == set.0 && long(since)));
        if let Some(((_, name), _)) = frozen.filter(|_| !aside("Check/no-freeze")) {
            return Some(format!("ConfigMap {name} says freeze"));
        }
        let cordoned = nodes.find(|node| self.nodes.get(*node).is_some_and(long));
        cordoned.filter(|_| !aside("NodeDrain")).map(|node| format!("node {node} under a member is being emptied"))
    }
}

/// Since when something is so.
fn note<K: Ord>(all: &mut BTreeMap<K, Timestamp>, key: K, is_so: bool, at: Timestamp) {
    if is_so {
        all.entry(key).or_insert(at);
    } else {
        all.remove(&key);
    }
}
