//! Minisign: who signed a file, and as what.
//!
//! A minisig signs bytes, not names (H48): an old binary that was signed properly passes under any newer name. So a verified signature says
//! nothing about a version before [`Signed::is`] has bound one to it.

use std::str::FromStr;

use minisign_verify::{PublicKey, Signature, StreamVerifier};
use windlass_plan::{
    bug::{self, Bug},
    version::Release,
};

use crate::Digest;

/// The longest text that is read as a key or a signature.
const TEXT_LIMIT: usize = 16 << 10;

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(PublicKey);

/// A signature that nobody has verified yet.
#[derive(Clone)]
pub struct Minisig(Signature);

/// Why a file is not signed as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsigned {
    /// No key of minisign's.
    #[error("the key can't be read: minisign's own file or its second line is needed, which begins with RW")]
    Key,
    /// No signature of minisign's.
    #[error("the signature can't be read: minisign writes four lines, two of them comments")]
    Signature,
    /// By another key.
    #[error("the file is signed by another key than the one that is trusted")]
    AnotherKey,
    /// Signed in a way that nobody should use any more.
    #[error("the signature is of the legacy kind, which needs the whole file in memory; sign it again without -l")]
    Legacy,
    /// Not of these bytes, or of another comment.
    #[error("the signature is not of this file, or its trusted comment was changed")]
    Wrong,
    /// Signed as something else.
    #[error("the file is signed as {signed}, and {wanted} is wanted")]
    AnotherRelease {
        /// What its trusted comment says.
        signed: String,
        /// What is wanted.
        wanted: String,
    },
    /// Neither the signature nor an image says which release it is.
    #[error(
        "nothing binds the file to {wanted}: its signature has no file:minio.{wanted} in the trusted comment, and it is out of no verified image"
    )]
    Unbound {
        /// What is wanted.
        wanted: String,
    },
}

impl Unsigned {
    /// What a person can do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Key => "check the key in the spec",
            Self::Signature => "check where the signature comes from",
            Self::AnotherKey => "check whose key is in the spec, and who built this release",
            Self::Legacy => "ask whoever builds this release to sign it without -l",
            Self::Wrong => "don't use this file; find out who changed it, or fetch it again",
            Self::AnotherRelease { .. } => "check the version that is asked for, and where the file comes from",
            Self::Unbound { .. } => {
                "verify the image that the file is in, or sign the file under the name of its release"
            }
        }
    }
}

/// What, beside the signature, says which release a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding<'a> {
    /// It is out of an image of this digest, which was verified and stands for the release.
    VerifiedImage(&'a Digest),
    /// Nothing.
    None,
}

impl FromStr for Key {
    type Err = Unsigned;

    /// The file that minisign writes, or its second line alone.
    fn from_str(text: &str) -> Result<Self, Unsigned> {
        let lines = lines(text).ok_or(Unsigned::Key)?;
        let encoded = match lines.as_slice() {
            [encoded] => encoded,
            [comment, encoded] if comment.starts_with("untrusted comment:") => encoded,
            _ => return Err(Unsigned::Key),
        };
        // The library also takes what minisign itself does not: a key that is marked as a prehashed signature.
        if !encoded.starts_with("RW") {
            return Err(Unsigned::Key);
        }
        PublicKey::from_base64(encoded).map(Self).map_err(|_| Unsigned::Key)
    }
}

impl FromStr for Minisig {
    type Err = Unsigned;

    fn from_str(text: &str) -> Result<Self, Unsigned> {
        // The library passes by what follows the fourth line.
        let lines = lines(text).ok_or(Unsigned::Signature)?;
        if lines.len() != 4 || !lines.first().is_some_and(|line| line.starts_with("untrusted comment:")) {
            return Err(Unsigned::Signature);
        }
        Signature::decode(text).map(Self).map_err(|_| Unsigned::Signature)
    }
}

/// The lines of a text that is short enough, without empty ones at its end.
fn lines(text: &str) -> Option<Vec<&str>> {
    (text.len() <= TEXT_LIMIT).then(|| text.trim_end_matches(['\n', '\r']).lines().collect())
}

impl Key {
    /// Begins to verify a file.
    pub fn verify<'a>(&'a self, minisig: &'a Minisig) -> Result<Verifying<'a>, Unsigned> {
        let verifier = self.0.verify_stream(&minisig.0).map_err(|error| unsigned(&error))?;
        Ok(Verifying { verifier, minisig })
    }
}

fn unsigned(error: &minisign_verify::Error) -> Unsigned {
    use minisign_verify::Error;
    match error {
        Error::UnexpectedKeyId => Unsigned::AnotherKey,
        Error::UnsupportedLegacyMode | Error::UnexpectedAlgorithm => Unsigned::Legacy,
        Error::InvalidSignature => Unsigned::Wrong,
        Error::InvalidEncoding | Error::IoError(_) | Error::UnsupportedAlgorithm => Unsigned::Signature,
    }
}

/// A file on its way past its signature.
pub struct Verifying<'a> {
    verifier: StreamVerifier<'a>,
    minisig: &'a Minisig,
}

impl Verifying<'_> {
    /// The next piece of the file.
    pub fn update(&mut self, piece: &[u8]) {
        self.verifier.update(piece);
    }

    /// Whether all of it, and the trusted comment, is what was signed.
    pub fn finish(mut self) -> Result<Signed, Unsigned> {
        self.verifier.finalize().map_err(|error| unsigned(&error))?;
        Ok(Signed { comment: self.minisig.0.trusted_comment().to_owned() })
    }
}

/// Bytes that are signed; as what is another question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    comment: String,
}

impl Signed {
    /// What the signer wrote about the file.
    pub fn trusted_comment(&self) -> &str {
        &self.comment
    }

    /// Whether this is the file of a release: its trusted comment says so, or it names no release and an image that stands for this one was
    /// verified. What was signed as another release is that one, wherever it was found.
    pub fn is(&self, release: &Release, binding: Binding<'_>) -> Result<(), Unsigned> {
        let wanted = release.to_string();
        if bug::active(Bug::ReleaseNameTrusted) {
            return Ok(());
        }
        let mut names = self.comment.split('\t').filter_map(|field| field.strip_prefix("file:"));
        match (names.next(), names.next()) {
            (Some(name), None) if name.strip_prefix("minio.") == Some(&wanted) => Ok(()),
            // Two names are one too many to believe either.
            (Some(_), Some(_)) => Err(Unsigned::AnotherRelease { signed: shown(&self.comment), wanted }),
            (Some(name), None) if name.starts_with("minio.") => {
                Err(Unsigned::AnotherRelease { signed: shown(name), wanted })
            }
            (Some(_) | None, _) => match binding {
                Binding::VerifiedImage(_) => Ok(()),
                Binding::None => Err(Unsigned::Unbound { wanted }),
            },
        }
    }
}

/// Quoted and cut: the text goes into conditions and events.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(100).collect::<String>())
}
