//! Writes to the resources of a fleet: each one meets the resource as it was seen, or misses (H1, H5).

use std::collections::BTreeSet;

use futures::{StreamExt, stream::FuturesUnordered};
use kube::{
    ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_plan::{
    bug::{self, Bug},
    fleet::{Fence, ItemId, Stamping},
};

use super::{
    Fleet, Sight, Target,
    contract::{Pen, STAMPED, Stamped},
    loose::Loose,
    pace::{Answer, Pace},
    unsettled,
};
use crate::{
    actor::{Actor, mark, touching},
    error::{Class, Error},
    live::get,
};

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Everything was answered.
    All,
    /// The API server had too much to do for some of it, or did not answer: it must be left alone for a moment.
    Throttled,
}

/// Writes a batch, several at once. What was answered is seen at once; what was not stays reserved and is touched. One that can't be written is
/// that one's failure, and the others go on (E4).
pub async fn all(actor: Actor<'_>, fleet: &mut Fleet, stamps: &[Stamping]) -> Result<Sent, Error> {
    for stamp in stamps {
        fleet.index.reserve(&stamp.id);
    }
    // Those that got no answer before are sent last: they must not end the batch for the others.
    let (again, first): (Vec<Stamping>, Vec<Stamping>) =
        stamps.iter().cloned().partition(|stamp| fleet.unsettled.has(&stamp.id));
    let stamps = [first, again].concat();
    let now = actor.context.clock.now();
    let (mut sent, mut trouble) = (Sent::All, None);
    let mut unsent: BTreeSet<ItemId> = stamps.iter().map(|stamp| stamp.id.clone()).collect();
    for (Stamping { id, fence: Fence { uid, .. }, image, .. }, result) in
        send(actor, &fleet.target, &fleet.contract.pen, &mut fleet.pace, &stamps).await
    {
        unsent.remove(&id);
        match result {
            Ok(object) => {
                fleet.see(&object, Sight::Live);
                fleet.index.release(&id);
                fleet.unsettled.answered(&id);
            }
            // It did not happen and will not.
            Err(error) if error.is_throttled() => {
                sent = Sent::Throttled;
                fleet.index.release(&id);
            }
            // The same, and not because of the moment: there is nothing to touch.
            Err(error) if error.is_denied() && !bug::active(Bug::RefusedStopsAll) => {
                fleet.index.refuse(&id, &image, error.story(), now);
                fleet.unsettled.answered(&id);
            }
            Err(error) => match error.class() {
                // Not as it was seen: it is read again, and decided about again.
                Class::Stale => {
                    look(actor, fleet, &id).await?;
                    fleet.index.release(&id);
                    fleet.unsettled.answered(&id);
                }
                // It may or may not have happened, and may still: once it is touched it can't any more, and is decided about again.
                Class::Transient if !bug::active(Bug::UnansweredStopsAll) => {
                    sent = Sent::Throttled;
                    fleet.unsettled.note_stamp(&id, &uid, &image, error.story(), actor.context.clock.now());
                }
                // Beginning anew touches it first.
                Class::Lost | Class::Refused | Class::Transient => trouble = Some(error),
            },
        }
    }
    for id in &unsent {
        fleet.index.release(id);
    }
    trouble.map_or(Ok(sent), Err)
}

/// Sends them, as many at once as the API server takes well, and no more where many are not answered; what became of each that was sent.
async fn send(
    actor: Actor<'_>,
    target: &Target,
    pen: &Pen,
    pace: &mut Pace,
    stamps: &[Stamping],
) -> Vec<(Stamping, Result<DynamicObject, Error>)> {
    let mut left = stamps.iter();
    let mut under_way = FuturesUnordered::new();
    let mut written = Vec::with_capacity(stamps.len());
    let mut unanswered: usize = 0;
    loop {
        while under_way.len() < pace.width()
            && unanswered < unsettled::AT_ONCE
            && let Some(stamp) = left.next()
        {
            under_way.push(async move {
                let begun = Instant::now();
                let result = one(actor, target, pen, stamp).await;
                (stamp.clone(), result, begun.elapsed())
            });
        }
        let Some((stamp, result, took)) = under_way.next().await else { return written };
        let overloaded = result.as_ref().is_err_and(|error| error.class() == Class::Transient);
        let lost = |error: &Error| error.class() == Class::Transient && !error.is_throttled() && !error.is_denied();
        if result.as_ref().is_err_and(lost) {
            unanswered = unanswered.saturating_add(1);
        }
        pace.answered(if overloaded { Answer::Overloaded } else { Answer::Given }, took);
        written.push((stamp, result));
    }
}

