//! What one document says of another, or of a layer: type, digest and size.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    Digest,
    document::{Platform, Unreadable, cut, object::Object},
};

/// The annotation by which builders mark what is no image, beside the platform `unknown/unknown`.
const REFERENCE_TYPE: &str = "vnd.docker.reference.type";

/// What is kept under a digest, and how long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// What it is.
    pub media_type: String,
    /// The hash of its bytes.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
    /// What it is for, in an index.
    pub platform: Option<Platform>,
    /// What it is of, where it is no image.
    pub artifact_type: Option<String>,
    /// Remarks.
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Whether a node of this platform can run it. Where it does not say what it is for, or is an attestation, nobody can: what is not said is
    /// not assumed.
    pub fn runs_on(&self, node: &Platform) -> bool {
        let is_image = !self.annotations.contains_key(REFERENCE_TYPE);
        is_image && self.platform.as_ref().is_some_and(|offered| node.can_run(offered))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wire {
    media_type: String,
    digest: String,
    /// No negative number is one of these.
    size: u64,
    platform: Option<Object<Platform>>,
    artifact_type: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
}

impl TryFrom<Object<Wire>> for Descriptor {
    type Error = Unreadable;

    fn try_from(Object(wire): Object<Wire>) -> Result<Self, Unreadable> {
        let Wire { media_type, digest, size, platform, artifact_type, annotations } = wire;
        // Other programs keep it in a signed number.
        if i64::try_from(size).is_err() {
            return Err(Unreadable::Form(format!("the size {size} is more than anything can have")));
        }
        let digest = digest.parse().map_err(|why| Unreadable::Form(format!("{} {why}", cut(&digest))))?;
        let platform = platform.map(|Object(platform)| platform);
        Ok(Self { media_type, digest, size, platform, artifact_type, annotations: annotations.unwrap_or_default() })
    }
}

pub(super) fn all(wires: Vec<Object<Wire>>) -> Result<Vec<Descriptor>, Unreadable> {
    wires.into_iter().map(Descriptor::try_from).collect()
}
