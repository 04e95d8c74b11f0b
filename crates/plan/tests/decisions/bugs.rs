//! Seeded bugs of the planner that a whole cluster shows too rarely: each must break a story that holds without it.

use std::{panic, time::Duration};

use jiff::Timestamp;
use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Order, Reason, Step, Trouble, View, Want,
    bug::{Bug, plant},
    gate::{About, Asked, ExternalGate, Outcome},
    path,
    rolling::{
        self,
        known::{
            owners::{Field, Operation, Owner},
            parked::Parked,
            record::Record,
            stage::HandOver,
            template_trial::TemplateTrial,
            workload::{Evictions, Strategy},
        },
        permit, takeover,
    },
    strategy::known::{
        request::{self, GivenUp},
        snapshot::Progress,
        want::{OnDeadline, Trigger},
    },
};

use super::{detours, mends::about_to_delete, owners};
use crate::support::{
    self, NEW, NEWER, OLD, POSITION, decide, half_way, half_way_on_delete, image, member_mut, name, noon, pod_mut,
    record_mut, rest, resumed, revision, target, theirs, unknown, version, want,
    world::{RANDOM_STORIES, World, random_story},
};

type Story = fn();

/// Leadership moves once, right before the last member goes.
fn an_upgrade_moves_leadership_once() {
    let mut world = World::on_delete(3, 2);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.count("HandOver"), 1);
}

fn whoever_is_down_goes_first() {
    let mut world = World::on_delete(5, 0);
    (world.broken, world.only_unready_are_broken) = ([OLD].into(), true);
    pod_mut(&mut world.view, 1).ready_since = None;
    member_mut(&mut world.view, 1).healthy = Fact::Known(false);
    assert_eq!(world.run(), Decision::Done);
}

fn a_broken_template_does_not_stand() {
    let mut world = World::on_delete(3, 0);
    world.broken = [NEW].into();
    let _ = world.run();
    pod_mut(&mut world.view, 1).terminating = true;
    for _ in 0..20 {
        let _ = world.pass();
    }
    assert!(world.view.pod(&name(1)).is_some_and(windlass_plan::Pod::is_up), "it came back broken");
}

fn a_proven_template_stands() {
    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(1);
    (world.broken, world.only_unready_are_broken) = ([NEW].into(), true);
    let _ = world.run();
    assert_eq!(world.templates(), [image(NEW)], "somebody serves from it");
}

fn a_pod_under_their_budget_is_evicted() {
    let mut world = World::on_delete(3, 0);
    world.view.evictions = theirs(3, 2);
    assert_eq!(world.run(), Decision::Done);
}

fn a_budget_over_two_sets_is_no_budget() {
    let mut view = half_way_on_delete(3, 0, 1);
    view.evictions = theirs(6, 4);
    assert!(!matches!(decide(&want(NEW), &view), Decision::Act(_)), "the pods that it keeps may be the others");
}

fn a_budget_that_spares_one_is_not_enough_for_a_permit() {
    let mut view = half_way(3, 0, 1);
    view.evictions = theirs(3, 2);
    assert!(!matches!(decide(&want(NEW), &view), Decision::Act(_)), "a drain may take another one");
}

fn a_pod_that_is_ready_since_a_moment_is_waited_for() {
    let mut view = half_way(3, 0, 1);
    view.workload.min_ready = Duration::from_secs(30);
    pod_mut(&mut view, 2).ready_since = Some(noon() - Duration::from_secs(29));
    assert!(!matches!(decide(&want(NEW), &view), Decision::Act(_)), "the next one goes too early");
}

fn a_cluster_that_has_not_followed_goes_no_further() {
    let mut view = rest(3, 0);
    view.quorum.agreed = Some(version("8.4.0"));
    let decision = decide(&Want { target: target("8.6.0"), path: path::ETCD, ..want("8.6.0") }, &view);
    assert!(matches!(decision, Decision::Wait { .. }), "the first new member can't join: {decision:?}");
}

/// A member that was given up gets ready after all, and what it says is not known at that moment.
fn a_pod_that_is_ready_since_a_moment_is_not_deleted_as_broken() {
    let mut view = about_to_delete();
    view.workload.min_ready = Duration::from_secs(30);
    pod_mut(&mut view, 2).ready_since = Some(noon() - Duration::from_secs(2));
    member_mut(&mut view, 2).healthy = unknown();
    let decision = decide(&want(NEWER), &view);
    assert!(!matches!(decision, Decision::Act(Step::DeletePod { .. })), "it serves: {decision:?}");
}

fn a_budget_that_is_taken_away_is_replaced() {
    let mut world = World::on_delete(3, 0);
    world.view.evictions = theirs(3, 2);
    while world.count("MemberReplaced") == 0 {
        let _ = world.pass();
    }
    world.view.evictions = Evictions::Open;
    let _ = world.pass();
    assert_eq!(world.view.evictions, Evictions::HeldByUs, "a drain would take a second one");
}

