//! What keeps an upgrade from beginning or going on, and whether it needs a person.

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason, Step, Trouble, View, Want,
    quorum::Complaint,
    rolling::known::workload::{Evictions, Strategy},
    trouble::Log,
};

use crate::support::{
    Answer, NEW, NEWER, OLD, POSITION, answer, as_seen, decide, half_way, hold, image, member, member_mut, name,
    partition, plan, pod_mut, remove_pod, rest, revision, target, theirs, unknown, version, want, world::World,
};

use Answer::{Act, Halt, Wait};

type Change = fn(&mut Want, &mut View);

#[rstest]
#[case::on_delete(|_: &mut Want, view: &mut View| view.workload.strategy = Strategy::OnDelete, Act("TemplateWritten"))]
#[case::the_controller_is_behind(|_: &mut Want, view: &mut View| view.workload.observed = false, Wait(Reason::ControllerBehind))]
#[case::a_pod_is_missing(|_: &mut Want, view: &mut View| remove_pod(view, 1), Wait(Reason::PodNotReady))]
#[case::a_pod_is_terminating(|_: &mut Want, view: &mut View| pod_mut(view, 1).terminating = true, Wait(Reason::PodNotReady))]
#[case::the_members_are_unknown(|_: &mut Want, view: &mut View| view.quorum.members = unknown(), Wait(Reason::MembersUnknown))]
#[case::a_version_is_unknown(|_: &mut Want, view: &mut View| member_mut(view, 1).version = unknown(), Wait(Reason::MembersUnknown))]
#[case::the_leader_is_unknown(|_: &mut Want, view: &mut View| view.quorum.leader = unknown(), Wait(Reason::LeaderUnknown))]
#[case::paused(|want: &mut Want, _: &mut View| want.paused = true, Wait(Reason::Paused))]
#[case::older(|want: &mut Want, _: &mut View| want.target = target("8.4.0"), Halt(Reason::DowngradeNotAllowed))]
#[case::a_pre_release_is_older(|want: &mut Want, _: &mut View| want.target = target("8.5.0-rc.1"), Halt(Reason::DowngradeNotAllowed))]
#[case::older_and_allowed(|want: &mut Want, _: &mut View| {
    want.target = target("8.4.0");
    want.allow_downgrade = true;
}, Act("TemplateWritten"))]
#[case::the_same_version_from_another_image(|want: &mut Want, _: &mut View| {
    want.target.version = version(OLD);
}, Act("TemplateWritten"))]
#[case::one_member_is_newer_already(|_: &mut Want, view: &mut View| {
    member_mut(view, 1).version = Fact::Known(version("9.0.0"));
}, Halt(Reason::DowngradeNotAllowed))]
#[case::nothing(|_: &mut Want, _: &mut View| {}, Act("TemplateWritten"))]
fn an_upgrade_does_not_begin_when(#[case] change: Change, #[case] expected: Answer) {
    let (mut want, mut view) = (want(NEW), rest(3, 0));
    change(&mut want, &mut view);
    let plan = plan(&want, &view);
    assert_eq!(answer(&plan.decision), expected, "{:?}", plan.decision);
    assert_eq!(plan.record.is_some(), expected == Act("TemplateWritten"), "recorded before the first act, not earlier");
}

