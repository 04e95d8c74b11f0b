//! The cryptography that sigstore-verify computes with: ring for messages, sha2 for hashes, p256 for a hash that is there already.
//!
//! The library asks one provider per process; [`install`] makes it ours. Whatever it can't compute is an error and never a success.

use p256::ecdsa::{DerSignature, VerifyingKey, signature::hazmat::PrehashVerifier};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use sigstore_verify::{
    crypto::{CryptoProvider, Error, HashContext, Result, SigningScheme, install_default_provider},
    types::HashAlgorithm,
};

/// Makes this the process's provider. Somebody who came first, which can only be ourselves, is left in place.
pub(super) fn install() {
    let _already_ours = install_default_provider(&Provider);
}

#[derive(Debug)]
struct Provider;

impl CryptoProvider for Provider {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>> {
        if algorithm == HashAlgorithm::Sha2256 {
            Ok(Box::new(Hash(Sha256::new())))
        } else if algorithm == HashAlgorithm::Sha2384 {
            Ok(Box::new(Hash(Sha384::new())))
        } else if algorithm == HashAlgorithm::Sha2512 {
            Ok(Box::new(Hash(Sha512::new())))
        } else {
            Err(Error::UnsupportedAlgorithm(algorithm.to_string()))
        }
    }

    fn verify_raw(&self, scheme: SigningScheme, key: &[u8], message: &[u8], signature: &[u8]) -> Result<()> {
        let algorithm = algorithm(scheme).ok_or_else(|| Error::UnsupportedAlgorithm(scheme.name().to_owned()))?;
        UnparsedPublicKey::new(algorithm, key).verify(message, signature).map_err(|_| invalid(scheme))
    }

    fn verify_prehashed(&self, scheme: SigningScheme, key: &[u8], digest: &[u8], signature: &[u8]) -> Result<()> {
        if scheme != SigningScheme::EcdsaP256Sha256 {
            return Err(Error::UnsupportedAlgorithm(format!("{} over a hash", scheme.name())));
        }
        let key = VerifyingKey::from_sec1_bytes(key).map_err(|error| Error::InvalidKey(error.to_string()))?;
        let signature = DerSignature::from_bytes(signature).map_err(|_| invalid(scheme))?;
        key.verify_prehash(digest, &signature).map_err(|_| invalid(scheme))
    }
}

fn invalid(scheme: SigningScheme) -> Error {
    Error::Verification(format!("the {} signature does not fit", scheme.name()))
}

/// What ring computes a scheme with; none for the schemes that ring does not have.
fn algorithm(scheme: SigningScheme) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match scheme {
        SigningScheme::EcdsaP256Sha256 => &signature::ECDSA_P256_SHA256_ASN1,
        SigningScheme::EcdsaP256Sha384 => &signature::ECDSA_P256_SHA384_ASN1,
        SigningScheme::EcdsaP384Sha256 => &signature::ECDSA_P384_SHA256_ASN1,
        SigningScheme::EcdsaP384Sha384 => &signature::ECDSA_P384_SHA384_ASN1,
        SigningScheme::Ed25519 => &signature::ED25519,
        SigningScheme::RsaPssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
        SigningScheme::RsaPssSha384 => &signature::RSA_PSS_2048_8192_SHA384,
        SigningScheme::RsaPssSha512 => &signature::RSA_PSS_2048_8192_SHA512,
        SigningScheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        SigningScheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        SigningScheme::RsaPkcs1Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        // The rest is whatever the library may learn.
        SigningScheme::MlDsa44 | SigningScheme::MlDsa65 | SigningScheme::MlDsa87 | _ => return None,
    })
}

struct Hash<H>(H);

impl<H: sha2::Digest + Send> HashContext for Hash<H> {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finalize().to_vec()
    }
}