/// A person pauses before anybody looks at the first new member again; it serves meanwhile, and then it breaks.
fn a_template_that_proved_itself_in_a_pause_stands() {
    let mut view = half_way_on_delete(3, 0, 1);
    record_mut(&mut view).template_trial = TemplateTrial::Running;
    record_mut(&mut view).completed.clear();
    let paused = Want { paused: true, ..want(NEW) };
    let seen = rolling::plan(&paused, &view, noon());
    view.record = seen.record;
    pod_mut(&mut view, 2).ready_since = None;
    pod_mut(&mut view, 2).trouble =
        Some(Trouble::CrashLoop { container: "container pd".into(), image: image(NEW), restarts: 3, exit: None });
    assert!(!matches!(decide(&paused, &view), Decision::Act(Step::WriteTemplate { .. })), "whoever is lost goes back");
}

/// Somebody writes the old image while the controllers stand still: when they move, everybody at or above the partition is let go.
fn a_template_that_nobody_has_seen_lets_nobody_go() {
    let mut view = half_way(3, 2, 2);
    (view.workload.image, view.workload.observed) = (image(OLD), false);
    view.owners = support::owned_by(vec![]);
    let decision = decide(&want(NEW), &view);
    assert!(matches!(&decision, Decision::Act(Step::TakeBack { partition: 3, .. })), "{decision:?}");
}

/// Somebody rolled the set back half way, and a person says resume: what runs is newer than what it goes to.
fn a_rollout_that_goes_backwards_is_not_resumed() {
    let mut view = resumed(View { record: None, ..half_way_on_delete(3, 0, 1) });
    (view.workload.image, view.evictions) = (image(OLD), Evictions::Open);
    view.workload.update_revision = revision(OLD);
    for index in [0, 1] {
        member_mut(&mut view, index).version = Fact::Known(version(NEW));
        pod_mut(&mut view, index).revision = revision(NEW);
    }
    pod_mut(&mut view, 2).revision = revision(OLD);
    member_mut(&mut view, 2).version = Fact::Known(version(OLD));
    let decision = decide(&want(OLD), &view);
    assert!(matches!(&decision, Decision::Halt { on } if on.reason == Reason::DowngradeNotAllowed), "{decision:?}");
}

/// Nobody asks about the followers again once it is on record.
fn a_rollout_is_not_resumed_past_who_tells_no_version() {
    let mut view = resumed(View { record: None, ..half_way_on_delete(3, 0, 1) });
    view.evictions = Evictions::Open;
    member_mut(&mut view, 1).version = unknown();
    let plan = rolling::plan(&want(NEW), &view, noon());
    assert_eq!(plan.record, None, "{:?}", plan.decision);
    assert!(matches!(&plan.decision, Decision::Wait { on, .. } if on.reason == Reason::MembersUnknown));
}

fn an_upgrade_under_on_delete_ends() {
    let mut world = World::on_delete(3, 0);
    assert_eq!(world.run(), Decision::Done);
}

fn a_set_is_switched_to_its_partition() {
    let mut world = World::on_delete(3, 0);
    world.view.workload.current_revision = revision("7.1.0");
    world.want.order = Some(Order::ReverseOrdinal);
    assert_eq!(world.run(), Decision::Done);
}

fn a_switch_that_is_withdrawn_is_put_back() {
    let mut world = World::on_delete(3, 0);
    world.want.order = Some(Order::ReverseOrdinal);
    let _ = world.run_until(|world| world.count("StrategySwitched") == 1);
    world.want.target = target(OLD);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.view.workload.strategy, Strategy::OnDelete);
}

/// A switch is written, and does not stand at the next look. Who has the strategy then, since how many seconds after the switch?
fn switched_in_vain(owner: Option<(&str, i64)>, looks: usize) -> World {
    let mut world = World::on_delete(3, 0);
    world.want.order = Some(Order::ReverseOrdinal);
    for _ in 0..looks {
        let at = world.now;
        let _ = world.pass();
        world.view.workload.strategy = Strategy::OnDelete;
        let written = |(manager, after): (&str, i64)| Owner {
            at: Some(Timestamp::from_second(at.as_second() + after).unwrap()),
            ..support::owner(manager, Operation::Update, &[Field::Strategy])
        };
        world.view.owners = support::owned_by(owner.map(written).into_iter().collect());
    }
    world
}

/// Somebody sets it back each time, before anybody has seen it.
fn a_switch_that_is_set_back_is_not_written_again() {
    for (after, times) in [(1, 1), (0, 3)] {
        let mut world = switched_in_vain(Some(("deployer", after)), 20);
        assert_eq!(world.count("StrategySwitched"), times);
        let decision = world.pass();
        assert!(matches!(&decision, Decision::Halt { on } if on.reason == Reason::StrategyChanged), "{decision:?}");
        world.view.resumed = true;
        assert!(matches!(world.pass(), Decision::Act(Step::SwitchStrategy { .. })), "a person says that it is over");
    }
}

