//! MinIO's releases: a moment in time, in several spellings. Compared as times, never as text.

use std::{cmp::Ordering, fmt, str::FromStr};

use jiff::civil::{Date, DateTime, Time};

/// A release: `RELEASE.2026-03-12T20-18-48Z`, `2026-03-12T20-18-48Z` or `2026-03-12T20:18:48Z`; a hotfix of one, with `.hotfix.` and a word
/// behind; or a day alone, as in Bitnami's tags, `2025.7.23-debian-12-r3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    moment: Moment,
    hotfix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Second(DateTime),
    Day(Date),
}

/// The text is no release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotARelease(String);

impl fmt::Display for NotARelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a release like RELEASE.2025-10-15T17-29-55Z", self.0)
    }
}

impl std::error::Error for NotARelease {}

/// How old a release is, next to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It came later.
    Newer,
    /// They are one.
    Same,
    /// It came earlier.
    Older,
    /// Nobody can tell from what is written. That blocks.
    Unknown,
}

/// What going from one release to another is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is nothing to do.
    Nothing,
    /// To a newer one.
    Upgrade,
    /// To an older one, as somebody asked for.
    Downgrade,
}

/// Why a release is not gone to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// It is older, and nobody said that this is wanted.
    Downgrade,
    /// It is older than what is supported.
    BelowMinimum,
    /// Which one is newer can't be told.
    Unknown,
}

impl Release {
    /// How old it is, next to another.
    ///
    /// MinIO orders releases by their time alone, so hotfixes of one release, named after commits, have no order.
    pub fn next_to(&self, other: &Self) -> Age {
        let order = match (self.moment, other.moment) {
            (Moment::Second(this), Moment::Second(that)) => Some(this.cmp(&that)),
            (Moment::Day(this), Moment::Day(that)) => Some(this.cmp(&that)),
            // On one day, the one whose time is not known may have come before or after the other.
            (Moment::Second(this), Moment::Day(day)) => Some(this.date().cmp(&day)).filter(|order| order.is_ne()),
            (Moment::Day(day), Moment::Second(that)) => Some(day.cmp(&that.date())).filter(|order| order.is_ne()),
        };
        match order {
            Some(Ordering::Less) => Age::Older,
            Some(Ordering::Greater) => Age::Newer,
            Some(Ordering::Equal) if self.hotfix == other.hotfix => Age::Same,
            Some(Ordering::Equal) | None => Age::Unknown,
        }
    }

    /// Whether it is this release or a later one; none where that can't be told.
    pub fn is_at_least(&self, minimum: &Self) -> Option<bool> {
        match self.next_to(minimum) {
            Age::Newer | Age::Same => Some(true),
            Age::Older => Some(false),
            Age::Unknown => None,
        }
    }

    /// What going to this release from another is. `minimum` is the oldest that is supported; what can't be told blocks, whatever is allowed.
    pub fn step_from(&self, from: &Self, minimum: Option<&Self>, allow_downgrade: bool) -> Result<Step, Blocked> {
        let step = match self.next_to(from) {
            Age::Same => return Ok(Step::Nothing),
            Age::Newer => Step::Upgrade,
            Age::Older if allow_downgrade => Step::Downgrade,
            Age::Older => return Err(Blocked::Downgrade),
            Age::Unknown => return Err(Blocked::Unknown),
        };
        match minimum.map_or(Some(true), |minimum| self.is_at_least(minimum)) {
            Some(true) => Ok(step),
            Some(false) => Err(Blocked::BelowMinimum),
            None => Err(Blocked::Unknown),
        }
    }
}

impl FromStr for Release {
    type Err = NotARelease;

    fn from_str(text: &str) -> Result<Self, NotARelease> {
        let plain = |moment| Self { moment, hotfix: None };
        let release = match text.strip_prefix("RELEASE.") {
            Some(rest) => dashed(rest),
            None => dashed(text)
                .or_else(|| second(text, ':').map(Moment::Second).map(plain))
                .or_else(|| day(text).map(Moment::Day).map(plain)),
        };
        release.ok_or_else(|| NotARelease(text.chars().take(100).collect()))
    }
}

