//! Who acts: a Lease by client-go's rules, and a term that ends by itself.
//!
//! Time is measured from what this process observed, never from what another one wrote, so clocks need not agree. The holder stops
//! believing in its term `renew_deadline` after it sent the last renewal that succeeded; others wait `lease_duration` after they saw
//! it. A lease is no lock: what it lets through late is caught by the fence (H1).

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::{
    api::coordination::v1::{Lease as LeaseObject, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use tokio::{sync::Notify, time::Instant};
use windlass_plan::{
    bug::{self, Bug},
    fence::Identity,
};

use crate::{Context, error::Error};

/// One stretch of leading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term(Identity);

impl Term {
    /// What custom resources carry while this term acts on them.
    pub fn id(&self) -> &Identity {
        &self.0
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The lease as this process sees it.
pub struct Lease<'a> {
    context: &'a Context,
    api: Api<LeaseObject>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The lease's spec and when we first saw it so.
    observed: Option<(LeaseSpec, Instant)>,
    /// Our own term and until when we believe in it.
    term: Option<(Term, Instant)>,
    /// Terms that this process had: part of the ID, so that no two are the same.
    terms: u64,
}

impl<'a> Lease<'a> {
    /// A lease that we don't hold.
    pub fn new(context: &'a Context) -> Self {
        let api = Api::namespaced(context.client.clone(), &context.settings.lease_namespace);
        Self { context, api, state: Mutex::default(), changed: Notify::new() }
    }

    /// Competes for the lease and renews it, for ever.
    pub async fn compete(&self) {
        let mut trouble = false;
        loop {
            let sent = Instant::now();
            let attempt = tokio::time::timeout(self.context.settings.write_deadline, self.try_once(sent)).await;
            let what = || format!("lease {}", self.context.settings.lease_name);
            let failed = match attempt {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(Error::kubernetes("get or renew", what(), error)),
                Err(_) => Some(Error::NoAnswer { verb: "get or renew", what: what() }),
            };
            // Said once when it begins and once when it ends: it is tried every few seconds. That somebody else was faster is no trouble.
            match failed {
                Some(error) if trouble || error.is_conflict() => tracing::debug!("{}", error.story()),
                Some(error) => {
                    trouble = true;
                    tracing::warn!(
                        error = error.story(),
                        "no lease, and nothing is done until there is one; trying on"
                    );
                }
                None if trouble => {
                    trouble = false;
                    tracing::info!("the API server answers about the lease again");
                }
                None => {}
            }
            self.end_expired_term();
            tokio::time::sleep(self.context.settings.retry_period).await;
        }
    }

    /// Waits until this process leads.
    pub async fn won(&self) -> Term {
        loop {
            let changed = self.changed.notified();
            if let Some((term, until)) = &self.state().term
                && *until > Instant::now()
            {
                return term.clone();
            }
            changed.await;
        }
    }

    /// Waits until this term is over.
    pub async fn lost(&self, term: &Term) {
        while let Ok(left) = self.remaining(term) {
            let changed = self.changed.notified();
            let _either = tokio::time::timeout(left, changed).await;
        }
    }

    /// How long this term lasts if nothing renews it. An error when it is over.
    pub fn remaining(&self, term: &Term) -> Result<Duration, Error> {
        if bug::active(Bug::LeaseNotChecked) {
            return Ok(self.context.settings.renew_deadline);
        }
        let now = Instant::now();
        match &self.state().term {
            Some((ours, until)) if ours == term && *until > now => Ok(*until - now),
            Some(_) | None => Err(Error::Lost),
        }
    }

    /// Gives the lease back, so that a successor need not wait for it to expire.
    pub async fn release(&self) {
        if self.state().term.take().is_none() {
            return;
        }
        let release = async {
            let mut lease = self.api.get(&self.context.settings.lease_name).await?;
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() != Some(&self.context.settings.identity) {
                return Ok(());
            }
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
            self.api.replace(&lease.name_any(), &PostParams::default(), &lease).await.map(|_| ())
        };
        match tokio::time::timeout(self.context.settings.write_deadline, release).await {
            Ok(Ok(())) => tracing::info!("gave the lease back"),
            Ok(Err(error)) => tracing::warn!(%error, "could not give the lease back; it expires by itself"),
            Err(_) => tracing::warn!("no answer when giving the lease back; it expires by itself"),
        }
    }

    async fn try_once(&self, sent: Instant) -> kube::Result<()> {
        let Some(mut lease) = self.api.get_opt(&self.context.settings.lease_name).await? else {
            let lease = LeaseObject {
                metadata: ObjectMeta { name: Some(self.context.settings.lease_name.clone()), ..ObjectMeta::default() },
                spec: Some(self.claim(0, None)),
            };
            let created = self.api.create(&PostParams::default(), &lease).await?;
            self.observe(&created);
            self.renewed(&created, sent);
            return Ok(());
        };
        self.observe(&lease);
        let spec = lease.spec.clone().unwrap_or_default();
        let ours = spec.holder_identity.as_deref() == Some(&self.context.settings.identity);
        if !ours && !self.is_free(&spec) {
            return Ok(());
        }
        let transitions = spec.lease_transitions.unwrap_or(0);
        let acquired = if ours { spec.acquire_time.clone() } else { None };
        lease.spec = Some(self.claim(if ours { transitions } else { transitions.saturating_add(1) }, acquired));
        let replaced = self.api.replace(&self.context.settings.lease_name, &PostParams::default(), &lease).await?;
        self.observe(&replaced);
        self.renewed(&replaced, sent);
        Ok(())
    }

    fn claim(&self, transitions: i32, acquired: Option<MicroTime>) -> LeaseSpec {
        let now = MicroTime(self.context.clock.now());
        LeaseSpec {
            holder_identity: Some(self.context.settings.identity.clone()),
            lease_duration_seconds: i32::try_from(self.context.settings.lease_duration.as_secs()).ok(),
            acquire_time: Some(acquired.unwrap_or_else(|| now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    fn observe(&self, lease: &LeaseObject) {
        let spec = lease.spec.clone().unwrap_or_default();
        let mut state = self.state();
        if state.observed.as_ref().is_none_or(|(seen, _)| *seen != spec) {
            state.observed = Some((spec, Instant::now()));
        }
    }

    /// Nobody holds it, or its holder has been silent for its whole duration while we watched.
    fn is_free(&self, spec: &LeaseSpec) -> bool {
        if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
            return true;
        }
        let duration =
            spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        let duration = duration.unwrap_or(self.context.settings.lease_duration);
        self.state().observed.as_ref().is_some_and(|(_, since)| since.elapsed() >= duration)
    }

    fn renewed(&self, lease: &LeaseObject, sent: Instant) {
        let until = sent + self.context.settings.renew_deadline;
        let mut state = self.state();
        match &mut state.term {
            Some((_, valid)) if *valid > Instant::now() => *valid = until,
            Some(_) | None => {
                state.terms += 1;
                let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0);
                let uid = lease.uid().unwrap_or_default();
                let id = format!("{uid}/{transitions}/{}/{}", self.context.settings.identity, state.terms);
                state.term = Some((Term(Identity::new(id)), until));
                drop(state);
                self.changed.notify_waiters();
            }
        }
    }

    fn end_expired_term(&self) {
        let mut state = self.state();
        if state.term.as_ref().is_some_and(|(_, until)| *until <= Instant::now()) {
            state.term = None;
            drop(state);
            self.changed.notify_waiters();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
