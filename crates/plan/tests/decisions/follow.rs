//! Somebody else writes the template (X7).

use rstest::rstest;
use windlass_plan::{Decision, Fact, Reason, Step, rolling::known::workload::Strategy, strategy::known::want::Trigger};

use crate::support::{NEW, NEWER, OLD, hold, image, name, pod_mut, revision, world::World};

#[rstest]
fn pods_are_replaced_leader_last_and_the_template_is_not_touched(
    #[values(3, 5)] members: u32,
    #[values(0, 1, 2)] leader: u32,
) {
    let mut world = World::following(members, leader);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.steps.is_empty(), "{:?}", world.steps);
    world.edit(NEW);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(world.count("HandOver"), 1);
    assert_eq!(world.replaced().last(), Some(&name(leader)));
    assert!(world.steps.iter().all(|step| !matches!(step, Step::WriteTemplate { .. })));
}

/// With RollingUpdate Kubernetes would replace the pods itself, leader or not, as soon as the template changes: that is said before it
/// does (H39).
#[test]
fn a_set_that_is_not_on_delete_is_refused_also_at_rest() {
    let mut world = World::following(3, 0);
    world.view.workload.strategy = Strategy::RollingUpdate { partition: 0 };
    let decision = world.run();
    assert_eq!(hold(&decision).reason, Reason::UnsupportedStrategy);
    assert!(matches!(decision, Decision::Halt { .. }));
}

#[test]
fn another_strategy_half_way_is_refused() {
    let mut world = World::following(3, 0);
    world.edit(NEW);
    world.run_until_replaced(1);
    world.view.workload.strategy = Strategy::RollingUpdate { partition: 0 };
    assert_eq!(hold(&world.pass()).reason, Reason::UnsupportedStrategy);
}

/// Windlass upgraded it, and in the middle somebody makes the template Git's.
#[test]
fn an_upgrade_under_way_is_handed_to_who_writes_the_template() {
    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(1);
    world.want.trigger = Trigger::Template;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    let mut world = World::new(3, 0);
    world.run_until_replaced(1);
    world.want.trigger = Trigger::Template;
    assert_eq!(hold(&world.run()).reason, Reason::UnsupportedStrategy);
    world.view.workload.strategy = Strategy::OnDelete;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

#[test]
fn yet_another_template_half_way_is_followed_at_once() {
    let mut world = World::following(3, 0);
    world.edit(NEW);
    world.run_until_replaced(1);
    world.edit(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEWER));
}

#[test]
fn the_old_template_half_way_takes_back_who_has_not_led() {
    let mut world = World::following(3, 0);
    world.edit(NEW);
    world.run_until_replaced(1);
    world.edit(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
}

/// What has led has written: going back is a downgrade, and only a person can allow it (H15).
#[rstest]
#[case::at_rest(false)]
#[case::half_way(true)]
fn an_older_template_is_refused_once_the_newer_one_has_led(#[case] half_way: bool) {
    let mut world = World::following(3, 0);
    world.edit(NEW);
    if half_way {
        world.run_until_replaced(1);
        world.view.quorum.leader = Fact::Known(name(2));
        let _ = world.pass();
    } else {
        assert_eq!(world.run(), Decision::Done);
    }
    let replaced = world.deleted.len();
    world.edit(OLD);
    assert_eq!(hold(&world.run()).reason, Reason::DowngradeNotAllowed, "{:?}", world.steps);
    assert_eq!(world.deleted.len(), replaced);
    world.want.allow_downgrade = true;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
}

/// Nobody new had led when the way back began; then the old leader was lost, and one of them came to lead (H15).
#[test]
fn a_way_back_ends_when_a_newer_member_comes_to_lead() {
    let mut world = World::following(5, 0);
    world.edit(NEW);
    world.run_until_replaced(3);
    world.edit(OLD);
    while world.view.record.as_ref().is_none_or(|record| record.target.image != image(OLD)) {
        let _ = world.pass();
    }
    let newer =
        world.view.pods.iter().find(|pod| pod.revision == revision(NEW) && pod.is_up()).map(|pod| pod.name.clone());
    world.view.quorum.leader = Fact::Known(newer.expect("somebody is new"));
    let _ = world.pass();
    let replaced = world.deleted.len();
    assert_eq!(hold(&world.run()).reason, Reason::DowngradeNotAllowed, "{:?}", world.steps);
    assert_eq!(world.deleted.len(), replaced);
    world.want.allow_downgrade = true;
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
}

/// Who wrote a template that nobody can live on has to write another; the broken pod is then replaced first.
#[test]
fn a_broken_template_is_held_at_its_first_member_and_left_to_who_wrote_it() {
    let mut world = World::following(3, 0);
    world.broken = [NEW].into();
    world.edit(NEW);
    assert_eq!(hold(&world.run()).reason, Reason::ImagePullFailed, "{:?}", world.steps);
    assert_eq!(world.deleted.len(), 1);
    world.edit(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEWER));
    assert_eq!(world.mended().len(), 1);
}

#[test]
fn a_pod_that_is_lost_comes_back_new_and_counts_as_done() {
    let mut world = World::following(3, 0);
    world.edit(NEW);
    world.run_until_replaced(1);
    pod_mut(&mut world.view, 1).terminating = true;
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.replaced().len(), 2, "{:?}", world.steps);
}

#[test]
fn a_version_that_nobody_tells_is_waited_for() {
    let mut world = World::following(3, 0);
    crate::support::member_mut(&mut world.view, 1).version = Fact::Unknown("timed out".into());
    world.edit(NEW);
    world.let_kubernetes_work();
    assert_eq!(hold(&world.pass()).reason, Reason::MembersUnknown);
}
