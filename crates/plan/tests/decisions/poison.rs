//! A template that nobody can live on, under OnDelete (H21).

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason, Step, Trouble, View, Want,
    rolling::{
        self,
        known::{
            stage::{Stage, StageKind},
            template_trial::TemplateTrial,
            workload::{Evictions, Strategy},
        },
        poison,
    },
};

use crate::support::{
    Answer, NEW, NEWER, OLD, answer, decide, half_way_on_delete, hold, image, member_mut, name, noon, plan, pod_mut,
    record_mut, remove_pod, revision, stage, target, theirs, unknown, version, want, world::World,
};

use Answer::{Act, Halt, Wait};

fn crash() -> Trouble {
    Trouble::CrashLoop { container: "container pd".into(), image: image(NEW), restarts: 3, exit: None }
}

/// `pd-2` of three is the first of [`NEW`], since noon, and keeps ending; `pd-0` leads.
fn poisoned() -> View {
    let mut view = half_way_on_delete(3, 0, 1);
    let pod = pod_mut(&mut view, 2);
    (pod.ready_since, pod.trouble) = (None, Some(crash()));
    member_mut(&mut view, 2).healthy = Fact::Known(false);
    let record = record_mut(&mut view);
    (record.template_trial, record.stage) = (TemplateTrial::Running, Some(stage(StageKind::Replace, 2)));
    view
}

/// [`poisoned`], and the template of [`OLD`] stands again.
fn put_back() -> View {
    let mut view = poisoned();
    (view.workload.image, view.workload.update_revision) = (image(OLD), revision(OLD));
    record_mut(&mut view).template_trial = TemplateTrial::Reverted;
    view
}

fn back() -> Decision {
    Decision::Act(Step::WriteTemplate { image: image(OLD), strategy: Some(Strategy::OnDelete) })
}

type Change = fn(&mut Want, &mut View);

#[rstest]
#[case::named_trouble(|_: &mut Want, _: &mut View| {}, Act("TemplateWritten"))]
#[case::named_trouble_and_paused(|want: &mut Want, _: &mut View| want.paused = true, Act("TemplateWritten"))]
#[case::another_is_gone_as_well(|_: &mut Want, view: &mut View| remove_pod(view, 1), Act("TemplateWritten"))]
#[case::no_trouble_yet(|_: &mut Want, view: &mut View| pod_mut(view, 2).trouble = None, Wait(Reason::PodNotReady))]
#[case::somebody_serves_already(|_: &mut Want, view: &mut View| record_mut(view).template_trial = TemplateTrial::Passed, Wait(Reason::CrashLooping))]
#[case::its_clock_ran_out_while_it_is_silent(|_: &mut Want, view: &mut View| {
    pod_mut(view, 2).ready_since = Some(noon());
    member_mut(view, 2).healthy = unknown();
    let since = noon() - want(NEW).deadlines.health;
    record_mut(view).stage = Some(Stage { since, ..stage(StageKind::Join, 2) });
}, Act("TemplateWritten"))]
#[case::its_clock_ran_out_and_it_has_led(|_: &mut Want, view: &mut View| {
    pod_mut(view, 2).ready_since = Some(noon());
    member_mut(view, 2).healthy = unknown();
    record_mut(view).highest_led = Some(version(NEW));
    let since = noon() - want(NEW).deadlines.health;
    record_mut(view).stage = Some(Stage { since, ..stage(StageKind::Join, 2) });
}, Halt(Reason::MemberNotJoined))]
#[case::it_is_healthy_and_only_behind(|_: &mut Want, view: &mut View| {
    pod_mut(view, 2).ready_since = Some(noon());
    pod_mut(view, 2).trouble = None;
    *member_mut(view, 2) = windlass_plan::Member { position: Fact::Known(Some(0)), ..crate::support::member(2, NEW) };
    let since = noon() - Duration::from_hours(1);
    record_mut(view).stage = Some(Stage { since, ..stage(StageKind::Sync, 2) });
}, Halt(Reason::DeadlineExceeded))]
fn a_template_is_put_back_at_once_when(#[case] change: Change, #[case] expected: Answer) {
    let (mut want, mut view) = (want(NEW), poisoned());
    view.evictions = theirs(3, 2);
    change(&mut want, &mut view);
    let told = plan(&want, &view);
    assert_eq!(answer(&told.decision), expected, "{:?}", told.decision);
    if expected == Act("TemplateWritten") {
        assert_eq!(told.decision, back());
        assert_eq!(told.record.map(|record| record.template_trial), Some(TemplateTrial::Reverted), "recorded first");
    }
}

