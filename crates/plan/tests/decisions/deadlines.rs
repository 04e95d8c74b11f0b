//! Every stage has a limit of its own, counted from its own start (D4).

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason, Step, View,
    reason::Stalls,
    rolling::{
        self,
        known::{
            stage::{HandOver, Stage, StageKind},
            workload::{Evictions, Strategy},
        },
    },
    strategy::known::{request::Requests, want::Deadlines},
};

use crate::support::{
    Answer, NEW, OLD, answer, as_seen, half_way, hold, image, member_mut, name, noon, pod_mut, record_mut, remove_pod,
    revision, stage, unknown, version, want, world::World,
};

use Answer::{Act, Halt, Wait};

const TICK: Duration = Duration::from_nanos(1);

/// Evictions of our own are let through while a person is waited for, which is tested elsewhere.
fn theirs() -> Evictions {
    crate::support::theirs(3, 3)
}

/// `pd-2` of three was replaced and lacks what this stage waits for, since noon.
fn lacking(kind: StageKind, what: fn(&mut View)) -> View {
    let mut view = half_way(3, 0, 1);
    what(&mut view);
    view.evictions = theirs();
    record_mut(&mut view).stage = Some(stage(kind, 2));
    view
}

fn after(view: &View, time: Duration) -> Decision {
    rolling::plan(&want(NEW), view, noon() + time).decision
}

type Lack = fn(&mut View);

#[rstest]
#[case::the_pod_is_terminating(StageKind::Replace, |view: &mut View| pod_mut(view, 2).terminating = true, Reason::PodNotReady)]
#[case::the_pod_is_gone(StageKind::Replace, |view: &mut View| remove_pod(view, 2), Reason::PodNotReady)]
#[case::the_pod_is_not_ready(StageKind::Replace, |view: &mut View| pod_mut(view, 2).ready_since = None, Reason::PodNotReady)]
#[case::the_member_is_unhealthy(StageKind::Join, |view: &mut View| member_mut(view, 2).healthy = Fact::Known(false), Reason::MemberUnhealthy)]
#[case::its_health_is_unknown(StageKind::Join, |view: &mut View| member_mut(view, 2).healthy = unknown(), Reason::MemberNotJoined)]
#[case::its_version_is_unknown(StageKind::Join, |view: &mut View| member_mut(view, 2).version = unknown(), Reason::MembersUnknown)]
#[case::it_says_another_version(StageKind::Join, |view: &mut View| {
    member_mut(view, 2).version = Fact::Known(version("8.5.9"));
}, Reason::VersionMismatch)]
#[case::it_is_behind(StageKind::Sync, |view: &mut View| member_mut(view, 2).position = Fact::Known(Some(0)), Reason::MemberBehind)]
#[case::its_position_is_unknown(StageKind::Sync, |view: &mut View| member_mut(view, 2).position = unknown(), Reason::MembersUnknown)]
fn a_stage_ends_at_its_own_limit_and_not_a_tick_earlier(
    #[case] kind: StageKind,
    #[case] what: Lack,
    #[case] reason: Reason,
) {
    let view = lacking(kind, what);
    let limit = kind.deadline(&want(NEW).deadlines);
    assert_eq!(answer(&after(&view, Duration::ZERO)), Wait(reason));
    let waiting = after(&view, limit.saturating_sub(TICK));
    assert_eq!(answer(&waiting), Wait(reason));

    let over = after(&view, limit);
    let Decision::Halt { on } = &over else { panic!("not over: {over:?}") };
    if reason.needs_a_person() {
        // What names the remedy stays the reason.
        assert_eq!(on, hold(&waiting));
        return;
    }
    let expected = if reason.stalls() == Stalls::AtDeadline { reason } else { Reason::DeadlineExceeded };
    assert_eq!(on.reason, expected);
    for part in ["pd-2", kind.lacking(), &hold(&waiting).message] {
        assert!(on.message.contains(part), "{part:?} is not in {:?}", on.message);
    }
}

#[rstest]
#[case::replace(StageKind::Replace, 300)]
#[case::join(StageKind::Join, 120)]
#[case::sync(StageKind::Sync, 120)]
fn the_limits_are_the_documented_ones_by_default(#[case] kind: StageKind, #[case] seconds: u64) {
    assert_eq!(kind.deadline(&Deadlines::default()), Duration::from_secs(seconds));
}

#[rstest]
#[case::joining_after_a_long_replacement(StageKind::Replace, StageKind::Join, |view: &mut View| member_mut(view, 2).healthy = Fact::Known(false))]
#[case::syncing_after_a_long_joining(StageKind::Join, StageKind::Sync, |view: &mut View| member_mut(view, 2).position = Fact::Known(Some(0)))]
fn a_stage_counts_from_its_own_start(#[case] before: StageKind, #[case] now: StageKind, #[case] what: Lack) {
    let mut view = lacking(before, what);
    let late = noon() + Duration::from_hours(1);
    let plan = rolling::plan(&want(NEW), &view, late);
    assert!(matches!(plan.decision, Decision::Wait { .. }), "{:?}", plan.decision);
    let begun = plan.record.as_ref().and_then(|record| record.stage.clone());
    assert_eq!(begun, Some(Stage { kind: now, pod: name(2), since: late }));

    view.record = plan.record;
    let limit = now.deadline(&want(NEW).deadlines);
    let ask = |time| answer(&rolling::plan(&want(NEW), &view, late + time).decision);
    assert!(matches!(ask(limit.saturating_sub(TICK)), Wait(_)));
    assert_eq!(ask(limit), Halt(Reason::DeadlineExceeded));
}