#[rstest]
#[case::on_delete(|_: &mut Want, view: &mut View| view.workload.strategy = Strategy::OnDelete, Halt(Reason::StrategyChanged))]
#[case::raised(|_: &mut Want, view: &mut View| view.workload.strategy = Strategy::RollingUpdate { partition: 5 }, Halt(Reason::StrategyChanged))]
#[case::lowered(|_: &mut Want, view: &mut View| view.workload.strategy = Strategy::RollingUpdate { partition: 0 }, Act("ReplacementWithdrawn"))]
#[case::another_image(|_: &mut Want, view: &mut View| {
    view.workload.image = image(NEWER);
    view.workload.strategy = Strategy::RollingUpdate { partition: 4 };
    view.workload.update_revision = revision(NEWER);
    pod_mut(view, 4).revision = revision(NEWER);
}, Halt(Reason::TemplateChanged))]
#[case::the_controller_is_behind(|_: &mut Want, view: &mut View| view.workload.observed = false, Wait(Reason::ControllerBehind))]
#[case::the_leader_is_unknown(|_: &mut Want, view: &mut View| view.quorum.leader = unknown(), Wait(Reason::LeaderUnknown))]
#[case::an_outdated_one_is_unhealthy(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = Fact::Known(false), Wait(Reason::MemberUnhealthy))]
#[case::an_outdated_one_is_unknown(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = unknown(), Wait(Reason::MembersUnknown))]
#[case::an_outdated_one_is_not_ready(|_: &mut Want, view: &mut View| pod_mut(view, 1).ready_since = None, Wait(Reason::PodNotReady))]
#[case::a_replaced_one_runs_something_else(|_: &mut Want, view: &mut View| {
    member_mut(view, 4).version = Fact::Known(version("8.5.9"));
}, Wait(Reason::VersionMismatch))]
#[case::a_replaced_one_is_behind(|_: &mut Want, view: &mut View| {
    member_mut(view, 4).position = Fact::Known(Some(POSITION - 101));
}, Wait(Reason::MemberBehind))]
#[case::a_replaced_one_is_just_close_enough(|_: &mut Want, view: &mut View| {
    member_mut(view, 4).position = Fact::Known(Some(POSITION - 100));
}, Act("ReplacementAllowed"))]
#[case::somebody_wants_to_lead_more_than_the_leader(|_: &mut Want, view: &mut View| {
    member_mut(view, 1).priority = 1;
}, Halt(Reason::LeaderPriority))]
#[case::the_leader_itself_wants_to_lead_more_than_its_heir(|_: &mut Want, view: &mut View| {
    view.quorum.leader = Fact::Known(name(3));
    member_mut(view, 3).priority = 1;
}, Halt(Reason::LeaderPriority))]
#[case::a_member_has_no_pod(|_: &mut Want, view: &mut View| {
    if let Fact::Known(members) = &mut view.quorum.members {
        members.insert(name(7), member(7, OLD));
    }
}, Halt(Reason::MembersDoNotMatch))]
#[case::a_pod_is_no_member(|_: &mut Want, view: &mut View| {
    if let Fact::Known(members) = &mut view.quorum.members {
        members.remove(&name(1));
    }
}, Halt(Reason::MembersDoNotMatch))]
#[case::nothing(|_: &mut Want, _: &mut View| {}, Act("ReplacementAllowed"))]
fn an_upgrade_does_not_go_on_when(#[case] change: Change, #[case] expected: Answer) {
    let (mut want, mut view) = (want(NEW), half_way(5, 0, 1));
    // A person who is waited for lets drains go on first; here nothing of ours holds them.
    view.evictions = theirs(5, 4);
    change(&mut want, &mut view);
    let decision = decide(&want, &view);
    assert_eq!(answer(&decision), expected, "{decision:?}");
}

#[rstest]
#[case::a_member_has_no_pod(&[0, 1, 2, 7], "members that have no pod: pd-7")]
#[case::a_pod_is_no_member(&[0, 2], "pods that are no members: pd-1")]
#[case::both(&[0, 2, 7, 8], "pods that are no members: pd-1; members that have no pod: pd-7, pd-8")]
fn members_that_are_not_the_pods_are_named(#[case] listed: &[u32], #[case] message: &str) {
    let mut view = rest(3, 0);
    view.quorum.members = Fact::Known(listed.iter().map(|index| (name(*index), member(*index, OLD))).collect());
    let decision = decide(&want(NEW), &view);
    assert_eq!(answer(&decision), Halt(Reason::MembersDoNotMatch));
    assert_eq!(hold(&decision).message, message);
}

#[rstest]
#[case::another_version(|view: &mut View| member_mut(view, 1).version = Fact::Known(version("8.5.9")), Halt(Reason::VersionMismatch))]
#[case::behind(|view: &mut View| member_mut(view, 1).position = Fact::Known(Some(0)), Answer::Done)]
#[case::unhealthy(|view: &mut View| member_mut(view, 1).healthy = Fact::Known(false), Wait(Reason::MemberUnhealthy))]
#[case::unknown(|view: &mut View| member_mut(view, 1).healthy = unknown(), Wait(Reason::MembersUnknown))]
#[case::not_ready(|view: &mut View| pod_mut(view, 1).ready_since = None, Wait(Reason::PodNotReady))]
#[case::its_position_is_unknown(|view: &mut View| member_mut(view, 1).position = unknown(), Wait(Reason::MembersUnknown))]
#[case::nobody_leads(|view: &mut View| view.quorum.leader = unknown(), Wait(Reason::LeaderUnknown))]
#[case::well(|_: &mut View| {}, Answer::Done)]
fn what_is_wanted_is_there_only_if_everybody_is_well(#[case] change: fn(&mut View), #[case] expected: Answer) {
    let mut view = rest(3, 0);
    change(&mut view);
    assert_eq!(answer(&decide(&want(OLD), &view)), expected);
}

