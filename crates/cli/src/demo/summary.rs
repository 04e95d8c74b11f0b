//! What the demo came to, by the judgement of the checker.

use std::{fmt::Write as _, time::Duration};

use serde::Serialize;
use serde_json::Value;
use windlass_rehearsal::setting::Setting;
use windlass_sim::{
    harness::{Cluster, is_ours},
    invariants::{self, Verdict},
    journal::{Entry, Event},
};

/// For machines; the fields in the order that reads best.
#[derive(Serialize)]
pub struct Summary {
    upgrades: Vec<Upgrade>,
    violations: usize,
    checked: usize,
    #[serde(skip)]
    words: Vec<String>,
}

/// One upgrade, as it was foreseen and as it was.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    name: String,
    system: &'static str,
    result: &'static str,
    from: &'static str,
    to: &'static str,
    members: usize,
    foreseen: Foreseen,
    leadership_moves: usize,
    leader_restarts: usize,
    min_healthy: Option<usize>,
    restarts: Vec<String>,
    cluster_seconds: u64,
    api_writes: usize,
}

/// What the plan said.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Foreseen {
    /// How many steps.
    pub steps: usize,
    /// How many of them move leadership.
    pub leadership_moves: usize,
}

impl Upgrade {
    /// Judges what happened to one system.
    pub fn of(cluster: &Cluster, setting: &Setting, foreseen: Foreseen, took: Duration) -> Self {
        let (from, to) = setting.reference;
        let about = |entry: &&Entry| match &entry.event {
            Event::Write(change) => change.namespace == setting.namespace,
            Event::Quorum(truth) => truth.namespace == setting.namespace,
            Event::Verb { .. } | Event::Note(_) => true,
        };
        let journal: Vec<Entry> = cluster.journal.entries().iter().filter(about).cloned().collect();
        let Verdict { leader_moves, leader_restarts, min_healthy, restarts, writes, .. } =
            invariants::judge(&journal, is_ours);
        let subject = setting.subject();
        let object = cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name);
        let running = object.is_some_and(|object| object.pointer("/status/phase") == Some(&Value::from("Running")));
        let truths = cluster.world.truths();
        let mut members =
            truths.iter().filter(|truth| truth.namespace == setting.namespace).flat_map(|truth| &truth.members);
        let count = members.clone().count();
        let done = running && members.all(|member| member.version.trim_start_matches('v') == to);
        Self {
            name: format!("{}/{}", setting.namespace, setting.name),
            system: setting.system,
            result: if done { "Done" } else { "NotDone" },
            from,
            to,
            members: count,
            foreseen,
            leadership_moves: leader_moves,
            leader_restarts,
            min_healthy,
            restarts,
            cluster_seconds: took.as_secs(),
            api_writes: writes,
        }
    }
}

impl Summary {
    /// Judges everything that happened in the cluster.
    pub fn of(cluster: &Cluster, upgrades: Vec<Upgrade>) -> Self {
        let verdict = invariants::judge(&cluster.journal.entries(), is_ours);
        Self { upgrades, violations: verdict.violations.len(), checked: verdict.checked, words: verdict.violations }
    }

    /// The upgrades were done and nothing was violated.
    pub fn is_good(&self) -> bool {
        self.violations == 0 && self.upgrades.iter().all(|upgrade| upgrade.result == "Done")
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            // Writing to a string does not fail.
            let _never = writeln!(text, "  {name:<28}{value}");
        };
        for upgrade in &self.upgrades {
            row("upgrade", format!("{} {} to {}: {}", upgrade.system, upgrade.from, upgrade.to, upgrade.result));
            row("cluster time", format!("{} s", upgrade.cluster_seconds));
            row(
                "leadership moves",
                format!("{}, foreseen {}", upgrade.leadership_moves, upgrade.foreseen.leadership_moves),
            );
            row("leader restarts", upgrade.leader_restarts.to_string());
            let fewest = upgrade.min_healthy.map(|count| format!("{count} of {}", upgrade.members));
            row("fewest healthy members", fewest.unwrap_or_else(|| "-".to_owned()));
            row("writes to the API", format!("{}\n", upgrade.api_writes));
        }
        row("violations", format!("{} in {} states that the checker saw", self.violations, self.checked));
        for violation in &self.words {
            row("", violation.clone());
        }
        format!("\n{text}")
    }
}
