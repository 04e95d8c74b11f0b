//! Maintenance windows: when members may be taken down and leadership may be handed over.
//!
//! A window opens at every time that its schedule names, in its own time zone, and is open for its duration: the opening instant is
//! inside, the closing instant is not. Windows that overlap or touch are one.
//!
//! **Clock changes.** A time that the clock skips opens at the moment of the jump; one that it shows twice opens the first time. The
//! duration is elapsed time and does not care. So later times never open earlier, which the search below relies on.
//!
//! Schedules are evaluated as plain dates and times by `cronexpr`, and mapped to instants here: its own look-up of time zones would read
//! the machine's files, and a decision must be the same everywhere.

use std::{fmt, time::Duration};

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions};
use jiff::{
    SignedDuration, Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase},
};

use crate::{gate::Outcome, hold::Hold, reason::Reason};

/// More than any clock was ever moved.
const SLACK: SignedDuration = SignedDuration::from_hours(50);

/// The longest duration that makes sense.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// So many windows in a row are looked through for the end of all of them.
const IN_A_ROW: usize = 500;

/// Where the library's arithmetic is known to end well.
const YEARS: std::ops::RangeInclusive<i16> = 1900..=9000;

/// The words that a field may contain.
const WORDS: &str = " jan feb mar apr may jun jul aug sep oct nov dec sun mon tue wed thu fri sat ";

/// A time that recurs, and how long it lasts.
#[derive(Clone, Debug)]
pub struct Window {
    schedule: String,
    duration: Duration,
    zone_name: String,
    cron: Crontab,
    zone: TimeZone,
}

impl PartialEq for Window {
    fn eq(&self, other: &Self) -> bool {
        // The rest is made from these.
        (&self.schedule, self.duration, &self.zone_name) == (&other.schedule, other.duration, &other.zone_name)
    }
}

impl Eq for Window {}

/// What is wrong with a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAWindow {
    /// The schedule can't be read.
    Schedule(String),
    /// It lasts no time.
    Duration(String),
    /// There is no such time zone.
    Zone(String),
}

