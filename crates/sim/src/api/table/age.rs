//! Spans of time as a person reads them: two or three digits that matter, as every Kubernetes table shows them.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY_HOURS: i64 = 24;
const YEAR_HOURS: i64 = 365 * DAY_HOURS;

/// How long ago this was; `<unknown>` where there is no time.
pub(super) fn since(at: &str, now: Timestamp) -> String {
    if at.is_empty() {
        return "<unknown>".to_owned();
    }
    match at.parse::<Timestamp>() {
        Ok(at) => span((now.as_nanosecond() - at.as_nanosecond()) / 1_000_000_000),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// How long it was from the one to the other.
pub(super) fn between(from: &str, to: &str) -> String {
    to.parse().map_or_else(|_| "<invalid>".to_owned(), |to| since(from, to))
}

fn span(seconds: i128) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    // Clocks of two machines may differ a little; more than that is no age.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / MINUTE, seconds / HOUR);
    let days = hours / DAY_HOURS;
    if seconds < 2 * MINUTE {
        format!("{seconds}s")
    } else if minutes < 10 {
        with_rest(minutes, "m", seconds % MINUTE, "s")
    } else if minutes < 3 * 60 {
        format!("{minutes}m")
    } else if hours < 8 {
        with_rest(hours, "h", minutes % 60, "m")
    } else if hours < 2 * DAY_HOURS {
        format!("{hours}h")
    } else if hours < 8 * DAY_HOURS {
        with_rest(days, "d", hours % DAY_HOURS, "h")
    } else if hours < 2 * YEAR_HOURS {
        format!("{days}d")
    } else if hours < 8 * YEAR_HOURS {
        with_rest(days / 365, "y", days % 365, "d")
    } else {
        format!("{}y", days / 365)
    }
}

fn with_rest(whole: i64, unit: &str, rest: i64, rest_unit: &str) -> String {
    if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{rest_unit}") }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(-2, "<invalid>")]
    #[case(-1, "0s")]
    #[case(119, "119s")]
    #[case(120, "2m")]
    #[case(599, "9m59s")]
    #[case(600, "10m")]
    #[case(3 * HOUR - 1, "179m")]
    #[case(3 * HOUR, "3h")]
    #[case(7 * HOUR + 59 * MINUTE, "7h59m")]
    #[case(47 * HOUR, "47h")]
    #[case(48 * HOUR, "2d")]
    #[case(50 * HOUR, "2d2h")]
    #[case(8 * 24 * HOUR, "8d")]
    #[case(2 * YEAR_HOURS * HOUR + 24 * HOUR, "2y1d")]
    #[case(9 * YEAR_HOURS * HOUR, "9y")]
    fn a_span_keeps_the_digits_that_matter(#[case] seconds: i64, #[case] text: &str) {
        assert_eq!(span(i128::from(seconds)), text);
    }

    #[test]
    fn no_time_is_unknown() {
        assert_eq!(since("", crate::clock::EPOCH), "<unknown>");
        assert_eq!(since("2025-12-31T23:59:00Z", crate::clock::EPOCH), "60s");
    }
}
