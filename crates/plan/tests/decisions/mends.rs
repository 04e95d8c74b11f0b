//! Members that break when they are replaced, and specs that are mended afterwards (H44).

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason, Step, Trouble, View, Want,
    rolling::{
        self,
        known::{
            stage::StageKind,
            workload::{Evictions, Strategy},
        },
    },
    strategy::known::step::Step as _,
    trouble::Exit,
};

use crate::support::{
    Answer, NEW, NEWER, OLD, answer, decide, half_way, hold, image, member_mut, name, noon, plan, pod_mut, record_mut,
    remove_pod, revision, stage, target, theirs, unknown, version, want, world::World,
};

use Answer::{Act, Halt, Wait};

fn container() -> String {
    "container pd".into()
}

fn pull() -> Trouble {
    Trouble::ImagePull { container: container(), image: image(NEW), message: "manifest unknown".into() }
}

fn unusable() -> Trouble {
    Trouble::ImageUnusable {
        container: container(),
        image: "PingCAP/pd:8.5".into(),
        message: "invalid reference format".into(),
    }
}

fn config() -> Trouble {
    let (reason, message) = ("CreateContainerConfigError".into(), "secret \"pd\" not found".into());
    Trouble::Config { container: container(), reason, message }
}

fn crash() -> Trouble {
    let exit = Exit { code: 137, signal: Some(9), reason: "OOMKilled".into(), message: String::new() };
    Trouble::CrashLoop { container: container(), image: image(NEW), restarts: 4, exit: Some(exit) }
}

fn unschedulable() -> Trouble {
    Trouble::Unschedulable { message: "0/3 nodes are available: 3 Insufficient memory.".into() }
}

/// `pd-2` of three was replaced at noon and has this trouble.
fn troubled(trouble: Trouble) -> View {
    let mut view = half_way(3, 0, 1);
    let pod = pod_mut(&mut view, 2);
    (pod.ready_since, pod.trouble) = (None, Some(trouble));
    member_mut(&mut view, 2).healthy = Fact::Known(false);
    record_mut(&mut view).stage = Some(stage(StageKind::Replace, 2));
    view
}

#[rstest]
#[case::pull(pull(), Reason::ImagePullFailed, &["container pd", "pd:v8.5.1", "manifest unknown"])]
#[case::config(config(), Reason::ContainerConfigError, &["container pd", "CreateContainerConfigError", "secret \"pd\" not found"])]
#[case::crash(crash(), Reason::CrashLooping, &["container pd", "4 restarts", "exit code 137", "signal 9", "OOMKilled"])]
#[case::unschedulable(unschedulable(), Reason::Unschedulable, &["no node takes it", "Insufficient memory"])]
fn a_trouble_is_told_at_once_and_stalls_at_its_deadline(
    #[case] trouble: Trouble,
    #[case] reason: Reason,
    #[case] words: &[&str],
) {
    let view = troubled(trouble);
    let ask = |after: Duration| rolling::plan(&want(NEW), &view, noon() + after).decision;
    for (after, expected) in [(Duration::ZERO, Wait(reason)), (want(NEW).deadlines.ready, Halt(reason))] {
        let decision = ask(after);
        assert_eq!(answer(&decision), expected);
        let message = &hold(&decision).message;
        assert!(message.contains("pd-2") && words.iter().all(|word| message.contains(word)), "{message}");
    }
}

#[test]
fn a_name_that_is_none_stalls_at_once() {
    let decision = decide(&want(NEW), &troubled(unusable()));
    assert_eq!(answer(&decision), Halt(Reason::ImageUnusable));
    assert!(hold(&decision).message.contains("PingCAP/pd:8.5"), "{decision:?}");
}

