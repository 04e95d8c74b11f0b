//! Maintenance windows: when they open and close to the tick, also where the clock is changed.

use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason, Step, View, Want,
    rolling::{self, known::workload::Evictions},
    window::{NotAWindow, Window},
};

use crate::support::{
    Answer, NEW, answer,
    gatekeeper::{Gatekeeper, HALF_HOURS},
    half_way, hold, name, permitted, record_mut, theirs, want, window,
    world::World,
};

const TICK: Duration = Duration::from_nanos(1);

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Three members, one is replaced, `pd-1` is next.
fn scene(windows: Vec<Window>) -> (Want, View) {
    let want = Want { windows, ..want(NEW) };
    let mut view = half_way(3, 0, 1);
    // Long ago, whatever the moment.
    record_mut(&mut view).started_at = Timestamp::UNIX_EPOCH;
    // Our own budget would be let go first, for drains.
    view.evictions = theirs(3, 3);
    (want, view)
}

#[rstest]
// Nightly from two to four.
#[case::opening_instant(&[("0 2 * * *", 120, "UTC")], "2026-05-05T02:00:00Z", None)]
#[case::a_tick_earlier(&[("0 2 * * *", 120, "UTC")], "2026-05-05T01:59:59.999999999Z", Some("2026-05-05T02:00:00Z"))]
#[case::a_tick_before_it_closes(&[("0 2 * * *", 120, "UTC")], "2026-05-05T03:59:59.999999999Z", None)]
#[case::closing_instant(&[("0 2 * * *", 120, "UTC")], "2026-05-05T04:00:00Z", Some("2026-05-06T02:00:00Z"))]
// Saturday night into Sunday.
#[case::before_midnight(&[("0 22 * * sat", 240, "UTC")], "2026-05-09T23:59:59Z", None)]
#[case::after_midnight(&[("0 22 * * sat", 240, "UTC")], "2026-05-10T01:59:59Z", None)]
#[case::a_day_later(&[("0 22 * * sat", 240, "UTC")], "2026-05-10T22:30:00Z", Some("2026-05-16T22:00:00Z"))]
#[case::across_the_year(&[("0 23 31 12 *", 120, "UTC")], "2027-01-01T00:30:00Z", None)]
// Windows that overlap or touch are one.
#[case::in_the_first(&[("0 2 * * *", 120, "UTC"), ("0 3 * * *", 120, "UTC")], "2026-05-05T02:30:00Z", None)]
#[case::in_both(&[("0 2 * * *", 120, "UTC"), ("0 3 * * *", 120, "UTC")], "2026-05-05T03:30:00Z", None)]
#[case::in_the_second(&[("0 2 * * *", 120, "UTC"), ("0 3 * * *", 120, "UTC")], "2026-05-05T04:30:00Z", None)]
#[case::after_both(&[("0 2 * * *", 120, "UTC"), ("0 3 * * *", 120, "UTC")], "2026-05-05T05:00:00Z", Some("2026-05-06T02:00:00Z"))]
#[case::the_next_of_two(&[("0 22 * * sat", 60, "UTC"), ("0 4 * * wed", 60, "UTC")], "2026-05-05T12:00:00Z", Some("2026-05-06T04:00:00Z"))]
#[case::a_schedule_that_overlaps_itself(&[("*/10 * * * *", 45, "UTC")], "2026-05-05T12:34:56Z", None)]
#[case::always(&[("* * * * *", 1, "UTC")], "2026-05-05T12:34:56Z", None)]
// Central Europe goes from 02:00 to 03:00 on 29 March 2026, and from 03:00 to 02:00 on 25 October.
#[case::winter(&[("0 2 * * *", 60, "Europe/Berlin")], "2026-01-10T01:00:00Z", None)]
#[case::summer(&[("0 2 * * *", 60, "Europe/Berlin")], "2026-07-10T00:00:00Z", None)]
#[case::summer_is_not_winter(&[("0 2 * * *", 60, "Europe/Berlin")], "2026-07-10T01:00:00Z", Some("2026-07-11T00:00:00Z"))]
#[case::before_the_jump(&[("30 2 * * *", 60, "Europe/Berlin")], "2026-03-29T00:59:59.999999999Z", Some("2026-03-29T01:00:00Z"))]
#[case::a_skipped_time_opens_at_the_jump(&[("30 2 * * *", 60, "Europe/Berlin")], "2026-03-29T01:00:00Z", None)]
#[case::and_lasts_as_long_as_ever(&[("30 2 * * *", 60, "Europe/Berlin")], "2026-03-29T02:00:00Z", Some("2026-03-30T00:30:00Z"))]
#[case::elapsed_time_over_the_jump(&[("0 1 * * *", 120, "Europe/Berlin")], "2026-03-29T01:59:59Z", None)]
#[case::elapsed_time_over_the_jump_is_up(&[("0 1 * * *", 120, "Europe/Berlin")], "2026-03-29T02:00:00Z", Some("2026-03-29T23:00:00Z"))]
#[case::a_doubled_time_opens_the_first_time(&[("30 2 * * *", 30, "Europe/Berlin")], "2026-10-25T00:30:00Z", None)]
#[case::and_not_the_second_time(&[("30 2 * * *", 30, "Europe/Berlin")], "2026-10-25T01:30:00Z", Some("2026-10-26T01:30:00Z"))]
#[case::open_over_the_doubled_hour(&[("30 2 * * *", 90, "Europe/Berlin")], "2026-10-25T01:45:00Z", None)]
// Samoa had no 30 December 2011.
#[case::a_skipped_day_opens_at_the_jump(&[("0 12 30 12 *", 60, "Pacific/Apia")], "2011-12-30T10:30:00Z", None)]
// The last of February, which most years have not.
#[case::a_leap_day(&[("0 0 29 2 *", 60, "UTC")], "2026-05-05T00:00:00Z", Some("2028-02-29T00:00:00Z"))]
fn a_window_is_open_or_says_when_it_opens(
    #[case] windows: &[(&str, u64, &str)],
    #[case] now: &str,
    #[case] opens: Option<&str>,
) {
    let windows = windows.iter().map(|(schedule, minutes, zone)| window(schedule, *minutes, zone)).collect();
    let (want, view) = scene(windows);
    let decision = rolling::plan(&want, &view, moment(now)).decision;
    match (decision, opens) {
        (Decision::Act(Step::Permit { .. }), None) => {}
        (Decision::Wait { on, recheck }, Some(opens)) => {
            assert_eq!((on.reason, moment(now) + recheck), (Reason::WindowClosed, moment(opens)));
        }
        (decision, opens) => panic!("{decision:?} and not {opens:?}"),
    }
}

