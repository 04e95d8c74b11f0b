//! Ways between versions that a system does not support (H20), and members without a vote.

use rstest::rstest;
use windlass_plan::{
    Decision, Reason, Step, Want, path,
    rolling::{self, known::workload::Evictions},
};

use crate::support::{
    Answer::{self, Halt, Wait},
    answer, decide, half_way, hold, image, member_mut, noon, rest, target, version, want,
    world::World,
};

/// An etcd of three at this version, and a wish for that one.
fn etcd(from: &str, to: &str) -> World {
    let mut view = rest(3, 0);
    view.workload.image = image(from);
    for index in 0..3 {
        member_mut(&mut view, index).version = windlass_plan::Fact::Known(version(from));
    }
    view.quorum.agreed = Some(version(from));
    let mut world = World::from(view);
    world.want = Want { target: target(to), path: path::ETCD, ..want(to) };
    world
}

#[rstest]
#[case::skipped("3.4.34", "3.6.16", Some("go to 3.5 before 3.6.16"))]
#[case::before_the_doorstep("3.5.20", "3.6.16", Some("3.5.26 or later"))]
#[case::one_minor("3.5.35", "3.6.16", None)]
#[case::a_patch("3.5.20", "3.5.35", None)]
fn a_way_that_does_not_exist_is_not_begun(#[case] from: &str, #[case] to: &str, #[case] refused: Option<&str>) {
    let mut world = etcd(from, to);
    let decision = world.pass();
    match refused {
        None => assert_eq!(answer(&decision), Answer::Act("TemplateWritten")),
        Some(words) => {
            assert_eq!(answer(&decision), Halt(Reason::UnsupportedPath));
            assert!(hold(&decision).message.contains(words), "{}", hold(&decision).message);
            assert_eq!(world.steps, []);
        }
    }
}

/// A way that the system would begin, and that is known to end badly.
#[rstest]
#[case::to_where_it_breaks("2.6.2", Some("openbao#3899"))]
#[case::to_where_it_is_mended("2.6.3", None)]
fn a_way_that_ends_badly_is_not_begun(#[case] to: &str, #[case] refused: Option<&str>) {
    let mut world = etcd("2.5.5", to);
    world.want.path = path::OPENBAO;
    let decision = world.pass();
    match refused {
        None => assert_eq!(answer(&decision), Answer::Act("TemplateWritten")),
        Some(words) => {
            assert_eq!(answer(&decision), Halt(Reason::UnsupportedPath));
            assert!(hold(&decision).message.contains(words), "{}", hold(&decision).message);
            assert_eq!(world.steps, []);
        }
    }
}

/// The last upgrade ended a moment ago: a member of the next release could not join.
#[test]
fn the_next_minor_release_waits_until_the_whole_cluster_has_followed() {
    let mut world = etcd("3.5.35", "3.6.16");
    world.view.quorum.agreed = Some(version("3.4.0"));
    assert_eq!(answer(&world.pass()), Wait(Reason::ClusterVersionBehind));
    world.view.quorum.agreed = None;
    assert_eq!(answer(&world.pass()), Wait(Reason::MembersUnknown));
    assert_eq!(world.steps, []);
    world.view.quorum.agreed = Some(version("3.5.0"));
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs("3.6.16"));
}

/// All are replaced and the whole cluster has followed, and then one breaks: a release that mends it is let in.
#[test]
fn a_cluster_that_has_followed_can_be_mended() {
    let mut view = crate::support::half_way_on_delete(3, 0, 3);
    let record = crate::support::record_mut(&mut view);
    (record.from, record.target) = (target("3.5.35"), target("3.6.16"));
    view.workload.image = image("3.6.16");
    for index in 0..3 {
        member_mut(&mut view, index).version = windlass_plan::Fact::Known(version("3.6.16"));
    }
    view.quorum.agreed = Some(version("3.6.0"));
    crate::support::pod_mut(&mut view, 2).ready_since = None;
    let want = Want { target: target("3.6.17"), path: path::ETCD, ..want("3.6.17") };
    let decision = decide(&want, &view);
    assert!(
        matches!(&decision, Decision::Act(Step::WriteTemplate { image: to, .. }) if *to == image("3.6.17")),
        "{decision:?}"
    );
}

#[test]
fn a_patch_release_waits_for_no_cluster_version() {
    let mut world = etcd("3.5.26", "3.5.35");
    world.view.quorum.agreed = None;
    assert_eq!(answer(&world.pass()), Answer::Act("TemplateWritten"));
}

#[test]
fn one_member_that_is_left_behind_counts() {
    let mut world = etcd("3.5.35", "3.6.16");
    member_mut(&mut world.view, 1).version = windlass_plan::Fact::Known(version("3.5.3"));
    assert_eq!(answer(&world.run()), Halt(Reason::UnsupportedPath));
}