/// Its data is of the version that led, however broken its pod is now: held on the old template, it would come back as that (H15).
#[test]
fn a_member_that_was_done_once_is_not_taken_back_on_the_way_to_another_target() {
    let mut view = troubled(pull());
    record_mut(&mut view).highest_led = Some(version(NEW));
    assert_eq!(answer(&decide(&want(NEWER), &view)), Act("TemplateWritten"), "it never served");
    record_mut(&mut view).completed = vec![name(2)];
    let refused = decide(&want(NEWER), &view);
    assert_eq!(answer(&refused), Halt(Reason::DowngradeNotAllowed));
    assert!(hold(&refused).message.contains("pd-2 would come back as 8.5.0"), "{refused:?}");
    let allowed = Want { allow_downgrade: true, ..want(NEWER) };
    assert_eq!(answer(&decide(&allowed, &view)), Act("TemplateWritten"));
}

#[test]
fn a_trouble_of_a_member_whose_turn_is_to_come_holds_too() {
    let mut view = half_way(5, 0, 1);
    let pod = pod_mut(&mut view, 1);
    (pod.ready_since, pod.trouble) = (None, Some(crash()));
    assert_eq!(answer(&decide(&want(NEW), &view)), Wait(Reason::CrashLooping));
}

#[rstest]
#[case::silent(|view: &mut View| member_mut(view, 2).healthy = unknown(), "timed out")]
#[case::not_listed(|view: &mut View| {
    if let Fact::Known(members) = &mut view.quorum.members {
        members.remove(&name(2));
    }
}, "the members are pd-0, pd-1")]
fn a_ready_pod_that_is_no_member_is_named(#[case] change: fn(&mut View), #[case] words: &str) {
    let mut view = half_way(3, 0, 1);
    change(&mut view);
    let begun = rolling::plan(&want(NEW), &view, noon());
    assert_eq!(answer(&begun.decision), Wait(Reason::MemberNotJoined));
    assert!(hold(&begun.decision).message.contains(words), "{:?}", begun.decision);
    view.record = begun.record;
    let late = rolling::plan(&want(NEW), &view, noon() + want(NEW).deadlines.health).decision;
    assert_eq!(answer(&late), Halt(Reason::MemberNotJoined));
}

/// [`NEW`] is broken and `pd-2` of three waits for it; `pd-0` leads.
fn broken() -> World {
    let mut world = World::new(3, 0);
    world.broken = [NEW].into();
    assert_eq!(answer(&world.run()), Halt(Reason::ImagePullFailed));
    assert_eq!((world.permits(), world.deleted.len()), (vec![2], 1), "nobody else is taken down");
    world
}

#[test]
fn a_broken_one_is_held_and_drains_wait() {
    let mut world = broken();
    let steps = world.steps.len();
    for _ in 0..100 {
        assert_eq!(answer(&world.pass()), Halt(Reason::ImagePullFailed));
    }
    assert_eq!(world.steps.len(), steps);
    assert_eq!(world.view.evictions, Evictions::HeldByUs, "a second member would take the quorum down (H12)");
}

#[test]
fn a_revert_deletes_the_broken_one_after_the_template() {
    let mut world = broken();
    world.steps.clear();
    world.want.target = target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
    let names: Vec<&str> = world.steps.iter().map(Step::name).collect();
    assert_eq!(names, ["TemplateWritten", "BrokenPodDeleted", "EvictionsReleased"], "everything stays held");
}

#[test]
fn another_target_is_written_over_a_broken_one() {
    let mut world = broken();
    world.steps.clear();
    world.want.target = target(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEWER));
    let names: Vec<&str> = world.steps.iter().map(Step::name).take(3).collect();
    assert_eq!(names, ["TemplateWritten", "ReplacementAllowed", "BrokenPodDeleted"], "permitted, or it comes back old");
    assert_eq!(world.permits(), [2, 1, 0]);
}

#[test]
fn a_mend_does_not_wait_for_the_deadline() {
    let mut world = World::new(3, 0);
    world.broken = [NEW].into();
    let _ = world.run_until(|world| world.view.pods.iter().any(|pod| pod.trouble.is_some()));
    world.want.target = target(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!((world.templates(), world.mended()), (vec![image(NEW).as_str(), image(NEWER).as_str()], vec![&name(2)]));
}

#[test]
fn a_mend_that_is_broken_too_is_mended_again() {
    let mut world = broken();
    world.broken.insert(NEWER);
    world.want.target = target(NEWER);
    assert_eq!(answer(&world.run()), Halt(Reason::ImagePullFailed));
    world.want.target = target("8.5.3");
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs("8.5.3"));
    assert_eq!(world.mended().len(), 2);
}

