//! Fleets as scenarios: Dicoms in tiers, a ServiceImage, somebody who plays the service behind them, and a judge of what was written.

mod company;
mod judge;
mod oddities;
pub mod reading;
mod suites;

use std::{collections::BTreeMap, future::Future, pin::Pin, time::Duration};

use dicom::{Dicom, DicomStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{
    Api, CustomResourceExt, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};
use windlass_operator::lenient::Whole;
use windlass_sim::{
    harness::Seat,
    objects,
    scenario::{Action, Subject, Webhook},
};

use crate::{
    setting::after,
    trial::{Ending, Scenario},
};

pub use self::{
    judge::{Judgement, judge},
    suites::{Struck, Walked, hunt, run, scenario, strike_everywhere, walk, walks},
};

/// What the operator may change.
pub const TARGET: &str = "examples.windlass.dev/Dicom";
/// Where the Dicoms live.
pub const NAMESPACE: &str = "clinic";
/// The ServiceImage's name.
pub const NAME: &str = "dicom";
/// How long an operator may not have seen what somebody else did, where nothing holds it up.
pub const PATIENCE: SignedDuration = SignedDuration::from_secs(3);
const DICOMS: &str = "dicoms.examples.windlass.dev";
const FLEETS: &str = "serviceimages.windlass.dev";

/// An image by its tag. One that ends with `broken` never runs.
pub fn image(tag: &str) -> String {
    format!("registry.example/dicom:{tag}")
}

/// A Dicom in a tier. With an image it has served from it.
pub fn dicom(name: &str, tier: &str, tag: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": "examples.windlass.dev/v1", "kind": "Dicom",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"failureHaltsUpdate": true, "replicas": 1},
    });
    if !tier.is_empty() {
        object["metadata"]["labels"] = json!({"upgrade-tier": tier});
    }
    if let Some(tag) = tag {
        object["spec"]["image"] = json!(image(tag));
    }
    object
}

/// The ServiceImage, with these tiers.
#[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
pub fn service_image(tiers: Value) -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServiceImage",
        "metadata": {"name": NAME},
        "spec": {
            "defaultImage": image("v2"),
            "target": {"group": "examples.windlass.dev", "version": "v1", "kind": "Dicom"},
            "tiers": tiers,
        },
    })
}

/// A tier.
pub fn tier(name: &str, tag: &str, priority: i64) -> Value {
    json!({"upgradeTier": name, "image": image(tag), "priority": priority})
}

/// Definitions, a namespace, these Dicoms and this ServiceImage.
pub fn objects(dicoms: impl IntoIterator<Item = Value>, service_image: Value) -> Vec<Value> {
    let ours = windlass_api::crd::all();
    let mut objects: Vec<Value> = ours.into_iter().filter_map(|crd| serde_json::to_value(crd).ok()).collect();
    objects.push(definition());
    objects.push(objects::namespace(NAMESPACE));
    objects.extend(dicoms);
    objects.push(service_image);
    objects
}

/// The ServiceImage.
pub fn subject() -> Subject {
    Subject { resource: FLEETS.into(), namespace: String::new(), name: NAME.into() }
}

/// Another ServiceImage.
pub fn rival(name: &str) -> Subject {
    Subject { name: name.into(), ..subject() }
}

/// A Dicom.
pub fn one(name: &str) -> Subject {
    Subject { resource: DICOMS.into(), namespace: NAMESPACE.into(), name: name.into() }
}

/// A policy that lets nobody change these fields of a Dicom, or with none, everything again.
pub fn freeze(name: &str, fields: &[&str]) -> Action {
    Action::FreezeFields { target: one(name), fields: fields.iter().map(|field| (*field).to_owned()).collect() }
}

/// A webhook that is asked about every write of ours to a Dicom whose body has these words in it goes wrong, or works again.
pub fn webhook(name: &str, how: Option<Webhook>, about: &str) -> Action {
    Action::Webhook { target: one(name), how, about: about.to_owned() }
}

/// What is in the body of a stamp and not in that of a touch.
pub const STAMP: &str = "\"spec\"";

/// The definition of Dicoms, which has another place for an image.
fn definition() -> Value {
    let mut definition = serde_json::to_value(Dicom::crd()).unwrap_or_default();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["sidecar"] = json!({"type": "string"});
    definition
}

/// Where the image is.
pub const IMAGE: &str = "/spec/image";
/// What a touch changes.
pub const TOUCHED: &str = "/metadata/annotations/windlass.dev~1touched-by";

/// Fills the annotations of a Dicom to their limit, or empties them.
pub fn fill(name: &str, full: bool) -> Action {
    let filler = json!(full.then(|| "x".repeat(256 * 1024 - "filler".len())));
    Action::Patch { target: one(name), patch: json!({"metadata": {"annotations": {"filler": filler}}}) }
}

