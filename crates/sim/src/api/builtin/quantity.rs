//! Quantities in the one form that a server shows: `0.5` is `500m`, and `1024Mi` is `1Gi`.

use serde_json::{Map, Value};

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Nothing smaller is told apart.
const SMALLEST: i32 = -9;

/// A quantity in billionths, and whether it was written with a binary suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quantity {
    nano: i128,
    binary: bool,
}

impl Quantity {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let nano = nano(number)?;
        if let Some(power) = BINARY.iter().position(|one| *one == suffix).filter(|power| *power > 0) {
            let factor = 1024_i128.checked_pow(u32::try_from(power).ok()?)?;
            return Some(Self { nano: nano.checked_mul(factor)?, binary: true });
        }
        let exponent = match DECIMAL.iter().find(|(one, _)| *one == suffix) {
            Some((_, exponent)) => *exponent,
            None => suffix.strip_prefix(['e', 'E'])?.parse().ok()?,
        };
        let factor = 10_i128.checked_pow(exponent.unsigned_abs())?;
        let nano = if exponent < 0 { nano / factor } else { nano.checked_mul(factor)? };
        Some(Self { nano, binary: false })
    }

    pub(super) fn text(self) -> String {
        let one = 10_i128.pow(SMALLEST.unsigned_abs());
        if self.binary && self.nano % one == 0 && (self.nano / one).abs() >= 1024 {
            let mut value = self.nano / one;
            let mut power = 0;
            while value % 1024 == 0 && power + 1 < BINARY.len() {
                value /= 1024;
                power += 1;
            }
            return format!("{value}{}", BINARY[power]);
        }
        if self.nano == 0 {
            return "0".to_owned();
        }
        let largest = DECIMAL
            .iter()
            .rev()
            .find(|(_, exponent)| self.nano % 10_i128.pow((exponent - SMALLEST).unsigned_abs()) == 0);
        let (suffix, exponent) = largest.copied().unwrap_or(("n", SMALLEST));
        format!("{}{suffix}", self.nano / 10_i128.pow((exponent - SMALLEST).unsigned_abs()))
    }
}

/// A decimal number in billionths.
fn nano(number: &str) -> Option<i128> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let places = usize::try_from(SMALLEST.unsigned_abs()).ok()?;
    let part: String = part.chars().chain(std::iter::repeat('0')).take(places).collect();
    let text = format!("{whole}{part}");
    text.parse::<i128>().ok().map(|value| sign * value)
}

/// Whether everything that must be a quantity is one.
pub(super) fn check(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                if matches!(key.as_str(), "limits" | "requests")
                    && let Some(resources) = inner.as_object()
                    && resources
                        .values()
                        .any(|value| value.as_str().is_some_and(|text| Quantity::parse(text).is_none()))
                {
                    return Err("quantities must match the regular expression".to_owned());
                }
                check(inner)?;
            }
            Ok(())
        }
        Value::Array(list) => list.iter().try_for_each(check),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Rewrites the quantities of a map of resources.
pub(super) fn tidy(resources: &mut Map<String, Value>) {
    for value in resources.values_mut() {
        let quantity = match &*value {
            Value::String(text) => Quantity::parse(text),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        if let Some(quantity) = quantity {
            *value = Value::String(quantity.text());
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0.5", "500m")]
    #[case("1000m", "1")]
    #[case("1500m", "1500m")]
    #[case("64Mi", "64Mi")]
    #[case("1024Mi", "1Gi")]
    #[case("512", "512")]
    #[case("1000", "1k")]
    #[case("1e3", "1k")]
    #[case("0", "0")]
    #[case("1.5Gi", "1536Mi")]
    fn a_quantity_has_one_form(#[case] written: &str, #[case] shown: &str) {
        assert_eq!(Quantity::parse(written).map(Quantity::text).as_deref(), Some(shown));
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        assert_eq!(Quantity::parse("lots"), None);
        assert_eq!(Quantity::parse(""), None);
    }
}
