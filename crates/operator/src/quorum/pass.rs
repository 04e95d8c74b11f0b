//! One look at one resource: observe, claim, validate, plan, record, act, report. At most one disruptive write, then look again.

use std::{borrow::Cow, time::Duration};

use kube::ResourceExt;
use windlass_api::{QuorumCluster, QuorumClusterStatus, translate};
use windlass_plan::{
    Hold, Reason,
    strategy::{
        self,
        contract::{Plan, Record as _},
        known::{decision::Decision, step::Step},
    },
};

use crate::{
    actor::{self, Actor},
    error::{Class, Error},
    live::Read,
    owner::{
        self,
        claim::{Stand, stand},
        events::{Telling, tell},
        failed,
        finalizer::is_guarded,
        tell_if_new,
    },
    queue::Key,
    quorum::{
        execute::{self, execute},
        finalize,
        observe::{self, Observed, Sibling},
        report,
        strategy::Strategy,
        touch, unreadable,
        validate::{self, Validated},
    },
};

/// When to look again after an act: what it did takes a moment to show.
const AFTER_ACT: Duration = Duration::from_millis(100);
/// When to look again after a budget let nobody go.
const AFTER_REFUSAL: Duration = Duration::from_secs(2);
/// When to look again at what is older than our own write.
const AFTER_STALE: Duration = Duration::from_millis(500);

/// What a pass leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look again at the latest after this long.
    After(Duration),
    /// It failed: look again after this long, and not before.
    Rest(Duration),
    /// The resource is gone.
    Forget,
}

/// Looks at one resource once: what that leads to, and the StatefulSet that it names, once it was read.
pub async fn pass(actor: Actor<'_>, key: &Key) -> (Next, Option<String>) {
    let read = match observe::resource(actor.context, key).await {
        Ok(read) => read,
        Err(error) => return (Next::Rest(failed(actor, key, &error)), None),
    };
    let workload = match &read {
        Some(Read::Clear(resource)) => Some(resource.spec.workload.stateful_set.clone()),
        Some(Read::Odd(_, resource)) => Sibling::of(resource).set,
        None => None,
    };
    // Boxed: a pass holds whole objects, and sixteen of them run at once.
    let next = match Box::pin(look(actor, key, read.as_ref())).await {
        Ok(next) => {
            actor.context.metrics.pass(None);
            next
        }
        Err(error) => {
            if let (Class::Refused, Some(Read::Clear(resource))) = (error.class(), &read) {
                refused(actor, resource, error.story()).await;
            }
            Next::Rest(failed(actor, key, &error))
        }
    };
    (next, workload)
}

/// Says that the API server refuses something, or the resource would go on saying what was so before.
async fn refused(actor: Actor<'_>, resource: &QuorumCluster, what: String) {
    let hold = Hold::new(Reason::ApiServerRefused, what);
    let Err(error) = Box::pin(hold_back(actor, resource, &hold)).await else { return };
    // Where the resource says more than was read, the one who wrote that has told it.
    tracing::debug!(error = error.story(), "that the API server refuses something could not be said");
    if error.class() == Class::Refused {
        // Not even that may be written: an event is what is left.
        let telling = Telling { warning: true, reason: hold.reason.name(), action: "Wait", note: hold.to_string() };
        tell(actor, resource, telling).await;
    }
}

async fn look(actor: Actor<'_>, key: &Key, read: Option<&Read<QuorumCluster>>) -> Result<Next, Error> {
    let context = actor.context;
    let resource = match read {
        Some(Read::Clear(resource)) => resource,
        Some(Read::Odd(hold, resource)) => {
            return Box::pin(unreadable::look(actor, key, hold, resource)).await;
        }
        None => {
            context.tokens.forget(key);
            context.descriptions.forget(key);
            return Ok(Next::Forget);
        }
    };
    if !owner::is_current(actor, resource.as_ref()) {
        return Ok(Next::After(AFTER_STALE));
    }
    (context.strategies.asked_for)(resource).look(actor, resource).await
}

