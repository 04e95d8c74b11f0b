//! Writes to the resources of a fleet: each one meets the resource as it was seen, or misses (H1, H5).

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
    Fleet, Target,
    contract::{Contract, MANAGER, STAMPED, Stamped},
    pace::{Answer, Pace},
};
use crate::{
    error::{Class, Error},
    execute::Actor,
    observe::get,
};

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Everything was answered.
    All,
    /// The API server had too much to do for some of it, or did not answer: it must be left alone for a moment.
    Throttled,
}

/// Writes a batch, several at once. What was answered is seen at once; what was not is settled before the next one.
pub async fn all(actor: Actor<'_>, fleet: &mut Fleet, stamps: &[Stamping]) -> Result<Sent, Error> {
    for stamp in stamps {
        fleet.index.reserve(&stamp.id);
    }
    let (mut sent, mut trouble) = (Sent::All, None);
    for (Stamping { id, fence: Fence { uid, .. }, .. }, result) in
        send(actor, &fleet.target, &fleet.contract, &mut fleet.pace, stamps).await
    {
        match result {
            Ok(object) => {
                fleet.see(&object);
                fleet.index.release(&id);
            }
            // It did not happen and will not.
            Err(error) if error.is_throttled() => {
                sent = Sent::Throttled;
                fleet.index.release(&id);
            }
            Err(error) => match error.class() {
                // Not as it was seen: it is read again, and decided about again.
                Class::Stale => {
                    look(actor, fleet, &id).await?;
                    fleet.index.release(&id);
                }
                // It may or may not have happened, and may still: once it is touched it can't any more, and is decided about again.
                Class::Transient => {
                    sent = Sent::Throttled;
                    touch(actor, &fleet.target, &id, &uid).await?;
                    look(actor, fleet, &id).await?;
                    fleet.index.release(&id);
                }
                // Beginning anew touches it first.
                Class::Lost | Class::Refused => trouble = Some(error),
            },
        }
    }
    trouble.map_or(Ok(sent), Err)
}

/// Sends them, as many at once as the API server takes well; what became of each.
async fn send(
    actor: Actor<'_>,
    target: &Target,
    contract: &Contract,
    pace: &mut Pace,
    stamps: &[Stamping],
) -> Vec<(Stamping, Result<DynamicObject, Error>)> {
    let mut left = stamps.iter();
    let mut under_way = FuturesUnordered::new();
    let mut written = Vec::with_capacity(stamps.len());
    loop {
        while under_way.len() < pace.width()
            && let Some(stamp) = left.next()
        {
            under_way.push(async move {
                let begun = Instant::now();
                let result = one(actor, target, contract, stamp).await;
                (stamp.clone(), result, begun.elapsed())
            });
        }
        let Some((stamp, result, took)) = under_way.next().await else { return written };
        let overloaded = result.as_ref().is_err_and(|error| error.class() == Class::Transient);
        pace.answered(if overloaded { Answer::Overloaded } else { Answer::Given }, took);
        written.push((stamp, result));
    }
}

/// Reads one again, as the watch would show it: one that has left the selector is gone, whether or not the watch has said so yet.
async fn look(actor: Actor<'_>, fleet: &mut Fleet, id: &ItemId) -> Result<(), Error> {
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
        Some(object) => fleet.see(&object),
        None => fleet.index.forget(id),
    }
    Ok(())
}

fn what(target: &Target, id: &ItemId) -> String {
    format!("{}/{id}", target.resource.plural)
}

/// One stamp: server-side apply as a manager of its own, on the very resource that was seen.
async fn one(actor: Actor<'_>, target: &Target, contract: &Contract, stamp: &Stamping) -> Result<DynamicObject, Error> {
    let api = target.api(actor, stamp.id.namespace());
    let mut patch = contract.image_patch(&stamp.image);
    let stamped = Stamped { image: stamp.image.clone(), at: actor.context.clock.now(), round: stamp.round };
    let mut metadata = json!({
        "name": stamp.id.name(),
        "annotations": {STAMPED: serde_json::to_string(&stamped).unwrap_or_default()},
    });
    if !bug::active(Bug::StampUnfenced) {
        // Without these, what is gone would be created anew, and what has changed would be changed back (H5).
        set(&mut metadata, "uid", json!(stamp.fence.uid));
        set(&mut metadata, "resourceVersion", json!(stamp.fence.resource_version));
    }
    set(&mut patch, "metadata", metadata);
    set(&mut patch, "apiVersion", json!(target.resource.api_version));
    set(&mut patch, "kind", json!(target.resource.kind));
    let params = PatchParams::apply(MANAGER).force();
    let what = what(target, &stamp.id);
    actor.write("stamp", &what, api.patch(stamp.id.name(), &params, &Patch::Apply(&patch))).await
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
}

/// Moves the resourceVersion of one that a write may be on its way to, so that whatever still arrives misses (H1). As it is then; none if
/// it is not there any more.
pub async fn touch(actor: Actor<'_>, target: &Target, id: &ItemId, uid: &str) -> Result<Option<DynamicObject>, Error> {
    let api = target.api(actor, id.namespace());
    let what = what(target, id);
    let Some(seen) = get(actor.context, &what, &api, id.name()).await? else { return Ok(None) };
    if seen.uid().as_deref() != Some(uid) {
        // Another one of that name: a write to the first misses it by its uid.
        return Ok(Some(seen));
    }
    // Never the same twice: what changes nothing moves nothing.
    let mark = format!("{} {}", actor.term.id().as_str(), seen.resource_version().unwrap_or_default());
    let mark = json!({"metadata": {"annotations": {"windlass.dev/touched-by": mark}}});
    match actor.write("touch", &what, api.patch(id.name(), &PatchParams::default(), &Patch::Merge(&mark))).await {
        Err(error) if error.is_not_found() => Ok(None),
        other => other.map(Some),
    }
}
