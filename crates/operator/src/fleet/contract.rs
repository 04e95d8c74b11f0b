//! What a resource of a fleet says of itself: by the contract of managed resources (E4), or by expressions of the ServiceImage (E13).

use jiff::Timestamp;
use kube::{ResourceExt, api::DynamicObject};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_api::service_image::{ServiceImage, TargetKind};
use windlass_plan::{
    Fact, Hold, Reason,
    bug::{self, Bug},
    fleet::{Fence, Item, Lane, Progress, Stamp},
};
use windlass_systems::{condition::Condition, text::Text};

use crate::{digest::digest, trouble::clipped};

/// The label that names a resource's tier.
const TIER: &str = "upgrade-tier";
/// What we write on a resource with its image.
pub const STAMPED: &str = "windlass.dev/stamped";
/// Who we are to server-side apply when we stamp, with the ServiceImage and the path behind it.
const MANAGER: &str = "windlass-stamp";

/// How a ServiceImage writes. Everything that one manager of fields does not list any more is removed when it applies, so there is one for
/// each ServiceImage, by its uid, and for each path that it ever had: nothing that was written is removed by what is written elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pen {
    /// Which ServiceImage: another one of its name later on is another one.
    pub uid: String,
    /// Who we are to server-side apply.
    pub manager: String,
    path: Vec<String>,
}

impl Pen {
    /// The pen of a ServiceImage.
    pub fn of(resource: &ServiceImage) -> Self {
        Self::new(resource.uid().unwrap_or_default(), &resource.spec.target)
    }

    /// The pen of the ServiceImage with this uid.
    pub fn new(uid: String, target: &TargetKind) -> Self {
        let path = target.image_path.trim_start_matches('.');
        let manager = if bug::active(Bug::SharedFieldManager) {
            MANAGER.to_owned()
        } else {
            format!("{MANAGER}-{uid}-{:016x}", digest(path))
        };
        Self { uid, manager, path: path.split('.').map(str::to_owned).collect() }
    }

    /// Where the image belongs, as people write it.
    pub fn place(&self) -> String {
        format!(".{}", self.path.join("."))
    }

    /// The image where it belongs.
    pub fn image_patch(&self, image: &str) -> Value {
        self.path.iter().rev().fold(json!(image), |inner, field| json!({ field: inner }))
    }

    /// The image that a resource's spec names.
    pub fn image<'a>(&self, object: &'a DynamicObject) -> Option<&'a str> {
        self.path.iter().try_fold(&object.data, |at, field| at.get(field)).and_then(Value::as_str)
    }

    /// Whether this manager of fields is, or was, this ServiceImage. Before there was one for each, all had one name.
    fn is(&self, manager: Option<&str>) -> bool {
        let of = |manager: &str| manager == MANAGER || manager.starts_with(&format!("{MANAGER}-{}-", self.uid));
        manager.is_some_and(of)
    }
}

/// The content of the annotation.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stamped {
    /// The ServiceImage, by its uid; none in what was written before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Where the image was written; none in what was written before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The image.
    pub image: String,
    /// When.
    pub at: Timestamp,
    /// For how many times this one, within a while.
    pub round: u32,
    /// What makes a touch differ from what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touched: Option<String>,
}

impl Stamped {
    /// What a resource says, if it can be read.
    pub fn on(object: &DynamicObject) -> Option<Self> {
        object.annotations().get(STAMPED).and_then(|text| serde_json::from_str(text).ok())
    }
}

/// How a resource is read.
pub struct Contract {
    target: TargetKind,
    spread: Option<String>,
    /// How it is written.
    pub pen: Pen,
    ready: Option<Condition>,
    failed: Option<Condition>,
    manual: Option<Condition>,
    deployed: Option<Condition>,
    failure_halts: Option<Condition>,
    pod_selector: Option<Text>,
}

