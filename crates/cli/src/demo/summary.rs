//! What the demo came to, by the judgement of the checker.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use windlass_rehearsal::pd;
use windlass_sim::{
    harness::{Cluster, is_ours},
    invariants::{self, Verdict},
};

/// For machines; the fields in the order that reads best.
#[derive(Serialize)]
struct Report<'a> {
    upgrades: [Upgrade<'a>; 1],
    violations: usize,
    checked: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Upgrade<'a> {
    name: String,
    system: &'static str,
    result: &'static str,
    from: &'static str,
    to: &'static str,
    members: usize,
    leadership_moves: usize,
    leader_restarts: usize,
    min_healthy: Option<usize>,
    restarts: &'a [String],
    cluster_seconds: u64,
    api_writes: usize,
}

/// The end.
pub struct Summary {
    verdict: Verdict,
    result: &'static str,
    from: &'static str,
    to: &'static str,
    members: usize,
    seconds: u64,
}

impl Summary {
    /// Judges everything that happened in the cluster.
    pub fn of(cluster: &Cluster, from: &'static str, to: &'static str) -> Self {
        let verdict = invariants::judge(&cluster.journal.entries(), is_ours);
        let subject = pd::subject();
        let object = cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name);
        let done = object.as_deref().is_some_and(|object| {
            let truth = cluster.world.truths();
            let all_new = truth
                .iter()
                .flat_map(|truth| &truth.members)
                .all(|member| member.version.trim_start_matches('v') == to);
            object.pointer("/status/phase") == Some(&Value::from("Running")) && all_new
        });
        Self {
            result: if done { "Done" } else { "NotDone" },
            members: cluster.world.truths().iter().map(|truth| truth.members.len()).sum(),
            seconds: cluster.clock.elapsed().as_secs(),
            verdict,
            from,
            to,
        }
    }

    /// The upgrade was done and nothing was violated.
    pub fn is_good(&self) -> bool {
        self.result == "Done" && self.verdict.violations.is_empty()
    }

    /// One object on one line.
    pub fn json(&self) -> serde_json::Result<String> {
        let verdict = &self.verdict;
        let upgrade = Upgrade {
            name: format!("{}/{}", pd::NAMESPACE, pd::NAME),
            system: "Pd",
            result: self.result,
            from: self.from,
            to: self.to,
            members: self.members,
            leadership_moves: verdict.leader_moves,
            leader_restarts: verdict.leader_restarts,
            min_healthy: verdict.min_healthy,
            restarts: &verdict.restarts,
            cluster_seconds: self.seconds,
            api_writes: verdict.writes,
        };
        serde_json::to_string(&Report {
            upgrades: [upgrade],
            violations: verdict.violations.len(),
            checked: verdict.checked,
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let verdict = &self.verdict;
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            // Writing to a string does not fail.
            let _never = writeln!(text, "  {name:<28}{value}");
        };
        row("upgrade", format!("PD {} to {}: {}", self.from, self.to, self.result));
        row("cluster time", format!("{} s", self.seconds));
        row("leadership moves", verdict.leader_moves.to_string());
        row("leader restarts", verdict.leader_restarts.to_string());
        let healthy =
            verdict.min_healthy.map_or_else(|| "-".to_owned(), |count| format!("{count} of {}", self.members));
        row("fewest healthy members", healthy);
        row("writes to the API", verdict.writes.to_string());
        row("violations", format!("{} in {} states that the checker saw", verdict.violations.len(), verdict.checked));
        for violation in &verdict.violations {
            row("", violation.clone());
        }
        format!("\n{text}")
    }
}
