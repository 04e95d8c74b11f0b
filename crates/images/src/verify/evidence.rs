//! What a registry has beside an image that may be a signature of it, as plain data.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The longest candidate that is read. A signature with everything that belongs to it has a few KiB.
pub const SIZE_LIMIT: usize = 256 * 1024;
/// How many candidates are looked at. Each of them costs a few signature checks.
pub const COUNT_LIMIT: usize = 64;

/// Something that may be a signature. Nothing in it is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// A layer of the image under the tag `sha256-….sig`, of the media type `application/vnd.dev.cosign.simplesigning.v1+json`.
    Simple {
        /// The layer's content, which is what was signed.
        payload: Bytes,
        /// The layer's annotations: the signature, and the certificate and log entry if any.
        annotations: BTreeMap<String, String>,
    },
    /// The layer of a referrer of the type `application/vnd.dev.sigstore.bundle.v0.3+json`.
    Bundle(Bytes),
}

impl Candidate {
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Simple { payload, annotations } => {
                payload.len() + annotations.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
            }
            Self::Bundle(content) => content.len(),
        }
    }
}

/// Everything that was found, and whether that is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    candidates: Vec<Candidate>,
    unread: Option<String>,
}

impl Gathered {
    /// Adds what was found. Past [`COUNT_LIMIT`] it is not kept, and is noted as not read.
    pub fn add(&mut self, candidate: Candidate) {
        if self.candidates.len() < COUNT_LIMIT {
            self.candidates.push(candidate);
        } else {
            self.not_read(format!("there are more than {COUNT_LIMIT} candidates"));
        }
    }

    /// Notes that something could not be asked or read, with the reason. The first reason is kept.
    pub fn not_read(&mut self, why: impl Into<String>) {
        self.unread.get_or_insert_with(|| why.into());
    }

    /// What was found.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Why there may be more than what was found.
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }
}