impl Contract {
    /// The contract that a ServiceImage describes.
    pub fn read(resource: &ServiceImage) -> Result<Self, Hold> {
        let spec = &resource.spec;
        let target = &spec.target;
        let invalid = |field: &str, why: String| Hold::new(Reason::InvalidSpec, format!("spec.target.{field}: {why}"));
        let read = |field: &str, text: Option<&String>| {
            text.map(|text| Condition::read(text, &["self"]).map_err(|why| invalid(field, why))).transpose()
        };
        let pod_selector = target.pod_selector.as_ref().map(|text| Text::read(text, &["self"]));
        Ok(Self {
            spread: spec.spread.as_ref().map(|spread| spread.label.clone()),
            pen: Pen::of(resource),
            ready: read("ready", target.ready.as_ref())?,
            failed: read("failed", target.failed.as_ref())?,
            manual: read("manual", target.manual.as_ref())?,
            deployed: read("deployed", target.deployed.as_ref())?,
            failure_halts: read("failureHalts", target.failure_halts.as_ref())?,
            pod_selector: pod_selector.transpose().map_err(|why| invalid("podSelector", why))?,
            target: target.clone(),
        })
    }

    /// Whether it is still what the ServiceImage describes, and that one still the same.
    pub fn is_of(&self, resource: &ServiceImage) -> bool {
        let spec = &resource.spec;
        self.target == spec.target
            && self.pen == Pen::of(resource)
            && self.spread.as_ref() == spec.spread.as_ref().map(|spread| &spread.label)
    }

    /// A resource as it was seen, after what was known of it.
    pub fn item(&self, object: &DynamicObject, before: Option<&Item>) -> Item {
        let seen = Seen { object, generation: object.metadata.generation.unwrap_or(0) };
        let here = self.pen.image(object);
        // Another's stamp tells that it is on its way. How often it was set back is none of ours.
        let stamp = Stamped::on(object).map(|Stamped { by, path, image, at, round, touched: _ }| {
            let ours = by.is_none_or(|by| by == self.pen.uid);
            // Where older ones do not say where they wrote, an image that is not here is elsewhere.
            let elsewhere =
                path.is_some_and(|path| path != self.pen.place()) || (!ours && here != Some(image.as_str()));
            Stamp { image, at, round: if ours { round } else { 0 }, elsewhere }
        });
        let changed = stamp.as_ref().is_some_and(|stamp| !stamp.elsewhere && Some(stamp.image.as_str()) != here);
        let progress = self.progress(&seen);
        Item {
            fence: Fence {
                uid: object.uid().unwrap_or_default(),
                resource_version: object.resource_version().unwrap_or_default(),
            },
            tier: object.labels().get(TIER).cloned().unwrap_or_default(),
            lane: Lane(self.spread.as_ref().and_then(|label| object.labels().get(label)).cloned().unwrap_or_default()),
            image: here.filter(|image| !image.is_empty()).map(str::to_owned),
            manual: match &self.manual {
                Some(manual) => known(manual, object),
                None => Fact::Known(object.data.pointer("/spec/manuallySpecifiedImage") == Some(&json!(true))),
            },
            deployed: self.served(&seen, before, &progress),
            failure_halts: match &self.failure_halts {
                // What can't be told halts.
                Some(halts) => holds(halts, object).unwrap_or(true),
                None => object.data.pointer("/spec/failureHaltsUpdate") == Some(&json!(true)),
            },
            progress,
            unready: None,
            stamp,
            set_by: changed.then(|| self.setter(object)).flatten(),
            taken_by: None,
        }
    }

