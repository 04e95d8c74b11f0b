//! Signatures under a tag: a payload that names the image, and annotations with the signature and what belongs to it.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use serde::Deserialize;
use sigstore_verify::types::{
    Artifact, Bundle, CanonicalizedBody, DerCertificate, InclusionPromise, KindVersion, LogId, LogIndex, LogKeyId,
    MediaType, MessageSignature, PublicKeyIdentifier, Rfc3161Timestamp, Sha256Hash, SignatureBytes, SignatureContent,
    SignedTimestamp, TimestampToken, TimestampVerificationData, TransparencyLogEntry, VerificationMaterial,
    VerificationMaterialContent, X509Certificate,
};
use windlass_plan::bug::{self, Bug};

use super::{
    Refusal, Signer,
    policy::{Policy, Signers, TrustRoot},
    shown, trust,
};
use crate::Digest;

const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const CHAIN: &str = "dev.sigstore.cosign/chain";
const LOG_ENTRY: &str = "dev.sigstore.cosign/bundle";
const TIMESTAMP: &str = "dev.sigstore.cosign/rfc3161timestamp";

/// What cosign's payloads say that they are.
const KIND: &str = "cosign container image signature";

type Annotations = BTreeMap<String, String>;

/// What was signed: the image's digest, and that this is a signature.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Payload {
    critical: Critical,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Critical {
    #[serde(rename = "type")]
    kind: String,
    image: Image,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// Reads a payload.
pub fn payload(bytes: &[u8]) -> Result<Payload, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| malformed(format!("its payload is not one: {error}")))
}

impl Payload {
    fn check(&self, image: &Digest) -> Result<(), Refusal> {
        let Critical { kind, image: Image { digest } } = &self.critical;
        if kind != KIND {
            return Err(Refusal::NotASignature(format!("a payload of the type {}", shown(kind))));
        }
        if digest == image.as_str() || bug::active(Bug::PayloadDigestIgnored) {
            return Ok(());
        }
        Err(Refusal::OtherSubject(shown(digest)))
    }
}

/// The log's promise to have the entry, as cosign keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LogEntry {
    signed_entry_timestamp: String,
    payload: Promised,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Promised {
    body: String,
    integrated_time: i64,
    log_index: u64,
    #[serde(rename = "logID")]
    log_id: String,
}

/// Reads the annotation that a log entry is in.
pub fn log_entry(bytes: &[u8]) -> Result<LogEntry, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| malformed(format!("its log entry is not one: {error}")))
}

/// When it was signed, as an authority says, as cosign keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Timestamp {
    #[serde(rename = "SignedRFC3161Timestamp")]
    token: String,
}

/// Reads the annotation that a timestamp is in.
pub fn timestamp(bytes: &[u8]) -> Result<Timestamp, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| malformed(format!("its timestamp is not one: {error}")))
}

pub(super) fn judge(
    policy: &Policy,
    subject: &Digest,
    content: &[u8],
    annotations: &Annotations,
) -> Result<Signer, Refusal> {
    payload(content)?.check(subject)?;
    let signature = annotations.get(SIGNATURE).ok_or_else(|| malformed("the annotation with it is missing"))?;
    let signature = SignatureBytes::new(base64(signature)?);
    match &policy.signers {
        // A certificate beside a signature by key is somebody else's business, and was not asked for.
        Signers::Keys(_) if present(annotations, CERTIFICATE).is_some() => Err(Refusal::WrongKey),
        Signers::Keys(keys) => {
            let key = keys.iter().find(|key| key.signed(content, &signature)).ok_or(Refusal::WrongKey)?;
            if let Some(root) = policy.log().filter(|_| !bug::active(Bug::LogSkipped)) {
                let material = VerificationMaterialContent::PublicKey(PublicKeyIdentifier::new(""));
                let material = VerificationMaterial::new(material).with_tlog_entries(entries(annotations)?);
                let bundle = assembled(MediaType::Bundle0_1, material, signature);
                trust::in_log(root, key, Artifact::from(content), &bundle)?;
            }
            Ok(Signer::Key(key.id()))
        }
        Signers::Identities(identities) => {
            let Some(root) = &policy.trust_root else {
                return Err(Refusal::NotTrusted("there is no trust root".to_owned()));
            };
            let mut material = VerificationMaterial::new(certificate(root, annotations)?);
            // What the trust root has no keys for says nothing, and is left out.
            if root.has_timestamps {
                material = material.with_timestamp_verification_data(timestamps(annotations)?);
            }
            if root.has_log() {
                material = material.with_tlog_entries(entries(annotations)?);
            }
            // The first version is the one whose log entries are promises; the second wants none.
            let version = if root.has_log() { MediaType::Bundle0_1 } else { MediaType::Bundle0_2 };
            let bundle = assembled(version, material, signature);
            trust::identified(root, identities, Artifact::from(content), &bundle)
        }
    }
}