#[test]
fn a_revert_from_a_mend_that_is_broken_too() {
    let mut world = broken();
    world.broken.insert(NEWER);
    world.want.target = target(NEWER);
    assert_eq!(answer(&world.run()), Halt(Reason::ImagePullFailed));
    world.want.target = target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
}

/// What it goes back to is gone from the registry: forward again, or on to something else.
#[rstest]
fn a_revert_whose_image_is_gone_is_left_again(#[values(NEW, NEWER)] to: &str) {
    let mut view = half_way(3, 0, 0);
    (view.workload.image, view.workload.update_revision) = (image(OLD), revision(OLD));
    view.workload.strategy = Strategy::RollingUpdate { partition: 2 };
    let record = record_mut(&mut view);
    std::mem::swap(&mut record.from, &mut record.target);
    (record.rolling_back, record.revision, record.partition) = (true, Some(revision(OLD)), 2);
    let pod = pod_mut(&mut view, 2);
    (pod.ready_since, pod.trouble) = (None, Some(pull()));
    member_mut(&mut view, 2).healthy = Fact::Known(false);

    let mend = plan(&want(to), &view);
    assert_eq!(
        mend.decision,
        Decision::Act(Step::WriteTemplate {
            image: image(to),
            strategy: Some(Strategy::RollingUpdate { partition: 3 })
        })
    );
    let record = mend.record.expect("recorded first");
    assert_eq!((&record.from, record.rolling_back), (&target(OLD), false), "what is held is where a revert goes");
    view.record = Some(record);
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    (view.workload.image, view.workload.update_revision) = (image(to), revision(to));

    let permit = plan(&want(to), &view);
    assert_eq!(permit.decision, Decision::Act(Step::Permit { pod: name(2), partition: 2 }));
    view.record = permit.record;
    view.workload.strategy = Strategy::RollingUpdate { partition: 2 };
    assert_eq!(answer(&decide(&want(to), &view)), Act("BrokenPodDeleted"));
}

fn broken_pod(world: &mut World, index: u32, made_from: &str) -> windlass_plan::Pod {
    world.frozen = true;
    member_mut(&mut world.view, index).healthy = Fact::Known(false);
    let uid = "gone".to_owned();
    let trouble = Some(pull());
    windlass_plan::Pod { uid, ready_since: None, trouble, ..crate::support::pod(index, made_from) }
}

/// With five, two done and the third broken, a third template would have to go through the two first.
#[test]
fn a_broken_one_below_sound_ones_waits_and_says_what_to_do() {
    let mut world = World::new(5, 0);
    world.run_until_replaced(2);
    let _ = world.run_until(|world| world.deleted.len() == 3);
    let _ = world.run_until(|world| world.view.pods.len() == 4);
    let lost = broken_pod(&mut world, 2, NEW);
    world.view.pods.insert(2, lost);
    assert_eq!(answer(&world.run()), Halt(Reason::ImagePullFailed));
    let steps = world.steps.len();
    world.want.target = target(NEWER);
    let told = world.run();
    assert_eq!((answer(&told), world.steps.len()), (Halt(Reason::ImagePullFailed), steps));
    for word in [image(NEWER), format!("{OLD} is asked for again")] {
        assert!(hold(&told).message.contains(&word), "{told:?}");
    }
}

/// Going back needs no turn: with one revision held and wanted, any index comes back right.
#[test]
fn a_broken_one_below_sound_ones_is_reverted_first() {
    let mut view = half_way(5, 0, 3);
    view.workload.strategy = Strategy::RollingUpdate { partition: 5 };
    (view.workload.image, view.workload.update_revision) = (image(OLD), revision(OLD));
    let record = record_mut(&mut view);
    std::mem::swap(&mut record.from, &mut record.target);
    (record.rolling_back, record.revision, record.partition) = (true, Some(revision(OLD)), 5);
    record.abandoned = [name(2), name(3), name(4)].into();
    let pod = pod_mut(&mut view, 2);
    (pod.ready_since, pod.trouble) = (None, Some(crash()));
    let uid = pod.uid.clone();
    member_mut(&mut view, 2).healthy = Fact::Known(false);
    let expected = Step::DeletePod { pod: name(2), uid, image: image(OLD) };
    assert_eq!(decide(&want(OLD), &view), Decision::Act(expected));
}