    /// Which resources it is about, as kubectl's `-l` writes labels.
    pub fn label_selector(&self) -> Option<&str> {
        self.target.label_selector.as_deref()
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

    /// Whether it has served. What does not say may have, where it has an image, or a mark that says that it had one, of whatever ServiceImage
    /// and with whatever in it (X1): whoever forges that keeps only itself from counting as new. Where it was seen before it is what it was then:
    /// new until it says otherwise or is up to date, and never new again.
    fn served(&self, seen: &Seen<'_>, before: Option<&Item>, progress: &Fact<Progress>) -> bool {
        let told = match &self.deployed {
            Some(deployed) => holds(deployed, seen.object).ok(),
            None => seen.condition("Deployed").and_then(|one| match one["status"].as_str() {
                Some("True") => Some(true),
                Some("False") => Some(false),
                Some(_) | None => None,
            }),
        };
        told.unwrap_or_else(|| {
            let has_image = self.pen.image(seen.object).is_some_and(|image| !image.is_empty());
            let had_one = || seen.object.annotations().contains_key(STAMPED) && !bug::active(Bug::LostImageForgotten);
            let may_have = match before.map(|before| before.deployed) {
                None => has_image || had_one(),
                Some(true) => true,
                Some(false) => has_image && progress.is(&Progress::Ready),
            };
            may_have && !bug::active(Bug::UntoldIsNew)
        })
    }

    /// How far it is, judged at its newest generation (H38).
    fn progress(&self, seen: &Seen<'_>) -> Fact<Progress> {
        match self.is_ready(seen) {
            Ok(true) => return Fact::Known(Progress::Ready),
            Ok(false) => {}
            Err(why) => return Fact::Unknown(why),
        }
        let failed = if let Some(failed) = &self.failed {
            match holds(failed, seen.object) {
                Ok(true) if !seen.is_observed() && !self.compares_image(failed, seen.object) => None,
                Ok(failed) => failed.then(|| format!("{:?} is so", self.target.failed.as_deref().unwrap_or_default())),
                Err(why) => return Fact::Unknown(format!("spec.target.failed: {why}")),
            }
        } else {
            let failed = seen.condition("Failed").filter(|one| seen.is_observed() && one["status"] == "True");
            failed.map(|one| clipped(one["message"].as_str().or(one["reason"].as_str()).unwrap_or("it says so")))
        };
        if let Some(why) = failed {
            return Fact::Known(Progress::Failed(why));
        }
        if self.ready.is_none() && seen.condition("UpToDate").is_none() {
            return Fact::Unknown("its status has no condition UpToDate".to_owned());
        }
        if self.ready.is_none() && seen.observed().is_none() {
            return Fact::Unknown("its status has no observedGeneration".to_owned());
        }
        let unready = seen.condition("UpToDate").filter(|one| one["status"] == "False");
        let since = unready.and_then(|one| one["lastTransitionTime"].as_str()).and_then(|time| time.parse().ok());
        Fact::Known(Progress::Moving { since })
    }

    /// Whether it is what its spec says: at a generation that was observed, or where the expression is true of no other image. What was true
    /// of the image before is not known of this one.
    fn is_ready(&self, seen: &Seen<'_>) -> Result<bool, String> {
        let Some(ready) = &self.ready else {
            return Ok(seen.is_observed() && seen.condition("UpToDate").is_some_and(|one| one["status"] == "True"));
        };
        let holds = holds(ready, seen.object).map_err(|why| format!("spec.target.ready: {why}"))?;
        if !holds || seen.is_observed() || self.compares_image(ready, seen.object) || bug::active(Bug::StaleReady) {
            return Ok(holds);
        }
        match seen.observed() {
            Some(_) => Ok(false),
            None => Err(format!(
                "spec.target.ready may be true of the image before: compare the image in it, like self.status.image == self.{}, or let \
                 the kind have status.observedGeneration",
                self.pen.path.join(".")
            )),
        }
    }

    /// Whether what is true of a resource would not be, had it another image.
    fn compares_image(&self, condition: &Condition, object: &DynamicObject) -> bool {
        let mut other = object.clone();
        let field = self.pen.path.iter().try_fold(&mut other.data, |at, field| at.get_mut(field));
        let Some(Value::String(image)) = field else { return false };
        image.push_str("-another");
        holds(condition, &other) != Ok(true)
    }

    /// Who set the image last, if it was not us.
    fn setter(&self, object: &DynamicObject) -> Option<String> {
        let pointer = self.pen.path.iter().fold(String::new(), |pointer, field| pointer + "/f:" + field);
        let entries = object.metadata.managed_fields.iter().flatten();
        let theirs = entries.filter(|entry| {
            let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
            !self.pen.is(entry.manager.as_deref()) && fields.is_some_and(|fields| fields.pointer(&pointer).is_some())
        });
        theirs.max_by_key(|entry| entry.time.as_ref().map(|time| time.0)).and_then(|entry| entry.manager.clone())
    }
}

struct Seen<'a> {
    object: &'a DynamicObject,
    generation: i64,
}

