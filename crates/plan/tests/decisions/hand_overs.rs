//! A hand-over that a predecessor had recorded: a new leader finishes it, unless nobody wants it any more (H6).

use rstest::rstest;
use windlass_plan::{
    Fact, Step, View, Want,
    rolling::{known::stage::HandOver, takeover},
    strategy::known::{
        request::{GivenUp, Outcome, Requests},
        want::OnDeadline,
    },
};

use crate::support::{NEW, NEWER, OLD, half_way, name, noon, record_mut, target, want, window};

/// `pd-1` of three leads, its turn has come, and leadership was asked to leave it.
fn scene() -> (Want, View) {
    let mut view = half_way(3, 1, 1);
    record_mut(&mut view).hand_over = Some(HandOver { pod: name(1), since: noon(), attempts: 1, last_error: None });
    (want(NEW), view)
}

type Change = fn(&mut Want, &mut View);

#[test]
fn what_was_asked_for_is_asked_once_more_and_counted() {
    let (want, view) = scene();
    let (step, record) = takeover::finish(&want, &view, noon()).unwrap();
    assert_eq!(step, Step::HandOver { from: name(1), to: name(2) });
    assert_eq!(record.hand_over.map(|asked| asked.attempts), Some(2));
}

#[rstest]
#[case::nothing_was_asked(|_: &mut Want, view: &mut View| record_mut(view).hand_over = None)]
#[case::it_has_moved(|_: &mut Want, view: &mut View| view.quorum.leader = Fact::Known(name(2)))]
#[case::paused(|want: &mut Want, _: &mut View| want.paused = true)]
#[case::a_person_says_stop(|_: &mut Want, view: &mut View| view.requests = Requests { abort: true, ..Requests::default() })]
#[case::a_person_said_stop(|want: &mut Want, view: &mut View| {
    view.given_up = Some(GivenUp { target: want.target.clone(), outcome: Outcome::Stopped, because: None });
})]
#[case::a_person_wants_to_go_back(|_: &mut Want, view: &mut View| view.requests = Requests { rollback: true, ..Requests::default() })]
#[case::it_was_given_up_at_a_deadline(|want: &mut Want, view: &mut View| {
    want.on_deadline = OnDeadline::RollBack;
    view.given_up = Some(GivenUp { target: want.target.clone(), outcome: Outcome::RolledBack, because: None });
})]
#[case::the_old_version_is_wanted_again(|want: &mut Want, _: &mut View| want.target = target(OLD))]
#[case::another_version_is_wanted(|want: &mut Want, _: &mut View| want.target = target(NEWER))]
#[case::the_window_is_closed(|want: &mut Want, _: &mut View| want.windows = vec![window("0 2 * * *", 60, "UTC")])]
#[case::it_was_asked_as_often_as_it_may_be(|_: &mut Want, view: &mut View| {
    record_mut(view).hand_over = Some(HandOver { pod: name(1), since: noon(), attempts: 4, last_error: None });
})]
#[case::a_person_says_retry(|_: &mut Want, view: &mut View| view.requests = Requests { retry: true, ..Requests::default() })]
fn what_nobody_wants_is_not_finished(#[case] change: Change) {
    let (mut want, mut view) = scene();
    change(&mut want, &mut view);
    assert_eq!(takeover::finish(&want, &view, noon()), None);
}

/// On the way back the hand-over belongs to the way back.
#[test]
fn a_hand_over_of_the_way_back_is_finished() {
    let (mut want, mut view) = scene();
    let record = record_mut(&mut view);
    std::mem::swap(&mut record.from, &mut record.target);
    record.rolling_back = true;
    want.allow_downgrade = true;
    view.given_up = Some(GivenUp { target: want.target.clone(), outcome: Outcome::RolledBack, because: None });
    assert!(takeover::finish(&want, &view, noon()).is_some());
}