/// The template of [`NEWER`] was written over a broken `pd-2` of three, and the partition lowered to it.
pub fn about_to_delete() -> View {
    let mut view = troubled(crash());
    (view.workload.image, view.workload.update_revision) = (image(NEWER), revision(NEWER));
    view.workload.strategy = Strategy::RollingUpdate { partition: 2 };
    let record = record_mut(&mut view);
    (record.target, record.revision, record.partition) = (target(NEWER), Some(revision(NEWER)), 2);
    record.abandoned = [name(2)].into();
    view
}

type Change = fn(&mut Want, &mut View);

#[rstest]
#[case::nothing(|_: &mut Want, _: &mut View| {}, Act("BrokenPodDeleted"))]
#[case::it_is_ready(|_: &mut Want, view: &mut View| pod_mut(view, 2).ready_since = Some(noon()), Wait(Reason::AwaitingReplacement))]
#[case::it_is_healthy(|_: &mut Want, view: &mut View| member_mut(view, 2).healthy = Fact::Known(true), Act("ReplacementWithdrawn"))]
#[case::its_health_is_unknown(|_: &mut Want, view: &mut View| member_mut(view, 2).healthy = unknown(), Act("BrokenPodDeleted"))]
#[case::it_is_ready_and_its_health_is_unknown(|_: &mut Want, view: &mut View| {
    pod_mut(view, 2).ready_since = Some(noon());
    member_mut(view, 2).healthy = unknown();
}, Act("ReplacementWithdrawn"))]
#[case::it_and_another_are_unknown(|_: &mut Want, view: &mut View| {
    member_mut(view, 2).healthy = unknown();
    member_mut(view, 1).healthy = unknown();
}, Act("ReplacementWithdrawn"))]
#[case::it_was_not_given_up_and_its_health_is_unknown(|_: &mut Want, view: &mut View| {
    record_mut(view).abandoned.clear();
    member_mut(view, 2).healthy = unknown();
}, Act("ReplacementWithdrawn"))]
#[case::it_leads(|_: &mut Want, view: &mut View| view.quorum.leader = Fact::Known(name(2)), Act("ReplacementWithdrawn"))]
#[case::the_leader_is_unknown(|_: &mut Want, view: &mut View| view.quorum.leader = unknown(), Act("ReplacementWithdrawn"))]
#[case::another_is_unhealthy(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = Fact::Known(false), Act("ReplacementWithdrawn"))]
#[case::another_is_unknown(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = unknown(), Act("ReplacementWithdrawn"))]
#[case::another_is_gone(|_: &mut Want, view: &mut View| remove_pod(view, 0), Act("ReplacementWithdrawn"))]
#[case::it_is_paused(|want: &mut Want, _: &mut View| want.paused = true, Act("ReplacementWithdrawn"))]
#[case::the_old_one_is_wanted(|want: &mut Want, _: &mut View| want.target = target(OLD), Act("ReplacementWithdrawn"))]
#[case::the_template_is_not_seen(|_: &mut Want, view: &mut View| view.workload.observed = false, Wait(Reason::AwaitingReplacement))]
#[case::the_template_is_another(|_: &mut Want, view: &mut View| view.workload.update_revision = revision("other"), Act("ReplacementWithdrawn"))]
#[case::evictions_are_open(|_: &mut Want, view: &mut View| view.evictions = Evictions::Open, Act("ReplacementWithdrawn"))]
#[case::it_is_on_its_way_out(|_: &mut Want, view: &mut View| pod_mut(view, 2).terminating = true, Wait(Reason::PodNotReady))]
#[case::it_was_not_given_up(|_: &mut Want, view: &mut View| record_mut(view).abandoned.clear(), Act("ReplacementWithdrawn"))]
#[case::it_would_come_back_old(|_: &mut Want, view: &mut View| {
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    record_mut(view).partition = 3;
}, Act("ReplacementAllowed"))]
fn a_broken_pod_is_deleted_only_when(#[case] change: Change, #[case] expected: Answer) {
    let (mut want, mut view) = (want(NEWER), about_to_delete());
    change(&mut want, &mut view);
    let decision = decide(&want, &view);
    assert_eq!(answer(&decision), expected, "{decision:?}");
}

