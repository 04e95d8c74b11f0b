//! What somebody elsewhere said counts for the member that is next, and not for the one after it.

use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;
use windlass_plan::{
    MemberName, Reason, View,
    gate::{About, Asked, ExternalGate, Outcome},
    rolling,
};

use crate::support::{Answer, NEW, answer, half_way, name, noon, record_mut, theirs, want};

use Answer::{Act, Wait};

/// `pd-2` of three is replaced and well since noon, `pd-1` is next, and somebody said yes.
fn scene(at: Timestamp, about: About) -> View {
    let mut view = half_way(3, 0, 1);
    view.evictions = theirs(3, 3);
    record_mut(&mut view).healthy_since = [(name(2), noon())].into();
    let asked = Some(Asked { at, about, again: Reason::AnalysisFailed });
    view.external = vec![ExternalGate { asked, ..ExternalGate::new("Analysis/errors", Outcome::Pass) }];
    view
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(noon().as_second() + second).unwrap()
}

#[rstest]
#[case::long_before(-600, Wait(Reason::AnalysisFailed))]
#[case::at_that_moment(0, Wait(Reason::AnalysisFailed))]
#[case::after_it(1, Act("ReplacementAllowed"))]
fn what_was_measured_before_the_last_member_was_well_does_not_count(#[case] asked: i64, #[case] expected: Answer) {
    let plan = rolling::plan(&want(NEW), &scene(at(asked), About::All), at(10));
    assert_eq!(answer(&plan.decision), expected, "{:?}", plan.decision);
}

/// It was measured in the very look in which the member is seen well for the first time.
#[test]
fn what_was_measured_while_nobody_knew_that_it_is_well_does_not_count() {
    let mut view = scene(at(9), About::All);
    record_mut(&mut view).healthy_since.clear();
    assert_eq!(answer(&rolling::plan(&want(NEW), &view, at(10)).decision), Wait(Reason::AnalysisFailed));
}

#[rstest]
#[case::about_this_one(Some(name(1)), Act("ReplacementAllowed"))]
#[case::about_another(Some(name(2)), Wait(Reason::AnalysisFailed))]
#[case::about_nobody(None, Wait(Reason::AnalysisFailed))]
fn a_yes_belongs_to_one_member(#[case] about: Option<MemberName>, #[case] expected: Answer) {
    let plan = rolling::plan(&want(NEW), &scene(at(1), About::Next(about)), at(10));
    assert_eq!(answer(&plan.decision), expected, "{:?}", plan.decision);
    assert_eq!(plan.record.and_then(|record| record.next), Some(name(1)), "about whom to ask");
}

#[test]
fn a_no_stays_a_no() {
    let mut view = scene(at(-600), About::All);
    let no = windlass_plan::Hold::new(Reason::AnalysisFailed, "the value is 2");
    view.external[0].outcome = Outcome::Hold(no.clone());
    let decision = rolling::plan(&want(NEW), &view, at(10)).decision;
    assert_eq!(decision, windlass_plan::Decision::Wait { on: no, recheck: Duration::from_secs(2) });
}
