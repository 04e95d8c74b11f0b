//! What registries keep beside the layers: indexes, manifests and configurations, of the OCI and of Docker.
//!
//! Every reader takes bytes and nothing else, refuses more of them than its limit, and never guesses. Bytes that one program reads as an index
//! and another as a manifest are a known way to have one thing checked and another one run; so what could be read in two ways is refused, and
//! what a registry says in a header must agree with what stands in the body.

mod config;
mod descriptor;
mod names;
mod object;
mod platform;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use config::{CONFIG_LIMIT, Config};
pub use descriptor::Descriptor;
use object::Object;
pub use platform::Platform;

/// The longest index or manifest that is read: what the distribution specification asks registries to accept at least, and what they cut at.
pub const DOCUMENT_LIMIT: usize = 4 * 1024 * 1024;

const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_SCHEMA_1: &str = "application/vnd.docker.distribution.manifest.v1+json";
const DOCKER_SCHEMA_1_SIGNED: &str = "application/vnd.docker.distribution.manifest.v1+prettyjws";

/// What a registry is asked for: everything that can be read here, and nothing that can't.
pub const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// Why bytes are not a document that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// More bytes than are read.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// How many are read.
        limit: usize,
    },
    /// Not JSON, or not of this form.
    #[error("it does not have the right form: {0}")]
    Form(String),
    /// Docker's first format.
    #[error(
        "it is a Docker manifest of schema 1, which holds no digests of its parts; push the image again with a current tool"
    )]
    SchemaOne,
    /// A format of the future.
    #[error("it has schemaVersion {0}, and only 2 is known")]
    SchemaVersion(u64),
    /// The type is not one of an index or a manifest.
    #[error("it says that it is of type {0}, which is neither an index nor a manifest")]
    UnknownType(String),
    /// The header says one thing and the body another.
    #[error("the registry calls it {header} and it calls itself {body}")]
    TwoTypes {
        /// What the header says.
        header: Kind,
        /// What the body says.
        body: Kind,
    },
    /// It has the parts of an index and of a manifest.
    #[error("it has the parts of an index and of a manifest")]
    BothKinds,
    /// A part is missing.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// A name that other programs would take for a known one.
    #[error("it has a field {0}, which some programs read in place of the one that is spelled right")]
    LookAlike(String),
}

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One entry for each platform.
    Index,
    /// One image, or something that is kept like one.
    Manifest,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Index => "an index",
            Self::Manifest => "a manifest",
        })
    }
}

/// An index or a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// One entry for each platform.
    Index(Index),
    /// One image, or something that is kept like one.
    Manifest(Manifest),
}

/// One entry for each platform, or for each thing that refers to an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// The entries, in their order.
    pub manifests: Vec<Descriptor>,
    /// What it is of, where it is no image.
    pub artifact_type: Option<String>,
    /// What it refers to.
    pub subject: Option<Descriptor>,
    /// Remarks.
    pub annotations: BTreeMap<String, String>,
}

/// One image, or something that is kept like one: a signature, an attestation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The configuration.
    pub config: Descriptor,
    /// The layers, the lowest first.
    pub layers: Vec<Descriptor>,
    /// What it is of, where it is no image.
    pub artifact_type: Option<String>,
    /// What it refers to.
    pub subject: Option<Descriptor>,
    /// Remarks.
    pub annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    media_type: Option<String>,
    manifests: Option<Vec<Object<descriptor::Wire>>>,
    config: Option<Object<descriptor::Wire>>,
    layers: Option<Vec<Object<descriptor::Wire>>>,
    artifact_type: Option<String>,
    subject: Option<Object<descriptor::Wire>>,
    annotations: Option<BTreeMap<String, String>>,
}