#[test]
fn it_is_told_at_once_and_a_person_is_called_at_the_deadline() {
    let view = put_back();
    let at = |after: Duration| rolling::plan(&want(NEW), &view, noon() + after).decision;
    let soon = at(Duration::ZERO);
    assert_eq!(answer(&soon), Wait(Reason::CrashLooping));
    let late = at(want(NEW).deadlines.ready);
    assert_eq!(answer(&late), Halt(Reason::TemplateReverted));
    for decision in [&soon, &late] {
        let message = &hold(decision).message;
        assert!(message.contains("pd-2") && message.contains(OLD) && message.contains("put back"), "{message}");
    }
}

#[rstest]
#[case::its_write_was_lost(|_: &mut Want, view: &mut View| {
    (view.workload.image, view.workload.update_revision) = (image(NEW), revision(NEW));
}, Act("TemplateWritten"))]
#[case::somebody_wrote_a_third_one(|_: &mut Want, view: &mut View| view.workload.image = image(NEWER), Halt(Reason::TemplateChanged))]
#[case::the_controller_is_behind(|_: &mut Want, view: &mut View| view.workload.observed = false, Wait(Reason::ControllerBehind))]
#[case::it_is_paused(|want: &mut Want, _: &mut View| want.paused = true, Wait(Reason::Paused))]
#[case::an_old_one_is_down_as_well(|_: &mut Want, view: &mut View| {
    pod_mut(view, 1).ready_since = None;
    member_mut(view, 1).healthy = Fact::Known(false);
}, Wait(Reason::CrashLooping))]
#[case::a_person_resumes(|_: &mut Want, view: &mut View| view.resumed = true, Act("TemplateWritten"))]
#[case::nobody_runs_it_any_more(|_: &mut Want, view: &mut View| {
    *pod_mut(view, 2) = crate::support::pod(2, OLD);
    *member_mut(view, 2) = crate::support::member(2, OLD);
}, Halt(Reason::TemplateReverted))]
#[case::the_strategy_is_another(|_: &mut Want, view: &mut View| {
    view.workload.strategy = Strategy::RollingUpdate { partition: 0 };
}, Act("StrategyPutBack"))]
#[case::the_way_on_is_closed(|want: &mut Want, _: &mut View| want.target = target("8.4.0"), Halt(Reason::DowngradeNotAllowed))]
fn nobody_is_touched_while_it_is_put_back(#[case] change: Change, #[case] expected: Answer) {
    let (mut want, mut view) = (want(NEW), put_back());
    view.evictions = theirs(3, 2);
    change(&mut want, &mut view);
    let decision = decide(&want, &view);
    assert_eq!(answer(&decision), expected, "{decision:?}");
}

#[test]
fn evictions_stay_held_while_the_broken_one_is_down() {
    let mut view = put_back();
    let late = noon() + Duration::from_hours(1);
    assert_eq!(answer(&rolling::plan(&want(NEW), &view, late).decision), Halt(Reason::TemplateReverted));
    // Ready, and not joined: still down because of us.
    pod_mut(&mut view, 2).ready_since = Some(noon());
    pod_mut(&mut view, 2).trouble = None;
    let told = plan(&want(NEW), &view);
    view.record = told.record;
    assert_eq!(answer(&rolling::plan(&want(NEW), &view, late).decision), Halt(Reason::TemplateReverted));
}

/// [`NEW`] is broken, its first member waits for it, and a person is called.
fn broken() -> World {
    let mut world = World::on_delete(3, 0);
    world.broken = [NEW].into();
    assert_eq!(answer(&world.run()), Halt(Reason::TemplateReverted));
    assert_eq!((world.deleted.len(), world.templates()), (1, vec![image(NEW).as_str(), image(OLD).as_str()]));
    assert_eq!(world.view.evictions, Evictions::HeldByUs);
    world
}

#[test]
fn whoever_is_lost_meanwhile_comes_back_as_it_was() {
    let mut world = broken();
    pod_mut(&mut world.view, 1).terminating = true;
    for _ in 0..20 {
        let _ = world.pass();
    }
    let lost = world.view.pod(&name(1)).expect("it is back");
    assert!(lost.is_up() && lost.revision == revision(OLD), "{lost:?}");
}

#[test]
fn it_goes_on_by_itself_when_the_first_one_gets_well() {
    let mut world = broken();
    world.broken.clear();
    let _ = world.run_until(|world| world.templates().len() == 3);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!((world.deleted.len(), world.mended().len()), (3, 0), "nobody is replaced twice");
}

#[rstest]
#[case::on_to_another(NEWER)]
#[case::back(OLD)]
fn it_goes_on_when_the_spec_is_mended_and_the_broken_one_goes_first(#[case] to: &str) {
    let mut world = broken();
    world.want.target = target(to);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(to));
    assert_eq!(world.mended(), [&name(2)]);
    let others = if to == NEWER { vec![name(2), name(1), name(0)] } else { vec![name(2)] };
    assert_eq!(world.replaced(), others);
}

