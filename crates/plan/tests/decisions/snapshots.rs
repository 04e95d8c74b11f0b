//! A snapshot before an upgrade begins: none, running, done, failed, unknown, and what each leads to (D2, H6).

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason, Step, View, Want,
    strategy::{
        known::{
            snapshot::{Attempt, Progress},
            step::{JobStep, Step as _},
        },
        snapshot::FRESH,
    },
};

use crate::support::{
    Answer, NEW, NEWER, OLD, answer, as_seen, decide, hold, noon, plan, rest, rest_on_delete, resumed, snapshot,
    target, unknown, want, world::World,
};

const DEADLINE: Duration = Duration::from_mins(10);

fn wanted() -> Want {
    Want { snapshot: Some(DEADLINE), ..want(NEW) }
}

/// The third attempt, made so long ago.
fn attempt(ago: Duration) -> Attempt {
    Attempt { number: 3, target: target(NEW), since: noon() - ago, used: false }
}

fn seen(ago: Duration, snapshot: Fact<Progress>) -> View {
    as_seen(rest(3, 0), |seen| {
        seen.attempt = Some(attempt(ago));
        seen.snapshot = snapshot;
    })
}

fn failed() -> Progress {
    Progress::Failed("etcd-0 refused the connection".into())
}

/// The attempt that is asked for.
fn asked(decision: &Decision) -> Option<&Attempt> {
    if let Decision::Act(Step::Job(JobStep::TakeSnapshot { attempt })) = decision { Some(attempt) } else { None }
}

#[test]
fn whoever_wants_none_gets_none() {
    assert_eq!(answer(&decide(&want(NEW), &rest(3, 0))), Answer::Act("TemplateWritten"));
    let plan = plan(&want(NEW), &seen(Duration::ZERO, Fact::Known(Progress::Running)));
    assert_eq!(plan.record.expect("it begins").snapshot, None);
}

#[test]
fn nothing_is_written_before_the_first_attempt_and_nothing_is_recorded_but_that() {
    let plan = plan(&wanted(), &rest(3, 0));
    let first = Attempt { number: 1, target: target(NEW), since: noon(), used: false };
    assert_eq!(asked(&plan.decision), Some(&first));
    assert_eq!((plan.record, plan.attempt), (None, Some(first)));
}

#[rstest]
#[case::running(Duration::from_secs(5), Fact::Known(Progress::Running), Answer::Wait(Reason::AwaitingSnapshot))]
#[case::running_for_long(
    Duration::from_mins(12),
    Fact::Known(Progress::Running),
    Answer::Halt(Reason::AwaitingSnapshot)
)]
#[case::unknown(Duration::from_secs(5), unknown(), Answer::Wait(Reason::AwaitingSnapshot))]
#[case::unknown_for_long(Duration::from_hours(5), unknown(), Answer::Wait(Reason::AwaitingSnapshot))]
#[case::failed(Duration::from_secs(5), Fact::Known(failed()), Answer::Halt(Reason::SnapshotFailed))]
#[case::done(Duration::from_secs(5), Fact::Known(Progress::Done(snapshot())), Answer::Act("TemplateWritten"))]
#[case::lost(Duration::from_secs(5), Fact::Known(Progress::Missing), Answer::Act("SnapshotBegun"))]
fn what_became_of_it_decides(#[case] ago: Duration, #[case] progress: Fact<Progress>, #[case] expected: Answer) {
    assert_eq!(answer(&decide(&wanted(), &seen(ago, progress))), expected);
}

#[test]
fn the_snapshot_is_in_the_record_and_is_used_up() {
    let plan = plan(&wanted(), &seen(Duration::from_secs(5), Fact::Known(Progress::Done(snapshot()))));
    assert_eq!(plan.record.expect("it begins").snapshot, Some(snapshot()));
    assert!(plan.attempt.expect("it stays").used);
}