/// What a failed write leaves there was there before: nobody is accused, and it goes on by itself.
#[test]
fn a_switch_that_is_refused_accuses_nobody() {
    for owner in [None, Some(("kubectl-client-side-apply", -600))] {
        let times = switched_in_vain(owner, 20).count("StrategySwitched");
        assert!(times > 8, "it was tried {times} times");
    }
}

/// A person asks for the very image that somebody wrote half way: with a template of their own everybody was held already.
#[test]
fn a_foreign_image_that_is_asked_for_is_taken() {
    let mut view = half_way(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image(NEWER), revision(NEWER));
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    record_mut(&mut view).partition = 3;
    let plan = rolling::plan(&want(NEWER), &view, noon());
    let record = plan.record.unwrap();
    assert_eq!((record.target, record.revision), (target(NEWER), Some(revision(NEWER))), "{:?}", plan.decision);
    assert_eq!((record.from, record.abandoned), (target(OLD), [name(2)].into()), "whoever was replaced may be broken");
}

/// The same, where Kubernetes has replaced the member for it at once: held anew, it would come back as the old version.
fn a_foreign_image_that_is_asked_for_lets_nobody_go_back() {
    let mut view = half_way(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image(NEWER), revision(NEWER));
    pod_mut(&mut view, 2).revision = revision(NEWER);
    member_mut(&mut view, 2).version = Fact::Known(version(NEWER));
    let plan = rolling::plan(&want(NEWER), &view, noon());
    let record = plan.record.unwrap();
    assert_eq!((record.revision, record.target), (Some(revision(NEWER)), target(NEWER)));
    assert_eq!(plan.decision, Decision::Act(Step::Permit { pod: name(1), partition: 1 }));
}

/// Half of what somebody wrote: pods would be made of two versions.
#[test]
fn a_foreign_image_is_not_taken_without_the_init_containers_that_follow_it() {
    let mut view = half_way(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image(NEWER), revision(NEWER));
    pod_mut(&mut view, 2).revision = revision(NEWER);
    view.workload.images_agree = false;
    let plan = rolling::plan(&want(NEWER), &view, noon());
    assert!(plan.record.is_some_and(|record| record.target == target(NEW)), "{:?}", plan.decision);
}

/// The spec can't be read any more, and a drain would bring a replaced member back as it was.
#[test]
fn drains_do_not_take_who_is_held_while_the_spec_cannot_be_read() {
    let mut view = half_way(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image("theirs"), revision("theirs"));
    (view.workload.strategy, view.evictions) = (Strategy::RollingUpdate { partition: 3 }, Evictions::Open);
    record_mut(&mut view).partition = 3;
    let because = windlass_plan::Hold::new(Reason::InvalidSpec, "");
    let told = permit::stand_down(Trigger::Version, &view, &because).map(|plan| plan.decision);
    assert_eq!(told, Some(Decision::Act(Step::HoldEvictions)));
}

/// A person goes back, stops that, and goes back after all.
#[test]
fn a_rollback_that_was_stopped_goes_on() {
    let mut view = half_way(3, 0, 1);
    let record = record_mut(&mut view);
    (record.from, record.target, record.rolling_back) = (target(NEW), target(OLD), true);
    view.given_up = Some(GivenUp { target: target(NEW), outcome: request::Outcome::Stopped, because: None });
    view.requests.rollback = true;
    let plan = rolling::plan(&want(NEW), &view, noon());
    assert_eq!(
        plan.given_up.map(|given_up| given_up.outcome),
        Some(request::Outcome::RolledBack),
        "{:?}",
        plan.decision
    );
}

/// On the way back the record's ends are swapped: what is held where can't be told from it.
#[test]
fn a_foreign_image_is_not_taken_on_the_way_back() {
    let mut view = half_way(3, 0, 1);
    let record = record_mut(&mut view);
    (record.from, record.target, record.rolling_back) = (target(NEW), target(OLD), true);
    (record.revision, record.partition) = (Some(revision(OLD)), 3);
    (view.workload.image, view.workload.update_revision) = (image(NEWER), revision(NEWER));
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    view.workload.current_revision = revision(OLD);
    let plan = rolling::plan(&want(NEWER), &view, noon());
    assert!(plan.record.is_some_and(|record| record.target == target(OLD)), "{:?}", plan.decision);
}

/// Evictions were let through while people were waited for; then somebody's template came, and everybody is held.
fn drains_do_not_take_who_is_held_below_the_partition() {
    let mut view = half_way(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image("theirs"), revision("theirs"));
    (view.workload.strategy, view.evictions) = (Strategy::RollingUpdate { partition: 3 }, Evictions::Open);
    record_mut(&mut view).partition = 3;
    assert_eq!(decide(&want(NEW), &view), Decision::Act(Step::HoldEvictions));
}

/// All are replaced, and the controller has concluded that. Before the upgrade is called done somebody writes another image, and it is asked for: what is
/// left for it is what runs, and not what ran before.
#[test]
fn another_image_after_the_end_comes_from_what_runs() {
    let mut view = half_way(3, 0, 3);
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    record_mut(&mut view).partition = 3;
    view.workload.current_revision = revision(NEW);
    (view.workload.image, view.workload.update_revision) = (image(NEWER), revision(NEWER));
    let record = rolling::plan(&want(NEWER), &view, noon()).record.expect("it is under way");
    assert_eq!((record.from, record.target), (target(NEW), target(NEWER)));
}

