//! Services.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::object;
use super::super::store::Store;
use super::list_mut;

pub(super) fn default(service: &mut Map<String, Value>) {
    let spec = object::child(service, "spec");
    object::default(spec, "sessionAffinity", json!("None"));
    object::default(spec, "type", json!("ClusterIP"));
    object::default(spec, "internalTrafficPolicy", json!("Cluster"));
    object::default(spec, "ipFamilies", json!(["IPv4"]));
    object::default(spec, "ipFamilyPolicy", json!("SingleStack"));
    for port in list_mut(spec, "ports") {
        object::default(port, "protocol", json!("TCP"));
        let number = port.get("port").cloned().unwrap_or_default();
        object::default(port, "targetPort", number);
    }
}

/// Gives the service its address, from a range that no other service draws from.
pub(super) fn prepare_create(store: &mut Store, service: &mut Value) {
    service["status"] = json!({"loadBalancer": {}});
    let given = object::text(service, &["spec", "clusterIP"]).to_owned();
    let address = if given.is_empty() {
        let count = store.count();
        format!("10.96.{}.{}", count / 250 % 250 + 1, count % 250 + 1)
    } else {
        given
    };
    let spec = object::child(object::as_map(service), "spec");
    spec.insert("clusterIPs".to_owned(), json!([address]));
    spec.insert("clusterIP".to_owned(), json!(address));
}

pub(super) fn validate(service: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let Some(before) = before else { return Vec::new() };
    let (new, old) = (object::text(service, &["spec", "clusterIP"]), object::text(before, &["spec", "clusterIP"]));
    if new == old {
        return Vec::new();
    }
    let shown = object::at(service, &["spec", "clusterIPs"]).cloned().unwrap_or_default();
    vec![FieldError::invalid("spec.clusterIPs[0]", shown, "may not change once set")]
}