/// The reference: three tiers, two operators, nothing goes wrong.
pub fn reference(seed: u64) -> Scenario {
    let tiers = [("early", 4), ("", 5), ("late", 3)];
    let dicoms = tiers.iter().flat_map(|(tier, count)| {
        (0..*count).map(move |number| {
            dicom(&format!("{}{number}", if tier.is_empty() { "plain" } else { tier }), tier, Some("v1"))
        })
    });
    let mut first = tier("early", "v3", 5);
    first["canary"] = json!([{"percent": 25, "soak": "30s"}]);
    let mut second = tier("", "v2", 1);
    second["maxInFlight"] = json!(2);
    let wanted = service_image(json!([second, tier("late", "v2", 0), first]));
    let mut objects = objects(dicoms, wanted);
    let wanted = objects.pop().unwrap_or_default();
    Scenario {
        seed,
        objects,
        operators: 2,
        faults: false,
        // When all of them serve.
        timeline: vec![
            after(Duration::from_secs(15), Action::Create(wanted)),
            after(Duration::from_secs(2), Action::Create(dicom("new", "late", None))),
        ],
        subject: subject(),
        ending: Ending::Ready,
        max_leader_moves: None,
        limit: Duration::from_mins(40),
    }
}

/// Plays the service: what has an image is up to date with it some seconds later, or has failed if it is broken.
pub fn service(seat: Seat) -> Pin<Box<dyn Future<Output = ()>>> {
    play(seat, true)
}

/// The same for a kind that never says that it has served.
pub fn service_without_deployed(seat: Seat) -> Pin<Box<dyn Future<Output = ()>>> {
    play(seat, false)
}

fn play(seat: Seat, deployed: bool) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let api: Api<Whole<Dicom>> = Api::all(seat.client.clone());
        // Since when each has had what it has.
        let mut since: BTreeMap<(String, i64), Timestamp> = BTreeMap::new();
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let Ok(list) = api.list(&ListParams::default()).await else { continue };
            // One that is odd in what nobody here needs is served all the same.
            for dicom in list.items.into_iter().filter_map(|one| serde_json::from_value::<Dicom>(one.raw).ok()) {
                let now = seat.clock.now();
                let key = (dicom.uid().unwrap_or_default(), dicom.metadata.generation.unwrap_or(0));
                let began = *since.entry(key.clone()).or_insert(now);
                let pause =
                    SignedDuration::from_secs(2 + i64::try_from(key.0.len() + dicom.name_any().len()).unwrap_or(0) % 4);
                let mut said = said(&dicom, now.duration_since(began) >= pause, now);
                said.conditions.retain(|one| deployed || one.type_ != "Deployed");
                if dicom.status.as_ref() == Some(&said) {
                    continue;
                }
                let (namespace, name) = (dicom.namespace().unwrap_or_default(), dicom.name_any());
                let wanted = Dicom { status: Some(said), ..dicom };
                let api: Api<Dicom> = Api::namespaced(seat.client.clone(), &namespace);
                // Whoever was faster is seen in the next round.
                let _conflict = api.replace_status(&name, &PostParams::default(), &wanted).await;
            }
        }
    })
}

/// The reference service itself, with Deployments.
pub fn reference_service(seat: Seat) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move { dicom::controller::run(&seat.client, None, || seat.clock.now()).await })
}

fn said(dicom: &Dicom, over: bool, now: Timestamp) -> DicomStatus {
    let before = dicom.status.clone().unwrap_or_default();
    let image = dicom.spec.image.as_deref().unwrap_or_default();
    let (ready, failed) = (over && !image.is_empty() && !image.ends_with("broken"), over && image.ends_with("broken"));
    let had = |type_: &str| before.conditions.iter().any(|one| one.type_ == type_ && one.status == "True");
    let all = [("UpToDate", ready), ("Deployed", ready || had("Deployed")), ("Failed", failed)];
    let condition = |(type_, holds): (&str, bool)| {
        let status = if holds { "True" } else { "False" };
        let kept = before.conditions.iter().find(|one| one.type_ == type_ && one.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: "Played".to_owned(),
            message: if failed { "it can't run".to_owned() } else { String::new() },
            observed_generation: dicom.metadata.generation,
            last_transition_time: kept.map_or(Time(now), |one| one.last_transition_time.clone()),
        }
    };
    DicomStatus {
        observed_generation: dicom.metadata.generation.unwrap_or(0),
        // Nobody plays pods.
        selector: None,
        conditions: all.into_iter().map(condition).collect(),
    }
}
