//! What the demo came to, by the judgement of the checker.

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use serde::Serialize;
use serde_json::Value;
use windlass_api::phase::Phase;
use windlass_rehearsal::{
    judge::{Verdict, judge},
    setting::Setting,
    stamping::{self, Judgement},
    trial::is_ours,
};
use windlass_sim::{
    harness::Cluster,
    journal::{Entry, Event, Verb},
};

use crate::demo::{
    fleet::{Picture, Standing, WAY, picture},
    quorum::overview,
};

/// For machines; the fields in the order that reads best.
#[derive(Serialize)]
pub struct Summary {
    upgrades: Vec<Upgrade>,
    fleets: Vec<Fleet>,
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
        let Verdict { leader_moves, leader_restarts, min_healthy, restarts, writes, .. } = judge(&journal, None);
        let running = overview(cluster, setting).is_some_and(|one| one.phase == Some(Phase::UpToDate));
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

/// The fleet, as it was.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fleet {
    name: &'static str,
    result: &'static str,
    from: &'static str,
    to: &'static str,
    tiers: Vec<Tier>,
    /// Those that run the new image.
    updated: usize,
    /// Those whose image a person chose.
    manual: usize,
    /// Images that were written.
    stamped: usize,
    /// The most writes that one of the updated ones has had.
    writes_per_resource: usize,
    /// Writes to the ServiceImage.
    status_writes: usize,
    /// The fewest that served at one time, once all of them did.
    min_serving: Option<usize>,
    /// What must not have been written, or not then.
    violations: usize,
    cluster_seconds: u64,
    #[serde(skip)]
    words: Vec<String>,
}

/// A tier of it.
#[derive(Serialize)]
struct Tier {
    #[serde(rename = "upgradeTier")]
    name: String,
    resources: usize,
    updated: usize,
    manual: usize,
}

impl Fleet {
    /// Judges what was written to the fleet, by the API's history, and how its resources are now.
    pub fn of(cluster: &Cluster, picture: &Picture, begin: Duration) -> Self {
        let journal = cluster.journal.entries();
        let Judgement { stamps, writes, violations, .. } = stamping::judge(&journal, stamping::PATIENCE);
        let fleets = stamping::subject().resource;
        let is_status = |entry: &&Entry| match &entry.event {
            Event::Write(change) => change.resource == fleets && is_ours(&change.user),
            Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => false,
        };
        let tier = |tier: &picture::Tier| Tier {
            name: tier.name.clone(),
            resources: tier.standings.len(),
            updated: tier.count(Standing::Done),
            manual: tier.count(Standing::Manual),
        };
        let (from, to) = WAY;
        Self {
            name: stamping::NAME,
            result: if picture.is_done() { "Done" } else { "NotDone" },
            from,
            to,
            tiers: picture.tiers.iter().map(tier).collect(),
            updated: picture.count(Standing::Done),
            manual: picture.count(Standing::Manual),
            stamped: stamps,
            writes_per_resource: writes.into_values().max().unwrap_or(0),
            status_writes: journal.iter().filter(is_status).count(),
            min_serving: fewest_serving(&journal, picture.managed() + picture.count(Standing::Manual)),
            violations: violations.len(),
            cluster_seconds: cluster.clock.elapsed().saturating_sub(begin).as_secs(),
            words: violations,
        }
    }
}

/// The fewest Deployments with an available pod, from when so many have one; none before that.
fn fewest_serving(journal: &[Entry], all: usize) -> Option<usize> {
    let mut serving = BTreeSet::new();
    let mut fewest = None;
    for entry in journal {
        let Event::Write(change) = &entry.event else { continue };
        if change.resource != "deployments.apps" || change.namespace != stamping::NAMESPACE {
            continue;
        }
        let deployment = change.after.as_deref().filter(|_| change.verb != Verb::Delete);
        let status = deployment.and_then(|deployment| deployment.pointer("/status/availableReplicas"));
        if status.and_then(Value::as_i64).is_some_and(|available| available > 0) {
            serving.insert(change.name.as_str());
        } else {
            serving.remove(change.name.as_str());
        }
        if fewest.is_some() || serving.len() == all {
            fewest = fewest.min(Some(serving.len())).or(Some(serving.len()));
        }
    }
    fewest
}