type Sick = fn(&mut View, u32);

/// Whoever is behind, below or above whoever is worse, hides nothing.
#[rstest]
#[case::unhealthy(|view: &mut View, index: u32| member_mut(view, index).healthy = Fact::Known(false), Reason::MemberUnhealthy)]
#[case::sealed(|view: &mut View, index: u32| {
    member_mut(view, index).healthy = Fact::Known(false);
    member_mut(view, index).trouble = Some(Complaint::Sealed);
}, Reason::MemberSealed)]
#[case::unknown(|view: &mut View, index: u32| member_mut(view, index).healthy = unknown(), Reason::MembersUnknown)]
#[case::not_ready(|view: &mut View, index: u32| pod_mut(view, index).ready_since = None, Reason::PodNotReady)]
fn one_that_is_behind_hides_nobody_who_is_worse(
    #[case] sick: Sick,
    #[case] reason: Reason,
    #[values((0, 2), (2, 0))] (behind, worse): (u32, u32),
) {
    let mut view = rest(3, 1);
    member_mut(&mut view, behind).position = Fact::Known(Some(0));
    sick(&mut view, worse);
    assert_eq!(answer(&decide(&want(OLD), &view)), Wait(reason));
}

/// One of three was replaced before Windlass came.
fn adopted(resumed: bool) -> View {
    as_seen(View { record: None, evictions: Evictions::Open, ..half_way(3, 0, 1) }, |seen| seen.resumed = resumed)
}

#[test]
fn a_half_upgraded_set_is_left_alone_until_a_person_says_so() {
    let mut world = World::from(adopted(false));
    let decision = world.run();
    assert_eq!(answer(&decision), Halt(Reason::RolloutPending));
    assert!(hold(&decision).message.contains("pd-0, pd-1"), "{decision:?}");
    assert_eq!((world.steps, world.view.record), (vec![], None));
}

#[test]
fn a_half_upgraded_set_is_finished_when_a_person_says_so() {
    let mut world = World::from(adopted(true));
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!((world.permits(), world.templates().len()), (vec![1, 0], 0));
    assert_eq!(partition(&world.view), Some(3));
}

/// At rest somebody set an image that nobody asked for, and nobody runs it: there is nothing to finish.
fn overwritten(resumed: bool) -> View {
    as_seen(View { record: None, evictions: Evictions::Open, ..half_way(3, 0, 0) }, |seen| seen.resumed = resumed)
}

#[test]
fn an_image_that_nobody_asked_for_is_told_by_name() {
    let decision = decide(&want(OLD), &overwritten(false));
    assert_eq!(answer(&decision), Halt(Reason::TemplateChanged));
    assert_eq!(
        hold(&decision).message,
        "somebody set the image to pd:v8.5.1, and no pod runs it yet; pd:v8.5.0 is wanted"
    );
}

#[rstest]
#[case::what_runs_already(OLD, vec![])]
#[case::another(NEWER, vec![2, 1, 0])]
fn an_image_that_nobody_asked_for_is_written_over_when_a_person_says_so(
    #[case] wanted: &str,
    #[case] permits: Vec<u32>,
) {
    let mut world = World::from(overwritten(true));
    world.want = want(wanted);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(wanted));
    assert_eq!((world.permits(), world.templates()), (permits, vec![image(wanted).as_str()]));
}

/// While an upgrade is under way it is not: what runs by now may be newer than what we would write.
#[test]
fn an_image_that_was_set_back_midway_is_left_to_a_person() {
    let mut view = half_way(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image(NEWER), revision(NEWER));
    view.resumed = true;
    let mut world = World::from(view);
    world.want = want(NEW);
    assert_eq!(answer(&world.run()), Halt(Reason::TemplateChanged));
    assert_eq!((world.permits(), world.templates()), (vec![], vec![]));
}

