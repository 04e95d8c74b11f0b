//! What an operator can't see or read in a walk: a watch that stands still, a kind that goes and comes back, a ServiceImage that the API server
//! takes and we can't read; and what people and tenants write that moves everything: times in a status, the place of the image.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_sim::{
    rng::Rng,
    scenario::{Action, Moment, Subject, When},
};

use super::{DICOMS, definition, subject};
use crate::{odd::TIME, trial::Scenario};

/// How long an operator may not have seen what somebody else did, where its watch stands still: as long as that is believed, and the list.
const UNSEEN: Duration = Duration::from_secs(150);

fn after(when: Duration, action: Action) -> Moment {
    Moment { when: When::After(when), action }
}

/// How long an operator may not have seen what somebody else did, because its watch stands still.
pub(super) fn unseen(scenario: &Scenario) -> Option<Duration> {
    let still = |moment: &Moment| matches!(moment.action, Action::StillWatches);
    scenario.timeline.iter().any(still).then_some(UNSEEN)
}

/// In an eighth of the seeds the ServiceImage can't be read for a while: its spec, its record, or who acts on it. What mends it.
pub(super) fn unreadable(rng: &mut Rng) -> Option<(Action, Option<Action>)> {
    let spec = |overrides: Value| Action::Patch {
        target: subject(),
        patch: json!({"spec": {"gates": {"overrides": overrides}}}),
    };
    let status = |status: Value| Action::PatchStatus { target: subject(), patch: json!({ "status": status }) };
    rng.one_in(8).then(|| match rng.below(3) {
        0 => (status(json!({"operator": {"since": TIME}})), None),
        1 => (status(json!({"retriedAt": TIME})), Some(status(json!({"retriedAt": null})))),
        _ => (spec(json!([{"gate": "MaintenanceWindow", "until": TIME}])), Some(spec(json!([])))),
    })
}

/// In a tenth of the seeds the kind is deleted with everything of it, and comes back with these.
pub(super) fn gone_and_back(rng: &mut Rng, dicoms: &[Value]) -> Vec<Moment> {
    if !rng.one_in(10) {
        return Vec::new();
    }
    let resource = "customresourcedefinitions.apiextensions.k8s.io".to_owned();
    let target = Subject { resource, namespace: String::new(), name: DICOMS.to_owned() };
    let mut moments = vec![
        after(rng.between(Duration::from_secs(1), Duration::from_secs(40)), Action::Delete(target)),
        after(rng.between(Duration::from_millis(20), Duration::from_secs(30)), Action::Create(definition())),
    ];
    let back = dicoms.iter().filter(|_| !rng.one_in(3));
    moments.extend(back.map(|one| after(Duration::from_millis(20), Action::Create(one.clone()))));
    moments
}

/// A tenant's status: without what is judged, or on its way since a time of its own.
pub(super) fn times(rng: &mut Rng, target: Subject) -> Action {
    let times = ["1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z"];
    let time = rng.pick(&times).copied().unwrap_or_default();
    let conditions = if rng.one_in(2) {
        json!([])
    } else {
        json!([{"type": "UpToDate", "status": "False", "reason": "Mine", "message": "", "lastTransitionTime": time}])
    };
    Action::PatchStatus { target, patch: json!({"status": {"conditions": conditions}}) }
}

