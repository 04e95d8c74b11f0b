//! What the API server takes for a text of a format. It is more lenient than the formats' own definitions, and clients have to live with
//! what it lets through.

use std::{net::Ipv6Addr, sync::LazyLock};

use regex::Regex;

/// A time of day with an offset, in lower case. Any character may stand before the fraction, and an offset is any four digits.
static TIME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").ok());
static UUID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok());

/// The formats that mean anything to the server; it forgets all others when it reads a definition.
const KNOWN: &[&str] = &[
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether the server knows this format. Dashes in its name make no difference.
pub(super) fn is_known(format: &str) -> bool {
    KNOWN.contains(&plain(format).as_str())
}

/// Whether the server takes the text for one of the format. Those whose check is not written here take all texts.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match plain(format).as_str() {
        "datetime" => is_date_time(text),
        "date" => is_date(text),
        "ipv4" => is_ipv4(text),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "uuid" => UUID.as_ref().is_some_and(|uuid| uuid.is_match(text)),
        _ => true,
    }
}

fn plain(format: &str) -> String {
    format.replace('-', "")
}

/// What stands after a second `t` is not looked at.
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.as_ref().and_then(|pattern| pattern.captures(time)) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

fn is_date(text: &str) -> bool {
    let shaped = text.len() == 10
        && text.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let number = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<i16>().ok()).unwrap_or(0);
    let small = |from: usize, to: usize| i8::try_from(number(from, to)).unwrap_or(0);
    shaped && jiff::civil::Date::new(number(0, 4), small(5, 7), small(8, 10)).is_ok()
}

/// Zeros may lead.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let fits = |part: &&str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u16>().is_ok_and(|number| number < 256)
    };
    parts.len() == 4 && parts.iter().all(fits)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::fits;

    #[rstest]
    #[case("date-time", "2030-01-01T00:00:00Z", true)]
    #[case("date-time", "2030-01-01t00:00:00.5z", true)]
    #[case("date-time", "2030-01-01T00:00:00+99:99", true)]
    #[case("date-time", "2030-01-01T00:00:00x5Z", true)]
    #[case("date-time", "2030-01-01T00:00:00ZTomorrow", true)]
    #[case("date-time", "0000-01-01T23:59:59Z", true)]
    #[case("date-time", "2030-01-01T24:00:00Z", false)]
    #[case("date-time", "2030-01-01T00:00:60Z", false)]
    #[case("date-time", "2030-02-30T00:00:00Z", false)]
    #[case("date-time", "2030-01-01 00:00:00Z", false)]
    #[case("date-time", "2030-01-01T00:00:00", false)]
    #[case("datetime", "2030-01-01", false)]
    #[case("date", "2030-1-1", false)]
    #[case("date", "20300101", false)]
    #[case("ipv4", "010.0.0.1", true)]
    #[case("ipv4", "10.0.0.256", false)]
    #[case("whatever", "everything", true)]
    fn a_text_fits_its_format_as_on_the_server(#[case] format: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(fits(format, text), expected, "{format} {text}");
    }
}