/// The set was switched from OnDelete, the upgrade is on record, and its template was refused. Then a person pauses.
fn a_switch_does_not_outlive_its_upgrade() {
    let mut view = rest(3, 0);
    (view.workload.strategy, view.parked) = (Strategy::RollingUpdate { partition: 0 }, Some(Parked::at(0)));
    view.record = Some(Record::begin(Order::ReverseOrdinal, target(OLD), target(NEW), 3, 0, noon()));
    let plan = rolling::plan(&Want { paused: true, ..want(NEW) }, &view, noon());
    assert_eq!((plan.decision, plan.record), (Decision::Act(Step::PutBackStrategy), None));
    let because = windlass_plan::Hold::new(Reason::InvalidSpec, "");
    let told = permit::stand_down(Trigger::Version, &view, &because).map(|plan| (plan.decision, plan.record));
    assert_eq!(told, Some((Decision::Act(Step::PutBackStrategy), None)));
}

/// Somebody's rollout is taken over. Where it came from is not known, so there is no way back.
fn a_rollout_that_was_taken_over_does_not_go_on_when_it_shall_go_back() {
    let mut view = half_way(3, 0, 1);
    record_mut(&mut view).from = target(NEW);
    (view.requests.rollback, view.evictions) = (true, Evictions::Open);
    let plan = rolling::plan(&want(NEW), &view, noon());
    let Decision::Halt { on } = plan.decision else { panic!("it goes on: {:?}", plan.decision) };
    assert_eq!(on.reason, Reason::Aborted);
    assert!(on.message.contains("set spec.version and spec.image"), "{}", on.message);
}

fn a_snapshot_comes_before_the_switch() {
    let mut world = World::on_delete(3, 0);
    world.want.order = Some(Order::ReverseOrdinal);
    world.want.snapshot = Some(Duration::from_mins(10));
    world.outcome = Progress::Failed("no space left".into());
    let _ = world.run();
    assert_eq!(world.count("StrategySwitched"), 0);
}

fn a_set_that_is_scaled_up_is_held_again() {
    let mut view = rest(4, 0);
    (view.parked, view.workload.strategy) = (Some(Parked::at(3)), Strategy::RollingUpdate { partition: 3 });
    assert_eq!(decide(&want(OLD), &view), Decision::Act(Step::Park { partition: 4 }));
}

fn a_set_whose_parking_was_lost_is_held_again() {
    let mut view = rest(4, 0);
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    view.parked = Some(Parked { before: Some(3), ..Parked::at(4) });
    assert_eq!(decide(&want(OLD), &view), Decision::Act(Step::Park { partition: 4 }));
}

/// Nobody looked while the new version may have led.
fn what_may_have_led_is_not_left_without_consent() {
    let mut view = half_way(3, 0, 1);
    (view.unwatched, view.evictions) = (true, Evictions::Open);
    let decision = decide(&want(OLD), &view);
    assert!(
        matches!(&decision, Decision::Halt { on } if on.reason == Reason::DowngradeNotAllowed),
        "it goes back: {decision:?}"
    );
    view.unwatched = false;
    assert!(matches!(decide(&want(OLD), &view), Decision::Act(Step::WriteTemplate { .. })), "it may go back");
}

/// Raft's term went up by two between two looks: somebody led for a moment, and nobody saw who.
fn a_term_that_was_skipped_may_have_been_of_the_newer_version() {
    let mut view = half_way(3, 0, 1);
    (view.quorum.term, view.evictions) = (Some(5), Evictions::Open);
    for seen in [5, 4] {
        record_mut(&mut view).term = Some(seen);
        assert!(matches!(decide(&want(OLD), &view), Decision::Act(Step::WriteTemplate { .. })), "it may go back");
    }
    for seen in [3, 6] {
        record_mut(&mut view).term = Some(seen);
        let decision = decide(&want(OLD), &view);
        assert!(
            matches!(&decision, Decision::Halt { on } if on.reason == Reason::DowngradeNotAllowed),
            "it goes back: {decision:?}"
        );
    }
}

/// The controller stands still, and somebody opens the partition before it has seen our template.
fn what_somebody_lets_go_before_our_template_is_seen_is_held() {
    let mut view = half_way(3, 0, 1);
    for pod in &mut view.pods {
        pod.revision = revision("old");
    }
    view.workload.update_revision = revision("old");
    (view.workload.observed, view.workload.strategy) = (false, Strategy::RollingUpdate { partition: 0 });
    let record = record_mut(&mut view);
    (record.revision, record.partition, record.completed) = (None, 3, Vec::new());
    record.previous_partitions.clear();
    let decision = decide(&want(NEW), &view);
    assert!(matches!(&decision, Decision::Act(Step::TakeBack { partition: 3, .. })), "{decision:?}");
}

