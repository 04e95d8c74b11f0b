//! A lowered partition is a standing permit: it is minded until Kubernetes has used it (H9).

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason, Step, View, Want,
    rolling::{
        self,
        known::{
            stage::StageKind,
            workload::{Evictions, Strategy},
        },
    },
};

use crate::support::{
    Answer, NEW, NEWER, OLD, answer, decide, half_way, hold, image, member_mut, name, noon, partition, permitted, plan,
    pod_mut, record_mut, remove_pod, revision, target, unknown, want, world::World,
};

/// Something that changed while the permit for `pd-2` of five stands; `pd-3` and `pd-4` are done and `pd-0` leads.
type Change = fn(&mut Want, &mut View);

#[rstest]
#[case::it_leads_now(|_: &mut Want, view: &mut View| view.quorum.leader = Fact::Known(name(2)), Reason::LeaderUnknown)]
#[case::the_leader_is_unknown(|_: &mut Want, view: &mut View| view.quorum.leader = unknown(), Reason::LeaderUnknown)]
#[case::the_leader_is_a_stranger(|_: &mut Want, view: &mut View| view.quorum.leader = Fact::Known(name(9)), Reason::LeaderUnknown)]
#[case::another_is_unhealthy(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = Fact::Known(false), Reason::MemberUnhealthy)]
#[case::it_is_unhealthy_itself(|_: &mut Want, view: &mut View| member_mut(view, 2).healthy = Fact::Known(false), Reason::MemberUnhealthy)]
#[case::a_replaced_one_is_unhealthy(|_: &mut Want, view: &mut View| member_mut(view, 4).healthy = Fact::Known(false), Reason::MemberUnhealthy)]
#[case::a_replaced_one_fell_behind(|_: &mut Want, view: &mut View| member_mut(view, 4).position = Fact::Known(Some(0)), Reason::MemberBehind)]
#[case::a_health_is_unknown(|_: &mut Want, view: &mut View| member_mut(view, 1).healthy = unknown(), Reason::MembersUnknown)]
#[case::the_members_are_unknown(|_: &mut Want, view: &mut View| view.quorum.members = unknown(), Reason::MembersUnknown)]
#[case::another_is_not_ready(|_: &mut Want, view: &mut View| pod_mut(view, 0).ready_since = None, Reason::PodNotReady)]
#[case::another_is_terminating(|_: &mut Want, view: &mut View| pod_mut(view, 0).terminating = true, Reason::PodNotReady)]
#[case::another_is_gone(|_: &mut Want, view: &mut View| remove_pod(view, 1), Reason::PodNotReady)]
#[case::evictions_are_open(|_: &mut Want, view: &mut View| view.evictions = Evictions::Open, Reason::QuorumAtRisk)]
#[case::a_priority_calls_the_leader_away(|_: &mut Want, view: &mut View| member_mut(view, 2).priority = 5, Reason::LeaderPriority)]
#[case::it_is_paused(|want: &mut Want, _: &mut View| want.paused = true, Reason::Paused)]
#[case::the_old_version_is_wanted_again(|want: &mut Want, _: &mut View| want.target = target(OLD), Reason::Paused)]
#[case::the_controller_is_behind_and_it_is_paused(|want: &mut Want, view: &mut View| {
    want.paused = true;
    view.workload.observed = false;
}, Reason::Paused)]
fn a_standing_permit_is_taken_back_when(#[case] change: Change, #[case] cause: Reason) {
    let (mut want, mut view) = (want(NEW), permitted(5, 0, 2));
    assert_eq!(answer(&decide(&want, &view)), Answer::Wait(Reason::AwaitingReplacement));
    change(&mut want, &mut view);

    let plan = plan(&want, &view);
    let Decision::Act(Step::TakeBack { pod, partition, because }) = plan.decision else {
        panic!("not taken back: {:?}", plan.decision)
    };
    assert_eq!((pod, partition, because.reason), (name(2), 3, cause));
    let record = plan.record.expect("the upgrade goes on");
    assert_eq!((record.partition, record.stage.as_ref()), (3, None));
    assert!(record.accounts_for(2), "the write may be lost");
}

#[test]
fn a_permit_that_was_taken_back_is_given_again_when_all_is_well() {
    let mut world = World::new(5, 0);
    let _ = world.run_until(|world| world.permits().len() == 2);
    member_mut(&mut world.view, 1).healthy = unknown();
    let _ = world.pass();
    assert_eq!((world.count("ReplacementWithdrawn"), partition(&world.view)), (1, Some(4)));
    member_mut(&mut world.view, 1).healthy = Fact::Known(true);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(world.permits(), [4, 3, 3, 2, 1, 0]);
}

#[test]
fn leadership_that_moves_onto_the_permitted_one_is_handed_over_again() {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.permits().len() == 1);
    world.view.quorum.leader = Fact::Known(name(2));
    assert_eq!(world.run(), Decision::Done);
    assert_eq!((world.count("ReplacementWithdrawn"), world.count("HandOver")), (1, 2));
}