fn assembled(version: MediaType, material: VerificationMaterial, signature: SignatureBytes) -> Bundle {
    Bundle::new(version, material, SignatureContent::MessageSignature(MessageSignature::new(signature)))
}

fn malformed(problem: impl Into<String>) -> Refusal {
    Refusal::Malformed(problem.into())
}

fn base64(text: &str) -> Result<Vec<u8>, Refusal> {
    STANDARD.decode(text).map_err(|error| malformed(format!("an annotation is not base64: {error}")))
}

/// An annotation that says something; cosign takes an empty one for none.
fn present<'a>(annotations: &'a Annotations, name: &str) -> Option<&'a str> {
    annotations.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// The signer's certificate. Those between it and an authority are in the trust root, for bundles bring none along; what comes as a chain
/// must be of these.
fn certificate(root: &TrustRoot, annotations: &Annotations) -> Result<VerificationMaterialContent, Refusal> {
    let Some(certificate) = present(annotations, CERTIFICATE) else {
        return Err(Refusal::NotTrusted("it is signed by a key and has no certificate".to_owned()));
    };
    let certificates = certificates(certificate)?;
    if certificates.len() != 1 {
        return Err(malformed("there is not exactly one certificate"));
    }
    if let Some(chain) = present(annotations, CHAIN) {
        let chain = self::certificates(chain)?;
        if chain.is_empty() || !chain.iter().all(|certificate| root.authorities.contains(&certificate.raw_bytes)) {
            return Err(Refusal::NotTrusted("its chain of certificates is not the trust root's".to_owned()));
        }
    }
    Ok(VerificationMaterialContent::X509CertificateChain { certificates })
}

fn certificates(pem: &str) -> Result<Vec<X509Certificate>, Refusal> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .map(|certificate| certificate.map(|der| X509Certificate::new(DerCertificate::from_bytes(&der))))
        .collect::<Result<_, _>>()
        .map_err(|_| malformed("a certificate is not PEM"))
}

fn timestamps(annotations: &Annotations) -> Result<TimestampVerificationData, Refusal> {
    let Some(json) = present(annotations, TIMESTAMP) else {
        return Ok(TimestampVerificationData::default());
    };
    let Timestamp { token } = timestamp(json.as_bytes())?;
    Ok(TimestampVerificationData::new(vec![Rfc3161Timestamp::new(TimestampToken::new(base64(&token)?))]))
}

/// None where the annotation is missing: who demands an entry refuses that.
fn entries(annotations: &Annotations) -> Result<Vec<TransparencyLogEntry>, Refusal> {
    let Some(json) = present(annotations, LOG_ENTRY) else {
        return Ok(Vec::new());
    };
    let LogEntry { signed_entry_timestamp, payload } = log_entry(json.as_bytes())?;
    let Promised { body, integrated_time, log_index, log_id } = payload;
    let id = Sha256Hash::from_hex(&log_id).map_err(|error| malformed(format!("the log's id: {error}")))?;
    let index = LogIndex::new(log_index).map_err(|error| malformed(format!("the log's index: {error}")))?;
    let time = jiff::Timestamp::from_second(integrated_time)
        .map_err(|error| malformed(format!("the log entry's time: {error}")))?;
    let promise = InclusionPromise::new(SignedTimestamp::new(base64(&signed_entry_timestamp)?));
    // Of the kinds that Rekor has had, this is the one that a signature under a tag gets.
    let entry = TransparencyLogEntry::new(
        index,
        LogId::new(LogKeyId::from_bytes(id.as_bytes())),
        KindVersion::HashedRekordV001,
        CanonicalizedBody::new(base64(&body)?),
    );
    Ok(vec![entry.with_integrated_time(time).with_inclusion_promise(promise)])
}
