//! The new image is on the nodes before anybody stops.

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Reason, Step,
    forecast::End,
    rolling::foresee::foresee,
    strategy::known::{
        pulls::{Pull, Pulls},
        step::JobStep,
    },
};

use crate::support::{NEW, NEWER, OLD, image, noon, rest, unknown, want, world::World};

fn pulling(mut world: World) -> World {
    world.want.pre_pull = Some(Duration::from_mins(10));
    world
}

fn asked(world: &World) -> Vec<(&str, Vec<&str>)> {
    let asked = world.steps.iter().filter_map(|step| {
        let Step::Job(JobStep::PullImage { image, nodes }) = step else { return None };
        Some((image.as_str(), nodes.iter().map(String::as_str).collect()))
    });
    asked.collect()
}

#[rstest]
#[case::by_the_partition(World::new(3, 0))]
#[case::leader_last(World::on_delete(3, 0))]
fn every_node_is_asked_once_and_before_anything_is_written(#[case] world: World) {
    let mut world = pulling(world);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(asked(&world), [(image(NEW).as_str(), vec!["node-0", "node-1", "node-2"])]);
    assert!(matches!(world.steps.first(), Some(Step::Job(JobStep::PullImage { .. }))), "{:?}", world.steps);
}

#[test]
fn nothing_is_pulled_unasked() {
    let mut world = World::new(3, 0);
    assert_eq!(world.run(), Decision::Done);
    assert!(asked(&world).is_empty());
}

#[test]
fn the_image_of_a_template_that_somebody_else_writes_is_pulled() {
    let mut world = pulling(World::following(3, 0));
    assert_eq!(world.run(), Decision::Done);
    assert!(asked(&world).is_empty(), "there is nothing new");
    world.edit(NEW);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(asked(&world).len(), 1);
}

#[test]
fn a_node_that_cannot_pull_holds_and_needs_a_person_only_after_a_while() {
    let mut world = pulling(World::new(3, 0));
    world.unpullable = [1].into();
    assert!(matches!(world.pass(), Decision::Act(Step::Job(JobStep::PullImage { .. }))));
    assert!(matches!(world.pass(), Decision::Wait { on, .. } if on.reason == Reason::ImageNotPullable));
    let Decision::Halt { on } = world.run() else { panic!("it went on: {:?}", world.steps) };
    assert_eq!(on.reason, Reason::ImageNotPullable);
    assert_eq!(on.message, format!("image {} can't be pulled on node node-1: manifest unknown", image(NEW)));
    assert!(world.templates().is_empty() && world.view.record.is_none(), "nothing has begun");
    // It is tried on, and comes through.
    world.unpullable.clear();
    world.let_kubernetes_work();
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
}

#[test]
fn an_override_goes_on_without_it() {
    let mut world = pulling(World::new(3, 0));
    world.unpullable = [1].into();
    world.want.overrides = [("ImagePulled".to_owned(), world.now + Duration::from_hours(9))].into();
    assert_eq!(world.run(), Decision::Done);
    assert!(asked(&world).is_empty(), "what is set aside is not asked for");
}

#[test]
fn what_is_not_known_blocks() {
    let (mut want, mut view) = (want(NEW), rest(3, 0));
    want.pre_pull = Some(Duration::from_mins(10));
    view.pulls = unknown();
    let plan = windlass_plan::rolling::plan(&want, &view, noon());
    assert!(matches!(plan.decision, Decision::Wait { on, .. } if on.reason == Reason::AwaitingImage));
}

#[test]
fn another_target_before_anybody_went_is_pulled_as_well() {
    let mut world = pulling(World::new(3, 0));
    let _ = world.run_until(|world| !world.templates().is_empty());
    world.want.target = crate::support::target(NEWER);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEWER));
    let images: Vec<&str> = asked(&world).iter().map(|(image, _)| *image).collect();
    assert_eq!(images, [image(NEW), image(NEWER)]);
}

#[test]
fn a_way_back_waits_for_nothing() {
    let mut world = pulling(World::new(3, 0));
    world.run_until_replaced(1);
    world.unpullable = [0, 1, 2].into();
    world.want.target = crate::support::target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
    assert_eq!(asked(&world).len(), 1);
}

#[test]
fn a_forecast_shows_it_first() {
    let (mut want, mut view) = (want(NEW), rest(3, 0));
    want.pre_pull = Some(Duration::from_mins(10));
    let nodes = |pull: &Pull| ["a", "b"].map(|node| (node.to_owned(), pull.clone())).into();
    view.pulls = Fact::Known(Pulls { image: image(NEW), nodes: nodes(&Pull::Missing) });
    let seen = foresee(&want, &view, noon());
    assert_eq!((&seen.end, seen.blocked()), (&End::Done, None));
    let first = seen.steps.first().map(|foreseen| foreseen.step.to_string());
    assert_eq!(first, Some(format!("pull image {} on a, b before anybody stops", image(NEW))));

    let trouble = Some("manifest unknown".to_owned());
    view.pulls = Fact::Known(Pulls { image: image(NEW), nodes: nodes(&Pull::Running { since: noon(), trouble }) });
    let seen = foresee(&want, &view, noon());
    assert!(seen.steps.is_empty());
    assert_eq!(seen.blocked().map(|hold| hold.reason), Some(Reason::ImageNotPullable));
}
