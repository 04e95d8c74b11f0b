//! Extended headers: `length key=value` lines that say what a header has no room for.

use super::error::Refusal;

/// What of an extended header matters here. Times, owners and attributes don't.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
}

impl Pax {
    pub(super) fn parse(mut bytes: &[u8]) -> Result<Self, Refusal> {
        let mut pax = Self::default();
        while !bytes.is_empty() {
            let (record, rest) = record(bytes).ok_or(Refusal::ExtendedHeader)?;
            bytes = rest;
            let split = record.iter().position(|byte| *byte == b'=').ok_or(Refusal::ExtendedHeader)?;
            let (key, value) = record.split_at(split);
            let value = value.get(1..).unwrap_or_default();
            match key {
                b"path" => once(&mut pax.path, value.to_vec())?,
                b"size" => once(&mut pax.size, number(value)?)?,
                key if key.starts_with(b"GNU.sparse.") => return Err(Refusal::Sparse),
                _ => {}
            }
        }
        Ok(pax)
    }
}

fn once<T>(field: &mut Option<T>, value: T) -> Result<(), Refusal> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(Refusal::Contradiction),
    }
}

/// The first record without its length and the line's end, and what follows.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let length = usize::try_from(number(bytes.get(..space)?).ok()?).ok()?;
    let (line, rest) = bytes.split_at_checked(length)?;
    Some((line.get(space + 1..)?.strip_suffix(b"\n")?, rest))
}

/// Decimal digits and nothing else: a sign or a space that some accept would make two sizes of one text.
fn number(digits: &[u8]) -> Result<u64, Refusal> {
    let text = std::str::from_utf8(digits).map_err(|_| Refusal::ExtendedHeader)?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::ExtendedHeader);
    }
    text.parse().map_err(|_| Refusal::Number)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(b"", None, None)]
    #[case::a_path(b"12 path=a/b\n", Some(&b"a/b"[..]), None)]
    #[case::a_size(b"10 size=7\n", None, Some(7))]
    #[case::others_are_passed_by(b"20 mtime=1600000000\n11 uid=501\n", None, None)]
    #[case::a_value_with_its_own_lines(b"27 SCHILY.xattr.user.a=b\n=\n10 size=7\n", None, Some(7))]
    fn what_matters_is_read(#[case] text: &[u8], #[case] path: Option<&[u8]>, #[case] size: Option<u64>) {
        assert_eq!(Pax::parse(text), Ok(Pax { path: path.map(<[u8]>::to_vec), size }));
    }

    #[rstest]
    #[case::no_length(b"path=a\n", Refusal::ExtendedHeader)]
    #[case::a_length_that_is_too_long(b"99 path=a\n", Refusal::ExtendedHeader)]
    #[case::a_length_that_is_too_short(b"8 path=a/b\n", Refusal::ExtendedHeader)]
    #[case::a_length_of_nothing(b"0 path=a\n", Refusal::ExtendedHeader)]
    #[case::a_signed_length(b"+9 path=a\n", Refusal::ExtendedHeader)]
    #[case::no_value(b"7 path\n", Refusal::ExtendedHeader)]
    #[case::two_paths(b"9 path=a\n9 path=b\n", Refusal::Contradiction)]
    #[case::two_sizes(b"10 size=1\n10 size=1\n", Refusal::Contradiction)]
    #[case::negative(b"11 size=-1\n", Refusal::ExtendedHeader)]
    #[case::beyond_all_bounds(b"29 size=99999999999999999999\n", Refusal::Number)]
    #[case::sparse(b"22 GNU.sparse.major=1\n", Refusal::Sparse)]
    fn what_could_be_read_in_two_ways_is_refused(#[case] text: &[u8], #[case] expected: Refusal) {
        assert_eq!(Pax::parse(text), Err(expected));
    }
}
