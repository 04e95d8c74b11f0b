//! Gates whose answer is somewhere else: objects, Prometheus, webhooks, Jobs. They are asked here, and judged in `plan` with all others.
//!
//! ```text
//!   a resource ─▶ Asker (who asks, where, on which occasion) and Questions (the gates that it describes)
//!   ask (reads, calls) ─▶ Answers ─▶ gates (pure) ─▶ the planner
//! ```
//! What was not asked, or did not answer, is unknown, and blocks. Nobody reaches further through these than by themselves (H41): objects
//! are those of one namespace and never Secrets, Services are of that namespace or were allowed by whoever started the operator, and
//! a Job is one that somebody else wrote down as a CronJob. A QuorumCluster's namespace is its own; that of a ServiceImage must have been allowed.

mod analysis;
pub mod job;
mod memory;
mod objects;
mod service;
mod webhook;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::time::Instant;
use windlass_api::gates::{Analysis, ObjectCheck, ServiceRef};
use windlass_plan::{
    Hold, Reason,
    gate::{About, Asked, ExternalGate, Outcome, When},
};

pub use self::memory::Memory;
use crate::{Context, jobs::Maker};

/// Who asks: all that a gate needs to know of the resource that describes it.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Which it is, where its objects, Services, Secrets and CronJobs are, and who owns its Jobs.
    pub maker: Maker,
    /// What makes one time that a gate is asked another than the time before: what is wanted, and which upgrade it is.
    pub occasion: String,
    /// What webhooks are told of it.
    pub about: Map<String, Value>,
}

/// A gate that is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// How people call it.
    pub gate: String,
    /// When its word counts.
    pub when: When,
    /// Whom, and what.
    pub of: Of,
    /// What was measured before this does not count: it says nothing of what has happened since.
    pub not_before: Option<Instant>,
    /// Whose turn it is, for those who are asked about every member.
    pub about: About,
}

/// Whom to ask, and what.
#[derive(Clone, Debug)]
pub enum Of {
    /// Objects.
    Objects(ObjectCheck),
    /// Prometheus.
    Prometheus(Analysis),
    /// Somebody's Service.
    Webhook {
        /// The hook's name.
        hook: String,
        /// When it is asked, in a word that a machine reads, too.
        time: &'static str,
        /// Where.
        service: ServiceRef,
    },
    /// A Job.
    Job {
        /// What it is made from.
        cron_job: String,
        /// How it is called on this occasion.
        job: String,
    },
}

impl Of {
    /// Why it is waited for where nothing was said.
    pub fn silence(&self) -> Reason {
        match self {
            Self::Objects(_) => Reason::CheckFailed,
            Self::Prometheus(_) => Reason::AnalysisFailed,
            Self::Webhook { .. } | Self::Job { .. } => Reason::AwaitingHook,
        }
    }
}

/// What a gate that was asked says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its word.
    pub outcome: Outcome,
    /// Its Job is not there yet.
    pub lacks_job: bool,
    /// When somebody said so, where that was remembered.
    pub at: Option<Timestamp>,
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, lacks_job: false, at: None }
    }
}

impl Answer {
    /// Said at that time.
    fn at(at: Timestamp, outcome: Outcome) -> Self {
        Self { at: Some(at), ..outcome.into() }
    }
}

/// What was asked, by the names of the gates.
pub type Answers = BTreeMap<String, Answer>;

/// A check on objects, asked before everything that disturbs somebody.
pub fn check(check: &ObjectCheck) -> Question {
    let gate = format!("Check/{}", check.name);
    Question { gate, when: When::BeforeEachMember, of: Of::Objects(check.clone()), not_before: None, about: About::All }
}

/// A query to Prometheus, asked before everything that disturbs somebody.
pub fn analysis(analysis: &Analysis) -> Question {
    let gate = format!("Analysis/{}", analysis.name);
    let of = Of::Prometheus(analysis.clone());
    Question { gate, when: When::BeforeEachMember, of, not_before: None, about: About::All }
}

/// What a hook's gate is called.
pub fn hook_name(name: &str) -> String {
    format!("Hook/{name}")
}

/// These gates, with what they said. Pure.
pub fn outcomes(questions: &[Question], answers: &Answers) -> Vec<ExternalGate> {
    let gate = |Question { gate, when, of, not_before: _, about }: &Question| {
        let silent = || Outcome::Unknown(Hold::new(of.silence(), format!("{gate} was not asked yet"))).into();
        let Answer { outcome, lacks_job, at } = answers.get(gate).cloned().unwrap_or_else(silent);
        let asked = at.map(|at| Asked { at, about: about.clone(), again: of.silence() });
        ExternalGate { name: gate.clone(), when: *when, outcome, lacks_job, asked }
    };
    questions.iter().map(gate).collect()
}

/// Asks one of them. With `ahead`, for a plan, nobody is told that it begins.
pub async fn ask(context: &Context, asker: &Asker, question: &Question, ahead: bool) -> Answer {
    let gate = &question.gate;
    match &question.of {
        Of::Objects(check) => objects::ask(context, asker, gate, check).await.into(),
        Of::Prometheus(analysis) => analysis::ask(context, asker, gate, analysis, question.not_before).await,
        Of::Webhook { service, .. } if ahead => {
            let message = format!("{gate}: {} is told when it begins, and not for a plan", service.name);
            Outcome::Unknown(Hold::new(Reason::AwaitingHook, message)).into()
        }
        Of::Webhook { hook, time, service } => webhook::ask(context, asker, question, hook, time, service).await,
        Of::Job { cron_job, job } => job::ask(context, asker, gate, cron_job, job).await,
    }
}
