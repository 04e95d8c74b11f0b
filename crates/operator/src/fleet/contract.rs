//! What a resource of a fleet says of itself: by the contract of managed resources (E4), or by expressions of the ServiceImage (E13).

use jiff::Timestamp;
use kube::{ResourceExt, api::DynamicObject};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_api::service_image::{ServiceImageSpec, TargetKind};
use windlass_plan::{
    Fact, Hold, Reason,
    fleet::{Fence, Item, Lane, Progress, Stamp},
};
use windlass_systems::{condition::Condition, text::Text};

/// The label that names a resource's tier.
const TIER: &str = "upgrade-tier";
/// What we write on a resource with its image.
pub const STAMPED: &str = "windlass.dev/stamped";
/// Who we are to server-side apply, when we stamp.
pub const MANAGER: &str = "windlass-stamp";

/// The content of the annotation.
#[derive(Serialize, Deserialize)]
pub struct Stamped {
    /// The image.
    pub image: String,
    /// When.
    pub at: Timestamp,
    /// For how many times this one, within a while.
    pub round: u32,
}

/// How a resource is read.
pub struct Contract {
    target: TargetKind,
    spread: Option<String>,
    path: Vec<String>,
    ready: Option<Condition>,
    failed: Option<Condition>,
    manual: Option<Condition>,
    deployed: Option<Condition>,
    failure_halts: Option<Condition>,
    pod_selector: Option<Text>,
}

impl Contract {
    /// The contract that a ServiceImage describes.
    pub fn read(spec: &ServiceImageSpec) -> Result<Self, Hold> {
        let target = &spec.target;
        let invalid = |field: &str, why: String| Hold::new(Reason::InvalidSpec, format!("spec.target.{field}: {why}"));
        let read = |field: &str, text: Option<&String>| {
            text.map(|text| Condition::read(text, &["self"]).map_err(|why| invalid(field, why))).transpose()
        };
        let pod_selector = target.pod_selector.as_ref().map(|text| Text::read(text, &["self"]));
        Ok(Self {
            spread: spec.spread.as_ref().map(|spread| spread.label.clone()),
            path: target.image_path.trim_start_matches('.').split('.').map(str::to_owned).collect(),
            ready: read("ready", target.ready.as_ref())?,
            failed: read("failed", target.failed.as_ref())?,
            manual: read("manual", target.manual.as_ref())?,
            deployed: read("deployed", target.deployed.as_ref())?,
            failure_halts: read("failureHalts", target.failure_halts.as_ref())?,
            pod_selector: pod_selector.transpose().map_err(|why| invalid("podSelector", why))?,
            target: target.clone(),
        })
    }

    /// Whether it is still what the ServiceImage describes.
    pub fn is_of(&self, spec: &ServiceImageSpec) -> bool {
        self.target == spec.target && self.spread.as_ref() == spec.spread.as_ref().map(|spread| &spread.label)
    }

    /// What a write sets: the image where it belongs, and who we are.
    pub fn image_patch(&self, image: &str) -> Value {
        self.path.iter().rev().fold(json!(image), |inner, field| json!({ field: inner }))
    }

    /// A resource as it was seen.
    pub fn item(&self, object: &DynamicObject) -> Item {
        let seen = Seen { object, generation: object.metadata.generation.unwrap_or(0) };
        let image = self.image(object);
        let stamp = object.annotations().get(STAMPED).and_then(|text| serde_json::from_str::<Stamped>(text).ok());
        let stamp = stamp.map(|Stamped { image, at, round }| Stamp { image, at, round });
        let changed = stamp.as_ref().is_some_and(|stamp| Some(stamp.image.as_str()) != image);
        let deployed = match (&self.deployed, &self.ready) {
            // What can't be told may have served, and is waited for.
            (Some(deployed), _) => holds(deployed, object).unwrap_or(true),
            (None, Some(_)) => true,
            (None, None) => seen.condition("Deployed").is_some_and(|one| one["status"] == "True"),
        };
        Item {
            fence: Fence {
                uid: object.uid().unwrap_or_default(),
                resource_version: object.resource_version().unwrap_or_default(),
            },
            tier: object.labels().get(TIER).cloned().unwrap_or_default(),
            lane: Lane(self.spread.as_ref().and_then(|label| object.labels().get(label)).cloned().unwrap_or_default()),
            image: image.filter(|image| !image.is_empty()).map(str::to_owned),
            manual: match &self.manual {
                Some(manual) => known(manual, object),
                None => Fact::Known(object.data.pointer("/spec/manuallySpecifiedImage") == Some(&json!(true))),
            },
            deployed,
            failure_halts: match &self.failure_halts {
                // What can't be told halts.
                Some(halts) => holds(halts, object).unwrap_or(true),
                None => object.data.pointer("/spec/failureHaltsUpdate") == Some(&json!(true)),
            },
            progress: self.progress(&seen),
            stamp,
            set_by: changed.then(|| self.setter(object)).flatten(),
        }
    }