impl Seen<'_> {
    fn observed(&self) -> Option<i64> {
        self.object.data.pointer("/status/observedGeneration").and_then(Value::as_i64)
    }

    fn is_observed(&self) -> bool {
        self.observed().is_some_and(|observed| observed >= self.generation)
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
    use windlass_api::ServiceImage;
    use windlass_plan::{
        Fact,
        fleet::{
            Disturbance::{self, Elsewhere, Here},
            Item, Progress,
        },
    };

    use super::Contract;

    #[expect(clippy::needless_pass_by_value, reason = "tests write the JSON in place")]
    fn contract(target: Value) -> Contract {
        let mut whole = json!({"group": "examples.windlass.dev", "version": "v1", "kind": "Dicom"});
        whole.as_object_mut().unwrap().extend(target.as_object().unwrap().clone());
        let spec = json!({"defaultImage": "r/d:v2", "target": whole, "tiers": [{}]});
        let mut resource = ServiceImage::new("d", serde_json::from_value(spec).unwrap());
        resource.metadata.uid = Some("5eed".into());
        Contract::read(&resource).unwrap()
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
    #[case::failed(
        json!({"observedGeneration": 3, "conditions": [{"type": "Failed", "status": "True", "message": "no room"}]}),
        Progress::Failed("no room".into())
    )]
    #[case::failed_before(
        json!({"observedGeneration": 2, "conditions": [
            {"type": "UpToDate", "status": "True"}, {"type": "Failed", "status": "True", "message": "no room"},
        ]}),
        Progress::Moving { since: None }
    )]
    fn e4_h38_progress_is_judged_at_the_newest_generation(#[case] status: Value, #[case] expected: Progress) {
        let item = contract(json!({})).item(&dicom(json!({"image": "r/d:v1"}), status), None);
        assert_eq!(item.progress, Fact::Known(expected));
    }

    #[rstest]
    #[case::nothing_at_all(json!({}), "no condition UpToDate")]
    #[case::another_condition(json!({"observedGeneration": 3, "conditions": [{"type": "Deployed", "status": "True"}]}), "no condition UpToDate")]
    #[case::of_no_generation(json!({"conditions": [{"type": "UpToDate", "status": "True"}]}), "no observedGeneration")]
    fn e4_what_is_not_said_is_not_known(#[case] status: Value, #[case] missing: &str) {
        let item = contract(json!({})).item(&dicom(json!({"image": "r/d:v1"}), status), None);
        assert!(matches!(&item.progress, Fact::Unknown(why) if why.contains(missing)), "{:?}", item.progress);
    }

    /// Without an image, and with what is written with one.
    #[expect(clippy::needless_pass_by_value, reason = "tests write the JSON in place")]
    fn stamped(by: Value) -> Value {
        json!({"stamped": {"by": by["by"], "image": by["image"], "at": "2026-01-01T00:00:00Z", "round": 1}})
    }

    #[rstest]
    #[case::says_nothing_and_has_an_image(json!({"image": "r/d:v1"}), json!({}), None, true)]
    #[case::is_new_and_has_none(json!({}), json!({}), None, false)]
    #[case::says_no(json!({"image": "r/d:v1"}), json!({"conditions": [{"type": "Deployed", "status": "False"}]}), None, false)]
    #[case::says_yes_and_lost_its_image(json!({}), json!({"conditions": [{"type": "Deployed", "status": "True"}]}), None, true)]
    #[case::we_gave_it_one_and_it_lost_it(stamped(json!({"by": "5eed", "image": "r/d:v2"})), json!({}), None, true)]
    #[case::another_gave_it_one_and_it_lost_it(stamped(json!({"by": "0dd", "image": "r/d:v2"})), json!({}), None, true)]
    #[case::we_gave_it_one_and_it_says_no(
        stamped(json!({"by": "5eed", "image": "r/d:v2"})),
        json!({"conditions": [{"type": "Deployed", "status": "False"}]}),
        None,
        false
    )]
    #[case::was_new_and_lost_what_we_gave_it(stamped(json!({"by": "5eed", "image": "r/d:v2"})), json!({}), Some(false), false)]
    #[case::can_not_tell(json!({"image": "r/d:v1"}), json!({"conditions": [{"type": "Deployed", "status": "Unknown"}]}), None, true)]
    #[case::had_served_and_lost_its_image(json!({}), json!({}), Some(true), true)]
    #[case::was_new_and_says_nothing_yet(json!({"image": "r/d:v1"}), json!({}), Some(false), false)]
    #[case::was_new_and_is_up_to_date(
        json!({"image": "r/d:v1"}),
        json!({"observedGeneration": 3, "conditions": [{"type": "UpToDate", "status": "True"}]}),
        Some(false),
        true
    )]
    fn e4_h38_who_may_have_served_counts_as_one_that_has(
        #[case] mut spec: Value,
        #[case] status: Value,
        #[case] was: Option<bool>,
        #[case] expected: bool,
    ) {
        let contract = contract(json!({}));
        let before = was.map(|deployed| Item { deployed, ..contract.item(&dicom(json!({}), json!({})), None) });
        let stamped = spec.as_object_mut().unwrap().remove("stamped");
        let mut object = dicom(spec, status);
        object.metadata.annotations = stamped.map(|stamped| [(super::STAMPED.to_owned(), stamped.to_string())].into());
        assert_eq!(contract.item(&object, before.as_ref()).deployed, expected);
    }

    #[rstest]
    #[case::at_its_generation("self.status.phase == 'Running'", json!({"phase": "Running", "observedGeneration": 3}), Some(true))]
    #[case::at_the_one_before("self.status.phase == 'Running'", json!({"phase": "Running", "observedGeneration": 2}), Some(false))]
    #[case::at_nobody_knows_which("self.status.phase == 'Running'", json!({"phase": "Running"}), None)]
    #[case::with_the_image("self.status.image == self.spec.image", json!({"image": "r/d:v1"}), Some(true))]
    #[case::with_another("self.status.image == self.spec.image", json!({"image": "r/d:v0"}), Some(false))]
    #[case::that_only_looks_at_the_image("self.spec.image != '' && self.status.phase == 'Running'", json!({"phase": "Running"}), None)]
    fn e13_h38_a_ready_of_ones_own_is_about_the_image_that_it_has(
        #[case] ready: &str,
        #[case] status: Value,
        #[case] expected: Option<bool>,
    ) {
        let item = contract(json!({"ready": ready})).item(&dicom(json!({"image": "r/d:v1"}), status), None);
        let said = item.progress.known().map(|progress| *progress == Progress::Ready);
        assert_eq!(said, expected, "{:?}", item.progress);
    }

    #[test]
    fn what_a_failure_says_is_cut() {
        let status = json!({"observedGeneration": 3, "conditions": [{"type": "Failed", "status": "True", "message": "no ".repeat(9_000)}]});
        let item = contract(json!({})).item(&dicom(json!({"image": "r/d:v1"}), status), None);
        let Fact::Known(Progress::Failed(why)) = item.progress else { panic!("{:?}", item.progress) };
        assert!(why.len() < 500 && why.ends_with('…'), "{why}");
    }

    #[test]
    fn e4_the_contract_of_managed_resources() {
        let spec = json!({"image": "r/d:v1", "manuallySpecifiedImage": true, "failureHaltsUpdate": true});
        let item = contract(json!({})).item(&dicom(spec, conditions("True", 3)), None);
        assert_eq!((item.tier.as_str(), item.image.as_deref()), ("early", Some("r/d:v1")));
        assert!(item.manual.is(&true) && item.failure_halts && item.deployed);
        let item = contract(json!({})).item(&dicom(json!({}), json!({})), None);
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
        let item = contract.item(&dicom(spec.clone(), json!({"phase": "Running", "observedGeneration": 3})), None);
        assert_eq!((item.image.as_deref(), &item.progress), (Some("r/e:v1"), &Fact::Known(Progress::Ready)));
        assert!(item.deployed, "a ready of one's own, and nothing said of Deployed");
        let item = contract.item(&dicom(spec.clone(), json!({"phase": "Broken", "observedGeneration": 3})), None);
        assert!(matches!(item.progress, Fact::Known(Progress::Failed(_))));
        let item = contract.item(&dicom(spec, json!({})), None);
        assert!(matches!(&item.progress, Fact::Unknown(why) if why.contains("phase")), "{:?}", item.progress);
        assert_eq!(contract.pen.image_patch("r/e:v2"), json!({"spec": {"engine": {"image": "r/e:v2"}}}));
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
        let item = contract(json!({})).item(&object, None);
        assert_eq!(item.set_by.as_deref(), Some("argocd-controller"));
        assert_eq!(item.stamp.unwrap().round, 2);
    }

    #[test]
    fn each_service_image_and_each_path_has_a_manager_of_its_own() {
        let (one, other) = (contract(json!({})), contract(json!({"imagePath": "spec.sidecar"})));
        assert_ne!(one.pen.manager, other.pen.manager);
        assert!(one.pen.manager.starts_with("windlass-stamp-5eed-") && one.pen.manager.len() <= 128);
        assert!(one.pen.is(Some(&other.pen.manager)), "the same ServiceImage with another path");
        assert!(one.pen.is(Some("windlass-stamp")), "from before there was one for each");
        assert!(!one.pen.is(Some("windlass-stamp-0dd-0000000000000000")));
    }

    #[rstest]
    #[case::ours(json!({"by": "5eed", "image": "r/d:v1"}), 2, Some(Here))]
    #[case::ours_and_set_back(json!({"by": "5eed", "image": "r/d:v2"}), 2, None)]
    #[case::ours_and_there(json!({"by": "5eed", "path": ".spec.sidecar", "image": "r/d:v1"}), 2, Some(Elsewhere))]
    #[case::from_before_it_was_noted(json!({"image": "r/d:v1"}), 2, Some(Here))]
    #[case::anothers(json!({"by": "0dd", "image": "r/d:v1"}), 0, Some(Here))]
    #[case::anothers_and_there(json!({"by": "0dd", "image": "r/d:v2"}), 0, Some(Elsewhere))]
    fn whose_stamp_it_is_and_where_decides(
        #[case] mut stamped: Value,
        #[case] round: u32,
        #[case] disturbance: Option<Disturbance>,
    ) {
        (stamped["at"], stamped["round"]) = (json!("2026-01-01T00:00:00Z"), json!(2));
        let mut object = dicom(json!({"image": "r/d:v1"}), json!({}));
        object.metadata.annotations = Some([(super::STAMPED.to_owned(), stamped.to_string())].into());
        let item = contract(json!({})).item(&object, None);
        assert_eq!(item.stamp.as_ref().map(|stamp| stamp.round), Some(round));
        assert_eq!(item.disturbance(), disturbance);
    }
}
