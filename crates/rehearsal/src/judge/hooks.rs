//! A template is written, and an upgrade called done, only when the Jobs of its hooks have completed (X4).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_sim::journal::{Change, Event};

use super::{
    Judge, Verdict,
    deed::{Deed, Step},
    record::{Name, has, under_way, wish},
};

#[derive(Default)]
pub(super) struct Hooks {
    /// Which set a QuorumCluster is about.
    managed: BTreeMap<Name, Name>,
    sets: BTreeMap<Name, Jobs>,
}

/// Jobs that must have completed.
#[derive(Default)]
struct Jobs {
    /// So many before an upgrade begins, and that was known before the present one did.
    before: usize,
    /// And so many before it is done.
    after: usize,
    /// Those that have, since the last upgrade ended.
    completed: BTreeSet<String>,
}

impl Judge for Hooks {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        if let Event::Write(change) = step.event {
            self.complete(change);
            if self.is_done_too_soon(change) {
                verdict.object(step.at, "the upgrade was called done before its hooks' Jobs had completed");
            }
        }
        if let Deed::Wrote(wrote) = step.deed
            && wrote.template
            && self.sets.get(&wrote.set).is_some_and(|jobs| jobs.completed.len() < jobs.before)
        {
            verdict.object(step.at, "the template was written before its hooks' Jobs had completed");
        }
    }
}

impl Hooks {
    /// A Job of a hook's may have completed.
    fn complete(&mut self, change: &Change) {
        let Some(job) = change.after.as_deref().filter(|_| change.resource == "jobs.batch") else { return };
        let owner = &job["metadata"]["ownerReferences"][0];
        if !change.name.starts_with("windlass-hook-") || !has(job, "Complete") || owner["kind"] != "QuorumCluster" {
            return;
        }
        let owner = (change.namespace.clone(), owner["name"].as_str().unwrap_or_default().to_owned());
        if let Some(set) = self.managed.get(&owner) {
            self.sets.entry(set.clone()).or_default().completed.insert(change.name.clone());
        }
    }

    /// Whether a QuorumCluster says that an upgrade is over, and Jobs are missing.
    fn is_done_too_soon(&mut self, change: &Change) -> bool {
        let Some((name, spec)) = wish(change) else { return false };
        self.managed.insert((change.namespace.clone(), change.name.clone()), name.clone());
        let jobs = self.sets.entry(name).or_default();
        match under_way(change) {
            (false, false) => {
                let hooks = spec.pointer("/gates/hooks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let count =
                    |when: &str| hooks.iter().filter(|hook| hook["when"] == when && !hook["job"].is_null()).count();
                (jobs.before, jobs.after) = (count("BeforeUpgrade"), count("AfterUpgrade"));
                false
            }
            (true, false) => {
                let completed = std::mem::take(&mut jobs.completed);
                let before = change.before.as_deref();
                let rolling_back = before.and_then(|before| before.pointer("/status/upgrade/rollingBack"));
                let overrides = spec.pointer("/gates/overrides").and_then(Value::as_array);
                let of_hooks = |one: &Value| one["gate"].as_str().is_some_and(|gate| gate.starts_with("Hook/"));
                let aside = overrides.is_some_and(|overrides| overrides.iter().any(of_hooks));
                completed.len() < jobs.before + jobs.after && rolling_back != Some(&Value::Bool(true)) && !aside
            }
            (_, true) => false,
        }
    }
}
