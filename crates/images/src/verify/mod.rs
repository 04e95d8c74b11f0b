//! Whether an image is signed by those who should have signed it.
//!
//! [`verify`] is given the policy, the image's digest and everything that a registry has beside the image; it asks nobody. One good candidate
//! suffices. What can't be judged is [`Verdict::Unknown`], which is not verified.
//!
//! Signatures, certificates, logs and timestamps are sigstore-verify's to check. What they are about is ours, because valid is not yet a
//! signature of this image (H49): the digest in the payload, the kind of the payload and the type of the statement (`simple`, `bundle`).
//! The clock plays a part in one thing: a log entry from the future is refused.

mod bundle;
mod crypto;
mod evidence;
mod policy;
mod simple;
mod trust;
mod verdicts;

use std::fmt;

use windlass_plan::bug::{self, Bug};

pub use self::{
    bundle::{Statement, bundle_statement, statement},
    evidence::{COUNT_LIMIT, Candidate, Gathered, SIZE_LIMIT},
    policy::{Identity, Policy, PolicyError, PublicKey, SIGNATURE, TrustRoot},
    simple::{LogEntry, Payload, Timestamp, log_entry, payload, timestamp},
    verdicts::Verdicts,
};
use crate::Digest;

/// What is known about an image's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has a signature that the policy accepts.
    Verified {
        /// Whose it is.
        by: Signer,
        /// How it is kept.
        layout: Layout,
    },
    /// Everything beside it was read, and nothing there is a signature that the policy accepts.
    Refused(Refusal),
    /// Nothing that was read is such a signature, and not everything could be read. That is not verified.
    Unknown(String),
}

/// Who signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    /// The key with this id, see [`PublicKey::id`].
    Key(Digest),
    /// An identity, by a certificate.
    Identity(Identity),
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(id) => write!(f, "key {id}"),
            Self::Identity(Identity { identity, issuer }) => write!(f, "{identity} ({issuer})"),
        }
    }
}

/// How a signature is kept beside its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Under a tag made of the image's digest.
    Tag,
    /// As a bundle that refers to the image.
    Bundle,
}

/// Why an image is not accepted. The later ones tell more: they are nearer to a signature that counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// There is nothing beside it.
    #[error("the image has no signature; sign it, or push its signature along with it")]
    Unsigned,
    /// An SBOM, a scan report or something else that is signed.
    #[error("what is signed is no signature of the image but {0}; sign the image itself with `cosign sign`")]
    NotASignature(String),
    /// It can't be read.
    #[error("the signature can't be read: {0}; sign the image again")]
    Malformed(String),
    /// It is a signature of another image.
    #[error("the signature is for another image, {0}")]
    OtherSubject(String),
    /// No given key made it.
    #[error("the image is signed, but by none of the given keys")]
    WrongKey,
    /// The certificate or what proves its time does not lead to the trust root.
    #[error("the trust root does not vouch for the signature: {0}")]
    NotTrusted(String),
    /// Somebody else signed.
    #[error("the image is signed by {}, who is none of the given identities", Signer::Identity(.0.clone()))]
    WrongIdentity(Identity),
    /// Somebody of that name signed, but another provider says that they are who they are.
    #[error("the image is signed by {}, whose issuer is none of the given ones", Signer::Identity(.0.clone()))]
    WrongIssuer(Identity),
    /// It is not in a log of the trust root.
    #[error("the signature is not in a log that the trust root names: {0}")]
    NotInLog(String),
}

/// Judges an image by what is beside it.
pub fn verify(policy: &Policy, subject: &Digest, gathered: &Gathered) -> Verdict {
    let mut most_telling = Refusal::Unsigned;
    for candidate in gathered.candidates() {
        match judge(policy, subject, candidate) {
            Ok((by, layout)) => return Verdict::Verified { by, layout },
            Err(refusal) => most_telling = most_telling.max(refusal),
        }
    }
    match gathered.unread() {
        Some(_) if bug::active(Bug::UnknownVerifies) => {
            Verdict::Verified { by: Signer::Key(subject.clone()), layout: Layout::Tag }
        }
        Some(why) => Verdict::Unknown(why.to_owned()),
        None => Verdict::Refused(most_telling),
    }
}

fn judge(policy: &Policy, subject: &Digest, candidate: &Candidate) -> Result<(Signer, Layout), Refusal> {
    if candidate.size() > SIZE_LIMIT {
        return Err(Refusal::Malformed(format!("it is longer than {SIZE_LIMIT} bytes")));
    }
    match candidate {
        Candidate::Simple { payload, annotations } => {
            let signer = simple::judge(policy, subject, payload, annotations)?;
            Ok((signer, Layout::Tag))
        }
        Candidate::Bundle(content) => Ok((bundle::judge(policy, subject, content)?, Layout::Bundle)),
    }
}

/// Cuts a text that strangers wrote, for conditions and events.
fn shown(text: &str) -> String {
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(200).collect();
    let more = if characters.next().is_some() { "…" } else { "" };
    format!("{start:?}{more}")
}
