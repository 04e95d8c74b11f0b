//! Objects as the API server gives them, read so that none of them can fail to be read: what can't be is left out.
//!
//! One odd object in a list or a watch would otherwise keep all others from being seen. What it holds is read afterwards, by itself.

use std::{borrow::Cow, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;

/// An object of the kind `K`. With `NAMES_ONLY` the API server is asked for its metadata alone.
#[derive(Debug)]
pub struct Lenient<K, const NAMES_ONLY: bool> {
    meta: ObjectMeta,
    /// As it was given, without `metadata.managedFields`.
    pub raw: Value,
    kind: PhantomData<fn() -> K>,
}

/// That an object is there and what it is called: all that a watch which wakes somebody needs.
pub type Glimpse<K> = Lenient<K, true>;

/// An object with everything in it.
pub type Whole<K> = Lenient<K, false>;

impl<K, const NAMES_ONLY: bool> Clone for Lenient<K, NAMES_ONLY> {
    fn clone(&self) -> Self {
        Self { meta: self.meta.clone(), raw: self.raw.clone(), kind: PhantomData }
    }
}

impl<'de, K, const NAMES_ONLY: bool> Deserialize<'de> for Lenient<K, NAMES_ONLY> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut raw = Value::deserialize(deserializer)?;
        // Who wrote what is none of ours here, and what is in it was written by others.
        if let Some(metadata) = raw.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        Ok(Self { meta: meta(&raw), raw, kind: PhantomData })
    }
}

impl<K, const NAMES_ONLY: bool> Serialize for Lenient<K, NAMES_ONLY> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<K: Resource, const NAMES_ONLY: bool> Resource for Lenient<K, NAMES_ONLY> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn metadata_api() -> bool {
        NAMES_ONLY
    }

    fn kind(dt: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &K::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &K::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// What of the metadata matters here. That an object is going counts also where it can't be read since when.
fn meta(raw: &Value) -> ObjectMeta {
    let metadata = &raw["metadata"];
    let going = metadata.get("deletionTimestamp").filter(|since| !since.is_null());
    ObjectMeta {
        name: one(&metadata["name"]),
        namespace: one(&metadata["namespace"]),
        uid: one(&metadata["uid"]),
        resource_version: one(&metadata["resourceVersion"]),
        generation: one(&metadata["generation"]),
        creation_timestamp: one(&metadata["creationTimestamp"]),
        deletion_timestamp: going.map(|since| one(since).unwrap_or(Time(jiff::Timestamp::UNIX_EPOCH))),
        finalizers: one(&metadata["finalizers"]),
        owner_references: metadata["ownerReferences"].as_array().map(|owners| owners.iter().filter_map(one).collect()),
        ..ObjectMeta::default()
    }
}

fn one<T: DeserializeOwned>(raw: &Value) -> Option<T> {
    T::deserialize(raw).ok()
}

/// The last second that our library of times knows, and one that is early enough for whatever is before its first.
const LAST: &str = "9999-12-30T22:00:00Z";
const FIRST: &str = "0001-01-01T00:00:00Z";

/// An object of a kind of Kubernetes' own, all of it. Its times are written by the API server, which knows more of them than we do: whoever may
/// write a status or `managedFields` may put one of the year's 9999 last day, or of 10000, there, which would keep all objects of its list from being
/// read. It is read as the last one that there is.
pub fn typed<K: DeserializeOwned>(mut raw: Value) -> Result<K, serde_json::Error> {
    if let Ok(object) = K::deserialize(&raw) {
        return Ok(object);
    }
    bring_back(&mut raw);
    K::deserialize(raw)
}

/// Every time that is none for us becomes the nearest one.
fn bring_back(raw: &mut Value) {
    match raw {
        Value::String(text) if is_out_of_reach(text) => {
            let nearest = if text.starts_with('-') { FIRST } else { LAST };
            nearest.clone_into(text);
        }
        Value::Array(values) => values.iter_mut().for_each(bring_back),
        Value::Object(fields) => fields.values_mut().for_each(bring_back),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// It looks as the API server writes a time, and is none.
fn is_out_of_reach(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let year = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let rest: String = unsigned.chars().skip(year).map(|one| if one.is_ascii_digit() { '0' } else { one }).collect();
    year >= 4 && rest.starts_with("-00-00T00:00:00") && rest.ends_with('Z') && text.parse::<jiff::Timestamp>().is_err()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::{Resource, ResourceExt};
    use rstest::rstest;
    use serde_json::json;

    use super::{FIRST, Glimpse, LAST, Whole, typed};

    #[rstest]
    #[case::last_day("9999-12-31T12:00:00Z", LAST)]
    #[case::year_after("10000-01-01T00:59:59Z", LAST)]
    #[case::before_all("-0001-12-31T23:00:00Z", FIRST)]
    fn no_time_keeps_an_object_from_being_read(#[case] late: &str, #[case] read: &str) {
        let odd = json!({
            "metadata": {"name": "pd-0", "managedFields": [{"manager": "x", "operation": "Update", "time": late}]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": late}]},
        });
        let pod: Pod = typed(odd).unwrap();
        let condition = &pod.status.unwrap().conditions.unwrap()[0];
        assert_eq!(condition.last_transition_time.as_ref().map(|time| time.0), read.parse().ok());
        assert_eq!(pod.metadata.managed_fields.unwrap()[0].manager.as_deref(), Some("x"));
        assert!(typed::<Pod>(json!({"spec": "what?"})).is_err());
    }

    #[test]
    fn nothing_in_an_object_keeps_it_from_being_seen() {
        let owner =
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "pd", "uid": "1", "controller": true});
        let odd = json!({
            "metadata": {
                "name": "pd-0", "namespace": "db", "uid": 7, "creationTimestamp": "2030-01-01T00:00:00+99:99",
                "deletionTimestamp": "10000-01-01T00:00:00Z", "ownerReferences": [{"kind": 1}, owner],
                "managedFields": [{"manager": "x", "time": "10000-01-01T00:00:00Z"}],
            },
            "spec": "what?",
        });
        let glimpse: Glimpse<Pod> = serde_json::from_value(odd.clone()).unwrap();
        assert_eq!((glimpse.name_any().as_str(), glimpse.namespace().as_deref()), ("pd-0", Some("db")));
        assert_eq!(glimpse.owner_references().iter().map(|owner| owner.name.as_str()).collect::<Vec<_>>(), ["pd"]);
        assert!(glimpse.meta().deletion_timestamp.is_some() && glimpse.uid().is_none());
        let whole: Whole<Pod> = serde_json::from_value(odd).unwrap();
        assert_eq!((&whole.raw["spec"], &whole.raw["metadata"]["managedFields"]), (&json!("what?"), &json!(null)));
        assert!(serde_json::from_value::<Glimpse<Pod>>(json!("nothing at all")).is_ok());
    }
}
