//! Signatures as bundles that refer to their image: a statement about the image, in an envelope that is signed.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use sigstore_verify::types::{
    Artifact, Bundle, DsseEnvelope, MediaType, Sha256Hash, SignatureContent, TimestampVerificationData,
    VerificationMaterialContent,
};
use windlass_plan::bug::{self, Bug};

use super::{
    Refusal, Signer,
    policy::{Policy, PublicKey, Signers},
    shown, trust,
};
use crate::Digest;

/// What an envelope with a statement says that it holds.
const STATEMENT_PAYLOAD: &str = "application/vnd.in-toto+json";
/// `cosign sign` writes the first, `cosign attest` still the second.
const STATEMENTS: [&str; 2] = ["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];

/// What is said about which images.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    predicate_type: String,
    subject: Vec<Subject>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Subject {
    digest: BTreeMap<String, String>,
}

/// Reads the content of an envelope.
pub fn statement(bytes: &[u8]) -> Result<Statement, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| Refusal::Malformed(format!("its statement is not one: {error}")))
}

impl Statement {
    /// Whether it says of this image what the policy wants said.
    fn check(&self, policy: &Policy, image: &Digest) -> Result<(), Refusal> {
        let Self { kind, predicate_type, subject } = self;
        if !STATEMENTS.contains(&kind.as_str()) {
            return Err(Refusal::NotASignature(format!("a statement of the kind {}", shown(kind))));
        }
        if !policy.predicate_types.contains(predicate_type) && !bug::active(Bug::AttestationCounts) {
            return Err(Refusal::NotASignature(format!("a statement of the type {}", shown(predicate_type))));
        }
        let digests = || subject.iter().filter_map(|subject| subject.digest.get("sha256"));
        if digests().any(|digest| digest == image.hex()) || bug::active(Bug::PayloadDigestIgnored) {
            return Ok(());
        }
        let named =
            digests().next().map_or_else(|| "none that is named by a digest".to_owned(), |digest| shown(digest));
        Err(Refusal::OtherSubject(named))
    }
}

/// Reads what a bundle says, without knowing yet who says it.
pub fn bundle_statement(content: &[u8]) -> Result<Statement, Refusal> {
    statement(envelope(&parse(content)?)?.payload.as_bytes())
}

pub(super) fn judge(policy: &Policy, subject: &Digest, content: &[u8]) -> Result<Signer, Refusal> {
    let mut bundle = parse(content)?;
    let envelope = envelope(&bundle)?.clone();
    statement(envelope.payload.as_bytes())?.check(policy, subject)?;

    let image = Sha256Hash::from_hex(subject.hex()).map_err(|error| Refusal::Malformed(error.to_string()))?;
    match (&policy.signers, &bundle.verification_material.content) {
        (Signers::Keys(keys), VerificationMaterialContent::PublicKey(_)) => {
            let key = made_by(keys, &envelope).ok_or(Refusal::WrongKey)?;
            if let Some(root) = policy.log().filter(|_| !bug::active(Bug::LogSkipped)) {
                // A key has no time at which it ends, so nobody needs to say when it signed.
                bundle.verification_material.timestamp_verification_data = TimestampVerificationData::default();
                trust::in_log(root, key, Artifact::from(image), &bundle)?;
            }
            Ok(Signer::Key(key.id()))
        }
        (Signers::Identities(identities), VerificationMaterialContent::Certificate(_)) => {
            let Some(root) = &policy.trust_root else {
                return Err(Refusal::NotTrusted("there is no trust root".to_owned()));
            };
            // What the trust root has no keys for says nothing, and is left out.
            if !root.has_timestamps {
                bundle.verification_material.timestamp_verification_data = TimestampVerificationData::default();
            }
            if !root.has_log() {
                bundle.verification_material.tlog_entries.clear();
            }
            trust::identified(root, identities, Artifact::from(image), &bundle)
        }
        (Signers::Keys(_), _) => Err(Refusal::WrongKey),
        (Signers::Identities(_), _) => {
            Err(Refusal::NotTrusted("it is signed by a key and has no certificate".to_owned()))
        }
    }
}

/// The envelope, if a statement is in it.
fn envelope(bundle: &Bundle) -> Result<&DsseEnvelope, Refusal> {
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        // Of a file, by its hash alone: it says nothing of an image.
        return Err(Refusal::NotASignature("a message without a statement".to_owned()));
    };
    if envelope.payload_type != STATEMENT_PAYLOAD {
        return Err(Refusal::NotASignature(format!("a payload of the type {}", shown(&envelope.payload_type))));
    }
    Ok(envelope)
}

fn made_by<'a>(keys: &'a [PublicKey], envelope: &DsseEnvelope) -> Option<&'a PublicKey> {
    let message = envelope.pae();
    keys.iter().find(|key| key.signed(&message, &envelope.signature.sig))
}

/// Reads a bundle of the version that registries hold. Whatever the format does not have is refused, as cosign does: a member that one reader
/// skips is one that another may read.
fn parse(content: &[u8]) -> Result<Bundle, Refusal> {
    let malformed = |problem: String| Refusal::Malformed(format!("its bundle is not one: {}", shown(&problem)));
    let text = str::from_utf8(content).map_err(|error| malformed(error.to_string()))?;
    let members = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
    if let Some(name) = stranger("", &members) {
        return Err(malformed(format!("there is no member {name}")));
    }
    let bundle = Bundle::from_json(text).map_err(|error| malformed(error.to_string()))?;
    if bundle.media_type() != MediaType::Bundle0_3 {
        return Err(malformed("its version is not 0.3".to_owned()));
    }
    Ok(bundle)
}

/// What a bundle has, by what it is in. Of those in one pair of parentheses there is only one.
const MEMBERS: &[(&str, &[&str])] = &[
    ("", &["mediaType", "verificationMaterial", "(dsseEnvelope", "(messageSignature"]),
    ("verificationMaterial", &["(certificate", "(publicKey", "tlogEntries", "timestampVerificationData"]),
    ("certificate", &["rawBytes"]),
    ("publicKey", &["hint"]),
    (
        "tlogEntries",
        &[
            "logIndex",
            "logId",
            "kindVersion",
            "integratedTime",
            "inclusionPromise",
            "inclusionProof",
            "canonicalizedBody",
        ],
    ),
    ("logId", &["keyId"]),
    ("kindVersion", &["kind", "version"]),
    ("inclusionPromise", &["signedEntryTimestamp"]),
    ("inclusionProof", &["logIndex", "rootHash", "treeSize", "hashes", "checkpoint"]),
    ("checkpoint", &["envelope"]),
    ("timestampVerificationData", &["rfc3161Timestamps"]),
    ("rfc3161Timestamps", &["signedTimestamp"]),
    ("dsseEnvelope", &["payload", "payloadType", "signatures"]),
    ("signatures", &["sig", "keyid"]),
    ("messageSignature", &["messageDigest", "signature"]),
    ("messageDigest", &["algorithm", "digest"]),
];

/// The first member that a bundle does not have there, or has already.
fn stranger(inside: &str, value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        Value::Array(values) => values.iter().find_map(|value| stranger(inside, value)),
        Value::Object(members) => {
            let known = MEMBERS.iter().find(|(name, _)| *name == inside).map_or(&[][..], |(_, known)| known);
            let mut chosen = false;
            members.iter().find_map(|(name, value)| {
                let is_choice = known.iter().any(|known| known.strip_prefix('(') == Some(name));
                let is_known = known.contains(&name.as_str()) || (is_choice && !chosen);
                chosen |= is_choice;
                if is_known { stranger(name, value) } else { Some(name.clone()) }
            })
        }
    }
}