impl Summary {
    /// Judges everything that happened in the cluster.
    pub fn of(cluster: &Cluster, upgrades: Vec<Upgrade>, fleets: Vec<Fleet>) -> Self {
        let Verdict { mut violations, checked, .. } = judge(&cluster.journal.entries(), None);
        violations.extend(fleets.iter().flat_map(|fleet| fleet.words.iter().cloned()));
        // Each stamp is held against the whole fleet.
        let checked = checked + fleets.iter().map(|fleet| fleet.stamped).sum::<usize>();
        Self { upgrades, fleets, violations: violations.len(), checked, words: violations }
    }

    /// The upgrades were done and nothing was violated.
    pub fn is_good(&self) -> bool {
        let mut results =
            self.upgrades.iter().map(|one| one.result).chain(self.fleets.iter().map(|fleet| fleet.result));
        self.violations == 0 && results.all(|result| result == "Done")
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
        for fleet in &self.fleets {
            row("fleet", format!("{} Dicoms {} to {}: {}", fleet.updated, fleet.from, fleet.to, fleet.result));
            row("cluster time", format!("{} s", fleet.cluster_seconds));
            row("stamped", format!("{}; {} were left alone, whose image a person chose", fleet.stamped, fleet.manual));
            row("most writes to one of them", fleet.writes_per_resource.to_string());
            let fewest = fleet.min_serving.map(|count| format!("{count} of {}", fleet.updated + fleet.manual));
            row("fewest that served", fewest.unwrap_or_else(|| "-".to_owned()));
            row("order violations", format!("{} in {} stamps, by the API's history", fleet.violations, fleet.stamped));
            row("writes to the ServiceImage", format!("{}\n", fleet.status_writes));
        }
        row("violations", format!("{} in {} states that the checker saw", self.violations, self.checked));
        for violation in &self.words {
            row("", violation.clone());
        }
        format!("\n{text}")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use rstest::rstest;
    use serde_json::json;
    use windlass_rehearsal::stamping;
    use windlass_sim::journal::{Change, Entry, Event, Verb};

    use super::{Fleet, Summary, fewest_serving};

    fn deployment(name: &str, available: u32, verb: Verb) -> Entry {
        let change = Change {
            revision: 1,
            user: "deployment-controller".into(),
            verb,
            resource: "deployments.apps".into(),
            namespace: stamping::NAMESPACE.into(),
            name: name.into(),
            before: None,
            after: Some(Arc::new(json!({"status": {"availableReplicas": available}}))),
        };
        Entry { at: Timestamp::UNIX_EPOCH, event: Event::Write(change) }
    }

    #[rstest]
    #[case::all_the_time(&[("a", 2, Verb::Update), ("a", 1, Verb::Update)], Some(2))]
    #[case::one_was_away(&[("a", 0, Verb::Update), ("a", 1, Verb::Update)], Some(1))]
    #[case::both_were_away(&[("a", 0, Verb::Update), ("b", 0, Verb::Update), ("b", 1, Verb::Update)], Some(0))]
    #[case::gone(&[("a", 1, Verb::Delete)], Some(1))]
    fn the_fewest_are_counted_from_when_all_serve(#[case] then: &[(&str, u32, Verb)], #[case] expected: Option<usize>) {
        let begin = [("a", 1, Verb::Create), ("b", 0, Verb::Create), ("b", 1, Verb::Update)];
        let journal: Vec<Entry> =
            begin.iter().chain(then).map(|(name, available, verb)| deployment(name, *available, *verb)).collect();
        assert_eq!(fewest_serving(&journal[..2], 2), None, "not all of them serve yet");
        assert_eq!(fewest_serving(&journal, 2), expected);
    }

    fn fleet(result: &'static str, words: Vec<String>) -> Fleet {
        Fleet {
            name: "dicom",
            result,
            from: "v1",
            to: "v2",
            tiers: Vec::new(),
            updated: 200,
            manual: 3,
            stamped: 200,
            writes_per_resource: 1,
            status_writes: 9,
            min_serving: Some(203),
            violations: words.len(),
            cluster_seconds: 1,
            words,
        }
    }

    #[test]
    fn a_fleet_out_of_order_spoils_the_end() {
        let cluster = windlass_sim::harness::Cluster::new(1);
        let judged = |fleet: Fleet| Summary::of(&cluster, Vec::new(), vec![fleet]);
        assert!(judged(fleet("Done", Vec::new())).is_good());
        assert!(!judged(fleet("NotDone", Vec::new())).is_good());
        let spoilt = judged(fleet("Done", vec!["b is reserved before a is up to date".into()]));
        assert!(!spoilt.is_good());
        assert!(spoilt.text().contains("b is reserved before a is up to date"), "{}", spoilt.text());
    }
}
