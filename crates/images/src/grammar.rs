//! The characters that each part of a reference may have, after the OCI distribution specification and the way Docker
//! reads names.
//!
//! Called by [`crate::reference`] alone. Each function judges one part and says the first thing that is wrong with it.

use std::net::Ipv6Addr;

use crate::reference::Problem;

/// The longest repository that registries accept.
const REPOSITORY_LIMIT: usize = 255;
const TAG_LIMIT: usize = 128;

/// Whether the first component names a registry: otherwise `team/pd` and `localhost/pd` could not be told apart.
pub(crate) fn is_registry(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':'])
}

/// `host[:port]`, the host a DNS name, an IPv4 address or an IPv6 address in brackets.
pub(crate) fn registry(text: &str) -> Result<(), Problem> {
    // The colons inside brackets belong to the address.
    let bracket = text.find(']').unwrap_or(0);
    let colon = text.bytes().enumerate().skip(bracket).find(|(_, byte)| *byte == b':').map(|(index, _)| index);
    let (host, port) = colon.map_or((text, None), |colon| {
        let (host, port) = text.split_at(colon);
        (host, port.strip_prefix(':'))
    });
    if !is_host(host) {
        return Err(Problem::RegistryHost);
    }
    match port {
        Some(port) if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) => Err(Problem::RegistryPort),
        Some(_) | None => Ok(()),
    }
}

fn is_host(text: &str) -> bool {
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => text.split('.').all(is_host_label),
    }
}

fn is_host_label(label: &str) -> bool {
    let inside = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    inside && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
}

/// Components of lower-case letters and digits, joined by `.`, `_`, `__` or any number of `-`; the components joined by
/// `/`.
pub(crate) fn repository(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(Problem::NoRepository);
    }
    if text.len() > REPOSITORY_LIMIT {
        return Err(Problem::TooLong { limit: REPOSITORY_LIMIT });
    }
    text.split('/').try_for_each(component)
}

fn component(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(Problem::EmptyComponent);
    }
    if let Some(character) = text.chars().find(|c| c.is_uppercase()) {
        return Err(Problem::UpperCase { character });
    }
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if let Some(character) = text.chars().find(|c| !is_word(*c) && !matches!(c, '.' | '_' | '-')) {
        return Err(Problem::Character { character });
    }
    // What stands between the words. The first and the last piece are empty only where the component starts or ends
    // with a separator.
    let mut separators = text.split(is_word).filter(|separator| !separator.is_empty());
    let at_an_end = !text.starts_with(is_word) || !text.ends_with(is_word);
    let is_joint = |separator: &str| matches!(separator, "." | "_" | "__") || separator.bytes().all(|b| b == b'-');
    if at_an_end || !separators.all(is_joint) { Err(Problem::Separator) } else { Ok(()) }
}

/// A letter, digit or underscore, then up to 127 of these, dots and dashes.
pub(crate) fn tag(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(Problem::Empty);
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(character) = text.chars().find(|c| !is_word(*c) && !matches!(c, '.' | '-')) {
        return Err(Problem::Character { character });
    }
    if !text.starts_with(is_word) {
        return Err(Problem::Separator);
    }
    if text.len() > TAG_LIMIT { Err(Problem::TooLong { limit: TAG_LIMIT }) } else { Ok(()) }
}

/// `algorithm:encoded`. The algorithms that registries must know have a fixed length in lower-case hexadecimal; for
/// others the form is all that can be checked.
pub(crate) fn digest(text: &str) -> Result<(), Problem> {
    let (algorithm, encoded) = text.split_once(':').ok_or(Problem::DigestForm)?;
    let is_algorithm_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if !algorithm.split(['+', '.', '_', '-']).all(is_algorithm_part) {
        return Err(Problem::DigestForm);
    }
    let is_hexadecimal = encoded.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let digits = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => {
            let is_encoding = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'=' | b'_' | b'-');
            return if !encoded.is_empty() && encoded.bytes().all(is_encoding) {
                Ok(())
            } else {
                Err(Problem::DigestForm)
            };
        }
    };
    if is_hexadecimal && encoded.len() == digits { Ok(()) } else { Err(Problem::DigestLength { digits }) }
}