#[test]
fn going_back_a_minor_release_takes_more_than_a_persons_leave() {
    let mut world = etcd("3.6.16", "3.5.35");
    assert_eq!(answer(&world.run()), Halt(Reason::DowngradeNotAllowed));
    world.want.allow_downgrade = true;
    assert_eq!(answer(&world.run()), Halt(Reason::UnsupportedPath));
    world.view.quorum.downgrade = Some(version("3.5.0"));
    assert_eq!(answer(&world.pass()), Answer::Act("TemplateWritten"));
}

#[test]
fn a_new_target_before_anybody_is_replaced_is_asked_too() {
    let mut world = etcd("3.5.35", "3.6.16");
    let _ = world.run_until(|world| world.templates().len() == 1);
    world.want.target = target("3.7.0");
    assert_eq!(answer(&world.run()), Halt(Reason::UnsupportedPath));
    assert_eq!(world.templates(), [image("3.6.16")]);
}

#[test]
fn a_target_that_waits_its_turn_is_reached_from_where_it_then_is() {
    let mut world = etcd("3.5.35", "3.6.16");
    world.run_until_replaced(1);
    world.want.target = target("3.7.0");
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.templates(), [image("3.6.16"), image("3.7.0")]);
    assert!(world.everybody_runs("3.7.0"));
}

#[rstest]
fn a_revert_across_a_minor_release_works_while_a_member_stays(#[values(1, 2)] replaced: usize) {
    let mut world = etcd("3.5.35", "3.6.16");
    world.run_until_replaced(replaced);
    world.want.target = target("3.5.35");
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs("3.5.35"));
}

#[rstest]
fn a_revert_across_a_minor_release_is_refused_once_nobody_stays(#[values(true, false)] allowed: bool) {
    let mut world = etcd("3.5.35", "3.6.16");
    let _ = world.run_until(|world| world.deleted.len() == 3);
    world.want = Want { target: target("3.5.35"), allow_downgrade: allowed, ..world.want };
    world.steps.clear();
    let decision = world.run();
    let reason = if allowed { Reason::UnsupportedPath } else { Reason::DowngradeNotAllowed };
    assert_eq!(answer(&decision), Halt(reason), "{decision:?}");
    assert_eq!(world.templates(), Vec::<&str>::new());
}

#[test]
fn a_revert_to_a_patch_release_needs_nobody_who_stays() {
    let mut world = etcd("3.6.15", "3.6.16");
    let _ = world.run_until(|world| world.deleted.len() == 3);
    world.want = Want { target: target("3.6.15"), allow_downgrade: true, ..world.want };
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs("3.6.15"));
}

#[rstest]
#[case::at_rest(rest(3, 0))]
#[case::half_way(half_way(3, 0, 1))]
fn a_learner_holds_and_is_named(#[case] mut view: windlass_plan::View) {
    view.evictions = Evictions::Open;
    crate::support::add_learner(&mut view, "pd-9");
    let decision = decide(&want(crate::support::NEW), &view);
    assert_eq!(answer(&decision), Halt(Reason::MembersDoNotMatch));
    assert!(hold(&decision).message.contains("pd-9 is a learner"), "{decision:?}");
}

/// One that is meant to stay, beside the set.
#[rstest]
#[case::said(true, "pd-9", None)]
#[case::not_said(false, "pd-9", Some("spec.policy.acceptNonVoters"))]
#[case::in_a_pod_of_the_set(true, "pd-1", Some("a set of its own"))]
fn a_learner_that_is_meant_to_stay_does(#[case] meant: bool, #[case] learner: &str, #[case] held: Option<&str>) {
    let mut world = World::new(3, 0);
    crate::support::add_learner(&mut world.view, learner);
    world.want.accept_non_voters = meant;
    let decision = world.run();
    match held {
        None => {
            assert_eq!(decision, Decision::Done);
            assert!(
                !world.steps.iter().any(|step| matches!(step, Step::HandOver { to, .. } if to.as_str() == learner))
            );
        }
        Some(words) => {
            assert_eq!(answer(&decision), Halt(Reason::MembersDoNotMatch));
            assert!(hold(&decision).message.contains(words), "{}", hold(&decision).message);
            assert_eq!(world.steps, []);
        }
    }
}

#[test]
fn a_learner_takes_a_permit_back() {
    let mut view = crate::support::permitted(3, 0, 1);
    crate::support::add_learner(&mut view, "pd-9");
    let decision = rolling::plan(&want(crate::support::NEW), &view, noon()).decision;
    assert_eq!(answer(&decision), Answer::Act("ReplacementWithdrawn"));
}