#[rstest]
#[case(("0 2 * * *", 120, "UTC"), "2026-05-05T01:59:59.999999999Z", "2026-05-05T02:00:00Z", "2026-05-05T02:00:00+00:00[UTC]")]
#[case(("0 2 * * *", 120, "UTC"), "2026-05-05T04:00:00Z", "2026-05-06T02:00:00Z", "2026-05-06T02:00:00+00:00[UTC]")]
#[case(("30 2 * * *", 60, "Europe/Berlin"), "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00[Europe/Berlin]")]
#[case(("30 2 * * *", 30, "Europe/Berlin"), "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z", "2026-10-26T02:30:00+01:00[Europe/Berlin]")]
#[case(("0 22 * * sat", 240, "America/New_York"), "2026-05-11T12:00:00Z", "2026-05-17T02:00:00Z", "2026-05-16T22:00:00-04:00[America/New_York]")]
fn outside_it_waits_until_the_very_opening(
    #[case] (schedule, minutes, zone): (&str, u64, &str),
    #[case] now: &str,
    #[case] opens: &str,
    #[case] said: &str,
) {
    let (want, view) = scene(vec![window(schedule, minutes, zone)]);
    let (now, opens) = (moment(now), moment(opens));
    let Decision::Wait { on, recheck } = rolling::plan(&want, &view, now).decision else { panic!("it does not wait") };
    assert_eq!((on.reason, on.until), (Reason::WindowClosed, Some(opens)));
    assert_eq!(now + recheck, opens, "exactly then");
    assert_eq!(on.message, format!("no maintenance window is open; the next one opens at {said}"));
    assert_eq!(answer(&rolling::plan(&want, &view, opens).decision), Answer::Act("ReplacementAllowed"));
    assert_eq!(answer(&rolling::plan(&want, &view, opens - TICK).decision), Answer::Wait(Reason::WindowClosed));
}