fn the_next_one_waits_for_the_previous_one() {
    let mut world = World::on_delete(3, 0);
    assert_eq!(world.run(), Decision::Done);
}

fn the_leader_is_handed_over_first() {
    let mut world = World::on_delete(3, 1);
    assert_eq!(world.run(), Decision::Done);
}

fn a_mend_costs_no_quorum() {
    let mut view = about_to_delete();
    member_mut(&mut view, 1).healthy = Fact::Known(false);
    assert!(!matches!(decide(&want(NEWER), &view), Decision::Act(Step::DeletePod { .. })));
}

fn another_target_half_way_waits_its_turn() {
    assert!(!matches!(decide(&want(NEWER), &half_way(3, 0, 1)), Decision::Act(Step::WriteTemplate { .. })));
}

/// A member was replaced for ours, and then somebody else's template came: with another target's everybody would be held on the first one (H10).
fn a_foreign_template_does_not_hide_who_was_replaced() {
    let mut view = half_way(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image("theirs"), revision("theirs"));
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    record_mut(&mut view).partition = 3;
    let decision = decide(&want(NEWER), &view);
    assert!(matches!(&decision, Decision::Halt { on } if on.reason == Reason::TemplateChanged), "{decision:?}");
}

/// Somebody edits the template while the first new member is on its way: it is still down because of us.
fn a_member_under_somebodys_template_has_not_joined() {
    let mut view = half_way_on_delete(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image("theirs"), revision("theirs"));
    member_mut(&mut view, 2).healthy = Fact::Known(false);
    let decision = decide(&want(NEW), &view);
    assert_ne!(decision, Decision::Act(Step::ReleaseEvictions), "a drain would take a second one");
    member_mut(&mut view, 2).healthy = Fact::Known(true);
    assert_eq!(decide(&want(NEW), &view), Decision::Act(Step::ReleaseEvictions));
}

/// Somebody's template came while a new member was starting, so everybody is held above it.
fn a_replaced_member_that_is_held_is_not_drained() {
    let mut view = half_way(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image("theirs"), revision("theirs"));
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    record_mut(&mut view).partition = 3;
    let decision = decide(&want(NEW), &view);
    assert_ne!(decision, Decision::Act(Step::ReleaseEvictions), "it would come back as {OLD}");
    view.workload.strategy = Strategy::RollingUpdate { partition: 2 };
    record_mut(&mut view).partition = 2;
    view.workload.update_revision = revision(NEW);
    view.workload.image = image(NEW);
    let paused = Want { paused: true, ..want(NEW) };
    assert_eq!(decide(&paused, &view), Decision::Act(Step::ReleaseEvictions));
}

/// A person sets the template back before anybody was replaced, and then asks for the old version.
fn a_template_that_is_put_back_has_replaced_nobody() {
    let mut view = half_way_on_delete(3, 0, 0);
    (view.workload.image, view.workload.update_revision) = (image(OLD), revision(OLD));
    let record = rolling::plan(&want(OLD), &view, noon()).record;
    let abandoned = record.map(|record| record.abandoned).unwrap_or_default();
    assert!(abandoned.is_empty(), "who is as before is held to be given up: {abandoned:?}");
}

/// A person says that another template of the same image is meant, and then asks for another version: with everybody held, who was replaced
/// for the first template would go back when it is lost (H10).
fn who_was_replaced_for_the_first_template_counts() {
    let mut view = resumed(half_way(3, 0, 1));
    (view.workload.strategy, view.evictions) = (Strategy::RollingUpdate { partition: 3 }, Evictions::Open);
    record_mut(&mut view).partition = 3;
    view.workload.update_revision = revision("another one of the same image");
    view.record = rolling::plan(&want(NEW), &view, noon()).record;
    view.resumed = false;
    let decision = decide(&want(NEWER), &view);
    assert!(!matches!(decision, Decision::Act(Step::WriteTemplate { .. })), "{decision:?}");
}

/// Nobody is replaced for the present target, and one that was given up before it has led.
fn another_target_is_not_below_who_has_led() {
    let mut view = half_way(3, 0, 0);
    record_mut(&mut view).highest_led = Some(version("8.6.0"));
    view.evictions = Evictions::Open;
    let decision = decide(&want(NEWER), &view);
    assert!(matches!(&decision, Decision::Halt { on } if on.reason == Reason::DowngradeNotAllowed), "{decision:?}");
}

fn another_target_is_asked_about() {
    let mut world = World::on_delete(3, 0);
    world.run_until_replaced(1);
    (world.want.approval, world.want.target) = (windlass_plan::approval::Mode::BeforeUpgrade, target(NEWER));
    for _ in 0..10 {
        let _ = world.pass();
    }
    assert_eq!(world.templates(), [image(NEW)]);
}

fn an_upgrade_that_was_given_up_is_not_begun_again() {
    let mut world = World::new(3, 0);
    world.run_until_replaced(1);
    world.view.requests.rollback = true;
    for _ in 0..100 {
        let _ = world.pass();
    }
    assert_eq!(world.templates(), [image(NEW), image(OLD)]);
}

