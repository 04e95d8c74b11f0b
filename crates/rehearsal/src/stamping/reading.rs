//! What a Dicom and its ServiceImage say, as the API has them. Read here for the judge and for whoever shows a fleet, and by other code
//! than the operator's.

use serde_json::{Value, json};

/// The image that its spec names.
pub fn image_of(dicom: &Value) -> Option<&str> {
    dicom.pointer("/spec/image").and_then(Value::as_str)
}

/// Whether a condition is True, of whatever generation.
pub fn holds(object: &Value, type_: &str) -> bool {
    condition(object, type_)["status"] == "True"
}

/// A condition; null where it is not there.
pub fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|one| one["type"] == type_).unwrap_or(&Value::Null)
}

/// What is said in its status is said of its newest spec.
pub fn is_current(object: &Value) -> bool {
    object.pointer("/status/observedGeneration") == object.pointer("/metadata/generation")
}

/// It runs what its spec says.
pub fn is_ready(dicom: &Value) -> bool {
    holds(dicom, "UpToDate") && is_current(dicom)
}

/// It gave up.
pub fn has_failed(dicom: &Value) -> bool {
    holds(dicom, "Failed")
}

/// Whether it says that it has been available at least once.
pub fn deployed(dicom: &Value) -> Option<bool> {
    match condition(dicom, "Deployed")["status"].as_str() {
        Some("True") => Some(true),
        Some("False") => Some(false),
        Some(_) | None => None,
    }
}

/// It has been available at least once, or may have been: it has an image and does not say.
pub fn has_served(dicom: &Value) -> bool {
    deployed(dicom).unwrap_or_else(|| image_of(dicom).is_some())
}

/// The walks' ServiceImage selects those without this label.
pub fn is_left_out(dicom: &Value) -> bool {
    dicom.pointer("/metadata/labels/managed").is_some_and(|managed| managed == "no")
}

/// A person chose its image.
pub fn is_manual(dicom: &Value) -> bool {
    dicom.pointer("/spec/manuallySpecifiedImage") == Some(&json!(true))
}

/// The tier of a Dicom: the one that its label names, or else the empty one (E2).
pub fn tier_of<'a>(fleet: &'a Value, dicom: &Value) -> Option<&'a Value> {
    let label = dicom.pointer("/metadata/labels/upgrade-tier").and_then(Value::as_str).unwrap_or_default();
    let tiers = fleet["spec"]["tiers"].as_array()?;
    let of = |name: &str| tiers.iter().find(|tier| tier["upgradeTier"].as_str().unwrap_or_default() == name);
    of(label).or_else(|| of(""))
}

/// The image that a tier shall have.
pub fn image_for<'a>(fleet: &'a Value, tier: &'a Value) -> &'a str {
    tier["image"].as_str().or(fleet["spec"]["defaultImage"].as_str()).unwrap_or_default()
}

/// A ServiceImage writes images to another place than the one that Dicoms run.
pub fn is_elsewhere(fleet: &Value) -> bool {
    fleet.pointer("/spec/target/imagePath").is_some_and(|path| path != ".spec.image")
}

/// Whether a ServiceImage is about a Dicom.
pub fn selects(fleet: &Value, dicom: &Value) -> bool {
    let selector = fleet.pointer("/spec/target/labelSelector").and_then(Value::as_str);
    selector.is_none_or(|selector| windlass_sim::api::selects(selector, dicom))
}

/// The smaller, the older.
pub fn age(fleet: &Value) -> (String, String) {
    let text = |field: &str| fleet["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("creationTimestamp"), text("name"))
}

/// The first field that is in one and not in the other any more.
pub fn removed(before: &Value, after: &Value) -> Option<String> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return None };
    before.iter().find_map(|(key, value)| match after.get(key) {
        Some(kept) => removed(value, kept).map(|below| format!("{key}.{below}")),
        None => Some(key.clone()),
    })
}