#[test]
fn the_clock_of_a_replacement_runs_from_the_permit_until_the_pod_is_ready() {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.permits().len() == 1);
    let permitted_at = world.now;
    let since = |world: &World| world.view.record.as_ref().and_then(|record| record.stage.clone());
    while world.view.pod(&name(2)).is_none_or(|pod| !pod.is_up() || pod.revision.to_string() != NEW) {
        let _ = world.pass();
        let stage = since(&world).expect("a stage runs");
        assert_eq!((stage.kind, stage.since), (StageKind::Replace, permitted_at));
    }
    let _ = world.pass();
    assert_eq!(since(&world).map(|stage| stage.kind), Some(StageKind::Join));
}

#[test]
fn a_clock_that_was_set_back_ends_nothing() {
    let view = lacking(StageKind::Join, |view| member_mut(view, 2).healthy = Fact::Known(false));
    let earlier = noon() - Duration::from_hours(10);
    assert_eq!(answer(&rolling::plan(&want(NEW), &view, earlier).decision), Wait(Reason::MemberUnhealthy));
}

#[rstest]
#[case::the_pod_got_ready(StageKind::Replace, |view: &mut View| pod_mut(view, 2).ready_since = None)]
#[case::the_member_got_well(StageKind::Join, |view: &mut View| member_mut(view, 2).healthy = Fact::Known(false))]
#[case::the_member_caught_up(StageKind::Sync, |view: &mut View| member_mut(view, 2).position = Fact::Known(Some(0)))]
fn it_goes_on_by_itself_after_a_deadline(#[case] kind: StageKind, #[case] what: Lack) {
    let view = lacking(kind, what);
    assert_eq!(answer(&after(&view, Duration::from_hours(1))), Halt(Reason::DeadlineExceeded));
    let well = View { record: view.record, ..half_way(3, 0, 1) };
    assert_eq!(answer(&after(&well, Duration::from_hours(1))), Act("ReplacementAllowed"));
}

/// The way back has as much time for a member as the way there. One that nobody touched has no clock (C5).
#[rstest]
#[case::silent(StageKind::Join, |view: &mut View| member_mut(view, 2).healthy = unknown())]
#[case::behind(StageKind::Sync, |view: &mut View| member_mut(view, 2).position = Fact::Known(Some(0)))]
fn a_member_that_hangs_on_the_way_back_calls_a_person(#[case] kind: StageKind, #[case] what: Lack) {
    let mut view = lacking(kind, what);
    let back = rolling::plan(&want(OLD), &view, noon());
    assert_eq!(answer(&back.decision), Act("TemplateWritten"));
    view.record = back.record;
    view.workload.image = image(OLD);
    (view.workload.update_revision, view.workload.strategy) = (revision(OLD), Strategy::RollingUpdate { partition: 3 });
    let late = noon() + Duration::from_hours(1);
    let begun = rolling::plan(&want(OLD), &view, late);
    assert!(matches!(begun.decision, Decision::Wait { .. }), "{:?}", begun.decision);
    view.record = begun.record;
    let limit = kind.deadline(&want(OLD).deadlines);
    let ask = |view: &View, time| answer(&rolling::plan(&want(OLD), view, late + time).decision);
    assert!(matches!(ask(&view, limit.saturating_sub(TICK)), Wait(_)));
    assert_eq!(ask(&view, limit), Halt(Reason::DeadlineExceeded));

    record_mut(&mut view).abandoned.clear();
    assert!(matches!(ask(&view, limit), Wait(_)));
}

/// `pd-1` of three is next and leads, and was asked so many times to hand over, last at noon.
fn asked(times: u32) -> View {
    let mut view = half_way(3, 1, 1);
    view.evictions = theirs();
    record_mut(&mut view).hand_over = Some(HandOver { pod: name(1), since: noon(), attempts: times, last_error: None });
    record_mut(&mut view).hand_overs = times;
    view
}

/// A member that may not be asked never will be: a person reads what it said.
#[test]
fn a_hand_over_that_is_refused_is_told_with_its_answer() {
    let mut view = asked(4);
    record_mut(&mut view).hand_over.as_mut().unwrap().last_error = Some("permission denied".into());
    let decision = after(&view, Duration::ZERO);
    assert_eq!(answer(&decision), Halt(Reason::HandOverFailed));
    assert!(
        hold(&decision).message.ends_with("4 times, and it still leads. The last request failed: permission denied")
    );
}