fn a_deadline_is_no_reason_for_a_downgrade() {
    let mut world = World::new(3, 2);
    world.want.on_deadline = OnDeadline::RollBack;
    world.run_until_replaced(1);
    world.view.quorum.leader = Fact::Known(name(2));
    let _ = world.pass();
    (world.broken, world.only_unready_are_broken) = ([NEW].into(), true);
    let _ = world.run();
    assert_eq!(world.templates(), [image(NEW)]);
}

fn a_person_who_says_stop_is_heard_at_once() {
    let mut world = World::new(3, 0);
    // A permit stands.
    let _ = world.run_until(|world| matches!(world.steps.last(), Some(Step::Permit { .. })));
    world.frozen = true;
    world.view.requests.abort = true;
    let _ = world.pass();
    assert!(matches!(world.steps.last(), Some(Step::TakeBack { .. })), "{:?}", world.steps);
}

fn what_somebody_else_writes_is_not_written() {
    let mut world = World::following(3, 0);
    world.edit(NEW);
    assert_eq!(world.run(), Decision::Done);
}

fn an_older_template_is_a_downgrade() {
    let mut world = World::following(3, 0);
    world.edit(NEW);
    assert_eq!(world.run(), Decision::Done);
    world.edit(OLD);
    let _ = world.run();
    assert_eq!(world.replaced().len(), 3, "{:?}", world.steps);
}

fn a_set_that_kubernetes_rolls_is_not_followed() {
    let mut world = World::following(3, 0);
    world.view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    world.edit(NEW);
    assert!(matches!(world.run(), Decision::Halt { on } if on.reason == Reason::UnsupportedStrategy));
}

fn a_snapshot_is_waited_for() {
    let mut world = World::new(3, 0);
    world.want.snapshot = Some(Duration::from_mins(10));
    world.outcome = Progress::Failed("no space left".into());
    let _ = world.run();
    assert!(world.templates().is_empty());
}

fn a_member_whose_node_lacks_the_image_stays() {
    for mut world in [World::new(3, 0), World::on_delete(3, 0)] {
        world.want.pre_pull = Some(Duration::from_mins(10));
        world.unpullable = [1].into();
        let _ = world.run();
        assert!(world.deleted.is_empty() && world.replaced().is_empty(), "{:?}", world.steps);
    }
}

fn one_that_is_behind_hides_nobody() {
    let mut view = rest(3, 0);
    member_mut(&mut view, 2).position = Fact::Known(Some(0));
    member_mut(&mut view, 1).healthy = Fact::Known(false);
    assert_ne!(decide(&want(OLD), &view), Decision::Done);
}

fn leadership_that_stays_is_asked_to_move_only_so_often() {
    let mut world = World::new(3, 2);
    world.clings = true;
    let _ = world.run();
    world.now += Duration::from_hours(1);
    let _ = world.run();
    assert_eq!(world.count("HandOver"), 4);
}

/// Whoever is permitted leads again before the controller comes to it, and the permit is taken back.
fn leadership_that_comes_back_is_asked_to_move_only_so_often() {
    let mut world = World::new(3, 2);
    for _ in 0..400 {
        let decision = world.pass();
        if let Decision::Halt { on } = decision {
            assert_eq!((on.reason, world.count("HandOver")), (Reason::HandOverFailed, 12), "{on}");
            world.view.requests.retry = true;
            let _ = world.pass();
            assert_eq!(world.count("HandOver"), 13, "a person lets it go on");
            return;
        }
        if world.view.permitted().is_some() {
            world.view.quorum.leader = Fact::Known(name(2));
        }
    }
    panic!("it never ends: {} hand-overs", world.count("HandOver"));
}

fn nobody_goes_back_once_somebody_newer_has_led() {
    detours::somebody_newer_leads_on_the_way_back(World::on_delete);
}

fn a_hand_over_that_nobody_wants_any_more_is_not_finished() {
    let mut view = half_way(3, 1, 1);
    record_mut(&mut view).hand_over = Some(HandOver { pod: name(1), since: noon(), attempts: 1, last_error: None });
    view.requests.abort = true;
    assert_eq!(takeover::finish(&want(NEW), &view, noon()), None);
}

/// The leader writes a thousand entries a second, and everybody else is half a second behind.
fn a_busy_quorum_is_upgraded() {
    let mut view = half_way(3, 0, 1);
    for second in 0..3_u64 {
        for (index, behind) in [(0, 0), (1, 500), (2, 500)] {
            member_mut(&mut view, index).position = Fact::Known(Some(POSITION + 1_000 * second - behind));
        }
        let plan = rolling::plan(&want(NEW), &view, noon() + Duration::from_secs(second));
        if let Decision::Act(_) = plan.decision {
            return;
        }
        view.record = plan.record;
    }
    panic!("nobody keeps up");
}

