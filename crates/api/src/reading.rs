//! Reading one custom resource by itself.
//!
//! The API server takes what these types can't hold: its check of `date-time` lets an offset of `+99:99` through, and what was stored under
//! an older schema is not checked again. One such object must not keep the others from being read, so each is read alone, and what can't
//! be is a hold that names the field.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use windlass_plan::{Hold, Reason, fence::Recorded};

use crate::{QuorumCluster, ServiceImage, status::OperatorClaim, translate};

/// How much is told of what can't be read.
const LONGEST: usize = 256;

/// What a status has only where an operator has acted, of either kind. See [`crate::QuorumClusterStatus::tells_of_acts`].
const TELL_OF_ACTS: [&str; 9] =
    ["upgrade", "contest", "abandoned", "adopted", "parkedPartition", "strategySwitch", "snapshot", "intents", "batch"];

/// A QuorumCluster, if all of it can be read, what we wrote into its status ourselves included.
pub fn quorum_cluster(raw: &Value) -> Result<QuorumCluster, Hold> {
    let resource: QuorumCluster = typed(raw)?;
    if let Some(status) = &resource.status {
        status.operator.as_ref().map(translate::operator).transpose().map_err(unreadable)?;
        status.upgrade.as_ref().map(translate::record).transpose().map_err(unreadable)?;
        status.abandoned.as_ref().map(translate::given_up).transpose().map_err(unreadable)?;
        status.snapshot.as_ref().map(translate::attempt).transpose().map_err(unreadable)?;
    }
    Ok(resource)
}

/// A ServiceImage, if all of it can be read.
pub fn service_image(raw: &Value) -> Result<ServiceImage, Hold> {
    let resource: ServiceImage = typed(raw)?;
    let operator = resource.status.as_ref().and_then(|status| status.operator.as_ref());
    operator.map(translate::operator).transpose().map_err(unreadable)?;
    Ok(resource)
}

/// Who acts on a resource, whatever else of it can't be read.
pub fn recorded(raw: &Value) -> Recorded {
    let status = raw.get("status").filter(|status| !status.is_null());
    let claim = status.and_then(|status| status.get("operator")).filter(|claim| !claim.is_null());
    let says = |field: &&str| status.and_then(|status| status.get(field)).is_some_and(|value| !value.is_null());
    match claim.map(OperatorClaim::deserialize).transpose() {
        Ok(written) => translate::recorded(written.as_ref(), TELL_OF_ACTS.iter().any(says)),
        Err(_) => Recorded::Unreadable,
    }
}

fn typed<K: DeserializeOwned>(raw: &Value) -> Result<K, Hold> {
    serde_path_to_error::deserialize(raw).map_err(|error| {
        // What is odd may be long, and is somebody else's text.
        let (field, why) =
            (error.path().to_string(), error.inner().to_string().chars().take(LONGEST).collect::<String>());
        Hold::new(Reason::Unreadable, format!("{field} can't be read: {why}"))
    })
}

