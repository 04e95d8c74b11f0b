//! Asks sigstore-verify: one question for keys, one for identities. The only place that knows the library's verdicts.

use sigstore_verify::{
    CertificateError, Error, PublicKeyVerificationPolicy, TransparencyLogError, VerificationPolicy,
    bundle::Error as Shape,
    types::{Artifact, Bundle, KindVersion, TransparencyLogEntry},
};
use windlass_plan::bug::{self, Bug};

use super::{
    Identity, Refusal, Signer,
    policy::{PublicKey, TrustRoot},
    shown,
};

/// Whether a log of the trust root has this signature by this key. That the key made it is known already.
pub(super) fn in_log(
    root: &TrustRoot,
    key: &PublicKey,
    artifact: Artifact<'_>,
    bundle: &Bundle,
) -> Result<(), Refusal> {
    of_a_named_log(root, bundle)?;
    let policy = PublicKeyVerificationPolicy::new(key.der().clone());
    let result = root.verifier.verify(artifact, bundle, &policy).map_err(|error| {
        // The key did make it. What is left is a signature over a hash, which is all that a log entry has, by a key that is not on P-256.
        if matches!(error, Error::SignatureInvalid(_)) {
            let why = "a log entry under a tag can't be checked for this kind of key; sign a bundle";
            return Refusal::NotInLog(why.to_owned());
        }
        refused(&error)
    })?;
    if result.tlog_verified() { Ok(()) } else { Err(Refusal::NotInLog("its entry was not verified".to_owned())) }
}

/// Who of these identities made the signature, by everything that the trust root demands.
pub(super) fn identified(
    root: &TrustRoot,
    identities: &[Identity],
    artifact: Artifact<'_>,
    bundle: &Bundle,
) -> Result<Signer, Refusal> {
    // For anybody: several are accepted, and which of two halves is wrong should be told.
    let mut policy = VerificationPolicy::any_identity();
    let log_demanded = root.has_log() && !bug::active(Bug::LogSkipped);
    if log_demanded {
        of_a_named_log(root, bundle)?;
        timed(bundle)?;
    } else {
        policy = policy.skip_tlog_unsafe();
    }
    if !root.has_certificate_log {
        policy = policy.skip_sct();
    }
    let result = root.verifier.verify(artifact, bundle, &policy).map_err(|error| refused(&error))?;
    let is_whole = result.certificate_verified()
        && result.tlog_verified() == log_demanded
        && result.sct_verified() == root.has_certificate_log;
    let (true, Some(identity), Some(issuer)) = (is_whole, result.identity(), result.issuer()) else {
        return Err(Refusal::NotTrusted("the certificate does not say who signed and who vouches for that".to_owned()));
    };
    let found = Identity { identity: identity.as_str().to_owned(), issuer: issuer.to_owned() };
    if identities.contains(&found) || bug::active(Bug::AnyIdentity) {
        return Ok(Signer::Identity(found));
    }
    if identities.iter().any(|wanted| wanted.identity == found.identity) {
        return Err(Refusal::WrongIssuer(found));
    }
    Err(Refusal::WrongIdentity(found))
}

/// What the library does not ask. It goes through the entries that are there, and where there are none finds nothing wrong; it believes what
/// the entry says of its log; and it knows a log by its key alone.
fn of_a_named_log(root: &TrustRoot, bundle: &Bundle) -> Result<(), Refusal> {
    let entries = &bundle.verification_material.tlog_entries;
    if entries.is_empty() {
        return Err(Refusal::NotInLog("it has no log entry".to_owned()));
    }
    for entry in entries {
        if entry.inclusion_proof.is_none() && entry.inclusion_promise.is_none() {
            return Err(Refusal::NotInLog("a log entry has neither a proof nor a promise".to_owned()));
        }
        let Some(host) = root.logs.get(entry.log_id.key_id.as_bytes()) else {
            return Err(Refusal::NotInLog("its entry is in another log".to_owned()));
        };
        if entry.kind_version == KindVersion::HashedRekordV002 {
            let signed_by = |note: &str| {
                let name = format!("— {host} ");
                note.lines().next() == Some(host) && note.lines().any(|line| line.starts_with(&name))
            };
            if !entry.inclusion_proof.as_ref().is_some_and(|proof| signed_by(proof.checkpoint.envelope())) {
                return Err(Refusal::NotInLog("the checkpoint of its proof is another log's".to_owned()));
            }
        }
    }
    Ok(())
}

/// A time that the log wrote down is one that the log must have signed.
fn timed(bundle: &Bundle) -> Result<(), Refusal> {
    let unsigned = |entry: &TransparencyLogEntry| entry.integrated_time.is_some() && entry.inclusion_promise.is_none();
    if bundle.verification_material.tlog_entries.iter().any(unsigned) {
        return Err(Refusal::NotInLog("the time of its entry is not signed".to_owned()));
    }
    Ok(())
}

/// The library's errors in our words. The subject was compared before, so a mismatch here is one between the signature and its log entry.
fn refused(error: &Error) -> Refusal {
    let text = shown(&error.to_string());
    let is_about_log = matches!(error, Error::TransparencyLog(_) | Error::ArtifactMismatch(_))
        || matches!(
            error,
            Error::Bundle(
                Shape::MissingInclusionPromise(_)
                    | Shape::MissingInclusionProof(_)
                    | Shape::MissingCheckpoint
                    | Shape::LogIndexOutOfRange { .. }
                    | Shape::CheckpointRootMismatch
            )
        );
    let is_about_trust = matches!(error, Error::Certificate(_) | Error::Timestamp(_) | Error::SignatureInvalid(_))
        || matches!(error, Error::Bundle(Shape::MissingSigningTimeEvidence));
    let is_malformed = matches!(
        error,
        Error::Certificate(CertificateError::Malformed(_))
            | Error::TransparencyLog(TransparencyLogError::MalformedEntry(_))
    );
    if is_malformed {
        Refusal::Malformed(text)
    } else if is_about_log {
        Refusal::NotInLog(text)
    } else if is_about_trust {
        Refusal::NotTrusted(text)
    } else {
        Refusal::Malformed(text)
    }
}
