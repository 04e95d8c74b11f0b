//! Gates whose answer is somewhere else: objects, Prometheus, webhooks, Jobs. They are asked here, and judged in `plan` with all others.
//!
//! What was not asked, or did not answer, is unknown, and blocks. Nobody reaches further through these than by themselves (H41): objects
//! are those of the resource's own namespace and never Secrets, Services are its own or were allowed by whoever started the operator, and
//! a Job is one that somebody else wrote down as a CronJob.

mod analysis;
pub mod job;
mod memory;
mod objects;
mod service;
mod webhook;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{Resource, ResourceExt};
use windlass_api::{
    QuorumCluster,
    quorum_cluster::{Gates, Hook, HookTime},
};
use windlass_plan::{
    Hold, Reason,
    outcome::{ExternalGate, Outcome, When},
};

pub use self::memory::Memory;
use crate::Context;

/// What a gate that was asked says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its word.
    pub outcome: Outcome,
    /// Its Job is not there yet.
    pub lacks_job: bool,
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, lacks_job: false }
    }
}

/// What was asked, by the names of the gates.
pub type Answers = BTreeMap<String, Answer>;

/// All gates that the resource describes, with when they are asked and the reason of those that say nothing.
fn described(gates: &Gates) -> impl Iterator<Item = (String, When, Reason)> {
    let checks = gates.checks.iter().map(|check| (check_name(&check.name), When::BeforeMember, Reason::CheckFailed));
    let analysis = gates.analysis.iter();
    let analysis = analysis.map(|one| (analysis_name(&one.name), When::BeforeMember, Reason::AnalysisFailed));
    let hooks = gates.hooks.iter().map(|hook| (hook_name(&hook.name), hook.when.into(), Reason::AwaitingHook));
    checks.chain(analysis).chain(hooks)
}

fn check_name(name: &str) -> String {
    format!("Check/{name}")
}

fn analysis_name(name: &str) -> String {
    format!("Analysis/{name}")
}

fn hook_name(name: &str) -> String {
    format!("Hook/{name}")
}

/// The gates that the resource describes, with what they said. Pure.
pub fn gates(resource: &QuorumCluster, answers: &Answers) -> Vec<ExternalGate> {
    let gate = |(name, when, reason): (String, When, Reason)| {
        let silent = || Outcome::Unknown(Hold::new(reason, format!("{name} was not asked yet"))).into();
        let Answer { outcome, lacks_job } = answers.get(&name).cloned().unwrap_or_else(silent);
        ExternalGate { name, when, outcome, lacks_job }
    };
    described(&resource.spec.gates).map(gate).collect()
}

/// Where the resource stands, which decides who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is wanted.
    Idle,
    /// An upgrade may begin.
    Before,
    /// One is under way.
    Within,
    /// All members are replaced and well.
    After,
}

impl Phase {
    /// Told from what was written. Should it be wrong, the gates are not asked and hold, what holds is written, and the next pass knows.
    fn of(resource: &QuorumCluster, set: &StatefulSet) -> Self {
        let status = resource.status.clone().unwrap_or_default();
        let members = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let members = usize::try_from(members).unwrap_or(usize::MAX);
        let ready = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            condition.type_ == "Ready"
                && condition.status == "True"
                && condition.observed_generation == resource.meta().generation
        };
        match &status.upgrade {
            None if status.conditions.iter().any(ready) => Self::Idle,
            None => Self::Before,
            Some(upgrade) if upgrade.completed_pods.len() >= members => Self::After,
            Some(_) => Self::Within,
        }
    }

    fn asks(self, when: When) -> bool {
        match (self, when) {
            (Self::Idle, _) => false,
            (Self::Before | Self::Within | Self::After, When::BeforeMember) => true,
            (phase, When::BeforeUpgrade) => phase == Self::Before,
            (phase, When::AfterUpgrade) => phase == Self::After,
        }
    }
}

/// Asks those whose word counts now. With `ahead`, for a plan, those that can be asked without telling anybody that it begins.
pub async fn ask(context: &Context, resource: &QuorumCluster, set: &StatefulSet, ahead: bool) -> Answers {
    let gates = &resource.spec.gates;
    let phase = if ahead && resource.status.as_ref().is_none_or(|status| status.upgrade.is_none()) {
        Phase::Before
    } else {
        Phase::of(resource, set)
    };
    let mut answers = Answers::new();
    if phase == Phase::Idle {
        context.asked.forget(resource);
        return answers;
    }
    for check in &gates.checks {
        answers.insert(check_name(&check.name), objects::ask(context, resource, check).await.into());
    }
    for analysis in &gates.analysis {
        answers.insert(analysis_name(&analysis.name), analysis::ask(context, resource, analysis).await.into());
    }
    for hook in gates.hooks.iter().filter(|hook| phase.asks(hook.when.into())) {
        let name = hook_name(&hook.name);
        let answer = match hook {
            Hook { webhook: Some(service), .. } if ahead => {
                let message = format!("{name}: {} is told when it begins, and not for a plan", service.name);
                Outcome::Unknown(Hold::new(Reason::AwaitingHook, message)).into()
            }
            Hook { webhook: Some(service), when, .. } => {
                webhook::ask(context, resource, &hook.name, *when, service).await.into()
            }
            Hook { job: Some(from), .. } => job::ask(context, resource, set, hook, from).await,
            // The schema takes one of the two.
            Hook { webhook: None, job: None, .. } => Outcome::Pass.into(),
        };
        answers.insert(name, answer);
    }
    answers
}

/// What makes one time that a gate is asked another than the time before: what is wanted, and which upgrade it is.
fn occasion(resource: &QuorumCluster) -> String {
    let begun = resource.status.as_ref().and_then(|status| status.upgrade.as_ref()).map(|upgrade| upgrade.started_at.0);
    let begun = begun.map(|begun| begun.to_string()).unwrap_or_default();
    format!("{} {} {begun}", resource.uid().unwrap_or_default(), resource.meta().generation.unwrap_or_default())
}

/// What is told of it in words that a machine reads, too.
fn time(when: HookTime) -> &'static str {
    match when {
        HookTime::BeforeUpgrade => "BeforeUpgrade",
        HookTime::BeforeEachMember => "BeforeEachMember",
        HookTime::AfterUpgrade => "AfterUpgrade",
    }
}