/// A resource that is ours to act on, and nothing of anybody else's can still arrive (H1).
struct Claimed<'a>(&'a QuorumCluster);

/// A resource whose status says what is about to happen: a successor finds it there.
pub struct Recorded(QuorumCluster);

impl Recorded {
    /// The resource as it was written.
    pub fn resource(&self) -> &QuorumCluster {
        &self.0
    }

    /// Writes down what is about to happen. The API server says by that that the resource is still what was read.
    async fn write(actor: Actor<'_>, resource: &QuorumCluster, status: QuorumClusterStatus) -> Result<Self, Error> {
        owner::record(actor, resource, status).await.map(Self)
    }
}

/// What is about to happen, and what that was decided from.
struct Planned<S: Strategy> {
    view: S::View,
    plan: Plan<S>,
}

/// One look, by the strategy that the resource asks for.
pub async fn look_by<S: Strategy>(actor: Actor<'_>, resource: &QuorumCluster) -> Result<Next, Error> {
    let context = actor.context;
    let claimed = match Box::pin(claim::<S>(actor, resource)).await? {
        Ok(claimed) => claimed,
        Err(next) => return Ok(next),
    };
    let namespace = resource.namespace().unwrap_or_default();
    let workload = (namespace.as_str(), resource.spec.workload.stateful_set.as_str());
    let touch = async || {
        let observed = observe::observe(context, resource, S::course(resource)).await?;
        touch::touch(actor, resource, &observed).await
    };
    if let Some(pause) = Box::pin(actor::settle(actor, workload, touch)).await? {
        return Ok(Next::After(pause));
    }
    let observed = observe::observe(context, resource, S::course(resource)).await?;
    if let Some(set) = &observed.set
        && !owner::is_current(actor, set)
    {
        return Ok(Next::After(AFTER_STALE));
    }
    if resource.metadata.deletion_timestamp.is_some() {
        S::let_go(actor, resource, &observed).await?;
        return Ok(Next::After(context.settings.idle_recheck));
    }
    match plan::<S>(actor, &claimed, &observed) {
        Ok(planned) => Box::pin(carry_on(actor, &claimed, &observed, planned)).await,
        Err(hold) => Box::pin(hold_back(actor, resource, &hold)).await,
    }
}

/// What to do, or what keeps everything from being decided. Where that is so, what stands is taken back all the same.
fn plan<S: Strategy>(actor: Actor<'_>, claimed: &Claimed<'_>, observed: &Observed) -> Result<Planned<S>, Hold> {
    let resource = claimed.0;
    match validate::validate::<S>(resource, observed) {
        Ok(Validated { want, view }) => {
            let plan = strategy::plan::<S>(&want, &view, actor.context.clock.now());
            Ok(Planned { view, plan })
        }
        Err(hold) => {
            let view = S::as_it_stands(resource, observed);
            let plan = view.as_ref().and_then(|view| S::stand_down(resource, view, &hold));
            view.zip(plan).map(|(view, plan)| Planned { view, plan }).ok_or(hold)
        }
    }
}

/// Makes the resource ours before anything is decided about it (H1); or when to look again.
async fn claim<'a, S: Strategy>(
    actor: Actor<'_>,
    resource: &'a QuorumCluster,
) -> Result<Result<Claimed<'a>, Next>, Error> {
    let status = resource.status.clone().unwrap_or_default();
    let recorded = translate::recorded(status.operator.as_ref(), status.tells_of_acts());
    let (resource, operator) = match stand(actor, &recorded) {
        Stand::Held => return Ok(Ok(Claimed(resource))),
        Stand::Wait(pause) => return Ok(Err(Next::After(pause))),
        Stand::Claim(operator) => (Cow::Borrowed(resource), operator),
        Stand::Touch(operator) => {
            let observed = observe::observe(actor.context, resource, S::course(resource)).await?;
            touch::touch(actor, resource, &observed).await?;
            (Box::pin(finish_begun::<S>(actor, resource, &observed)).await?, operator)
        }
    };
    let status = resource.status.clone().unwrap_or_default();
    let written =
        owner::write(actor, resource.as_ref(), QuorumClusterStatus { operator: Some(operator), ..status }).await?;
    owner::is_kept(&written)?;
    Ok(Err(Next::After(Duration::ZERO)))
}