/// The image goes elsewhere, or where it was.
pub(super) fn elsewhere(yes: bool) -> Action {
    let path = if yes { ".spec.sidecar" } else { ".spec.image" };
    Action::Patch { target: subject(), patch: json!({"spec": {"target": {"imagePath": path}}}) }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use windlass_sim::scenario::Action;

    use super::{DICOMS, TIME};
    use crate::{
        stamping::{FLEETS, NAME, TOUCHED, scenario},
        trial::Scenario,
    };

    fn patches<'a>(action: &'a Action, resource: &str) -> Option<&'a Value> {
        let Action::Patch { target, patch } = action else { return None };
        (target.resource == resource).then_some(patch)
    }

    fn writes_status<'a>(action: &'a Action, resource: &str) -> Option<&'a Value> {
        let Action::PatchStatus { target, patch } = action else { return None };
        (target.resource == resource).then_some(patch)
    }

    #[test]
    fn every_situation_is_among_the_walks() {
        let walks: Vec<Scenario> = (0..600).map(scenario).collect();
        let often = |what: &str, is: &dyn Fn(&Action) -> bool| {
            let of = |walk: &&Scenario| walk.timeline.iter().any(|moment| is(&moment.action));
            let count = walks.iter().filter(of).count();
            assert!(count > 20, "{what}: {count}");
        };
        let says = |patch: Option<&Value>, words: &str| patch.is_some_and(|patch| patch.to_string().contains(words));
        let creates = |action: &Action, kind: &str| matches!(action, Action::Create(object) if object["kind"] == kind);
        let is_other = |object: &Value| object["metadata"]["name"] != NAME;
        often("company", &|action| {
            creates(action, "ServiceImage") && matches!(action, Action::Create(one) if is_other(one))
        });
        often(
            "admission that denies",
            &|action| matches!(action, Action::FreezeFields { fields, .. } if !fields.is_empty()),
        );
        often(
            "touches that are refused",
            &|action| matches!(action, Action::FreezeFields { fields, .. } if fields.iter().any(|field| field == TOUCHED)),
        );
        often(
            "writes that get no answer",
            &|action| matches!(action, Action::Webhook { how: Some(_), about, .. } if about.is_empty()),
        );
        often(
            "stamps that get no answer",
            &|action| matches!(action, Action::Webhook { how: Some(_), about, .. } if !about.is_empty()),
        );
        often("annotations at their limit", &|action| says(patches(action, DICOMS), "xxxx"));
        often("an image that is removed", &|action| {
            patches(action, DICOMS).is_some_and(|patch| patch.pointer("/spec/image") == Some(&Value::Null))
        });
        often("a forged stamp", &|action| says(patches(action, DICOMS), "windlass.dev/stamped"));
        often("a selector that is left", &|action| says(patches(action, DICOMS), "\"managed\":\"no\""));
        often("and come back to", &|action| says(patches(action, DICOMS), "\"managed\":null"));
        often("status times", &|action| writes_status(action, DICOMS).is_some());
        often("a status that says nothing", &|action| says(writes_status(action, DICOMS), "\"conditions\":[]"));
        often("a dead watch", &|action| matches!(action, Action::StillWatches));
        often("an odd spec", &|action| says(patches(action, FLEETS), TIME));
        often("an odd status", &|action| says(writes_status(action, FLEETS), TIME));
        often("another place", &|action| says(patches(action, FLEETS), ".spec.sidecar"));
        often("a kind that goes", &|action| matches!(action, Action::Delete(target) if target.name == DICOMS));
        often("and comes back", &|action| creates(action, "CustomResourceDefinition"));
        often("another one of its name", &|action| matches!(action, Action::Delete(target) if target.name == NAME));
        let begin = |what: &str, is: &dyn Fn(&Value) -> bool| {
            let of =
                |walk: &&Scenario| walk.objects.iter().any(|object| object["kind"] == "ServiceImage" && is(object));
            let count = walks.iter().filter(of).count();
            assert!(count > 20, "{what}: {count}");
        };
        begin("lanes", &|fleet| fleet.pointer("/spec/spread/maxInFlight").is_some());
        begin("equal priorities", &|fleet| {
            let tiers = fleet.pointer("/spec/tiers").and_then(Value::as_array).into_iter().flatten();
            let mut priorities: Vec<_> = tiers.map(|tier| tier["priority"].as_i64()).collect();
            priorities.sort_unstable();
            priorities.windows(2).any(|pair| pair[0] == pair[1])
        });
    }
}
