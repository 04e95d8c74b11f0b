//! Whether members keep up with a log that never stands still (H18).

use std::time::Duration;

use windlass_plan::{
    Fact, Plan, Reason, View,
    rolling::{self, known::stage::StageKind},
};

use crate::support::{Answer, NEW, answer, half_way, hold, member_mut, name, noon, record_mut, theirs, unknown, want};

use Answer::{Act, Halt, Wait};

/// `pd-2` of three is replaced, `pd-0` leads, and nobody knows where anybody is in the log.
fn busy() -> View {
    let mut view = half_way(3, 0, 1);
    view.evictions = theirs(3, 3);
    view
}

/// A look after so many seconds, with the leader and the followers at these positions.
fn look(view: &mut View, second: u64, leader: u64, followers: u64) -> Plan {
    for (index, position) in [(0, leader), (1, followers), (2, followers)] {
        member_mut(view, index).position = Fact::Known(Some(position));
    }
    let plan = rolling::plan(&want(NEW), view, noon() + Duration::from_secs(second));
    view.record.clone_from(&plan.record);
    plan
}

#[test]
fn a_follower_that_reaches_where_the_leader_was_keeps_up() {
    let mut view = busy();
    let first = look(&mut view, 0, 10_000, 9_000);
    assert_eq!(answer(&first.decision), Wait(Reason::MemberBehind));
    assert_eq!(first.record.and_then(|record| record.stage).map(|stage| stage.kind), Some(StageKind::Sync));
    assert_eq!(answer(&look(&mut view, 0, 10_000, 10_000 - 101).decision), Wait(Reason::MemberBehind), "no later look");
    assert_eq!(answer(&look(&mut view, 1, 12_000, 9_999).decision), Wait(Reason::MemberBehind), "one entry is missing");
    assert_eq!(
        answer(&look(&mut view, 2, 14_000, 10_000).decision),
        Act("ReplacementAllowed"),
        "and still 4000 behind"
    );
}

#[test]
fn one_that_is_close_needs_no_mark() {
    let mut view = busy();
    assert_eq!(answer(&look(&mut view, 0, 10_000, 9_900).decision), Act("ReplacementAllowed"));
    assert!(record_mut(&mut view).marks.is_empty());
}

#[test]
fn one_that_does_not_reach_it_is_late_at_its_deadline() {
    let mut view = busy();
    let _ = look(&mut view, 0, 10_000, 9_000);
    let late = look(&mut view, 90, 10_000 + 90 * 2_000, 9_999);
    assert_eq!(answer(&late.decision), Halt(Reason::DeadlineExceeded));
    assert!(hold(&late.decision).message.contains("it has not caught up"), "{:?}", late.decision);
}

/// What it had once says little of what it has.
#[test]
fn one_that_hears_nothing_any_more_is_noticed() {
    let mut view = busy();
    let _ = look(&mut view, 0, 10_000, 9_000);
    let _ = look(&mut view, 2, 14_000, 13_000);
    assert!(record_mut(&mut view).keeps_up(&name(2)));
    for second in [7, 12, 22, 36] {
        let _ = look(&mut view, second, 14_000 + second * 2_000, 14_500);
        assert!(record_mut(&mut view).keeps_up(&name(2)), "after {second}s: the last mark was reached not long ago");
    }
    let noticed = look(&mut view, 40, 100_000, 14_500);
    assert_eq!(answer(&noticed.decision), Wait(Reason::MemberBehind));
}

#[test]
fn a_mark_is_set_anew_only_now_and_then() {
    let mut view = busy();
    let _ = look(&mut view, 0, 10_000, 9_000);
    let marks = look(&mut view, 1, 12_000, 11_000).record.unwrap().marks;
    assert_eq!(look(&mut view, 2, 14_000, 13_000).record.unwrap().marks, marks, "every change is a write");
    assert_ne!(look(&mut view, 6, 22_000, 21_000).record.unwrap().marks, marks);
}

#[test]
fn a_log_that_is_shorter_than_it_was_begins_anew() {
    let mut view = busy();
    let _ = look(&mut view, 0, 10_000, 9_000);
    let _ = look(&mut view, 2, 14_000, 13_000);
    // A quorum that was restored.
    assert_eq!(answer(&look(&mut view, 4, 5_000, 1_000).decision), Wait(Reason::MemberBehind));
    assert!(!record_mut(&mut view).keeps_up(&name(2)));
}

#[test]
fn one_that_was_down_begins_anew() {
    let mut view = busy();
    let _ = look(&mut view, 0, 10_000, 9_000);
    let _ = look(&mut view, 2, 14_000, 13_000);
    member_mut(&mut view, 2).healthy = unknown();
    let _ = look(&mut view, 3, 16_000, 15_000);
    assert!(!record_mut(&mut view).keeps_up(&name(2)));
}
