//! What a trial came to, and the rules that it is held to. Pure.

use windlass_plan::quorum::majority;

use super::{Deletions, Operators, Scenario};
use crate::{
    audit::Ending,
    ledger::Ledger,
    witness::{Sample, Testimony},
};

/// What happened, from everybody but the operator.
pub struct Facts {
    /// What clients saw.
    pub ledger: Ledger,
    /// Acknowledged writes that are not there.
    pub lost: Vec<String>,
    /// Leadership, deletions, health.
    pub testimony: Testimony,
    /// What each member says it runs, at the end.
    pub versions: Vec<String>,
    /// Writes of the operator that the API server forbade: its rights are too few.
    pub denied: Vec<String>,
    /// What the witness heard.
    pub samples: Vec<Sample>,
}

/// The rules that were broken; none if all is well.
pub fn broken(scenario: &Scenario, facts: &Facts, version: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |holds: bool, otherwise: String| {
        if !holds {
            broken.push(otherwise);
        }
    };
    let Facts { ledger, lost, testimony, versions, denied, samples: _ } = facts;
    rule(lost.is_empty(), format!("{} acknowledged writes are lost, first {:?}", lost.len(), lost.first()));
    rule(
        ledger.wrong_reads.is_empty(),
        format!("reads did not find what was acknowledged: {:?}", ledger.wrong_reads.first()),
    );
    rule(ledger.acknowledged() > 0, "nothing was acknowledged".into());
    rule(
        versions.iter().all(|seen| seen == version),
        format!("members run {} instead of {version}", versions.join(", ")),
    );
    if scenario.operators == Operators::None {
        return broken;
    }
    let story = |endings: &[Ending]| {
        let lines = endings.iter().map(|ending| format!("{} at {} by {}", ending.pod, ending.at, ending.user));
        lines.collect::<Vec<_>>().join("; ")
    };
    rule(
        testimony.leader_restarts.is_empty(),
        format!("leaders were restarted: {}", story(&testimony.leader_restarts)),
    );
    let least = majority(scenario.replicas);
    rule(
        testimony.smallest_healthy >= least,
        format!(
            "only {} members were healthy at {:?}, {least} are a majority",
            testimony.smallest_healthy, testimony.smallest_at
        ),
    );
    rule(denied.is_empty(), format!("the operator was forbidden to {}", denied.join(", ")));
    match scenario.deletions {
        Deletions::EachOnce => {
            let mut pods: Vec<&str> = testimony.endings.iter().map(|ending| ending.pod.as_str()).collect();
            pods.sort_unstable();
            let each_once = pods.len() == scenario.replicas && pods.windows(2).all(|pair| pair[0] != pair[1]);
            rule(each_once, format!("not every pod was replaced exactly once: {}", story(&testimony.endings)));
            let user = scenario.replaced_by();
            let as_due = testimony.endings.iter().all(|ending| ending.user == user);
            rule(as_due, format!("somebody else replaced pods: {}", story(&testimony.endings)));
        }
        Deletions::Any => {}
    }
    broken
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{Facts, broken};
    use crate::{
        audit::Ending,
        ledger::{Ledger, Outcome, Write},
        scenario::{CONTROLLER, Scenario, find},
        witness::Testimony,
    };

    fn scenario() -> &'static Scenario {
        find("etcd-rolling-3").unwrap()
    }

    fn ending(pod: &str, user: &str) -> Ending {
        Ending { pod: pod.into(), at: Timestamp::UNIX_EPOCH, user: user.into(), agent: String::new() }
    }

    fn fine() -> Facts {
        let outcome = Outcome::Acknowledged { revision: 1 };
        let write = Write { key: "k".into(), value: "v".into(), sent_ms: 0, ended_ms: 1, outcome };
        Facts {
            ledger: Ledger { writes: vec![write], ..Ledger::default() },
            lost: vec![],
            testimony: Testimony {
                smallest_healthy: 2,
                endings: ["etcd-2", "etcd-1", "etcd-0"].map(|pod| ending(pod, CONTROLLER)).to_vec(),
                ..Testimony::default()
            },
            versions: vec!["2".into(); 3],
            denied: vec![],
            samples: vec![],
        }
    }

    #[test]
    fn what_went_well_breaks_no_rule() {
        assert_eq!(broken(scenario(), &fine(), "2"), Vec::<String>::new());
    }

    #[test]
    fn every_rule_can_be_broken() {
        let break_one: [fn(&mut Facts); 9] = [
            |facts| facts.lost.push("k".into()),
            |facts| facts.ledger.wrong_reads.push("k".into()),
            |facts| facts.ledger.writes.clear(),
            |facts| facts.versions[1] = "1".into(),
            |facts| facts.testimony.leader_restarts.push(ending("etcd-0", CONTROLLER)),
            |facts| facts.testimony.smallest_healthy = 1,
            |facts| facts.denied.push("patch pods".into()),
            |facts| facts.testimony.endings.push(ending("etcd-0", CONTROLLER)),
            |facts| facts.testimony.endings[0] = ending("etcd-2", "somebody"),
        ];
        for (index, break_it) in break_one.into_iter().enumerate() {
            let mut facts = fine();
            break_it(&mut facts);
            assert_eq!(broken(scenario(), &facts, "2").len(), 1, "rule {index}");
        }
    }
}