/// Reads one again, as the watch would show it: one that has left the selector is gone, whether or not the watch has said so yet.
pub async fn look(actor: Actor<'_>, fleet: &mut Fleet, id: &ItemId) -> Result<(), Error> {
    let (context, api) = (actor.context, fleet.target.api(actor, id.namespace()));
    let what = what(&fleet.target, id);
    let found = match fleet.contract.label_selector().filter(|_| !bug::active(Bug::UnselectedStamped)) {
        None => get(context, &what, &api, id.name()).await?,
        Some(selector) => {
            let params = ListParams::default().fields(&format!("metadata.name={}", id.name())).labels(selector);
            let listed = context.bounded(context.settings.read_deadline, "list", &what, api.list(&params)).await?;
            listed.items.into_iter().next()
        }
    };
    match found {
        Some(Loose(object)) => fleet.see(&object, Sight::Live),
        None => fleet.index.forget(id),
    }
    Ok(())
}

fn what(target: &Target, id: &ItemId) -> String {
    format!("{}/{id}", target.resource.plural)
}

/// One stamp, on the very resource that was seen.
async fn one(actor: Actor<'_>, target: &Target, pen: &Pen, stamp: &Stamping) -> Result<DynamicObject, Error> {
    let stamped = Stamped {
        by: Some(pen.uid.clone()),
        path: Some(pen.place()),
        image: stamp.image.clone(),
        at: actor.context.clock.now(),
        round: stamp.round,
        touched: None,
    };
    let stamped = serde_json::to_string(&stamped).unwrap_or_default();
    // Without a fence, what is gone would be created anew, and what has changed would be changed back (H5).
    let fence = (!bug::active(Bug::StampUnfenced)).then_some(&stamp.fence);
    apply(actor, target, pen, &stamp.id, fence, Some(&stamp.image), stamped, "stamp").await
}

/// Server-side apply as a manager of our own: the image where it belongs, and the annotation.
#[expect(clippy::too_many_arguments, reason = "one write, and all that is in it")]
async fn apply(
    actor: Actor<'_>,
    target: &Target,
    pen: &Pen,
    id: &ItemId,
    fence: Option<&Fence>,
    image: Option<&str>,
    stamped: String,
    verb: &'static str,
) -> Result<DynamicObject, Error> {
    let mut patch = image.map_or_else(|| json!({}), |image| pen.image_patch(image));
    let mut metadata = json!({"name": id.name(), "annotations": {STAMPED: stamped}});
    if let Some(Fence { uid, resource_version }) = fence {
        set(&mut metadata, "uid", json!(uid));
        set(&mut metadata, "resourceVersion", json!(resource_version));
    }
    set(&mut patch, "metadata", metadata);
    set(&mut patch, "apiVersion", json!(target.resource.api_version));
    set(&mut patch, "kind", json!(target.resource.kind));
    let api = target.api(actor, id.namespace());
    let params = PatchParams::apply(&pen.manager).force();
    let Loose(object) =
        actor.write(verb, &what(target, id), api.patch(id.name(), &params, &Patch::Apply(&patch))).await?;
    Ok(object)
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
}

/// What became of a touch.
pub enum Touched {
    /// Whatever still arrives misses.
    Moved,
    /// It is not there any more.
    Gone,
    /// No write that looks like a stamp is let through, so none can arrive late, either. Why.
    Refused(String),
}

/// Moves the resourceVersion of one that a write may be on its way to, so that whatever still arrives misses (H1).
///
/// A touch that is refused is made once more in the shape of a stamp, with the image that is there: what a policy or a size lets through of
/// the one, it lets through of the other.
pub async fn touch(actor: Actor<'_>, target: &Target, pen: &Pen, id: &ItemId, uid: &str) -> Result<Touched, Error> {
    let api = target.api(actor, id.namespace());
    let what = what(target, id);
    let Some(Loose(seen)) = get(actor.context, &what, &api, id.name()).await? else { return Ok(Touched::Gone) };
    if seen.uid().as_deref() != Some(uid) {
        // Another one of that name: a write to the first misses it by its uid.
        return Ok(Touched::Moved);
    }
    let mark = mark(actor, &seen);
    let patch = touching(&mark);
    let plain = actor.write("touch", &what, api.patch(id.name(), &PatchParams::default(), &Patch::Merge(&patch))).await;
    let touched = match plain.map(|Loose(object)| object) {
        Err(error) if error.is_denied() && !bug::active(Bug::RefusedStopsAll) => {
            let mut stamped = serde_json::to_value(Stamped::on(&seen)).unwrap_or_default();
            if stamped.is_null() {
                stamped = json!({});
            }
            set(&mut stamped, "touched", json!(mark));
            // Where it is not as it was seen any more it moved by itself, and is looked at again.
            let fence = Fence { uid: uid.to_owned(), resource_version: seen.resource_version().unwrap_or_default() };
            apply(actor, target, pen, id, Some(&fence), pen.image(&seen), stamped.to_string(), "touch").await
        }
        other => other,
    };
    match touched {
        Ok(_) => Ok(Touched::Moved),
        Err(error) if error.is_not_found() => Ok(Touched::Gone),
        Err(error) if error.is_denied() && !bug::active(Bug::RefusedStopsAll) => Ok(Touched::Refused(error.story())),
        Err(error) => Err(error),
    }
}
