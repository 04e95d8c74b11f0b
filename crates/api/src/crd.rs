//! The CustomResourceDefinitions as they are shipped.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::{quorum_cluster::QuorumCluster, service_image::ServiceImage};

/// All CustomResourceDefinitions.
pub fn all() -> Vec<CustomResourceDefinition> {
    [QuorumCluster::crd(), asks_for_its_target(ServiceImage::crd())].map(nobody_has_looked).into()
}

/// Without `target` the API server says no more than that it is required. A rule says what to add, and rules are asked only where nothing
/// that is required is missing.
fn asks_for_its_target(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for spec in parts(&mut crd, "spec") {
        if let Some(required) = &mut spec.required {
            required.retain(|field| field != "target");
        }
    }
    crd
}

/// With a status that says so, until an operator writes another.
fn nobody_has_looked(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for status in parts(&mut crd, "status") {
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
    crd
}

/// What each version says of this part of a resource.
fn parts<'a>(crd: &'a mut CustomResourceDefinition, name: &str) -> impl Iterator<Item = &'a mut JSONSchemaProps> {
    let part = move |version: &'a mut CustomResourceDefinitionVersion| {
        version.schema.as_mut()?.open_api_v3_schema.as_mut()?.properties.as_mut()?.get_mut(name)
    };
    crd.spec.versions.iter_mut().filter_map(part)
}