#[test]
fn a_hand_over_is_waited_for_until_its_limit_and_then_tried_again() {
    let (view, limit) = (asked(1), want(NEW).deadlines.handover);
    assert_eq!(answer(&after(&view, Duration::ZERO)), Wait(Reason::AwaitingHandOver));
    assert_eq!(answer(&after(&view, limit.saturating_sub(TICK))), Wait(Reason::AwaitingHandOver));

    let again = rolling::plan(&want(NEW), &view, noon() + limit);
    assert_eq!(again.decision, Decision::Act(Step::HandOver { from: name(1), to: name(2) }));
    let record = again.record.expect("the upgrade goes on");
    let stage = record.hand_over.expect("it was asked");
    assert_eq!((stage.attempts, stage.since, record.hand_overs), (2, noon() + limit, 2), "its clock starts again");
}

/// Another member that is unwell for a moment is waited for, and what was asked for is neither forgotten nor asked anew.
#[test]
fn a_hand_over_keeps_its_clock_while_another_member_flaps() {
    let mut view = asked(4);
    member_mut(&mut view, 2).healthy = Fact::Known(false);
    let flapping = rolling::plan(&want(NEW), &view, noon() + Duration::from_secs(10));
    assert_eq!(answer(&flapping.decision), Wait(Reason::MemberUnhealthy));
    view.record = flapping.record;
    assert_eq!(record_mut(&mut view).hand_over.as_ref().map(|asked| (asked.since, asked.attempts)), Some((noon(), 4)));
    member_mut(&mut view, 2).healthy = Fact::Known(true);
    assert_eq!(answer(&after(&view, Duration::from_secs(20))), Halt(Reason::HandOverFailed), "after four attempts");
}

/// Whoever can be told who shall lead is not asked for ever either.
#[test]
fn a_hand_over_that_never_comes_about_calls_a_person_and_is_asked_for_no_more() {
    let third = answer(&after(&asked(3), Duration::ZERO));
    assert_eq!(third, Wait(Reason::AwaitingHandOver), "the third may still come about");
    let view = asked(4);
    assert_eq!(answer(&after(&view, Duration::ZERO)), Halt(Reason::HandOverFailed));
    assert_eq!(answer(&after(&view, Duration::from_hours(24))), Halt(Reason::HandOverFailed));
    let retried = as_seen(view, |seen| seen.requests = Requests { retry: true, ..Requests::default() });
    let again = rolling::plan(&want(NEW), &retried, noon());
    assert_eq!(answer(&again.decision), Act("HandOver"), "a person asks to try again");
    assert_eq!(again.record.and_then(|record| record.hand_over).map(|asked| asked.attempts), Some(1));
}

#[test]
fn a_hand_over_that_came_about_late_is_followed_by_the_permit() {
    let mut view = asked(3);
    view.quorum.leader = Fact::Known(name(2));
    let plan = rolling::plan(&want(NEW), &view, noon() + Duration::from_hours(1));
    assert_eq!(plan.decision, Decision::Act(Step::Permit { pod: name(1), partition: 1 }));
}

#[test]
fn an_election_that_is_under_way_is_waited_for() {
    let mut view = asked(1);
    view.quorum.leader = unknown();
    assert_eq!(answer(&after(&view, Duration::ZERO)), Wait(Reason::AwaitingHandOver));
    let late = rolling::plan(&want(NEW), &view, noon() + Duration::from_hours(1));
    assert_eq!(answer(&late.decision), Wait(Reason::LeaderUnknown));
    let asked = |record: &Option<windlass_plan::Record>| record.as_ref().and_then(|record| record.hand_over.clone());
    assert_eq!(asked(&late.record), asked(&view.record), "what was asked for is not forgotten");
}

/// A replaced member can't be behind a leader that nobody knows: its clock does not begin.
#[test]
fn an_election_after_a_member_was_done_starts_no_clock() {
    let mut view = half_way(3, 1, 1);
    view.quorum.leader = unknown();
    let plan = rolling::plan(&want(NEW), &view, noon());
    assert_eq!(answer(&plan.decision), Wait(Reason::LeaderUnknown));
    assert_eq!(plan.record.and_then(|record| record.stage), None);
}

/// A pod counts as ready when it has been that for as long as its StatefulSet asks, in both orders.
#[rstest]
#[case::too_short(29, Wait(Reason::PodNotReady))]
#[case::long_enough(30, Act("ReplacementAllowed"))]
fn a_replaced_pod_is_ready_after_min_ready_seconds(#[case] seconds: u64, #[case] expected: Answer) {
    let mut view = half_way(3, 0, 1);
    view.workload.min_ready = Duration::from_secs(30);
    pod_mut(&mut view, 2).ready_since = Some(noon() - Duration::from_secs(seconds));
    let told = crate::support::decide(&want(NEW), &view);
    assert_eq!(answer(&told), expected, "{told:?}");
    if let Wait(_) = expected {
        assert!(hold(&told).message.contains("30s, as minReadySeconds asks"), "{told:?}");
    }
}