/// What the predecessor had begun and can't be fenced (H6), a hand-over say, is finished before anything else, where it is still wanted. Should
/// that fail, the late one does what was recorded. The resource as it is afterwards.
async fn finish_begun<'a, S: Strategy>(
    actor: Actor<'_>,
    resource: &'a QuorumCluster,
    observed: &Observed,
) -> Result<Cow<'a, QuorumCluster>, Error> {
    let unfinished = Ok(Cow::Borrowed(resource));
    let Ok(Validated { want, view }) = validate::validate::<S>(resource, observed) else { return unfinished };
    let Some((step, record)) = S::take_over(&want, &view, actor.context.clock.now()) else { return unfinished };
    let mut status = resource.status.clone().unwrap_or_default();
    S::write_record(&mut status, &view, Some(&record), Some(step.to_string()));
    let recorded = Recorded::write(actor, resource, status).await?;
    let result = execute::<S>(actor, &recorded, observed, &step).await;
    actor.context.metrics.step(&step, result.as_ref().err().map(Error::class));
    let Recorded(recorded) = recorded;
    let Err(error) = result else { return Ok(Cow::Owned(recorded)) };
    tracing::warn!(error = error.story(), "what the predecessor had begun could not be finished");
    let mut status = recorded.status.clone().unwrap_or_default();
    note_failure::<S>(&mut status, &step, &error);
    Ok(Cow::Owned(owner::write(actor, &recorded, status).await?))
}

/// What is tried a few times only says why the last time failed.
fn note_failure<S: Strategy>(status: &mut QuorumClusterStatus, step: &S::Step, error: &Error) {
    let next = error.next_step().map(|next| format!("; {next}")).unwrap_or_default();
    S::write_failure(status, step, &format!("{}{next}", error.story()));
}

/// Nothing can be decided: say why.
async fn hold_back(actor: Actor<'_>, resource: &QuorumCluster, hold: &Hold) -> Result<Next, Error> {
    let before = resource.status.clone().unwrap_or_default();
    let status = report::held(&before, resource, hold, actor.context.clock.now());
    say(actor, resource, hold, status).await?;
    Ok(Next::After(actor.context.settings.idle_recheck))
}

/// Writes the status of one that is held, and tells it.
async fn say(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    hold: &Hold,
    status: QuorumClusterStatus,
) -> Result<(), Error> {
    actor.context.metrics.hold(hold.reason);
    // Told once it is written: a write that fails is tried again, and would be told again.
    owner::write(actor, resource, status).await?;
    tell_if_new(actor, resource, hold, hold.reason.needs_a_person()).await;
    Ok(())
}

/// It took so long to look that nothing may be done because of it: say so, and look again.
async fn too_old(actor: Actor<'_>, resource: &QuorumCluster, observed: &Observed) -> Result<Next, Error> {
    let limit = actor.context.settings.evidence_age;
    let message = format!("looking took longer than {limit:?}, most of it for {}", observed.slowest);
    Box::pin(hold_back(actor, resource, &Hold::new(Reason::EvidenceTooOld, message))).await?;
    Ok(Next::After(AFTER_STALE))
}

