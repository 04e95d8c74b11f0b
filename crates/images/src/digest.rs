//! What content is called by: the hash of its bytes.
//!
//! Everything that is fetched by digest passes through [`Digest::check`] or a [`Hashing`] before anybody believes it. SHA-256 alone: registries
//! must know it, everybody uses it, and a second algorithm would be a second name for the same content.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

/// `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(String);

/// A text that is no digest of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no digest: sha256: and 64 lower-case hexadecimal digits are needed")]
pub struct InvalidDigest;

/// The bytes are not those that the digest names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content is {found} and should be {wanted}")]
pub struct Mismatch {
    /// What was asked for.
    pub wanted: Digest,
    /// What came.
    pub found: Digest,
}

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(Sha256::digest(bytes))
    }

    fn from_hash(hash: impl AsRef<[u8]>) -> Self {
        let mut text = String::from("sha256:");
        for byte in hash.as_ref() {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        Self(text)
    }

    /// With its algorithm, as registries write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hexadecimal digits alone.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }

    /// Whether these are the bytes that it names.
    pub fn check(&self, bytes: &[u8]) -> Result<(), Mismatch> {
        self.compare(Self::of(bytes))
    }

    fn compare(&self, found: Self) -> Result<(), Mismatch> {
        if found == *self { Ok(()) } else { Err(Mismatch { wanted: self.clone(), found }) }
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix("sha256:").ok_or(InvalidDigest)?;
        let is_hexadecimal = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits.len() == 64 && is_hexadecimal { Ok(Self(text.to_owned())) } else { Err(InvalidDigest) }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A digest in the making, of bytes that come in pieces.
#[derive(Clone, Default)]
pub struct Hashing(Sha256);

impl Hashing {
    /// The next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        Digest::from_hash(self.0.finalize())
    }

    /// Whether the pieces together are what a digest names.
    pub fn check(self, wanted: &Digest) -> Result<(), Mismatch> {
        wanted.compare(self.finish())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn pieces_and_the_whole_have_one_digest() {
        let mut hashing = Hashing::default();
        hashing.update(b"wind");
        hashing.update(b"lass");
        assert_eq!(hashing.finish(), Digest::of(b"windlass"));
        assert_eq!(Digest::of(b"").as_str(), EMPTY);
        assert_eq!(EMPTY.parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn other_bytes_are_noticed() {
        let wanted = Digest::of(b"a");
        assert_eq!(wanted.check(b"a"), Ok(()));
        assert_eq!(wanted.check(b"b"), Err(Mismatch { wanted: wanted.clone(), found: Digest::of(b"b") }));
    }

    #[rstest]
    #[case::nothing("")]
    #[case::no_algorithm("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    #[case::another_algorithm("sha512:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    #[case::capitals("sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855")]
    #[case::too_short("sha256:e3b0")]
    fn other_texts_are_no_digests(#[case] text: &str) {
        assert_eq!(text.parse::<Digest>(), Err(InvalidDigest));
    }
}