impl fmt::Display for NotAWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule(why) | Self::Duration(why) | Self::Zone(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NotAWindow {}

impl Window {
    /// A window from a cron schedule of five fields, a duration and the name of a time zone.
    pub fn parse(schedule: &str, duration: Duration, zone: &str) -> Result<Self, NotAWindow> {
        let refused =
            |why: &str| NotAWindow::Schedule(format!("{schedule:?} is no schedule like \"0 2 * * sat\": {why}"));
        let fields: Vec<&str> = schedule.split_ascii_whitespace().collect();
        if fields.len() != 5 {
            return Err(refused(&format!("it has {} fields and not five", fields.len())));
        }
        let strange = schedule
            .split(|one: char| one.is_ascii_digit() || one.is_ascii_whitespace() || "*,-/".contains(one))
            .find(|word| !word.is_empty() && !WORDS.contains(&format!(" {} ", word.to_ascii_lowercase())));
        if let Some(strange) = strange {
            return Err(refused(&format!("{strange:?} is neither a number nor a month nor a day")));
        }
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let cron = cronexpr::parse_crontab_with(&fields.join(" "), options)
            .map_err(|error| refused(&one_line(&error.to_string())))?;
        if duration.is_zero() {
            return Err(NotAWindow::Duration("a window that lasts no time never opens".to_owned()));
        }
        if duration > LONGEST {
            return Err(NotAWindow::Duration("a window that lasts longer than a year is none".to_owned()));
        }
        let found = TimeZoneDatabase::bundled().get(zone);
        let zone_name = zone.to_owned();
        let zone = found
            .map_err(|_| NotAWindow::Zone(format!("{zone:?} is no time zone like \"Europe/Berlin\" or \"UTC\"")))?;
        let window = Self { schedule: fields.join(" "), duration, zone_name, cron, zone };
        // Any four years have all dates that there are.
        if window.next_match(DateTime::constant(2024, 1, 1, 0, 0, 0, 0)).is_none() {
            return Err(refused("there is no such date"));
        }
        Ok(window)
    }

    /// The next date and time that the schedule names.
    fn next_match(&self, after: DateTime) -> Option<DateTime> {
        if !YEARS.contains(&after.year()) {
            return None;
        }
        let after = TimeZone::UTC.to_timestamp(after).ok()?;
        Some(self.cron.find_next(after).ok()?.datetime())
    }

    /// The moment at which a date and time comes.
    fn instant(&self, time: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(time);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
            AmbiguousOffset::Gap { .. } => {
                let before = ambiguous.earlier().ok()?;
                self.zone.following(before).next().map(|jump| jump.timestamp())
            }
        }
    }

    /// The last opening at or before a moment, as far back as `reach`, and the first one after it.
    fn around(&self, at: Timestamp, reach: Duration) -> (Option<Timestamp>, Option<Timestamp>) {
        let civil = |moment: Timestamp| self.zone.to_datetime(moment);
        let back = SignedDuration::try_from(reach).unwrap_or(SignedDuration::MAX);
        let from = at.checked_sub(back).map(civil).and_then(|time| time.checked_sub(SLACK));
        let (Ok(mut low), Ok(mut high)) = (from, civil(at).checked_add(SLACK)) else { return (None, None) };
        let is_past = |time: DateTime| {
            self.next_match(time).and_then(|next| self.instant(next)).is_some_and(|moment| moment <= at)
        };
        let opening = |time: DateTime| self.next_match(time).and_then(|next| self.instant(next));
        if !is_past(low) {
            return (None, opening(low));
        }
        // The last time whose opening is past lies between the two: schedules know minutes, so a minute is near enough.
        loop {
            let apart = high.duration_since(low);
            if apart <= SignedDuration::from_mins(1) {
                break;
            }
            let Some(middle) = apart.checked_div(2).and_then(|half| low.checked_add(half).ok()) else { break };
            if is_past(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        (opening(low), self.next_match(low).and_then(opening))
    }

    /// When it closes, if it is open.
    fn closes(&self, at: Timestamp) -> Option<Timestamp> {
        let (opened, _) = self.around(at, self.duration);
        let closes = opened?.saturating_add(self.duration).unwrap_or(Timestamp::MAX);
        (closes > at).then_some(closes)
    }

    /// When it opens next.
    fn opens(&self, after: Timestamp) -> Option<Timestamp> {
        self.around(after, Duration::ZERO).1
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// When the windows that are open now close, all in a row; as far as `enough`. None if none is open.
fn open_until(windows: &[Window], now: Timestamp, enough: Timestamp) -> Option<Timestamp> {
    let latest = |at: Timestamp| windows.iter().filter_map(|window| window.closes(at)).max();
    let mut closes = latest(now)?;
    for _ in 0..IN_A_ROW {
        if closes >= enough {
            break;
        }
        match latest(closes) {
            Some(later) => closes = later,
            None => break,
        }
    }
    Some(closes)
}

/// The next opening of any of them, and which one opens.
fn next_opening(windows: &[Window], after: Timestamp) -> Option<(Timestamp, &Window)> {
    let openings = windows.iter().filter_map(|window| Some((window.opens(after)?, window)));
    openings.min_by_key(|(opens, _)| *opens)
}

/// One of these windows is open, and stays open for as long as one step has been seen to take; or there are none.
pub(crate) fn open_for(windows: &[Window], needed: Option<Duration>, now: Timestamp) -> Outcome {
    if windows.is_empty() {
        return Outcome::Pass;
    }
    let done = now.saturating_add(needed.unwrap_or_default()).unwrap_or(Timestamp::MAX);
    let closes = open_until(windows, now, done);
    let (after, trouble) = match (closes, needed) {
        (Some(closes), _) if closes >= done => return Outcome::Pass,
        (Some(closes), needed) => {
            let took = SignedDuration::try_from(needed.unwrap_or_default()).unwrap_or(SignedDuration::MAX);
            let took = SignedDuration::from_secs(took.as_secs());
            (
                closes,
                format!("the maintenance window closes at {closes}, and replacing a member has taken up to {took:#}"),
            )
        }
        (None, _) => (now, "no maintenance window is open".to_owned()),
    };
    let next = next_opening(windows, after);
    let opens = next.map_or_else(
        || "none opens within four years".to_owned(),
        |(opens, window)| format!("the next one opens at {}", opens.to_zoned(window.zone.clone())),
    );
    let hold = Hold::new(Reason::WindowClosed, format!("{trouble}; {opens}"));
    Outcome::Hold(hold.until(next.map(|(opens, _)| opens)))
}