/// `2026-03-12T20-18-48Z`, perhaps a hotfix.
fn dashed(text: &str) -> Option<Release> {
    let (time, hotfix) = match text.split_once('.') {
        Some((time, rest)) => (time, Some(rest.strip_prefix("hotfix.")?)),
        None => (text, None),
    };
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if hotfix.is_some_and(|word| !is_word(word)) {
        return None;
    }
    Some(Release { moment: Moment::Second(second(time, '-')?), hotfix: hotfix.map(str::to_owned) })
}

/// `2026-03-12T20-18-48Z`, with this between hours, minutes and seconds. A second of 60 is none here.
fn second(text: &str, between: char) -> Option<DateTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, between, [2, 2, 2])?;
    let small = |number: i16| i8::try_from(number).ok();
    let date = Date::new(year, small(month)?, small(day)?).ok()?;
    let time = Time::new(small(hour)?, small(minute)?, small(second)?, 0).ok()?;
    Some(DateTime::from_parts(date, time))
}

/// Three numbers of exactly so many digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[i16; 3]> {
    let mut parts = text.split(between);
    let mut numbers = [0; 3];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *number = decimal(part)?;
    }
    parts.next().is_none().then_some(numbers)
}

/// `2025.7.23`, with whatever a distributor adds behind a dash.
fn day(text: &str) -> Option<Date> {
    let date = text.split_once('-').map_or(text, |(date, _)| date);
    let mut parts = date.split('.');
    let mut next = |most: usize| {
        let part = parts.next().filter(|part| part.len() <= most && !part.starts_with('0'))?;
        decimal(part)
    };
    let (year, month, day) = (next(4)?, next(2)?, next(2)?);
    // Fewer digits are the numbers of some other version.
    if parts.next().is_some() || year < 1000 {
        return None;
    }
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

fn decimal(text: &str) -> Option<i16> {
    // A sign is no digit.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.moment {
            Moment::Second(at) => write!(
                f,
                "RELEASE.{:04}-{:02}-{:02}T{:02}-{:02}-{:02}Z",
                at.year(),
                at.month(),
                at.day(),
                at.hour(),
                at.minute(),
                at.second()
            )?,
            Moment::Day(date) => write!(f, "{}.{}.{}", date.year(), date.month(), date.day())?,
        }
        self.hotfix.as_ref().map_or(Ok(()), |hotfix| write!(f, ".hotfix.{hotfix}"))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn release(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[rstest]
    #[case::a_tag("RELEASE.2026-03-12T20-18-48Z", "RELEASE.2026-03-12T20-18-48Z")]
    #[case::without_the_word("2026-03-12T20-18-48Z", "RELEASE.2026-03-12T20-18-48Z")]
    #[case::as_a_server_says_it("2026-03-12T20:18:48Z", "RELEASE.2026-03-12T20-18-48Z")]
    #[case::a_hotfix("RELEASE.2026-03-12T20-18-48Z.hotfix.a1b2c3", "RELEASE.2026-03-12T20-18-48Z.hotfix.a1b2c3")]
    #[case::a_leap_day("2024-02-29T00:00:00Z", "RELEASE.2024-02-29T00-00-00Z")]
    #[case::a_day("2025.7.23", "2025.7.23")]
    #[case::a_day_with_decoration("2025.7.23-debian-12-r3", "2025.7.23")]
    fn every_spelling_is_read(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(release(text).to_string(), expected);
        assert_eq!(release(expected).next_to(&release(text)), Age::Same, "and read again");
    }

    #[rstest]
    #[case::nothing("")]
    #[case::a_word("latest")]
    #[case::a_version("8.5.1")]
    #[case::another_prefix("DEVELOPMENT.2026-03-12T20-18-48Z")]
    #[case::lower_case("release.2026-03-12T20-18-48Z")]
    #[case::colons_in_a_tag("RELEASE.2026-03-12T20:18:48Z")]
    #[case::no_zone("2026-03-12T20:18:48")]
    #[case::another_zone("2026-03-12T20:18:48+01:00")]
    #[case::a_fraction("2026-03-12T20:18:48.5Z")]
    #[case::a_thirteenth_month("2026-13-12T20:18:48Z")]
    #[case::no_such_day("2025-02-29T20:18:48Z")]
    #[case::a_leap_second("2016-12-31T23:59:60Z")]
    #[case::fewer_digits("2026-3-12T20:18:48Z")]
    #[case::a_sign("2026-+3-12T20:18:48Z")]
    #[case::more_numbers("2026-03-12-01T20:18:48Z")]
    #[case::an_empty_hotfix("RELEASE.2026-03-12T20-18-48Z.hotfix.")]
    #[case::something_else_behind("RELEASE.2026-03-12T20-18-48Z.fips")]
    #[case::more_behind_a_hotfix("RELEASE.2026-03-12T20-18-48Z.hotfix.a.b")]
    #[case::no_such_calendar_day("2025.2.30")]
    #[case::zeros_in_a_day("2025.07.23")]
    #[case::four_numbers("2025.7.23.1")]
    fn other_texts_are_no_releases(#[case] text: &str) {
        assert_eq!(text.parse::<Release>(), Err(NotARelease(text.into())));
    }

    const NOON: &str = "2026-03-12T12:00:00Z";

    #[rstest]
    #[case::a_second_later("RELEASE.2026-03-12T12-00-01Z", NOON, Age::Newer)]
    #[case::another_spelling("RELEASE.2026-03-12T12-00-00Z", NOON, Age::Same)]
    // As text it would be the other way round.
    #[case::days_are_numbers("2025.10.2", "2025.9.30", Age::Newer)]
    #[case::one_day("2026.3.12-debian-12-r1", "2026.3.12-debian-12-r2", Age::Same)]
    #[case::the_day_before("2026.3.11", NOON, Age::Older)]
    #[case::the_day_after("2026.3.13", NOON, Age::Newer)]
    #[case::that_day("2026.3.12", NOON, Age::Unknown)]
    #[case::a_hotfix_and_its_release("RELEASE.2026-03-12T12-00-00Z.hotfix.a1", NOON, Age::Unknown)]
    #[case::two_hotfixes(
        "RELEASE.2026-03-12T12-00-00Z.hotfix.a1",
        "RELEASE.2026-03-12T12-00-00Z.hotfix.a2",
        Age::Unknown
    )]
    #[case::one_hotfix("RELEASE.2026-03-12T12-00-00Z.hotfix.a1", "2026-03-12T12-00-00Z.hotfix.a1", Age::Same)]
    #[case::a_hotfix_of_an_older_one("RELEASE.2026-03-12T11-00-00Z.hotfix.a1", NOON, Age::Older)]
    fn releases_are_compared_as_times(#[case] this: &str, #[case] that: &str, #[case] expected: Age) {
        let (this, that) = (release(this), release(that));
        let opposite = match expected {
            Age::Newer => Age::Older,
            Age::Older => Age::Newer,
            same @ (Age::Same | Age::Unknown) => same,
        };
        assert_eq!((this.next_to(&that), that.next_to(&this)), (expected, opposite));
    }

    #[rstest]
    #[case::newer("2026-03-13T00:00:00Z", false, Ok(Step::Upgrade))]
    #[case::the_same(NOON, false, Ok(Step::Nothing))]
    #[case::older("2026-03-11T00:00:00Z", false, Err(Blocked::Downgrade))]
    #[case::older_and_allowed("2026-03-11T00:00:00Z", true, Ok(Step::Downgrade))]
    #[case::the_minimum("2024-01-28T00:00:00Z", true, Ok(Step::Downgrade))]
    #[case::too_old("2024-01-27T00:00:00Z", true, Err(Blocked::BelowMinimum))]
    #[case::on_the_minimums_day("2024.1.28", true, Err(Blocked::Unknown))]
    #[case::on_the_same_day("2026.3.12", false, Err(Blocked::Unknown))]
    #[case::on_the_same_day_and_allowed("2026.3.12", true, Err(Blocked::Unknown))]
    fn what_is_not_known_blocks(
        #[case] to: &str,
        #[case] allow_downgrade: bool,
        #[case] expected: Result<Step, Blocked>,
    ) {
        let minimum = release("2024-01-28T00:00:00Z");
        assert_eq!(release(to).step_from(&release(NOON), Some(&minimum), allow_downgrade), expected);
    }
}
