//! A service whose instances are custom resources, and the contract that makes them manageable by a ServiceImage (E4, E9):
//!
//! - the spec has `image`, `failureHaltsUpdate` and `manuallySpecifiedImage`;
//! - the status has `observedGeneration` and the conditions `UpToDate` (everything runs what the spec says) and `Deployed` (it has been
//!   available at least once), and `selector`, with which its pods are found where something is wrong.
//!
//! A template for controllers of your own: [`controller`] reads and writes, [`status`] decides and is pure.

pub mod controller;
pub mod status;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An archive for medical images, one for each customer.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "examples.windlass.dev",
    version = "v1",
    kind = "Dicom",
    namespaced,
    status = "DicomStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"Tier","type":"string","jsonPath":".metadata.labels.upgrade-tier"}"#,
    printcolumn = r#"{"name":"Image","type":"string","jsonPath":".spec.image"}"#,
    printcolumn = r#"{"name":"Up to date","type":"string","jsonPath":".status.conditions[?(@.type=='UpToDate')].status"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct DicomSpec {
    /// What runs. Whoever creates a Dicom leaves it out, and its ServiceImage fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Should this instance fail to upgrade, everything stops.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failure_halts_update: bool,
    /// A person chose the image: no ServiceImage changes it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub manually_specified_image: bool,
    /// How many pods.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

fn one() -> i32 {
    1
}

impl Dicom {
    /// The labels of its pods, which no other Dicom's have.
    pub fn pod_labels(&self) -> BTreeMap<String, String> {
        [
            ("app.kubernetes.io/managed-by".to_owned(), "dicom".to_owned()),
            ("app.kubernetes.io/instance".to_owned(), self.name_any()),
        ]
        .into()
    }
}

/// How far a Dicom is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DicomStatus {
    /// The generation that this status speaks of.
    #[serde(default)]
    pub observed_generation: i64,
    /// The labels of its pods, as kubectl's `-l` writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// UpToDate, Deployed and Failed.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
