//! QuorumClusters that can't be read: each is held with a reason of its own, and harms nobody else.
//!
//! Nothing is decided about such a one. A permit that stands is taken back, for nobody would mind it; deleting it lets it go. Of its
//! status only what is said here is changed, and all else is sent back as it came: it stays until a person has mended it.

use std::time::Duration;

use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};
use windlass_api::{
    QuorumCluster,
    conditions::{Verdict, conditions},
    phase::Phase,
    reading,
};
use windlass_plan::{Hold, strategy::known::step::Step as _};

use crate::{
    actor::{Actor, settle},
    error::Error,
    lenient::Whole,
    owner::{
        claim::{Stand, stand},
        events::Telling,
        finalizer::{Located, is_guarded},
    },
    queue::Key,
    quorum::{
        budget,
        observe::{self, Observed, Sibling},
        pass::Next,
        strategies::Withdrawn,
        touch::{is_touched, touch_workload},
        validate,
    },
};

/// Minds a QuorumCluster that can't be read.
pub async fn look(actor: Actor<'_>, key: &Key, hold: &Hold, resource: &Whole<QuorumCluster>) -> Result<Next, Error> {
    let idle = Next::After(actor.context.settings.idle_recheck);
    let api = Api::namespaced(actor.context.client.clone(), &key.namespace);
    let of = Located { what: format!("quorumclusters/{key}"), api, resource };
    let touch = match stand(actor, &reading::recorded(&resource.raw)) {
        Stand::Held => false,
        Stand::Wait(pause) => return Ok(Next::After(pause)),
        Stand::Claim(operator) => {
            of.write_status(actor, json!({ "operator": operator })).await?;
            return Ok(Next::After(Duration::ZERO));
        }
        // That it is settled is not said: what else the predecessor may be making can be told only once the resource can be read.
        Stand::Touch(_) => true,
    };
    let me = Sibling::of(resource);
    let observed = observe::workload(actor.context, &key.namespace, me.set.as_deref(), &hold.message).await?;
    // What another one has is not touched because of this one.
    let ours = validate::rival(&me, &observed.siblings).is_none();
    if let Some(set) = observed.set.as_ref().filter(|set| touch && ours && !is_touched(actor, set)) {
        tracing::debug!(set = set.name_any(), "touched for one that can't be read");
        touch_workload(actor, &observed).await?;
        return Ok(Next::After(Duration::ZERO));
    }
    let set = me.set.clone().unwrap_or_default();
    let settled = settle(actor, (&key.namespace, &set), async || touch_workload(actor, &observed).await);
    if let Some(pause) = settled.await? {
        return Ok(Next::After(pause));
    }
    let withdrawn = ours.then(|| withdraw(actor, resource, &observed, hold)).flatten();
    let contest = withdrawn.as_ref().and_then(|withdrawn| withdrawn.contest.as_ref());
    let hold = &contest.map_or_else(|| hold.clone(), |told| hold.and(told));
    let mut said = said(&of, actor, hold);
    let act = withdrawn.and_then(|Withdrawn { act, recorded, contest: _ }| {
        if let Some((field, value)) = recorded {
            said[field] = value;
        }
        act
    });
    of.say(actor, said, hold).await?;
    if let Some((step, undone)) = act {
        let undone = undone.await;
        actor.context.metrics.step(&step, undone.as_ref().err().map(Error::class));
        undone?;
        of.tell(actor, Telling { warning: false, reason: step.name(), action: "Act", note: step.to_string() }).await;
        return Ok(Next::After(Duration::ZERO));
    }
    if resource.meta().deletion_timestamp.is_some() {
        of.let_go(actor, &observed, ours).await?;
    }
    Ok(idle)
}

/// What the strategies have left standing is taken back, whichever left it.
fn withdraw<'a>(
    actor: Actor<'a>,
    resource: &Whole<QuorumCluster>,
    observed: &'a Observed,
    hold: &Hold,
) -> Option<Withdrawn<'a>> {
    let strategies = (actor.context.strategies.all)();
    strategies.into_iter().find_map(|strategy| strategy.withdraw(actor, resource, observed, hold))
}

/// What a QuorumCluster that can't be read says of itself.
fn said(of: &Located<'_, QuorumCluster, Whole<QuorumCluster>>, actor: Actor<'_>, hold: &Hold) -> Value {
    let generation = of.resource.meta().generation.unwrap_or(0);
    let verdict = Verdict {
        ready: false.into(),
        reconciling: false,
        stalled: true,
        upgrading: of.resource.raw.pointer("/status/upgrade").is_some_and(|written| !written.is_null()),
        word: hold.reason.into(),
        message: hold.to_string(),
    };
    let conditions = conditions(&of.conditions(), &verdict, generation, actor.context.clock.now());
    let unobserved = verdict.upgrading || of.resource.raw.pointer("/status/leadershipUnobserved") == Some(&json!(true));
    json!({
        "observedGeneration": generation, "phase": Phase::of(&verdict, false), "conditions": conditions,
        "leadershipUnobserved": unobserved,
    })
}

impl Located<'_, QuorumCluster, Whole<QuorumCluster>> {
    /// It is being deleted: evictions are let through, and the update strategy stays as it is, for what it was can't be relied on (H40).
    /// Where another one has the StatefulSet, nothing of it is touched.
    async fn let_go(&self, actor: Actor<'_>, observed: &Observed, ours: bool) -> Result<(), Error> {
        if !is_guarded(self.resource) {
            return Ok(());
        }
        if let Some(set) = observed.set.as_ref().filter(|_| ours) {
            budget::release(actor, observed, set).await?;
            let note = "it could not be read, so the StatefulSet keeps the update strategy that it has".to_owned();
            self.tell(actor, Telling { warning: true, reason: "StrategyKept", action: "LetGo", note }).await;
        }
        self.release(actor).await
    }
}
