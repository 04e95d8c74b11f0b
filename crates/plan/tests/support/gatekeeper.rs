//! Judges the steps of a walk by the gates, from what it saw itself: it shares no code with what it judges.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use windlass_plan::{
    MemberName, Pod, Step, View, Want,
    approval::Mode,
    gate::{CONCURRENT_OPERATION, Outcome},
    strategy::known::{approval::Question, want::Target},
};

use super::POSITION;

/// The one window that walks know: the first half of every hour.
pub const HALF_HOURS: (&str, u64) = ("0 * * * *", 30);

#[derive(Default)]
pub struct Gatekeeper {
    /// Since when each member was seen well at every look, and the pod that was.
    well: BTreeMap<MemberName, (String, Timestamp)>,
    /// Who is being replaced since when.
    begun: Option<(MemberName, Timestamp)>,
    /// How long that took, so far.
    took: Vec<Duration>,
    /// In the upgrade that began then.
    upgrade: Option<Timestamp>,
    /// What the last template was written for.
    written: Option<Target>,
    /// What people approved, as it was shown to them.
    pub approved: Vec<Question>,
}

impl Gatekeeper {
    /// What the operator could see as well at this moment.
    pub fn look(&mut self, view: &View, now: Timestamp) {
        for pod in &view.pods {
            let (key, uid) = (pod.name.clone(), pod.uid.clone());
            let since = self.well.get(&key).filter(|(seen, since)| *seen == uid && pod.ready_since <= Some(*since));
            match (is_well(view, pod), since) {
                (false, _) => _ = self.well.remove(&key),
                (true, Some(_)) => {}
                (true, None) => _ = self.well.insert(key, (uid, now)),
            }
        }
        self.well.retain(|name, _| view.pod(name).is_some());
        let done = |name: &MemberName| view.pod(name).is_some_and(|pod| !view.is_outdated(pod) && is_well(view, pod));
        if let Some((_, since)) = self.begun.take_if(|(name, _)| done(name)) {
            self.took.push(now.duration_since(since).unsigned_abs());
        }
        let upgrade = view.record.as_ref().map(|record| record.started_at);
        if std::mem::replace(&mut self.upgrade, upgrade) != upgrade {
            self.took.clear();
        }
        if let Some(leader) = view.quorum.leader.known() {
            self.approved.retain(|question| question.hand_over.as_ref().is_none_or(|from| from == leader));
        }
    }

    /// Objects to a step that disturbs somebody while a gate holds.
    pub fn object(&mut self, step: &Step, want: &Want, view: &View, now: Timestamp) {
        let leaves = match step {
            Step::HandOver { from, .. } => Some(from),
            Step::Permit { .. } | Step::Replace { .. } => None,
            Step::WriteTemplate { .. } => {
                self.begun = None;
                return self.object_to_template(step, want, view, now);
            }
            Step::TakeBack { .. } => {
                self.begun = None;
                return;
            }
            Step::Job(_)
            | Step::SwitchStrategy { .. }
            | Step::PutBackStrategy
            | Step::HoldEvictions
            | Step::DeletePod { .. }
            | Step::ReleaseEvictions
            | Step::Park { .. } => return,
        };
        let aside = |gate: &str| want.overrides.get(gate).is_some_and(|until| now < *until);
        let record = view.record.as_ref().expect("recorded before the act");
        for gate in &view.external {
            assert!(gate.outcome == Outcome::Pass || aside(&gate.name), "{step} against {gate:?}");
        }
        if !want.windows.is_empty() && !aside("MaintenanceWindow") {
            let needed = self.took.iter().max().copied().unwrap_or_default();
            let into_the_hour = Duration::from_secs(u64::try_from(now.as_second() % 3600).unwrap());
            let closes = Duration::from_mins(HALF_HOURS.1);
            assert!(into_the_hour < closes, "{step} outside of the window at {now}");
            assert!(into_the_hour + needed <= closes, "{step} at {now}, and it takes {needed:?}");
        }
        if want.soak > Duration::ZERO && !aside("Soak") {
            for pod in view.updated() {
                let since = self.well.get(&pod.name).map(|(_, since)| *since);
                assert!(
                    since.is_some_and(|since| since + want.soak <= now),
                    "{step} at {now}: {} well since {since:?}",
                    pod.name
                );
            }
        }
        let asked = match (want.approval, leaves) {
            (Mode::None, _) | (Mode::BeforeEachHandOver, None) => None,
            (Mode::BeforeUpgrade, _) => Some(None),
            (Mode::BeforeEachHandOver, Some(from)) => Some(Some(from.clone())),
        };
        if let Some(hand_over) = asked.filter(|_| !aside("Approval")) {
            let question = Question { target: record.target.clone(), hand_over };
            assert!(self.approved.contains(&question), "{step}, and nobody approved {question:?}");
        }
        if let Step::Permit { pod, .. } | Step::Replace { pod, .. } = step {
            self.begun = Some((pod.clone(), now));
        }
    }
}

impl Gatekeeper {
    /// A template of another target, the first or a later one, is written when it is approved and nobody else is at work.
    fn object_to_template(&mut self, step: &Step, want: &Want, view: &View, now: Timestamp) {
        let record = view.record.as_ref().expect("recorded before the act");
        let target = Some(record.target.clone());
        if std::mem::replace(&mut self.written, target.clone()) == target || record.rolling_back {
            return;
        }
        let aside = |gate: &str| want.overrides.get(gate).is_some_and(|until| now < *until);
        let question = Question { target: record.target.clone(), hand_over: None };
        let unapproved = want.approval == Mode::BeforeUpgrade && !self.approved.contains(&question);
        assert!(!unapproved || aside("Approval"), "{step}, and nobody approved {question:?}");
        let locked =
            view.external.iter().any(|gate| gate.name == CONCURRENT_OPERATION && gate.outcome != Outcome::Pass);
        assert!(!locked || aside(CONCURRENT_OPERATION), "{step}, and somebody else is at work");
    }
}

fn is_well(view: &View, pod: &Pod) -> bool {
    let member = view.quorum.member(&pod.name);
    pod.is_up()
        && view.quorum.leader.known().is_some()
        && member.is_some_and(|member| member.is_healthy() && member.position.is(&Some(POSITION)))
}