impl Document {
    /// Reads an index or a manifest whose bytes are all that is known of it.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        Self::read_as(None, bytes)
    }

    /// Reads an index or a manifest that came with this `Content-Type`.
    pub fn read_as(content_type: Option<&str>, bytes: &[u8]) -> Result<Self, Unreadable> {
        within(bytes, DOCUMENT_LIMIT)?;
        let header = content_type.and_then(|text| kind_of(text).transpose()).transpose()?;
        names::check(bytes)?;
        // Schema 1 has other fields; without this it would only be said which ones are missing.
        let version: Version = form(bytes)?;
        match version.schema_version {
            1 => return Err(Unreadable::SchemaOne),
            2 => {}
            other => return Err(Unreadable::SchemaVersion(other)),
        }
        let wire: Wire = form(bytes)?;
        let body = match &wire.media_type {
            Some(text) => Some(kind_of(text)?.ok_or_else(|| Unreadable::UnknownType(cut(text)))?),
            None => None,
        };
        let said = match (header, body) {
            (Some(header), Some(body)) if header != body => return Err(Unreadable::TwoTypes { header, body }),
            (header, body) => body.or(header),
        };
        wire.into_document(said)
    }

    /// The index, where it is one.
    pub fn index(&self) -> Option<&Index> {
        match self {
            Self::Index(index) => Some(index),
            Self::Manifest(_) => None,
        }
    }

    /// The manifest, where it is one.
    pub fn manifest(&self) -> Option<&Manifest> {
        match self {
            Self::Manifest(manifest) => Some(manifest),
            Self::Index(_) => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    schema_version: u64,
}

impl Wire {
    fn into_document(self, said: Option<Kind>) -> Result<Document, Unreadable> {
        let Self { media_type: _, manifests, config, layers, artifact_type, subject, annotations } = self;
        let found = match (&manifests, config.is_some() || layers.is_some()) {
            (Some(_), true) => return Err(Unreadable::BothKinds),
            (Some(_), false) => Kind::Index,
            (None, _) => Kind::Manifest,
        };
        let subject = subject.map(Descriptor::try_from).transpose()?;
        let annotations = annotations.unwrap_or_default();
        match said.unwrap_or(found) {
            Kind::Index => {
                let manifests = descriptor::all(manifests.ok_or(Unreadable::Missing("manifests"))?)?;
                Ok(Document::Index(Index { manifests, artifact_type, subject, annotations }))
            }
            Kind::Manifest => {
                let config = config.ok_or(Unreadable::Missing("config"))?.try_into()?;
                let layers = descriptor::all(layers.ok_or(Unreadable::Missing("layers"))?)?;
                Ok(Document::Manifest(Manifest { config, layers, artifact_type, subject, annotations }))
            }
        }
    }
}

impl Index {
    /// The platforms of `nodes` that no entry is for. Where this is empty, every one of these nodes can run it.
    pub fn missing<'a>(&self, nodes: &'a [Platform]) -> Vec<&'a Platform> {
        platform::missing(nodes, |node| self.entry(node).is_some())
    }

    /// The first entry that a node of this platform can run.
    pub fn entry(&self, node: &Platform) -> Option<&Descriptor> {
        self.manifests.iter().find(|entry| entry.runs_on(node))
    }
}

impl Config {
    /// The platforms of `nodes` that this image, which comes without an index, is not for.
    pub fn missing<'a>(&self, nodes: &'a [Platform]) -> Vec<&'a Platform> {
        platform::missing(nodes, |node| node.can_run(&self.platform))
    }
}

/// Which kind a media type is of; none where it says nothing about that, as `application/json` does.
fn kind_of(media_type: &str) -> Result<Option<Kind>, Unreadable> {
    let bare = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match bare.as_str() {
        OCI_INDEX | DOCKER_LIST => Ok(Some(Kind::Index)),
        OCI_MANIFEST | DOCKER_MANIFEST => Ok(Some(Kind::Manifest)),
        DOCKER_SCHEMA_1 | DOCKER_SCHEMA_1_SIGNED => Err(Unreadable::SchemaOne),
        _ => Ok(None),
    }
}

fn within(bytes: &[u8], limit: usize) -> Result<(), Unreadable> {
    if bytes.len() > limit { Err(Unreadable::TooLong { limit }) } else { Ok(()) }
}

fn form<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(bytes).map(|Object(whole)| whole).map_err(|error| Unreadable::Form(cut(&error.to_string())))
}

/// A text of somebody else's, short enough for a condition and on one line.
pub(crate) fn cut(text: &str) -> String {
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    if shown.len() < text.len() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests;
