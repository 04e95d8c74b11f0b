//! Whether the resources of a kind may be changed at all (H41).

use windlass_api::service_image::TargetKind;
use windlass_plan::{Hold, Reason};

use crate::{
    Settings,
    actor::Actor,
    error::Error,
    owner::author::{Policy, unasked},
};

/// Whether whoever started the operator said so.
fn is_listed(settings: &Settings, target: &TargetKind) -> bool {
    let kind = format!("{}/{}", target.group, target.kind);
    let field = target.image_path.trim_start_matches('.');
    settings.allowed_targets.contains(&format!("{kind}:{field}")) || settings.allowed_targets.contains(&kind)
}

/// Why nobody can have allowed it, whatever the kind is; none if somebody may have.
pub fn out_of_the_question(settings: &Settings, target: &TargetKind) -> Option<Hold> {
    let TargetKind { group, kind, image_path, .. } = target;
    let why = || format!("nobody allowed that {image_path} of resources of {group}/{kind} is changed");
    let never = !is_listed(settings, target) && !settings.targets_by_author;
    never.then(|| Hold::new(Reason::TargetNotAllowed, why()))
}

/// Why they may not be changed; none if they may. It is asked before every batch, for what was allowed may be allowed no longer.
pub async fn refusal(actor: Actor<'_>, target: &TargetKind, plural: &str) -> Result<Option<Hold>, Error> {
    let settings = &actor.context.settings;
    if is_listed(settings, target) {
        return Ok(None);
    }
    if let Some(hold) = out_of_the_question(settings, target) {
        return Ok(Some(hold));
    }
    let said = target.plural();
    let why = if said == plural {
        unasked(actor.context, Policy::ServiceImages).await?
    } else {
        Some(format!(
            "its resources are called {plural}, and the author's rights were asked for {said}: an administrator can say so in \
             spec.target.resource; others delete this ServiceImage and create it with that field"
        ))
    };
    Ok(why.map(|why| Hold::new(Reason::TargetNotAllowed, why)))
}