#[test]
fn a_job_that_is_not_there_is_asked_for_again_under_its_name() {
    let decision = decide(&wanted(), &seen(Duration::from_mins(1), Fact::Known(Progress::Missing)));
    assert_eq!(asked(&decision), Some(&attempt(Duration::from_mins(1))));
}

#[rstest]
#[case::its_job_would_come_too_late(seen(DEADLINE, Fact::Known(Progress::Missing)))]
#[case::what_was_taken_is_old(seen(FRESH, Fact::Known(Progress::Done(snapshot()))))]
#[case::a_person_asks(resumed(seen(Duration::ZERO, Fact::Known(failed()))))]
#[case::it_was_for_another_upgrade(as_seen(seen(Duration::ZERO, Fact::Known(Progress::Done(snapshot()))), |seen| seen.attempt = Some(Attempt { target: target(NEWER), ..attempt(Duration::ZERO) })))]
#[case::another_upgrade_has_begun_with_it(as_seen(seen(Duration::ZERO, Fact::Known(Progress::Done(snapshot()))), |seen| seen.attempt = Some(Attempt { used: true, ..attempt(Duration::ZERO) })))]
#[case::another_ones_failure_is_not_this_ones(as_seen(seen(Duration::ZERO, Fact::Known(failed())), |seen| seen.attempt = Some(Attempt { target: target(OLD), ..attempt(Duration::ZERO) })))]
fn the_next_attempt_has_the_next_number(#[case] view: View) {
    let plan = plan(&wanted(), &view);
    let next = Attempt { number: 4, target: target(NEW), since: noon(), used: false };
    assert_eq!((asked(&plan.decision), plan.record), (Some(&next), None));
}

#[rstest]
#[case::for_this_upgrade(target(NEW), false)]
#[case::for_another(target(NEWER), false)]
#[case::for_one_that_has_begun(target(NEW), true)]
fn as_long_as_one_runs_no_other_is_asked_for(
    #[case] target: windlass_plan::strategy::known::want::Target,
    #[case] used: bool,
) {
    let attempt = Attempt { target, used, ..attempt(Duration::ZERO) };
    let running = seen(Duration::ZERO, Fact::Known(Progress::Running));
    let view = as_seen(running, |seen| {
        seen.attempt = Some(attempt);
        seen.resumed = true;
    });
    assert_eq!(answer(&decide(&wanted(), &view)), Answer::Wait(Reason::AwaitingSnapshot));
}

#[test]
fn a_person_reads_what_the_job_said() {
    let decision = decide(&wanted(), &seen(Duration::ZERO, Fact::Known(failed())));
    let text = hold(&decision).to_string();
    assert!(text.contains("etcd-0 refused the connection") && text.contains("spec.requests.resume"), "{text}");
}

#[test]
fn who_is_paused_takes_no_snapshot() {
    let paused = Want { paused: true, ..wanted() };
    assert_eq!(answer(&decide(&paused, &rest(3, 0))), Answer::Wait(Reason::Paused));
}

#[rstest]
fn an_upgrade_takes_one_snapshot_and_then_goes_its_way(#[values(false, true)] on_delete: bool) {
    let mut world = World::from(if on_delete { rest_on_delete(3, 1) } else { rest(3, 1) });
    world.want.snapshot = Some(DEADLINE);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(world.steps.first().map(Step::name), Some("SnapshotBegun"));
    assert_eq!(world.count("SnapshotBegun"), 1);
    world.want.target = target(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!((world.count("SnapshotBegun"), world.view.seen.attempt.map(|attempt| attempt.number)), (2, Some(2)));
}

#[test]
fn a_failed_one_is_tried_again_when_a_person_says_so() {
    let mut world = World::new(3, 0);
    (world.want.snapshot, world.outcome) = (Some(DEADLINE), failed());
    assert_eq!(answer(&world.run()), Answer::Halt(Reason::SnapshotFailed));
    assert!(world.templates().is_empty());
    (world.view.resumed, world.outcome) = (true, Progress::Done(snapshot()));
    let _ = world.pass();
    world.view.resumed = false;
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.count("SnapshotBegun"), 2);
}