fn unreadable(hold: Hold) -> Hold {
    Hold { reason: Reason::Unreadable, ..hold }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};
    use windlass_plan::{Reason, fence::Recorded};

    use super::{quorum_cluster, recorded, service_image};

    fn resource(change: impl FnOnce(&mut Value)) -> Value {
        let mut raw = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster",
            "metadata": {"name": "pd", "namespace": "db"},
            "spec": {"workload": {"statefulSet": "pd", "container": "pd"}, "system": {"type": "Pd"}, "version": "8.5.3"},
            "status": {
                "operator": {"identity": "a", "term": 1, "since": "2030-01-01T00:00:00.000000Z", "predecessorDone": true},
                "upgrade": {
                    "targetVersion": "8.5.3", "targetImage": "pd:8.5.3", "fromVersion": "8.5.0", "fromImage": "pd:8.5.0",
                    "startedAt": "2030-01-01T00:00:00.000000Z", "currentPartition": 2, "rollingBack": false,
                },
            },
        });
        assert!(quorum_cluster(&raw).is_ok());
        change(&mut raw);
        raw
    }

    #[rstest]
    #[case::an_override("/spec/gates", json!({"overrides": [{"gate": "Soak", "until": "2030-01-01T00:00:00+99:99"}]}), "spec.gates.overrides[0].until")]
    #[case::a_list_for_a_text("/spec/version", json!(["8.5.3"]), "spec.version")]
    #[case::an_upgrade("/status/upgrade/startedAt", json!("2030-01-01T00:00:00+99:99"), "status.upgrade.startedAt")]
    #[case::its_version("/status/upgrade/targetVersion", json!("8.5"), "status.upgrade.targetVersion")]
    #[case::a_partition("/status/upgrade/currentPartition", json!(-1), "status.upgrade.currentPartition")]
    #[case::a_claim("/status/operator/since", json!("2030-01-01T00:00:00x5+99:99"), "status.operator.since")]
    #[case::its_term("/status/operator/term", json!(-1), "status.operator.term")]
    #[case::what_was_given_up("/status/abandoned", json!({"version": "8", "image": "pd", "outcome": "RolledBack"}), "status.abandoned.version")]
    #[case::a_trial_of_another_release("/status/upgrade/templateTrial", json!("Adjourned"), "status.upgrade.templateTrial")]
    #[case::a_stage_of_another_release("/status/upgrade/stage", json!({"name": "Wander", "pod": "pd-2", "since": "2030-01-01T00:00:00Z"}), "status.upgrade.stage.name")]
    #[case::an_outcome_of_another_release("/status/abandoned", json!({"version": "8.5.3", "image": "pd", "outcome": "Forgotten"}), "status.abandoned.outcome")]
    #[case::a_condition("/status/conditions", json!([{"type": "Ready", "status": "True", "reason": "UpToDate", "message": "", "lastTransitionTime": "2030-01-01T00:00:00+99:99"}]), "status.conditions[0].lastTransitionTime")]
    fn what_cannot_be_read_is_named(#[case] at: &str, #[case] value: Value, #[case] field: &str) {
        let raw = resource(|raw| {
            let (parent, name) = at.rsplit_once('/').unwrap();
            raw.pointer_mut(parent).unwrap()[name] = value;
        });
        let hold = quorum_cluster(&raw).unwrap_err();
        assert_eq!(hold.reason, Reason::Unreadable);
        assert!(hold.message.starts_with(field), "{}", hold.message);
    }

    /// It is for people: whoever holds the rest back sends it back as it came.
    #[test]
    fn words_of_another_release_are_kept_where_nothing_is_decided_by_them() {
        let raw = resource(|raw| {
            raw["status"]["members"] = json!([{"pod": "pd-0", "role": "Chair", "healthy": "Mostly", "lag": "Ahead"}]);
            raw["status"]["gates"] = json!([{"name": "Moon", "state": "Waning", "reason": "WaitsForTheMoon"}]);
        });
        let status = quorum_cluster(&raw).unwrap().status.unwrap_or_default();
        assert_eq!(json!(status.members), raw["status"]["members"]);
        assert_eq!(json!(status.gates), raw["status"]["gates"]);
    }

    #[rstest]
    #[case::a_snapshot(json!({"snapshot": {"attempt": 1}}))]
    #[case::a_hook(json!({"hook": {"gate": "Hook/smoke", "job": "windlass-hook-1"}}))]
    #[case::a_pull(json!({"pull": {"image": "pd:8.5.3", "node": "a"}}))]
    fn an_intent_is_read_as_it_was_written(#[case] intent: Value) {
        let raw = resource(|raw| raw["status"]["intents"] = json!([intent]));
        let read = quorum_cluster(&raw).unwrap();
        assert_eq!(json!(read.status.unwrap_or_default().intents), raw["status"]["intents"]);
    }

    /// Nobody knows what it is about, so nobody can say that it has come to nothing.
    #[test]
    fn an_intent_of_no_kind_is_named() {
        let raw = resource(|raw| raw["status"]["intents"] = json!([{"prayer": {}}]));
        let hold = quorum_cluster(&raw).unwrap_err();
        assert!(hold.message.starts_with("status.intents[0]"), "{}", hold.message);
    }

    /// What was written where intents are now.
    #[test]
    fn fields_that_are_no_more_keep_nobody_from_reading_the_rest() {
        let starting = json!({"gate": "Hook/smoke", "job": "windlass-hook-1"});
        let raw = resource(|raw| {
            raw["status"]["starting"] = starting.clone();
            raw["status"]["pulling"] = json!({"image": "pd:8.5.3", "nodes": ["a"]});
        });
        let status = quorum_cluster(&raw).unwrap().status.unwrap_or_default();
        assert_eq!((status.upgrade.is_some(), status.intents), (true, vec![]));
        let fleet = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ServiceImage", "metadata": {"name": "dicom"},
            "spec": {"target": {"group": "example.com", "version": "v1", "kind": "Dicom"}, "tiers": []},
            "status": {"starting": starting, "progress": "1/2"},
        });
        let status = service_image(&fleet).unwrap().status.unwrap_or_default();
        assert_eq!((status.progress.as_deref(), status.intents), (Some("1/2"), vec![]));
    }

    #[test]
    fn who_acts_is_somebody_wherever_anything_is_under_way() {
        assert!(matches!(recorded(&resource(|_| {})), Recorded::By(_)));
        let odd = resource(|raw| raw["status"]["operator"]["since"] = json!("2030-01-01T00:00:00+99:99"));
        assert_eq!(recorded(&odd), Recorded::Unreadable);
        assert_eq!(recorded(&resource(|raw| raw["status"]["operator"] = Value::Null)), Recorded::Unreadable);
        assert_eq!(recorded(&resource(|raw| raw["status"] = Value::Null)), Recorded::Nobody);
        assert_eq!(recorded(&resource(|raw| raw["status"] = json!({}))), Recorded::Nobody);
    }

    /// As the API server gives what an operator wrote that knew another name for its claim: without that, and with all the rest.
    #[rstest]
    #[case::somebody_who_rolled(json!({"adopted": {"type": "OnDelete"}}), true)]
    #[case::somebody_who_holds(json!({"parkedPartition": 3}), true)]
    #[case::somebody_who_switches(json!({"strategySwitch": {"at": "2030-01-01T00:00:00.000000Z", "times": 1}}), true)]
    #[case::somebody_who_is_contested(json!({"contest": {"by": "helm", "holds": 1}}), true)]
    #[case::somebody_who_gave_up(json!({"abandoned": {"version": "8.5.3", "image": "pd", "outcome": "Stopped"}}), true)]
    #[case::somebody_who_makes_a_job(json!({"intents": [{"snapshot": {"attempt": 1}}]}), true)]
    #[case::somebody_who_only_looked(json!({"observedGeneration": 1, "phase": "NeedsAttention", "currentVersion": "8.5.0"}), false)]
    #[case::nobody(json!({}), false)]
    fn without_a_claim_what_was_done_tells_of(#[case] status: Value, #[case] somebody: bool) {
        let raw = resource(|raw| raw["status"] = status);
        assert_eq!(recorded(&raw), if somebody { Recorded::Unreadable } else { Recorded::Nobody });
        assert_eq!(quorum_cluster(&raw).unwrap().status.unwrap_or_default().tells_of_acts(), somebody);
    }

    #[test]
    fn a_service_image_is_read_the_same_way() {
        let raw = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ServiceImage", "metadata": {"name": "dicom"},
            "spec": {
                "target": {"group": "example.com", "version": "v1", "kind": "Dicom"},
                "gates": {"overrides": [{"gate": "MaintenanceWindow", "until": "2030-01-01T00:00:00+99:99"}]},
            },
        });
        let hold = service_image(&raw).unwrap_err();
        assert!(hold.message.starts_with("spec.gates.overrides[0].until"), "{}", hold.message);
    }
}