fn a_member_that_is_behind_is_waited_for() {
    let mut view = half_way(3, 0, 1);
    member_mut(&mut view, 2).position = Fact::Known(Some(0));
    assert!(!matches!(decide(&want(NEW), &view), Decision::Act(_)));
}

fn told(at: Timestamp, about: About) -> View {
    let mut view = half_way(3, 0, 1);
    record_mut(&mut view).healthy_since = [(name(2), noon())].into();
    let asked = Some(Asked { at, about, again: Reason::AwaitingHook });
    view.external = vec![ExternalGate { asked, ..ExternalGate::new("Hook/ask", Outcome::Pass) }];
    view
}

fn what_was_measured_before_says_nothing_of_the_next_one() {
    let view = told(noon() - Duration::from_secs(1), About::All);
    assert!(!matches!(decide(&want(NEW), &view), Decision::Act(Step::Permit { .. })));
}

fn a_yes_to_one_member_is_none_to_the_next() {
    let view = told(noon() + Duration::from_secs(1), About::Next(Some(name(2))));
    assert!(!matches!(
        rolling::plan(&want(NEW), &view, noon() + Duration::from_secs(2)).decision,
        Decision::Act(Step::Permit { .. })
    ));
}

fn nobody_goes_because_of_members_without_a_vote() {
    let mut view = rest(3, 0);
    member_mut(&mut view, 1).healthy = Fact::Known(false);
    for learner in ["pd-green-0", "pd-green-1"] {
        support::add_learner(&mut view, learner);
    }
    assert_eq!(view.quorum.size(), 3);
    assert!(!view.quorum.survives_losing(&name(2)));
}

fn who_is_about_to_get_a_vote_is_waited_for() {
    let mut world = World::new(3, 0);
    support::add_learner(&mut world.view, "pd-9");
    let _ = world.run();
    assert!(world.steps.is_empty(), "{:?}", world.steps);
}