/// A replaced member that is ready and runs something else than was asked for: it takes its turn like any other.
#[test]
fn an_image_that_was_wrong_is_corrected_without_deleting_anything() {
    let mut world = World::new(3, 0);
    world.want.target.image = image(NEW);
    world.want.target.version = version(NEWER);
    assert_eq!(answer(&world.run()), Halt(Reason::VersionMismatch));
    world.want.target = target(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEWER));
    assert_eq!((world.permits(), world.mended().len()), (vec![2, 2, 1, 0], 0));
}

/// Everything is held on the way to the other image, so the wrong one would come back as the old one if it were lost.
#[test]
fn an_image_that_was_wrong_and_has_led_is_not_corrected_unasked() {
    let mut world = World::new(3, 0);
    world.want.target.image = image(NEW);
    world.want.target.version = version(NEWER);
    assert_eq!(answer(&world.run()), Halt(Reason::VersionMismatch));
    world.view.quorum.leader = Fact::Known(name(2));
    let _ = world.run();
    world.want.target = target(NEWER);
    assert_eq!(answer(&world.run()), Halt(Reason::DowngradeNotAllowed));
    world.want.allow_downgrade = true;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEWER));
}

#[test]
fn a_mend_below_what_has_led_is_a_downgrade() {
    let mut view = troubled(crash());
    record_mut(&mut view).highest_led = Some(version("9.0.0"));
    view.evictions = theirs(3, 3);
    assert_eq!(answer(&decide(&want(NEWER), &view)), Halt(Reason::DowngradeNotAllowed));
}

/// Nobody answers while the only member is broken; a person accepted that it may be down.
#[rstest]
#[case::accepted(true, Act("BrokenPodDeleted"))]
#[case::not_accepted(false, Wait(Reason::ImagePullFailed))]
fn a_lonely_broken_member_is_mended_where_downtime_is_accepted(#[case] accepted: bool, #[case] expected: Answer) {
    let mut view = half_way(1, 0, 1);
    let pod = pod_mut(&mut view, 0);
    (pod.ready_since, pod.trouble) = (None, Some(pull()));
    (view.workload.image, view.workload.update_revision) = (image(NEWER), revision(NEWER));
    view.quorum = windlass_plan::Quorum::unknown("nobody answered");
    let record = record_mut(&mut view);
    (record.target, record.revision, record.abandoned) = (target(NEWER), Some(revision(NEWER)), [name(0)].into());
    let want = Want { accept_downtime: accepted, ..want(NEWER) };
    let decision = decide(&want, &view);
    let taken_back = !accepted && answer(&decision) == Act("ReplacementWithdrawn");
    assert!(taken_back || answer(&decision) == expected, "{decision:?}");
}

#[test]
fn a_template_that_changes_and_leaves_the_image_alone_is_noticed() {
    let mut view = half_way(3, 0, 0);
    view.workload.update_revision = revision("other");
    let told = decide(&want(NEW), &view);
    assert_eq!(answer(&told), Act("EvictionsReleased"), "drains go on while a person is waited for");
    view.evictions = Evictions::Open;
    let told = decide(&want(NEW), &view);
    assert_eq!(answer(&told), Halt(Reason::TemplateChanged));
    assert!(hold(&told).message.contains("revision other and was 8.5.1"), "{told:?}");

    view.resumed = true;
    assert_eq!(answer(&decide(&want(NEW), &view)), Act("EvictionsHeld"), "a person says that it is meant");
}