#[test]
fn it_is_tried_again_when_a_person_resumes() {
    let mut world = broken();
    *pod_mut(&mut world.view, 2) = crate::support::pod(2, OLD);
    *member_mut(&mut world.view, 2) = crate::support::member(2, OLD);
    world.broken.clear();
    assert_eq!(answer(&world.run()), Halt(Reason::TemplateReverted), "until then it is not");
    assert_eq!(world.view.evictions, Evictions::Open, "drains go on while a person is waited for");
    world.view.resumed = true;
    let _ = world.pass();
    world.view.resumed = false;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

/// The second one breaks for a reason of its own: the first one serves, and going back would take it back when it is lost.
#[test]
fn a_template_that_somebody_serves_from_stays() {
    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(1);
    world.broken = [NEW].into();
    world.only_unready_are_broken = true;
    assert_eq!(answer(&world.run()), Halt(Reason::ImagePullFailed));
    assert_eq!((world.templates(), world.deleted.len()), (vec![image(NEW).as_str()], 2));
    world.broken.clear();
    let _ = world.pass();
    let _ = world.pass();
    assert_eq!(world.run(), Decision::Done);
}

/// What it goes back to is gone from the registry: the revert is put back as anything else is.
#[test]
fn a_revert_that_nobody_can_live_on_is_put_back() {
    let mut world = World::on_delete(3, 0);
    world.want.allow_downgrade = true;
    assert_eq!(world.run(), Decision::Done);
    world.broken = [OLD].into();
    world.want.target = target(OLD);
    assert_eq!(answer(&world.run()), Halt(Reason::TemplateReverted));
    assert_eq!(world.view.workload.image, image(NEW));
    world.want.target = target(NEW);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

/// A wrong image whose member serves: it is left where a revert would be refused, and put back where it would not.
#[rstest]
#[case::it_has_led(Some(NEW), Halt(Reason::VersionMismatch))]
#[case::it_has_not(None, Act("TemplateWritten"))]
fn a_member_of_another_version_is_no_reason_to_go_back(#[case] led: Option<&str>, #[case] expected: Answer) {
    let mut view = half_way_on_delete(3, 0, 1);
    view.evictions = theirs(3, 2);
    member_mut(&mut view, 2).version = Fact::Known(version(NEWER));
    let record = record_mut(&mut view);
    (record.template_trial, record.highest_led) = (TemplateTrial::Running, led.map(version));
    record.stage = Some(stage(StageKind::Join, 2));
    let late = rolling::plan(&want(NEW), &view, noon() + Duration::from_hours(1)).decision;
    assert_eq!(answer(&late), expected, "{late:?}");
}

/// Nobody minds the upgrade any more: what the template shall name.
#[rstest]
#[case::the_first_one_is_broken(|_: &mut View| {}, Some(OLD))]
#[case::nobody_is_new(|view: &mut View| *pod_mut(view, 2) = crate::support::pod(2, OLD), Some(OLD))]
#[case::the_first_one_is_gone(|view: &mut View| remove_pod(view, 2), Some(OLD))]
#[case::the_controller_has_not_seen_it(|view: &mut View| {
    record_mut(view).revision = None;
    view.workload.observed = false;
    view.workload.update_revision = revision(OLD);
}, Some(OLD))]
#[case::the_first_one_is_up(|view: &mut View| pod_mut(view, 2).ready_since = Some(noon()), None)]
#[case::the_first_one_is_up_and_unrecorded(|view: &mut View| {
    record_mut(view).revision = None;
    pod_mut(view, 2).ready_since = Some(noon());
}, None)]
#[case::somebody_has_served(|view: &mut View| record_mut(view).template_trial = TemplateTrial::Passed, None)]
#[case::it_is_put_back_already(|view: &mut View| record_mut(view).template_trial = TemplateTrial::Reverted, None)]
#[case::somebody_wrote_another(|view: &mut View| view.workload.image = image(NEWER), None)]
#[case::the_strategy_is_another(|view: &mut View| view.workload.strategy = Strategy::RollingUpdate { partition: 3 }, None)]
#[case::where_it_came_from_is_not_known(|view: &mut View| record_mut(view).from = target(NEW), None)]
#[case::nothing_is_under_way(|view: &mut View| view.record = None, None)]
fn a_template_that_nobody_is_up_on_is_not_left_behind(#[case] change: fn(&mut View), #[case] expected: Option<&str>) {
    let mut view = poisoned();
    change(&mut view);
    assert_eq!(poison::parting_image(&view).map(str::to_owned), expected.map(image));
}