/// The usual StatefulSet has no partition: Kubernetes may replace everybody, and would on readiness alone.
#[rstest]
fn a_half_upgraded_set_that_kubernetes_may_roll_is_held_first(#[values(0, 1)] leader: u32) {
    let mut view = adopted(true);
    view.workload.strategy = Strategy::RollingUpdate { partition: 0 };
    view.quorum.leader = Fact::Known(name(leader));
    let mut world = World::from(view);
    let _ = world.run_until(|world| world.count("ReplacementWithdrawn") + world.count("ReplacementAllowed") > 0);
    assert!(world.deleted.is_empty());
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

#[test]
fn a_rollout_that_only_lacks_its_conclusion_is_waited_for() {
    let mut view = rest(3, 0);
    view.workload.current_revision = revision("8.4.0");
    assert_eq!(answer(&decide(&want(NEW), &view)), Wait(Reason::AwaitingConclusion));
}

#[test]
fn parking_waits_for_the_conclusion() {
    let mut view = half_way(3, 0, 3);
    assert_eq!(answer(&decide(&want(NEW), &view)), Wait(Reason::AwaitingConclusion));
    view.workload.current_revision = revision(NEW);
    assert_eq!(answer(&decide(&want(NEW), &view)), Act("EvictionsReleased"));
    view.evictions = Evictions::Open;
    assert_eq!(decide(&want(NEW), &view), Decision::Act(Step::Park { partition: 3 }));
}

#[test]
fn a_quorum_that_shrinks_is_no_lonely_member() {
    // Scaled from three to one half way: two pods are still there, and members.
    let mut view = half_way(3, 1, 1);
    view.workload.replicas = 1;
    let want = Want { accept_downtime: true, ..want(NEW) };
    let decision = decide(&want, &view);
    assert_ne!(answer(&decision), Act("ReplacementAllowed"), "pd-1 leads: {decision:?}");
}

#[test]
fn a_version_that_was_mistyped_before_a_set_was_resumed_can_be_corrected() {
    let mut world = World::from(adopted(true));
    world.want.target.version = version("8.5.7");
    assert_eq!(answer(&world.run()), Halt(Reason::VersionMismatch));
    world.want.target.version = version(NEW);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

#[test]
fn a_version_is_not_corrected_to_an_older_one_than_what_ran_before() {
    let mut view = half_way(3, 0, 1);
    view.evictions = Evictions::Open;
    let mut want = want(NEW);
    want.target.version = version("8.4.0");
    assert_eq!(answer(&decide(&want, &view)), Halt(Reason::DowngradeNotAllowed));
}

/// What the reason's next step tells a person to do.
#[test]
fn a_version_that_was_mistyped_can_be_corrected_half_way() {
    let mut world = World::new(3, 0);
    world.want.target.version = version("8.5.7");
    world.run_until_replaced(1);
    let told = world.run();
    assert_eq!(answer(&told), Halt(Reason::VersionMismatch));
    assert!(hold(&told).message.contains("runs 8.5.1"), "{told:?}");
    world.want.target.version = version(NEW);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(world.templates(), [image(NEW)]);
}

#[rstest]
#[case::unready(|view: &mut View| pod_mut(view, 2).ready_since = None, Reason::PodNotReady, "pod pd-2 is not ready")]
#[case::keeps_ending(|view: &mut View| {
    let (container, image) = ("container pd".to_owned(), image(NEW));
    pod_mut(view, 2).ready_since = None;
    pod_mut(view, 2).trouble = Some(Trouble::CrashLoop { container, image, restarts: 3, exit: None });
}, Reason::CrashLooping, "pod pd-2 is not ready: container pd of image pd:v8.5.1 keeps ending (3 restarts)")]
#[case::sealed(|view: &mut View| {
    member_mut(view, 2).healthy = Fact::Known(false);
    member_mut(view, 2).trouble = Some(Complaint::Sealed);
}, Reason::MemberSealed, "pd-2 is not healthy: it is sealed")]
#[case::silent(|view: &mut View| member_mut(view, 2).healthy = unknown(), Reason::MemberNotJoined, "is not known")]
fn a_replaced_member_that_is_not_up_is_told_with_its_log(
    #[case] change: fn(&mut View),
    #[case] reason: Reason,
    #[case] words: &str,
    #[values(Log::LastLine("fatal: no data".into()), Log::Command("kubectl logs -n db pd-2 -c pd".into()))] log: Log,
) {
    let mut view = half_way(3, 0, 1);
    change(&mut view);
    pod_mut(&mut view, 2).log = Some(log.clone());
    let hold = hold(&decide(&want(NEW), &view)).clone();
    assert_eq!(hold.reason, reason, "{}", hold.message);
    assert!(hold.message.contains(words) && hold.message.ends_with(&format!("; {log}")), "{}", hold.message);
}
