//! The copy that a forecast is played on: what was seen, and the best happens.
//!
//! Only what is on its way arrives: what was asked of a Job, an image that is being pulled, and what the strategy's own steps lead to. It never
//! heals what is wrong for other reasons.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    fact::Fact,
    forecast::foresee::Foresee,
    gate::Outcome,
    hold::Hold,
    reason::Reason,
    strategy::{
        self, Record as _,
        contract::Plan,
        known::{
            pulls::{Pull, Pulls},
            request::Requests,
            seen::Seen,
            snapshot::{Progress, Snapshot},
            step::{JobStep, Step as _},
            want::Want,
        },
    },
};

/// How long each small thing takes: only the order of moments matters.
const MOMENT: Duration = Duration::from_secs(1);

pub(super) struct Copy<S: Foresee> {
    want: Want,
    view: S::View,
    now: Timestamp,
    scene: S::Scene,
}

impl<S: Foresee> Copy<S> {
    pub(super) fn of(want: Want, mut view: S::View, now: Timestamp) -> Self {
        // Who is asked again says the same again.
        view.as_mut().external.iter_mut().for_each(|gate| gate.asked = None);
        let scene = S::scene(&view);
        Self { want, view, now, scene }
    }

    /// Nothing is under way.
    pub(super) fn is_at_rest(&self) -> bool {
        S::recorded(&self.view).is_none()
    }

    fn seen(&mut self) -> &mut Seen {
        self.view.as_mut()
    }

    /// The next answer, recorded as the operator would.
    pub(super) fn plan(&mut self) -> Plan<S> {
        self.look_at_nodes();
        let plan = strategy::plan::<S>(&self.want, &self.view, self.now);
        S::keep(&mut self.view, &plan);
        let seen = self.seen();
        seen.approvals.clone_from(&plan.approvals);
        seen.given_up.clone_from(&plan.given_up);
        seen.attempt.clone_from(&plan.attempt);
        seen.requests = Requests::default();
        if plan.record.is_some() {
            // A request is handled once.
            seen.resumed = false;
        }
        plan
    }

    /// Of an image that comes after the one that the nodes were asked about, nobody has pulled anything yet.
    fn look_at_nodes(&mut self) {
        let coming = S::recorded(&self.view).map_or(&self.want.target, |record| record.coming()).image.clone();
        let Fact::Known(Pulls { image, nodes }) = &mut self.seen().pulls else { return };
        if *image != coming {
            *image = coming;
            for pull in nodes.values_mut() {
                *pull = Pull::Missing;
            }
        }
    }

    pub(super) fn carry_out(&mut self, step: &S::Step) {
        self.pass();
        match step.job() {
            Some(JobStep::TakeSnapshot { .. }) => {
                let stored = Snapshot { bytes: 0, sha256: String::new(), location: "the one to come".to_owned() };
                self.seen().snapshot = Fact::Known(Progress::Done(stored));
            }
            Some(JobStep::Answer { gate }) => {
                let started = self.seen().external.iter_mut().filter(|external| external.name == *gate);
                started.for_each(|external| {
                    (external.outcome, external.lacks_job) = (Outcome::Pass, false);
                });
            }
            Some(JobStep::PullImage { nodes, .. }) => {
                for node in nodes {
                    self.pull_on(node);
                }
            }
            None => S::carry_out(&mut self.scene, &mut self.view, step),
        }
    }

    /// Lets pass what people or the calendar hold; false where nobody could.
    pub(super) fn lift(&mut self, on: &Hold) -> bool {
        if let Some(until) = on.until.filter(|until| *until > self.now) {
            self.now = until;
            return true;
        }
        if on.reason == Reason::Paused {
            return std::mem::take(&mut self.want.paused);
        }
        let seen = self.view.as_mut();
        if on.reason == Reason::AwaitingApproval {
            seen.approvals.fresh = seen.approvals.asked.is_some();
            return seen.approvals.fresh;
        }
        let mut lifted = false;
        for gate in &mut seen.external {
            let holds = match &gate.outcome {
                Outcome::Pass | Outcome::NotAsked(_) => false,
                Outcome::Hold(hold) | Outcome::Unknown(hold) => hold.reason == on.reason,
            };
            if holds {
                gate.outcome = Outcome::Pass;
                lifted = true;
            }
        }
        lifted
    }

    /// One thing that is on its way arrives; false where nothing is.
    pub(super) fn arrive(&mut self) -> bool {
        self.pass();
        self.pull() || S::arrive(&mut self.scene, &self.want, &mut self.view, self.now)
    }

    fn pass(&mut self) {
        self.now = self.now.saturating_add(MOMENT).unwrap_or(Timestamp::MAX);
    }

    /// An image that is on its way, and that nobody complains of, is there.
    fn pull(&mut self) -> bool {
        let Fact::Known(pulls) = &self.seen().pulls else { return false };
        let coming = pulls.nodes.iter().find(|(_, pull)| matches!(pull, Pull::Running { trouble: None, .. }));
        let Some(node) = coming.map(|(node, _)| node.clone()) else { return false };
        self.pull_on(&node);
        true
    }

    fn pull_on(&mut self, node: &str) {
        if let Fact::Known(pulls) = &mut self.seen().pulls {
            pulls.nodes.insert(node.to_owned(), Pull::Done);
        }
    }
}
