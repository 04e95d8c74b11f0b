//! The CustomResourceDefinitions as they are shipped.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSON};
use kube::CustomResourceExt;
use serde_json::json;

use crate::{quorum_cluster::QuorumCluster, service_image::ServiceImage};

/// All CustomResourceDefinitions.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![quorum_cluster(), service_image()]
}

/// QuorumCluster's.
pub fn quorum_cluster() -> CustomResourceDefinition {
    nobody_has_looked(QuorumCluster::crd())
}

/// ServiceImage's.
pub fn service_image() -> CustomResourceDefinition {
    asks_for_its_target(nobody_has_looked(ServiceImage::crd()))
}

/// Without `target` the API server says no more than that it is required. A rule says what to add, and rules are asked only where nothing
/// that is required is missing.
fn asks_for_its_target(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let spec = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
            .and_then(|schema| schema.properties.as_mut())
            .and_then(|properties| properties.get_mut("spec"));
        if let Some(required) = spec.and_then(|spec| spec.required.as_mut()) {
            required.retain(|field| field != "target");
        }
    }
    crd
}

/// With a status that says so, until an operator writes another.
fn nobody_has_looked(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let status = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
            .and_then(|schema| schema.properties.as_mut())
            .and_then(|properties| properties.get_mut("status"));
        if let Some(status) = status {
            // kstatus takes a resource without conditions for finished: until the operator has looked, say that nobody knows.
            status.default = Some(JSON(json!({
                "observedGeneration": -1,
                "conditions": [{
                    "type": "Ready",
                    "status": "Unknown",
                    "reason": "NotSeen",
                    "message": "the operator has not looked at this resource yet",
                    "lastTransitionTime": "1970-01-01T00:00:00Z",
                }],
            })));
            status.nullable = None;
        }
    }
    crd
}
