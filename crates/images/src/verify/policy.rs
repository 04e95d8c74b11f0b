//! Which signatures count: by which keys or identities, vouched for by which trust root, saying what.
//!
//! Everything that a person wrote is read here, once, so that a mistake in it is reported as theirs and never as a refused image.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use sigstore_verify::{
    Verifier,
    crypto::{KeyAlgorithm, VerificationKey},
    trust_root::TrustedRoot,
    types::{DerCertificate, DerPublicKey, SignatureBytes},
};

use super::crypto;
use crate::{Digest, Hashing};

/// What cosign says of an image that it signs. SBOMs and scan reports look the same but for this (H49).
pub const SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";

/// More keys or identities than anybody needs: each is tried on each candidate.
const SIGNER_LIMIT: usize = 32;

/// Something in a policy that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Nobody is named.
    #[error("the policy names no key and no identity: no image could ever be accepted")]
    Nobody,
    /// Far too many are named.
    #[error("the policy names more than {SIGNER_LIMIT} keys or identities")]
    TooMany,
    /// A key can't be read.
    #[error("key {number} can't be used: {problem}; give a public key in PEM, as cosign.pub has it")]
    Key {
        /// Which, counted from 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// An identity lacks a half.
    #[error("identity {number} needs both an identity and an issuer: either alone is somebody else's to claim")]
    Identity {
        /// Which, counted from 1.
        number: usize,
    },
    /// The trust root can't be read.
    #[error("the trust root can't be used: {0}; give a TrustedRoot in JSON, as `cosign trusted-root create` writes it")]
    TrustRoot(String),
    /// No predicate type is left.
    #[error("the policy accepts no predicate type: leave the list out to accept what cosign signs")]
    NoPredicateType,
}

/// A public key that signs images: ECDSA on P-256, RSA, or Ed25519.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(DerPublicKey);

impl PublicKey {
    /// Reads PEM.
    pub fn parse(pem: &[u8]) -> Result<Self, String> {
        let pem = str::from_utf8(pem).map_err(|_| "it is not text".to_owned())?;
        // The library's texts can repeat what was given, which may be a private key in the wrong place.
        let key = DerPublicKey::from_pem(pem).map_err(|_| "it is no PUBLIC KEY in PEM".to_owned())?;
        let algorithm = KeyAlgorithm::from_spki(&key).map_err(|error| error.to_string())?;
        // Not P-384: with such a key cosign signs by one hash and, unless told, verifies by another.
        if matches!(algorithm, KeyAlgorithm::EcdsaP256 | KeyAlgorithm::Rsa | KeyAlgorithm::Ed25519) {
            return Ok(Self(key));
        }
        Err(format!("it is of the kind {algorithm:?}; ECDSA on P-256, RSA and Ed25519 are supported"))
    }

    /// What to call it by: the digest of its DER form, as `openssl pkey -pubin -outform der | sha256sum` computes it.
    pub fn id(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    pub(super) fn der(&self) -> &DerPublicKey {
        &self.0
    }

    /// Whether it signed this very message.
    pub(super) fn signed(&self, message: &[u8], signature: &SignatureBytes) -> bool {
        crypto::install();
        VerificationKey::from_spki(&self.0).is_ok_and(|key| key.verify(message, signature).is_ok())
    }
}

/// Who signs without a key: compared letter by letter, for a pattern that is a little too wide is somebody else's way in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The certificate's subject: an e-mail address, or the URI of a workflow.
    pub identity: String,
    /// Who vouched for that: the URL of the OpenID provider.
    pub issuer: String,
}

/// Either keys or identities: a policy with both would be as weak as the weaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Signers {
    Keys(Vec<PublicKey>),
    Identities(Vec<Identity>),
}

/// The authorities and logs to believe.
#[derive(Clone)]
pub struct TrustRoot {
    pub(super) verifier: Arc<Verifier>,
    /// The logs that signatures have to be in: the host of each, by its id.
    pub(super) logs: BTreeMap<Vec<u8>, String>,
    /// Whether there is a log that certificates have to be in.
    pub(super) has_certificate_log: bool,
    /// Whether anybody is trusted to say when something was signed.
    pub(super) has_timestamps: bool,
    /// The certificates of those who vouch for identities.
    pub(super) authorities: Vec<DerCertificate>,
    digest: Digest,
}

impl TrustRoot {
    /// Reads a `TrustedRoot` in JSON.
    pub fn parse(json: &[u8]) -> Result<Self, PolicyError> {
        crypto::install();
        let unusable = |problem: String| PolicyError::TrustRoot(problem);
        let text = str::from_utf8(json).map_err(|_| unusable("it is not text".to_owned()))?;
        let root = TrustedRoot::from_json(text).map_err(|error| unusable(error.to_string()))?;
        if !root.media_type.starts_with("application/vnd.dev.sigstore.trustedroot") {
            return Err(unusable("its mediaType is another one".to_owned()));
        }
        let verifier = Verifier::new(&root).map_err(|error| unusable(error.to_string()))?;
        let authorities = root.certificate_authorities.iter().flat_map(|authority| &authority.cert_chain.certificates);
        Ok(Self {
            verifier: Arc::new(verifier),
            logs: root.tlogs.iter().map(|log| (log.log_id.key_id.as_bytes().to_vec(), host(&log.base_url))).collect(),
            has_certificate_log: !root.ctlogs.is_empty(),
            has_timestamps: !root.timestamp_authorities.is_empty(),
            authorities: authorities.map(|certificate| certificate.raw_bytes.clone()).collect(),
            digest: Digest::of(json),
        })
    }