#[rstest]
#[case(Bug::OwnersIgnored, owners::owners_that_can_not_be_read_block)]
#[case(Bug::OriginalPartitionIsOurs, owners::the_original_partition_is_foreign_and_held_once)]
#[case(Bug::ForeignStrategyUnminded, owners::a_foreign_partition_is_held_while_the_spec_is_invalid)]
#[case(Bug::ConcludedForgotten, another_image_after_the_end_comes_from_what_runs)]
#[case(Bug::LeftAbove, owners::nobody_is_left_held_above_who_was_replaced)]
#[case(Bug::UnrecordedOrderIgnored, owners::a_strategy_is_put_back_where_the_resource_cannot_be_read)]
#[case(Bug::LeadershipWanders, owners::leadership_does_not_wander_where_kubernetes_goes_on_by_itself)]
#[case(Bug::StrategyFought, owners::the_original_partition_is_foreign_and_held_once)]
#[case(Bug::StrategyFought, owners::a_hold_that_is_lost_is_tried_again_and_not_for_ever)]
#[case(Bug::TemplateFought, owners::an_image_that_is_set_back_before_anybody_looks_is_not_written_again)]
#[case(Bug::TemplateFought, owners::an_image_that_is_set_back_at_once_is_written_a_bounded_number_of_times)]
#[case(Bug::LagByDistance, a_busy_quorum_is_upgraded)]
#[case(Bug::MarkNotAwaited, a_member_that_is_behind_is_waited_for)]
#[case(Bug::OldMeasureCounts, what_was_measured_before_says_nothing_of_the_next_one)]
#[case(Bug::YesForAll, a_yes_to_one_member_is_none_to_the_next)]
#[case(Bug::BehindHidesSick, one_that_is_behind_hides_nobody)]
#[case(Bug::LedOnTheWayBack, nobody_goes_back_once_somebody_newer_has_led)]
#[case(Bug::HandOverUnbounded, leadership_that_stays_is_asked_to_move_only_so_often)]
#[case(Bug::HandOverUnbounded, leadership_that_comes_back_is_asked_to_move_only_so_often)]
#[case(Bug::AbortedHandOverFinished, a_hand_over_that_nobody_wants_any_more_is_not_finished)]
#[case(Bug::NonVotersCounted, nobody_goes_because_of_members_without_a_vote)]
#[case(Bug::NonVotersIgnored, who_is_about_to_get_a_vote_is_waited_for)]
#[case(Bug::FailedPullCounts, a_member_whose_node_lacks_the_image_stays)]
#[case(Bug::BudgetBypassed, a_pod_under_their_budget_is_evicted)]
#[case(Bug::BudgetOfOthersCounts, a_budget_over_two_sets_is_no_budget)]
#[case(Bug::BudgetCountsTooLate, a_budget_that_spares_one_is_not_enough_for_a_permit)]
#[case(Bug::BudgetGoneUnnoticed, a_budget_that_is_taken_away_is_replaced)]
#[case(Bug::ClusterVersionIgnored, a_cluster_that_has_not_followed_goes_no_further)]
#[case(Bug::MinReadyIgnored, a_pod_that_is_ready_since_a_moment_is_waited_for)]
#[case(Bug::YoungPodMended, a_pod_that_is_ready_since_a_moment_is_not_deleted_as_broken)]
#[case(Bug::SnapshotNotAwaited, a_snapshot_is_waited_for)]
#[case(Bug::GivenUpForgotten, an_upgrade_that_was_given_up_is_not_begun_again)]
#[case(Bug::DeadlineForcesDowngrade, a_deadline_is_no_reason_for_a_downgrade)]
#[case(Bug::AbortTooLate, a_person_who_says_stop_is_heard_at_once)]
#[case(Bug::TemplateTakenOver, what_somebody_else_writes_is_not_written)]
#[case(Bug::FollowsAnyTemplate, an_older_template_is_a_downgrade)]
#[case(Bug::FollowsRollingUpdate, a_set_that_kubernetes_rolls_is_not_followed)]
#[case(Bug::MendCostsQuorum, a_mend_costs_no_quorum)]
#[case(Bug::RetargetUngated, another_target_is_asked_about)]
#[case(Bug::GivenUpNotAwaited, a_member_under_somebodys_template_has_not_joined)]
#[case(Bug::DrainedBack, a_replaced_member_that_is_held_is_not_drained)]
#[case(Bug::ForeignTemplateHides, a_template_that_is_put_back_has_replaced_nobody)]
#[case(Bug::ForeignTemplateHides, who_was_replaced_for_the_first_template_counts)]
#[case(Bug::ForeignTemplateHides, a_foreign_template_does_not_hide_who_was_replaced)]
#[case(Bug::RetargetBelowLeader, another_target_is_not_below_who_has_led)]
#[case(Bug::RetargetHalfWay, another_target_half_way_waits_its_turn)]
#[case(Bug::LeaderGoesFirst, an_upgrade_moves_leadership_once)]
#[case(Bug::LostOneWaits, whoever_is_down_goes_first)]
#[case(Bug::PoisonLeftStanding, a_broken_template_does_not_stand)]
#[case(Bug::AdoptedAbove, a_foreign_image_that_is_asked_for_lets_nobody_go_back)]
#[case(Bug::OpenAbove, drains_do_not_take_who_is_held_below_the_partition)]
#[case(Bug::SwitchOutlivesRecord, a_switch_does_not_outlive_its_upgrade)]
#[case(Bug::RolledForward, a_rollout_that_was_taken_over_does_not_go_on_when_it_shall_go_back)]
#[case(Bug::AdoptedUnknown, a_rollout_is_not_resumed_past_who_tells_no_version)]
#[case(Bug::AdoptedDowngrade, a_rollout_that_goes_backwards_is_not_resumed)]
#[case(Bug::UnseenTemplateUnminded, a_template_that_nobody_has_seen_lets_nobody_go)]
#[case(Bug::PausedTrialUnnoticed, a_template_that_proved_itself_in_a_pause_stands)]
#[case(Bug::TrialForgotten, a_proven_template_stands)]
#[case(Bug::WaitsForCurrentRevision, an_upgrade_under_on_delete_ends)]
#[case(Bug::SwitchHeldBack, a_set_is_switched_to_its_partition)]
#[case(Bug::SwitchLeftStanding, a_switch_that_is_withdrawn_is_put_back)]
#[case(Bug::SwitchFought, a_switch_that_is_set_back_is_not_written_again)]
#[case(Bug::SwitchBeforeSnapshot, a_snapshot_comes_before_the_switch)]
#[case(Bug::ScaleUpNotParked, a_set_that_is_scaled_up_is_held_again)]
#[case(Bug::LostParkingForgotten, a_set_whose_parking_was_lost_is_held_again)]
#[case(Bug::UnwatchedNeverLed, what_may_have_led_is_not_left_without_consent)]
#[case(Bug::TermIgnored, a_term_that_was_skipped_may_have_been_of_the_newer_version)]
#[case(Bug::UnseenOursUnminded, what_somebody_lets_go_before_our_template_is_seen_is_held)]
#[case(Bug::SwitchNotConcluded, a_set_is_switched_to_its_partition)]
#[case(Bug::PreviousNotAwaited, the_next_one_waits_for_the_previous_one)]
#[case(Bug::LeaderNotChecked, the_leader_is_handed_over_first)]
fn it_is_noticed(#[case] bug: Bug, #[case] story: Story) {
    story();
    plant(Some(bug));
    let told = panic::catch_unwind(story);
    plant(None);
    assert!(told.is_err(), "{bug:?} was not noticed");
}

/// The stories that nobody thought of notice some of them, too.
#[rstest]
fn random_stories_notice(
    #[values(Bug::LeaderNotChecked, Bug::PreviousNotAwaited, Bug::SwitchHeldBack, Bug::SwitchNotConcluded)] bug: Bug,
) {
    plant(Some(bug));
    let told = panic::catch_unwind(|| (0..RANDOM_STORIES).for_each(random_story));
    plant(None);
    assert!(told.is_err(), "{bug:?} was not noticed");
}