    /// The label selector of a resource's pods; none where nothing tells. An empty one would select them all.
    pub fn pods_of(&self, object: &DynamicObject) -> Option<String> {
        let selector = match &self.pod_selector {
            Some(selector) => bare(object).and_then(|value| selector.of([("self", value)])),
            None => object
                .data
                .pointer("/status/selector")
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(String::new),
        };
        selector.ok().filter(|selector| !selector.trim().is_empty())
    }

    /// The image that a resource's spec names.
    pub fn image<'a>(&self, object: &'a DynamicObject) -> Option<&'a str> {
        self.path.iter().try_fold(&object.data, |at, field| at.get(field)).and_then(Value::as_str)
    }

    /// How far it is, judged at its newest generation (H38).
    fn progress(&self, seen: &Seen<'_>) -> Fact<Progress> {
        let ready = match &self.ready {
            Some(ready) => match holds(ready, seen.object) {
                Ok(ready) => ready,
                Err(why) => return Fact::Unknown(format!("spec.target.ready: {why}")),
            },
            None => seen.is_observed() && seen.condition("UpToDate").is_some_and(|one| one["status"] == "True"),
        };
        if ready {
            return Fact::Known(Progress::Ready);
        }
        let failed = if let Some(failed) = &self.failed {
            match holds(failed, seen.object) {
                Ok(failed) => failed.then(|| format!("{:?} is so", self.target.failed.as_deref().unwrap_or_default())),
                Err(why) => return Fact::Unknown(format!("spec.target.failed: {why}")),
            }
        } else {
            let failed = seen.condition("Failed").filter(|one| seen.is_observed() && one["status"] == "True");
            failed.map(|one| one["message"].as_str().or(one["reason"].as_str()).unwrap_or("it says so").to_owned())
        };
        if let Some(why) = failed {
            return Fact::Known(Progress::Failed(why));
        }
        let unready = seen.condition("UpToDate").filter(|one| one["status"] == "False");
        let since = unready.and_then(|one| one["lastTransitionTime"].as_str()).and_then(|time| time.parse().ok());
        Fact::Known(Progress::Moving { since })
    }

    /// Who set the image last, if it was not us.
    fn setter(&self, object: &DynamicObject) -> Option<String> {
        let pointer = self.path.iter().fold(String::new(), |pointer, field| pointer + "/f:" + field);
        let entries = object.metadata.managed_fields.iter().flatten();
        let theirs = entries.filter(|entry| {
            let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
            entry.manager.as_deref() != Some(MANAGER) && fields.is_some_and(|fields| fields.pointer(&pointer).is_some())
        });
        theirs.max_by_key(|entry| entry.time.as_ref().map(|time| time.0)).and_then(|entry| entry.manager.clone())
    }
}

struct Seen<'a> {
    object: &'a DynamicObject,
    generation: i64,
}

impl Seen<'_> {
    fn is_observed(&self) -> bool {
        let observed = self.object.data.pointer("/status/observedGeneration").and_then(Value::as_i64);
        observed.is_some_and(|observed| observed >= self.generation)
    }

    fn condition(&self, type_: &str) -> Option<&Value> {
        let conditions = self.object.data.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().find(|one| one["type"] == type_)
    }
}

fn holds(condition: &Condition, object: &DynamicObject) -> Result<bool, String> {
    condition.holds([("self", bare(object)?)])
}

/// What expressions see of a resource: without the bookkeeping, which is long.
fn bare(object: &DynamicObject) -> Result<Value, String> {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    serde_json::to_value(object).map_err(|error| error.to_string())
}