    pub(super) fn has_log(&self) -> bool {
        !self.logs.is_empty()
    }
}

/// The host of a log's address, which is also what the log calls itself in what it signs.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', ':']).next().unwrap_or_default().to_owned()
}

/// Its digest stands for its content, which is long.
impl fmt::Debug for TrustRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verifier: _, logs, has_certificate_log, has_timestamps, authorities, digest } = self;
        f.debug_struct("TrustRoot")
            .field("logs", &logs.values())
            .field("has_certificate_log", has_certificate_log)
            .field("has_timestamps", has_timestamps)
            .field("authorities", &authorities.len())
            .field("digest", digest)
            .finish()
    }
}

/// Which signatures count.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) signers: Signers,
    pub(super) trust_root: Option<TrustRoot>,
    pub(super) predicate_types: BTreeSet<String>,
}

impl Policy {
    /// Images signed by one of these keys (PEM). With a log in the trust root, the signature must be in it; without a trust root no log is
    /// asked for.
    pub fn by_keys<K: AsRef<[u8]>>(keys: &[K], trust_root: Option<TrustRoot>) -> Result<Self, PolicyError> {
        let keys = (1..).zip(keys).map(|(number, key)| {
            PublicKey::parse(key.as_ref()).map_err(|problem| PolicyError::Key { number, problem })
        });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        counted(keys.len())?;
        Ok(Self::new(Signers::Keys(keys), trust_root))
    }

    /// Images signed by one of these identities, as the trust root's authorities vouch for them.
    pub fn by_identities(identities: Vec<Identity>, trust_root: TrustRoot) -> Result<Self, PolicyError> {
        counted(identities.len())?;
        for (number, Identity { identity, issuer }) in (1..).zip(&identities) {
            if identity.is_empty() || issuer.is_empty() {
                return Err(PolicyError::Identity { number });
            }
        }
        if trust_root.authorities.is_empty() {
            return Err(PolicyError::TrustRoot("it names no certificate authority to vouch for identities".to_owned()));
        }
        if !trust_root.has_log() && !trust_root.has_timestamps {
            let problem = "it names no log and no timestamp authority, so that nobody says when something was signed";
            return Err(PolicyError::TrustRoot(problem.to_owned()));
        }
        Ok(Self::new(Signers::Identities(identities), Some(trust_root)))
    }

    fn new(signers: Signers, trust_root: Option<TrustRoot>) -> Self {
        Self { signers, trust_root, predicate_types: BTreeSet::from([SIGNATURE.to_owned()]) }
    }

    /// Accepts statements of these types and no others.
    pub fn with_predicate_types<T: Into<String>>(
        mut self,
        types: impl IntoIterator<Item = T>,
    ) -> Result<Self, PolicyError> {
        self.predicate_types = types.into_iter().map(Into::into).collect();
        if self.predicate_types.is_empty() { Err(PolicyError::NoPredicateType) } else { Ok(self) }
    }

    /// The trust root, where it has a log that signatures must be in.
    pub(super) fn log(&self) -> Option<&TrustRoot> {
        self.trust_root.as_ref().filter(|root| root.has_log())
    }

    /// What to call the whole policy by. Two policies that could judge differently never share it; the order of keys does not matter.
    pub fn fingerprint(&self) -> Digest {
        let Self { signers, trust_root, predicate_types } = self;
        let mut parts: Vec<(&str, BTreeSet<String>)> = Vec::new();
        match signers {
            Signers::Keys(keys) => parts.push(("keys", keys.iter().map(|key| key.id().to_string()).collect())),
            Signers::Identities(identities) => {
                let whole = |Identity { identity, issuer }: &Identity| format!("{identity:?} {issuer:?}");
                parts.push(("identities", identities.iter().map(whole).collect()));
            }
        }
        parts.push(("trust root", trust_root.iter().map(|root| root.digest.to_string()).collect()));
        parts.push(("predicate types", predicate_types.clone()));
        let mut hashing = Hashing::default();
        for (name, values) in parts {
            // Lengths are written down, so that no two lists read the same one after the other.
            hashing.update(format!("{name}:{}\n", values.len()).as_bytes());
            for value in values {
                hashing.update(format!("{}:{value}\n", value.len()).as_bytes());
            }
        }
        hashing.finish()
    }
}

fn counted(signers: usize) -> Result<(), PolicyError> {
    match signers {
        0 => Err(PolicyError::Nobody),
        1..=SIGNER_LIMIT => Ok(()),
        _ => Err(PolicyError::TooMany),
    }
}