#[test]
fn a_permit_that_kubernetes_has_begun_to_use_is_not_taken_back() {
    let mut view = permitted(5, 0, 2);
    pod_mut(&mut view, 2).terminating = true;
    member_mut(&mut view, 2).healthy = Fact::Known(false);
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Wait(Reason::PodNotReady));
    let paused = Want { paused: true, ..want(NEW) };
    assert_eq!(answer(&decide(&paused, &view)), Answer::Wait(Reason::Paused));
}

#[test]
fn a_new_wish_leaves_the_permit_of_the_old_one_standing() {
    assert_eq!(answer(&decide(&want(NEWER), &permitted(5, 0, 2))), Answer::Wait(Reason::AwaitingReplacement));
}

#[test]
fn a_frozen_controller_is_waited_for_and_then_a_person_is_called() {
    let (want, view) = (want(NEW), permitted(3, 0, 0));
    let ask = |after: Duration| rolling::plan(&want, &view, noon() + after).decision;
    let just_before = ask(want.deadlines.ready.saturating_sub(Duration::from_nanos(1)));
    assert_eq!(answer(&just_before), Answer::Wait(Reason::AwaitingReplacement));
    assert_eq!(answer(&ask(want.deadlines.ready)), Answer::Halt(Reason::AwaitingReplacement));
}

#[test]
fn evictions_stay_held_while_a_frozen_controller_has_a_permit() {
    let mut world = World::new(3, 0);
    let _ = world.run_until(|world| world.permits().len() == 1);
    world.frozen = true;
    assert_eq!(answer(&world.run()), Answer::Halt(Reason::AwaitingReplacement));
    assert_eq!(world.view.evictions, Evictions::HeldByUs);

    world.frozen = false;
    for _ in 0..10 {
        let _ = world.pass();
    }
    assert_eq!(world.run(), Decision::Done, "it goes on by itself");
    assert!(world.everybody_runs(NEW));
}

#[test]
fn a_permit_whose_write_was_lost_is_given_again_and_not_another_one() {
    let view = half_way(5, 0, 2);
    let first = plan(&want(NEW), &view);
    let again = plan(&want(NEW), &View { record: first.record.clone(), ..view });
    assert_eq!(first.decision, Decision::Act(Step::Permit { pod: name(2), partition: 2 }));
    assert_eq!(again, first);
}

/// H39: Kubernetes would use it, leader or not.
#[test]
fn a_permit_of_somebody_else_is_taken_back() {
    let mut view = permitted(5, 2, 2);
    let record = record_mut(&mut view);
    (record.partition, record.previous_partitions) = (3, [4].into());
    let decision = decide(&want(NEW), &view);
    assert_eq!(answer(&decision), Answer::Act("ReplacementWithdrawn"));
    assert_eq!(hold(&decision).reason, Reason::FieldOwned);
}

/// Kubernetes would go on to the next one on readiness alone, leader or not.
#[test]
fn a_partition_that_permits_more_than_one_is_taken_back() {
    let mut view = permitted(5, 0, 2);
    view.workload.strategy = Strategy::RollingUpdate { partition: 0 };
    record_mut(&mut view).move_partition(3, 0);
    let decision = decide(&want(NEW), &view);
    assert_eq!(answer(&decision), Answer::Act("ReplacementWithdrawn"), "{decision:?}");
    assert_eq!(hold(&decision).reason, Reason::QuorumAtRisk);
}

/// All replaced members are outdated again then, and Kubernetes may replace them at once.
#[test]
fn a_template_that_somebody_else_writes_while_replaced_members_are_free_is_held() {
    let mut view = half_way(5, 0, 2);
    view.workload.image = image(NEWER);
    view.workload.update_revision = revision(NEWER);
    let plan = plan(&want(NEW), &view);
    let Decision::Act(Step::TakeBack { partition, because, .. }) = &plan.decision else {
        panic!("not held: {:?}", plan.decision)
    };
    assert_eq!((*partition, because.reason), (5, Reason::TemplateChanged));

    view.record = plan.record;
    view.workload.strategy = Strategy::RollingUpdate { partition: 5 };
    let told = decide(&want(NEW), &view);
    assert_eq!(answer(&told), Answer::Halt(Reason::TemplateChanged), "whoever is drained goes back");
    assert!(hold(&told).message.ends_with("Evictions stay held meanwhile: pd-3 would come back as it was before"));
    view.evictions = Evictions::Open;
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Act("EvictionsHeld"), "they were let through meanwhile");
}

#[test]
fn the_replacement_is_timed_from_the_permit() {
    let view = half_way(3, 0, 1);
    let record = plan(&want(NEW), &view).record.expect("the upgrade goes on");
    let stage = record.stage.expect("a stage has begun");
    assert_eq!((stage.kind, stage.pod, stage.since), (StageKind::Replace, name(1), noon()));
}