fn known(condition: &Condition, object: &DynamicObject) -> Fact<bool> {
    holds(condition, object).map_or_else(Fact::Unknown, Fact::Known)
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use rstest::rstest;
    use serde_json::{Value, json};
    use windlass_api::service_image::ServiceImageSpec;
    use windlass_plan::{Fact, fleet::Progress};

    use super::Contract;

    #[expect(clippy::needless_pass_by_value, reason = "tests write the JSON in place")]
    fn contract(target: Value) -> Contract {
        let mut whole = json!({"group": "examples.windlass.dev", "version": "v1", "kind": "Dicom"});
        whole.as_object_mut().unwrap().extend(target.as_object().unwrap().clone());
        let spec: ServiceImageSpec =
            serde_json::from_value(json!({"defaultImage": "r/d:v2", "target": whole, "tiers": [{}]})).unwrap();
        Contract::read(&spec).unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "tests write the JSON in place")]
    fn dicom(spec: Value, status: Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "examples.windlass.dev/v1", "kind": "Dicom",
            "metadata": {"name": "a", "namespace": "clinic", "uid": "1", "resourceVersion": "7", "generation": 3,
                         "labels": {"upgrade-tier": "early", "zone": "z1"}},
            "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn conditions(up_to_date: &str, generation: i64) -> Value {
        json!({"observedGeneration": generation, "conditions": [
            {"type": "UpToDate", "status": up_to_date, "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Deployed", "status": "True"},
        ]})
    }

    #[rstest]
    #[case::up_to_date(conditions("True", 3), Progress::Ready)]
    #[case::with_what_it_was_before(conditions("True", 2), Progress::Moving { since: None })]
    #[case::not_yet(conditions("False", 3), Progress::Moving { since: Some("2026-01-01T00:00:00Z".parse().unwrap()) })]
    #[case::nothing_said(json!({}), Progress::Moving { since: None })]
    #[case::failed(
        json!({"observedGeneration": 3, "conditions": [{"type": "Failed", "status": "True", "message": "no room"}]}),
        Progress::Failed("no room".into())
    )]
    #[case::failed_before(
        json!({"observedGeneration": 2, "conditions": [{"type": "Failed", "status": "True", "message": "no room"}]}),
        Progress::Moving { since: None }
    )]
    fn e4_h38_progress_is_judged_at_the_newest_generation(#[case] status: Value, #[case] expected: Progress) {
        let item = contract(json!({})).item(&dicom(json!({"image": "r/d:v1"}), status));
        assert_eq!(item.progress, Fact::Known(expected));
    }

    #[test]
    fn e4_the_contract_of_managed_resources() {
        let spec = json!({"image": "r/d:v1", "manuallySpecifiedImage": true, "failureHaltsUpdate": true});
        let item = contract(json!({})).item(&dicom(spec, conditions("True", 3)));
        assert_eq!((item.tier.as_str(), item.image.as_deref()), ("early", Some("r/d:v1")));
        assert!(item.manual.is(&true) && item.failure_halts && item.deployed);
        let item = contract(json!({})).item(&dicom(json!({}), json!({})));
        assert!(item.image.is_none() && item.manual.is(&false) && !item.failure_halts && !item.deployed);
    }

    #[test]
    fn e13_any_kind_by_path_and_expressions() {
        let contract = contract(json!({
            "imagePath": "spec.engine.image",
            "ready": "self.status.phase == 'Running'",
            "failed": "self.status.phase == 'Broken'",
            "manual": "has(self.spec.pinned) && self.spec.pinned",
        }));
        let spec = json!({"engine": {"image": "r/e:v1"}});
        let item = contract.item(&dicom(spec.clone(), json!({"phase": "Running"})));
        assert_eq!((item.image.as_deref(), &item.progress), (Some("r/e:v1"), &Fact::Known(Progress::Ready)));
        assert!(item.deployed, "a ready of one's own, and nothing said of Deployed");
        let item = contract.item(&dicom(spec.clone(), json!({"phase": "Broken"})));
        assert!(matches!(item.progress, Fact::Known(Progress::Failed(_))));
        let item = contract.item(&dicom(spec, json!({})));
        assert!(matches!(&item.progress, Fact::Unknown(why) if why.contains("phase")), "{:?}", item.progress);
        assert_eq!(contract.image_patch("r/e:v2"), json!({"spec": {"engine": {"image": "r/e:v2"}}}));
    }

    #[rstest]
    #[case::the_contract(json!({}), json!({"selector": "app=a"}), Some("app=a"))]
    #[case::nothing_told(json!({}), json!({}), None)]
    #[case::no_text(json!({}), json!({"selector": {"app": "a"}}), None)]
    #[case::all_pods_are_nobodys(json!({}), json!({"selector": " "}), None)]
    #[case::an_expression(json!({"podSelector": "'app=' + self.metadata.name"}), json!({"selector": "other=a"}), Some("app=a"))]
    #[case::one_that_cannot_tell(json!({"podSelector": "self.status.labels"}), json!({"selector": "other=a"}), None)]
    fn e12_how_the_pods_of_a_resource_are_found(
        #[case] target: Value,
        #[case] status: Value,
        #[case] expected: Option<&str>,
    ) {
        let found = contract(target).pods_of(&dicom(json!({"image": "r/d:v1"}), status));
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn e13_who_set_it_back_is_named() {
        let mut object = dicom(json!({"image": "r/d:v1"}), json!({}));
        object.metadata.annotations = Some(
            [(super::STAMPED.to_owned(), r#"{"image":"r/d:v2","at":"2026-01-01T00:00:00Z","round":2}"#.to_owned())]
                .into(),
        );
        object.metadata.managed_fields = serde_json::from_value(json!([
            {"manager": "windlass-stamp", "fieldsV1": {"f:spec": {"f:image": {}}}, "time": "2026-01-01T00:00:00Z"},
            {"manager": "argocd-controller", "fieldsV1": {"f:spec": {"f:image": {}}}, "time": "2026-01-01T00:00:05Z"},
        ]))
        .unwrap();
        let item = contract(json!({})).item(&object);
        assert_eq!(item.set_by.as_deref(), Some("argocd-controller"));
        assert_eq!(item.stamp.unwrap().round, 2);
    }
}
