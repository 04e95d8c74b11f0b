//! The part of Windlass that runs in the cluster: observe, plan, execute, report.
//!
//! ```text
//!   watches ─▶ queue ─▶ pass: observe (reads) ─▶ claim ─▶ validate ─▶ plan (pure) ─▶ record (status) ─▶ execute ─▶ report
//!   lease  ──▶ term ──────────────┘ every write: the term is still ours, uid and resourceVersion are what the decision saw
//! ```
//!
//! [`run`] is one future without tasks of its own: dropping it is a crash, not polling it is a freeze, and a test can do both at
//! any point.

pub mod actor;
pub mod backoff;
pub mod client;
pub mod clock;
pub mod controller;
pub mod dial;
pub mod digest;
pub mod error;
pub mod fleet;
pub mod gates;
pub mod jobs;
pub mod lease;
pub mod lenient;
pub mod live;
pub mod logs;
pub mod members;
pub mod metrics;
pub mod own_writes;
pub mod owner;
pub mod queue;
pub mod quorum;
pub mod serve;
pub mod settings;
pub mod trouble;
pub mod unanswered;

use std::{future::Future, sync::Arc, time::Duration};

pub use clock::{Clock, SystemClock};
pub use dial::Dial;
pub use settings::Settings;

use crate::{
    error::Error,
    lease::Lease,
    logs::Logs,
    members::{auth::Tokens, describe::Descriptions},
    metrics::Metrics,
    own_writes::OwnWrites,
    quorum::strategies::Strategies,
    unanswered::Unanswered,
};

/// Everything that a pass needs from outside.
pub struct Context {
    /// The Kubernetes API; retries nothing by itself (see [`client`]).
    pub client: kube::Client,
    /// How applications are reached.
    pub dial: Arc<dyn Dial>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Numbers that a deployment may want to change.
    pub settings: Settings,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What we wrote and must see before we decide again.
    pub own_writes: OwnWrites,
    /// What we wrote and nobody answered.
    pub unanswered: Unanswered,
    /// Tokens for the systems that want one.
    pub tokens: Tokens,
    /// What gates said that are asked elsewhere.
    pub asked: gates::Memory,
    /// What logs ended with when they were last read.
    pub logs: Logs,
    /// What the pods of fleets said when they were last looked at.
    pub diagnoses: fleet::Diagnoses,
    /// Whether the API server asks for authors' own rights.
    pub policies: owner::author::Policies,
    /// Systems as resources describe them.
    pub descriptions: Descriptions,
    /// The strategies that there are.
    pub strategies: Strategies,
}

impl Context {
    /// A context with nothing counted and nothing written yet.
    pub fn new(client: kube::Client, dial: Arc<dyn Dial>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self {
            client,
            dial,
            clock,
            settings,
            metrics: Arc::default(),
            own_writes: OwnWrites::default(),
            unanswered: Unanswered::default(),
            tokens: Tokens::default(),
            asked: gates::Memory::default(),
            logs: Logs::default(),
            diagnoses: fleet::Diagnoses::default(),
            policies: owner::author::Policies::default(),
            descriptions: Descriptions::default(),
            strategies: Strategies::SHIPPED,
        }
    }

    /// Sends one request to the API server and waits for its answer no longer than the deadline.
    pub async fn bounded<T>(
        &self,
        deadline: Duration,
        verb: &'static str,
        what: &str,
        send: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(deadline, send).await {
            Ok(answer) => answer.map_err(|error| Error::kubernetes(verb, what, error)),
            Err(_) => Err(Error::NoAnswer { verb, what: what.to_owned() }),
        }
    }
}

/// Competes for the lease, and acts while it holds it, until `shutdown`. Then the lease is released, so that a successor need not
/// wait for it to expire.
pub async fn run(context: &Context, shutdown: impl Future<Output = ()>) {
    let lease = Lease::new(context);
    let work = async {
        loop {
            let term = lease.won().await;
            tracing::info!(operator = %term.id(), "leading");
            context.metrics.leading(true);
            controller::lead(context, &lease, &term).await;
            context.metrics.leading(false);
            tracing::warn!(operator = %term.id(), "no longer leading");
        }
    };
    tokio::select! {
        biased;
        () = shutdown => {}
        () = lease.compete() => {}
        () = work => {}
    }
    lease.release().await;
}