async fn carry_on<S: Strategy>(
    actor: Actor<'_>,
    claimed: &Claimed<'_>,
    observed: &Observed,
    planned: Planned<S>,
) -> Result<Next, Error> {
    let (resource, Planned { view, plan }) = (claimed.0, planned);
    let (context, now) = (actor.context, actor.context.clock.now());
    if matches!(plan.decision, Decision::Act(_)) && !is_guarded(resource) {
        finalize::guard(actor, resource).await?;
        return Ok(Next::After(Duration::ZERO));
    }
    if let Decision::Act(step) = &plan.decision
        && step.rests_on_evidence()
        && execute::fresh(actor, observed).is_err()
    {
        // Before it is recorded, or it would count as tried.
        return Box::pin(too_old(actor, resource, observed)).await;
    }
    let before = resource.status.clone().unwrap_or_default();
    let mut status = report::planned(&before, resource, &view, observed, &plan, now);
    if matches!(plan.decision, Decision::Act(_)) && owner::says(resource, Reason::ApiServerRefused) {
        // Until what was refused is done, or every try would flip what people read.
        status.conditions.clone_from(&before.conditions);
        status.phase.clone_from(&before.phase);
    }
    let idle = context.settings.idle_recheck;
    let (on, stalls, recheck) = match &plan.decision {
        Decision::Act(step) => {
            let recorded = Recorded::write(actor, resource, status).await?;
            // Boxed: a step holds the answer to an eviction, too.
            return Box::pin(act::<S>(actor, recorded, observed, step)).await;
        }
        // A window may open next week; the members are looked at all the same.
        Decision::Wait { on, recheck } => (Some(on), false, (*recheck).min(idle)),
        Decision::Halt { on } => (Some(on), true, idle.min(Duration::from_secs(5))),
        Decision::Done => (None, false, idle),
    };
    owner::write(actor, resource, status).await?;
    match on {
        Some(on) => {
            context.metrics.hold(on.reason);
            tell_if_new(actor, resource, on, stalls).await;
        }
        None => tell_done(actor, resource, &plan).await,
    }
    Ok(Next::After(recheck))
}

async fn act<S: Strategy>(
    actor: Actor<'_>,
    recorded: Recorded,
    observed: &Observed,
    step: &S::Step,
) -> Result<Next, Error> {
    tracing::info!(resource = %recorded.resource().name_any(), step = step.name(), "{step}");
    let result = execute::<S>(actor, &recorded, observed, step).await;
    let Recorded(resource) = &recorded;
    actor.context.metrics.step(step, result.as_ref().err().map(Error::class));
    match result {
        Ok(()) => {
            tell(
                actor,
                resource,
                Telling { warning: false, reason: step.name(), action: "Act", note: step.to_string() },
            )
            .await;
            Ok(Next::After(AFTER_ACT))
        }
        Err(Error::EvidenceTooOld(_)) => Box::pin(too_old(actor, resource, observed)).await,
        // No failure: it is tried again when what is in the way has passed.
        Err(Error::Held(hold)) => {
            let before = resource.status.clone().unwrap_or_default();
            let status = report::held(&before, resource, &hold, actor.context.clock.now());
            say(actor, resource, &hold, QuorumClusterStatus { gates: before.gates, ..status }).await?;
            Ok(Next::After(AFTER_REFUSAL))
        }
        Err(error) => {
            let note = format!("{step}: {}", error.story());
            match error.class() {
                Class::Stale | Class::Lost => {}
                Class::Refused => refused(actor, resource, note).await,
                Class::Transient => {
                    let mut status = resource.status.clone().unwrap_or_default();
                    note_failure::<S>(&mut status, step, &error);
                    for condition in &mut status.conditions {
                        condition.message.clone_from(&note);
                    }
                    let telling = Telling { warning: true, reason: "StepFailed", action: step.name(), note };
                    tell(actor, resource, telling).await;
                    owner::write(actor, resource, status).await?;
                }
            }
            Err(error)
        }
    }
}

async fn tell_done<S: Strategy>(actor: Actor<'_>, resource: &QuorumCluster, plan: &Plan<S>) {
    let before = S::record(resource).ok().flatten();
    if let Some(before) = before.filter(|_| plan.record.is_none()) {
        let note = format!("all members run {}", before.target());
        tell(actor, resource, Telling { warning: false, reason: "UpgradeCompleted", action: "Finish", note }).await;
    }
}
