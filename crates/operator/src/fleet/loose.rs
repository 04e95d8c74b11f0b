//! Resources of a fleet, read so that none of them keeps the others from being seen.
//!
//! Their kind is anybody's, so their fields are read one by one where they matter. Their metadata has types, and not everything that the API
//! server stores there is of them for us: Go reads and writes `9999-12-31T12:00:00Z`, which a tenant may put into `managedFields`, and our
//! library of times ends the day before. What can't be read of metadata is left out, as the API server leaves out what it can't read itself.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::{
    Resource,
    api::{ApiResource, DynamicObject, TypeMeta},
    core::DynamicResourceScope,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// A resource of a fleet.
#[derive(Clone, Debug)]
pub struct Loose(pub DynamicObject);

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::<String, Value>::deserialize(deserializer)?;
        let metadata = fields.remove("metadata").unwrap_or_else(|| json!({}));
        let mut text = |field: &str| fields.remove(field).and_then(|value| value.as_str().map(str::to_owned));
        let (api_version, kind) = (text("apiVersion").unwrap_or_default(), text("kind").unwrap_or_default());
        let types = Some(TypeMeta { api_version, kind });
        Ok(Self(DynamicObject { types, metadata: meta(&metadata), data: Value::Object(fields) }))
    }
}

impl Serialize for Loose {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Resource for Loose {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn group(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(dt)
    }

    fn version(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(dt)
    }

    fn kind(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(dt)
    }

    fn api_version(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::api_version(dt)
    }

    fn plural(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}

/// All of the metadata, or what of it can be read. That a resource is going counts also where it can't be read since when.
fn meta(raw: &Value) -> ObjectMeta {
    if let Ok(meta) = ObjectMeta::deserialize(raw) {
        return meta;
    }
    let readable = |field: &str, value: &Value| ObjectMeta::deserialize(json!({ field: value })).is_ok();
    let mut kept = Map::new();
    for (field, value) in raw.as_object().into_iter().flatten() {
        let value = match value.as_array() {
            Some(entries) => {
                let entries = entries.iter().filter(|entry| readable(field, &json!([entry])));
                Value::Array(entries.cloned().collect())
            }
            None => value.clone(),
        };
        if readable(field, &value) {
            kept.insert(field.clone(), value);
        }
    }
    let mut meta = ObjectMeta::deserialize(Value::Object(kept)).unwrap_or_default();
    if raw.get("deletionTimestamp").is_some_and(|since| !since.is_null()) {
        meta.deletion_timestamp.get_or_insert(Time(Timestamp::UNIX_EPOCH));
    }
    meta
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kube::ResourceExt;
    use serde_json::json;

    use super::Loose;

    /// What Go reads, writes back as RFC 3339 and stores, ends with the year 9999. An hour of it that is behind Greenwich becomes 10000 when
    /// it is written, which Go itself can't read again: of a custom resource the API server drops such a field when it reads it from etcd.
    #[test]
    fn a_time_that_the_api_server_stores_may_be_none_for_us() {
        assert!("9999-12-30T22:00:00Z".parse::<Timestamp>().is_ok());
        assert!("9999-12-31T12:00:00Z".parse::<Timestamp>().is_err());
        assert!("10000-01-01T00:59:59Z".parse::<Timestamp>().is_err());
    }

    #[test]
    fn nothing_in_its_metadata_keeps_a_resource_from_being_seen() {
        let entry = |manager: &str, time: &str| json!({"manager": manager, "operation": "Update", "time": time});
        let odd = json!({
            "apiVersion": "examples.windlass.dev/v1", "kind": "Dicom",
            "metadata": {
                "name": "a", "namespace": "clinic", "uid": "1", "resourceVersion": "7", "labels": {"zone": "a"},
                "deletionTimestamp": "9999-12-31T12:00:00Z",
                "managedFields": [entry("tenant", "9999-12-31T12:00:00Z"), entry("us", "2026-01-01T00:00:00Z")],
            },
            "spec": {"image": "r/dicom:v1"},
        });
        let Loose(object) = serde_json::from_value(odd).unwrap();
        assert_eq!((object.name_any().as_str(), object.uid().as_deref()), ("a", Some("1")));
        assert_eq!((object.labels()["zone"].as_str(), object.resource_version().as_deref()), ("a", Some("7")));
        let managers = object.managed_fields().iter().map(|entry| entry.manager.as_deref());
        assert_eq!(managers.collect::<Vec<_>>(), [Some("us")]);
        assert!(object.metadata.deletion_timestamp.is_some());
        assert_eq!(
            (&object.data, object.types.unwrap().kind.as_str()),
            (&json!({"spec": {"image": "r/dicom:v1"}}), "Dicom")
        );
    }
}