#[rstest]
#[case::no_measure_yet(None, "2026-05-05T03:59:59Z", true)]
#[case::in_time_to_the_tick(Some(600), "2026-05-05T03:50:00Z", true)]
#[case::a_tick_too_late(Some(600), "2026-05-05T03:50:00.000000001Z", false)]
#[case::longer_than_any_window(Some(7201), "2026-05-05T02:00:00Z", false)]
fn a_member_is_begun_only_if_it_will_be_done_in_time(
    #[case] took: Option<u64>,
    #[case] now: &str,
    #[case] begins: bool,
) {
    let (want, mut view) = scene(vec![window("0 2 * * *", 120, "UTC")]);
    record_mut(&mut view).durations = took.map(|seconds| (name(2), Duration::from_secs(seconds))).into_iter().collect();
    let decision = rolling::plan(&want, &view, moment(now)).decision;
    if begins {
        assert_eq!(answer(&decision), Answer::Act("ReplacementAllowed"));
        return;
    }
    let Decision::Wait { on, recheck } = decision else { panic!("it begins") };
    assert_eq!((on.reason, moment(now) + recheck), (Reason::WindowClosed, moment("2026-05-06T02:00:00Z")));
    assert!(
        on.message.starts_with("the maintenance window closes at 2026-05-05T04:00:00Z, and replacing a member has")
    );
}

#[test]
fn windows_in_a_row_are_long_enough_together() {
    let rows = vec![window("0 2 * * *", 60, "UTC"), window("0 3 * * *", 60, "UTC"), window("30 3 * * *", 60, "UTC")];
    let (want, mut view) = scene(rows);
    record_mut(&mut view).durations = [(name(2), Duration::from_mins(150))].into();
    let ask = |now| answer(&rolling::plan(&want, &view, moment(now)).decision);
    assert_eq!(ask("2026-05-05T02:00:00Z"), Answer::Act("ReplacementAllowed"));
    assert_eq!(ask("2026-05-05T02:00:01Z"), Answer::Wait(Reason::WindowClosed));
}

#[test]
fn the_slowest_one_counts() {
    let (want, mut view) = scene(vec![window("0 2 * * *", 120, "UTC")]);
    let minutes = |count| Duration::from_mins(count);
    record_mut(&mut view).durations = [(name(0), minutes(5)), (name(1), minutes(30)), (name(2), minutes(10))].into();
    let ask = |now| answer(&rolling::plan(&want, &view, moment(now)).decision);
    assert_eq!(ask("2026-05-05T03:30:00Z"), Answer::Act("ReplacementAllowed"));
    assert_ne!(ask("2026-05-05T03:30:01Z"), Answer::Act("ReplacementAllowed"));
}

#[test]
fn leadership_is_not_handed_over_outside() {
    let (want, mut view) = scene(vec![window("0 2 * * *", 120, "UTC")]);
    view.quorum.leader = Fact::Known(name(1));
    let ask = |now| answer(&rolling::plan(&want, &view, moment(now)).decision);
    assert_eq!(ask("2026-05-05T02:00:00Z"), Answer::Act("HandOver"));
    assert_eq!(ask("2026-05-05T04:00:00Z"), Answer::Wait(Reason::WindowClosed));
}

#[test]
fn drains_go_on_while_it_waits_for_a_window() {
    let (want, mut view) = scene(vec![window("0 2 * * *", 120, "UTC")]);
    view.evictions = Evictions::HeldByUs;
    let decision = rolling::plan(&want, &view, moment("2026-05-05T04:00:00Z")).decision;
    assert_eq!(answer(&decision), Answer::Act("EvictionsReleased"));
}

#[test]
fn a_permit_is_taken_back_when_the_window_closes() {
    let want = Want { windows: vec![window("0 2 * * *", 120, "UTC")], ..want(NEW) };
    let view = permitted(3, 0, 1);
    let ask = |now| rolling::plan(&want, &view, moment(now)).decision;
    assert_ne!(answer(&ask("2026-05-05T03:59:59Z")), Answer::Act("ReplacementWithdrawn"));
    let taken = ask("2026-05-05T04:00:00Z");
    assert!(matches!(taken, Decision::Act(Step::TakeBack { .. })), "{taken:?}");
    assert_eq!(hold(&taken).reason, Reason::WindowClosed);
}

