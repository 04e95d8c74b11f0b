//! Who else writes what an upgrade writes (H39, ADR 0015).
//!
//! ```text
//!   before anything is written:  an owner that writes again by itself, and that nobody accepted ──▶ refused, by name
//!                                an owner that wrote once (kubectl apply, Helm, an editor)      ──▶ goes on
//!   under way:                   the image is theirs and not ours                               ──▶ TemplateChanged, by name
//!                                the strategy is theirs                                         ──▶ see `contest`
//! ```
//! Owning alone harms nobody: whoever created the StatefulSet owns all of it. What harms is to write again, so what is asked is who does.

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    hold::Hold,
    reason::Reason,
    rolling::known::{
        owners::{Field, Owners},
        record::Record,
        view::View,
    },
    strategy::known::want::Want,
};

/// So many templates in a row that nobody has seen stand were not all lost, if the image is somebody's of the same second.
const LOST_IN_A_ROW: u32 = 3;

/// Whether nobody is there who would write again what the upgrade writes. Asked before anything is written.
pub(crate) fn leave_it_to_us(want: &Want, view: &View) -> Result<(), Hold> {
    if bug::active(Bug::OwnersIgnored) {
        return Ok(());
    }
    let owners = match &view.owners {
        Fact::Known(owners) => owners,
        Fact::Unknown(why) => {
            let message = format!(
                "Windlass can't read who owns the image and the update strategy: {why}. Check that no GitOps tool manages this StatefulSet, because the \
                 next command erases that information; then run kubectl patch statefulset NAME --type=merge -p \
                 '{{\"metadata\":{{\"managedFields\":[{{}}]}}}}'"
            );
            return Err(Hold::new(Reason::FieldOwned, message));
        }
    };
    let accepted = |name: &str| want.accept_owners.contains(name);
    if let Some(controller) = owners.controller.as_deref().filter(|controller| !accepted(controller)) {
        let message = format!(
            "{controller} controls the StatefulSet and may undo the upgrade: upgrade {controller} instead, or, if it leaves image and update strategy alone, set spec.policy.acceptOwners: [\"{controller}\"]"
        );
        return Err(Hold::new(Reason::FieldOwned, message));
    }
    let others = owners.managers.iter().filter(|owner| !owner.is_ours() && !accepted(&owner.manager));
    for owner in others {
        let again: Vec<String> =
            owner.fields.iter().filter(|field| owner.writes_again(**field)).map(ToString::to_string).collect();
        if !again.is_empty() {
            let message = format!(
                "field manager {owner} owns {} of the StatefulSet and may set it back during the upgrade: {}. Then set spec.policy.acceptOwners: \
                 [\"{}\"], and the upgrade starts by itself",
                again.join(" and "),
                owner.way_out(),
                owner.manager
            );
            return Err(Hold::new(Reason::FieldOwned, message));
        }
    }
    Ok(())
}

/// Who wrote what stands there, for a message about a change; nothing where nobody tells.
pub(crate) fn blame(view: &View, fields: &[Field]) -> String {
    let writers = fields.iter().filter_map(|field| Some((field, view.owners.known()?.writer(*field)?)));
    match writers.max_by_key(|(_, owner)| owner.at) {
        Some((field, owner)) if owner.writes_again(*field) => {
            format!("; metadata.managedFields names {owner}: {}", owner.way_out())
        }
        Some((_, owner)) => format!("; metadata.managedFields names {owner}"),
        None => String::new(),
    }
}

/// Whether somebody set the image back after our last write of the template, although nobody saw that stand: a write that was lost leaves
/// the image with whoever had it before.
pub(crate) fn is_set_back(view: &View, record: &Record) -> bool {
    is_written_since(view, Field::Image, record.template_at, record.template_writes)
        && !bug::active(Bug::TemplateFought)
}

/// Whether somebody else wrote this since we did, so many times in a row. Times are to the second, so one of the same second counts when it
/// happens again and again.
pub(crate) fn is_written_since(view: &View, field: Field, ours: Timestamp, times: u32) -> bool {
    let writer = view.owners.known().and_then(|owners| owners.writer(field));
    let Some(at) = writer.and_then(|owner| owner.at) else { return false };
    at > ours || (times >= LOST_IN_A_ROW && at.as_second() >= ours.as_second())
}

/// Whether the partition that stands is somebody else's by all that managedFields tell, whatever its value was before.
pub(crate) fn is_foreign(owners: &Fact<Owners>) -> bool {
    let foreign = owners.known().is_some_and(|owners| owners.writer(Field::Partition).is_some());
    foreign && !bug::active(Bug::ForeignStrategyUnminded)
}
