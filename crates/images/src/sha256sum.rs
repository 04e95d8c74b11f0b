//! The line that `sha256sum` writes, as it lies beside a release.

use std::str::FromStr;

use windlass_plan::version::Release;

use crate::Digest;

/// A hash and the name of the file that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sha256sum {
    digest: Digest,
    file: String,
}

/// Why a file is not the one that its sum is of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SumMismatch {
    /// Not a line that sha256sum writes.
    #[error(
        "the sum can't be read: one line is needed, of 64 lower-case hexadecimal digits, two spaces and a file's name"
    )]
    Unreadable,
    /// Of other bytes.
    #[error("the file is {found} and should be {wanted}")]
    Bytes {
        /// What the sum says.
        wanted: Digest,
        /// What the file is.
        found: Digest,
    },
    /// Of another file.
    #[error("the sum is of {found:?}, and that of {wanted:?} is needed")]
    Name {
        /// What is needed.
        wanted: String,
        /// What the sum names.
        found: String,
    },
}

impl Sha256sum {
    /// Whether it is of these bytes, under the name of this release.
    pub fn check(&self, found: &Digest, release: &Release) -> Result<(), SumMismatch> {
        let wanted = format!("minio.{release}");
        if self.file != wanted {
            return Err(SumMismatch::Name { wanted, found: self.file.clone() });
        }
        if self.digest != *found {
            return Err(SumMismatch::Bytes { wanted: self.digest.clone(), found: found.clone() });
        }
        Ok(())
    }
}

impl FromStr for Sha256sum {
    type Err = SumMismatch;

    fn from_str(text: &str) -> Result<Self, SumMismatch> {
        let line = text.strip_suffix('\n').unwrap_or(text);
        let (hash, file) = line.split_at_checked(64).ok_or(SumMismatch::Unreadable)?;
        // A star instead of the second space says that the file was read as bytes, which everybody does.
        let file = file.strip_prefix("  ").or_else(|| file.strip_prefix(" *")).ok_or(SumMismatch::Unreadable)?;
        let is_name = !file.is_empty() && file.len() <= 255 && file.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_name || file.contains('/') {
            return Err(SumMismatch::Unreadable);
        }
        let digest = format!("sha256:{hash}").parse().map_err(|_| SumMismatch::Unreadable)?;
        Ok(Self { digest, file: file.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const NAME: &str = "minio.RELEASE.2026-03-12T20-18-48Z";

    fn read(text: &str) -> Result<Sha256sum, SumMismatch> {
        text.replace("HASH", HASH).replace("NAME", NAME).parse()
    }

    #[rstest]
    #[case::as_it_is_written("HASH  NAME\n")]
    #[case::as_bytes("HASH *NAME\n")]
    #[case::without_the_lines_end("HASH  NAME")]
    fn a_sum_is_of_one_file(#[case] text: &str) {
        let (sum, release) = (read(text).unwrap(), "2026-03-12T20:18:48Z".parse().unwrap());
        assert_eq!(sum.check(&Digest::of(b""), &release), Ok(()));
        let (wanted, found) = (Digest::of(b""), Digest::of(b"other"));
        assert_eq!(sum.check(&found, &release), Err(SumMismatch::Bytes { wanted, found: found.clone() }));
        let other: Release = "2026-03-13T20:18:48Z".parse().unwrap();
        let (wanted, found) = (format!("minio.{other}"), NAME.to_owned());
        assert_eq!(sum.check(&Digest::of(b""), &other), Err(SumMismatch::Name { wanted, found }));
    }

    #[rstest]
    #[case::nothing("")]
    #[case::no_name("HASH")]
    #[case::an_empty_name("HASH  ")]
    #[case::one_space("HASH NAME")]
    #[case::two_stars("HASH **NAME/")]
    #[case::three_spaces("HASH   NAME")]
    #[case::a_path("HASH  bin/NAME")]
    #[case::two_lines("HASH  NAME\nHASH  NAME\n")]
    #[case::an_empty_line("HASH  NAME\n\n")]
    #[case::an_escaped_name("\\HASH  NAME\n")]
    #[case::capitals("E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855  NAME")]
    #[case::too_short("e3b0c4  NAME")]
    #[case::no_digit_but_as_long("é3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8  NAME")]
    #[case::cut_in_a_character("3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855é  NAME")]
    fn other_texts_are_no_sums(#[case] text: &str) {
        assert_eq!(read(text), Err(SumMismatch::Unreadable));
    }
}