#[rstest]
#[case::four_fields("0 2 * *", "it has 4 fields and not five")]
#[case::six_fields("0 2 * * * UTC", "it has 6 fields and not five")]
#[case::nothing("", "it has 0 fields and not five")]
#[case::no_such_minute("60 2 * * *", "")]
#[case::no_such_day("0 2 * * mo", "\"mo\" is neither a number nor a month nor a day")]
#[case::no_such_date("0 2 30 2 *", "there is no such date")]
#[case::macro_word("@daily * * * *", "\"@daily\" is neither")]
#[case::extension("0 2 L * *", "\"L\" is neither")]
#[case::hash("0 2 * * sat#1", "is neither")]
#[case::umlaut("0 2 * * für", "is neither")]
#[case::upside_down("0 5-2 * * *", "")]
#[case::step_of_nothing("*/0 * * * *", "")]
#[case::dangling("0 2,, * * *", "")]
fn a_schedule_that_is_none_says_why(#[case] schedule: &str, #[case] why: &str) {
    let Err(NotAWindow::Schedule(said)) = Window::parse(schedule, Duration::from_hours(1), "UTC") else {
        panic!("{schedule:?} is accepted")
    };
    assert!(said.starts_with(&format!("{schedule:?} is no schedule")) && said.contains(why), "{said}");
    assert!(!said.contains('\n'), "{said}");
}

#[rstest]
#[case::unknown("Europe/Bielefeld")]
#[case::empty("")]
#[case::path("../../etc/passwd")]
#[case::posix("CET-1CEST")]
fn a_zone_that_is_none_says_so(#[case] zone: &str) {
    let refused = Window::parse("0 2 * * *", Duration::from_hours(1), zone);
    assert!(matches!(refused, Err(NotAWindow::Zone(_))), "{refused:?}");
}

#[rstest]
#[case(Duration::ZERO)]
#[case(Duration::MAX)]
#[case(Duration::from_hours(367 * 24))]
fn a_duration_that_makes_no_sense_is_refused(#[case] duration: Duration) {
    assert!(matches!(Window::parse("0 2 * * *", duration, "UTC"), Err(NotAWindow::Duration(_))));
}

#[rstest]
fn no_moment_is_too_strange(
    #[values(Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX)] now: Timestamp,
    #[values("UTC", "Asia/Tokyo", "America/St_Johns")] zone: &str,
) {
    let (want, view) = scene(vec![window("0 2 * * *", 60, zone)]);
    let _ = rolling::plan(&want, &view, now);
}

#[test]
fn a_whole_upgrade_keeps_to_its_windows() {
    let mut world = World::new(5, 4);
    // Shorter than five members take, longer than one.
    world.want.windows = vec![window(HALF_HOURS.0, HALF_HOURS.1, "UTC")];
    world.keeper = Some(Gatekeeper::default());
    world.now = moment("2026-05-05T00:29:45Z");
    assert_eq!(world.run(), Decision::Done);
    assert!(world.now >= moment("2026-05-05T01:00:00Z"), "it had to wait for the next one");
    assert!(world.everybody_runs(NEW));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    /// Minute by minute, without any cleverness: the first half of an hour that a schedule names, in a zone with odd changes.
    #[test]
    fn the_search_agrees_with_looking_at_every_minute(
        start in 1_700_000_000_i64..1_800_000_000,
        minute in 0_u8..60,
        hour in 0_u8..24,
        length in 1_u64..3000,
        zone in proptest::sample::select(vec!["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"]),
    ) {
        let now = Timestamp::from_second(start - start % 60).unwrap();
        let one = window(&format!("{minute} {hour} * * *"), length, zone);
        let (want, view) = scene(vec![one]);
        let permitted = answer(&rolling::plan(&want, &view, now).decision) == Answer::Act("ReplacementAllowed");
        let zone = jiff::tz::TimeZoneDatabase::bundled().get(zone).unwrap();
        let mut open = false;
        let mut shown = None;
        for ago in (0..length + 180).rev() {
            let moment = now - Duration::from_mins(ago);
            let time = zone.to_datetime(moment);
            let before = zone.to_datetime(moment - Duration::from_mins(1));
            let of_day = |time: jiff::civil::DateTime| i32::from(time.hour()) * 60 + i32::from(time.minute());
            let wanted = i32::from(hour) * 60 + i32::from(minute);
            let named = of_day(time) == wanted;
            // Skipped: the clock went past it in one step.
            let skipped = of_day(before) + 1 != of_day(time) && of_day(before) < wanted && wanted < of_day(time);
            // Shown for the second time that day: it opened the first time.
            let again = named && shown == Some(time.date());
            if named { shown = Some(time.date()); }
            if (named && !again || skipped) && ago < length { open = true; }
        }
        proptest::prop_assert_eq!(permitted, open, "at {}", now);
    }
}
