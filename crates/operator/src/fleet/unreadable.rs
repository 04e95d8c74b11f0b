//! ServiceImages that can't be read. Nothing is decided about such a one.

use std::time::Duration;

use kube::{Api, Resource, ResourceExt};
use serde_json::json;
use windlass_api::{ServiceImage, fleet, reading};
use windlass_plan::Hold;

use super::{settle_odd, unsettled};
use crate::{
    actor::Actor,
    error::Error,
    lenient::Whole,
    owner::{
        claim::{Stand, stand},
        finalizer::Located,
    },
};

/// Holds a ServiceImage that can't be read. Nothing stands that had to be taken back: what is reserved is touched before anything is decided.
/// When to look again; none when it is gone.
pub async fn look(actor: Actor<'_>, hold: &Hold, resource: &Whole<ServiceImage>) -> Result<Option<Duration>, Error> {
    let api = Api::all(actor.context.client.clone());
    let of = Located { what: format!("serviceimages/{}", resource.name_any()), api, resource };
    match stand(actor, &reading::recorded(&resource.raw)) {
        Stand::Held | Stand::Touch(_) => {}
        Stand::Wait(pause) => return Ok(Some(pause)),
        Stand::Claim(operator) => {
            of.write_status(actor, json!({ "operator": unsettled(operator) })).await?;
            return Ok(Some(Duration::ZERO));
        }
    }
    if resource.meta().deletion_timestamp.is_some() {
        settle_odd(actor, resource).await?;
        of.release(actor).await?;
        return Ok(None);
    }
    let generation = resource.meta().generation.unwrap_or(0);
    let conditions = fleet::unreadable(&of.conditions(), hold, generation, actor.context.clock.now());
    of.say(actor, json!({"observedGeneration": generation, "conditions": conditions}), hold).await?;
    Ok(Some(actor.context.settings.idle_recheck))
}
