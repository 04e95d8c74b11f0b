//! Approvals are bound to what was shown (X4).

use rstest::rstest;
use windlass_plan::{Decision, Fact, Reason, Want, approval::Mode, strategy::known::approval::Approvals};

use crate::support::{
    Answer, NEW, NEWER, OLD, answer, half_way, hold, name, plan, question, rest, target, want, world::World,
};

fn asking(mode: Mode, to: &str) -> Want {
    Want { approval: mode, ..want(to) }
}

/// A person answers what is shown.
fn approve(world: &mut World) {
    world.view.approvals.fresh = true;
}

#[test]
fn nothing_is_written_before_an_upgrade_is_approved() {
    let mut world = World::new(3, 0);
    world.want.approval = Mode::BeforeUpgrade;
    for _ in 0..10 {
        let decision = world.pass();
        assert_eq!(answer(&decision), Answer::Wait(Reason::AwaitingApproval));
        assert!(hold(&decision).message.contains("8.5.1 from image pd:v8.5.1"), "{decision:?}");
    }
    assert_eq!(world.steps, []);
    assert_eq!(world.view.approvals.asked, Some(question(NEW, None)));
    approve(&mut world);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(NEW));
    assert_eq!(world.view.approvals, Approvals::default(), "nothing is left of it");
}

#[test]
fn each_hand_over_is_asked_about_by_itself() {
    let mut world = World::new(3, 2);
    world.want.approval = Mode::BeforeEachHandOver;
    let _ = world.run_until(|world| world.view.approvals.asked.is_some());
    assert_eq!(world.view.approvals.asked, Some(question(NEW, Some(2))));
    assert_eq!(world.permits(), []);
    approve(&mut world);
    let _ = world.run_until(|world| world.view.approvals.asked == Some(question(NEW, Some(0))));
    assert_eq!(world.count("HandOver"), 1);
    for _ in 0..50 {
        let _ = world.pass();
    }
    assert_eq!((world.count("HandOver"), world.permits()), (1, vec![2, 1]), "it waits for the second answer");
    approve(&mut world);
    assert_eq!(world.run(), Decision::Done);
    assert_eq!(world.count("HandOver"), 2);
}

#[test]
fn leadership_that_comes_back_is_asked_about_again() {
    let mut view = half_way(3, 1, 1);
    view.approvals.granted = vec![question(NEW, Some(1))];
    let want = asking(Mode::BeforeEachHandOver, NEW);
    assert_eq!(answer(&plan(&want, &view).decision), Answer::Act("HandOver"));
    view.quorum.leader = Fact::Unknown("an election is under way".into());
    assert_eq!(plan(&want, &view).approvals.granted, [question(NEW, Some(1))], "it is still on its way");
    view.quorum.leader = Fact::Known(name(2));
    let next = plan(&want, &view);
    assert_eq!(next.approvals.granted, [], "that one is done");
    (view.approvals, view.quorum.leader) = (next.approvals, Fact::Known(name(1)));
    view.record = next.record;
    assert_eq!(plan(&want, &view).approvals.asked, Some(question(NEW, Some(1))));
}

#[rstest]
#[case::for_another_target(question(NEWER, None))]
#[case::for_where_it_came_from(question(OLD, None))]
#[case::for_a_hand_over(question(NEW, Some(1)))]
fn what_was_approved_for_something_else_does_not_count(
    #[case] granted: windlass_plan::strategy::known::approval::Question,
) {
    let mut view = rest(3, 0);
    view.approvals.granted = vec![granted];
    assert_eq!(
        answer(&plan(&asking(Mode::BeforeUpgrade, NEW), &view).decision),
        Answer::Wait(Reason::AwaitingApproval)
    );
}

#[test]
fn an_answer_is_for_what_was_shown_when_it_came() {
    let mut view = rest(3, 0);
    view.approvals = plan(&asking(Mode::BeforeUpgrade, NEW), &view).approvals;
    // Somebody changes the target, and the answer to the old question arrives with it.
    view.approvals.fresh = true;
    let wants_more = plan(&asking(Mode::BeforeUpgrade, NEWER), &view);
    assert_eq!(answer(&wants_more.decision), Answer::Wait(Reason::AwaitingApproval));
    assert_eq!(wants_more.approvals.asked, Some(question(NEWER, None)));
    assert_eq!(wants_more.approvals.granted, [], "and it is not kept for later");
    assert!(!wants_more.approvals.fresh, "it is spent");
}

#[rstest]
#[case::nothing_was_shown(Approvals { fresh: true, asked: None, granted: vec![] })]
#[case::another_was_shown(Approvals { fresh: true, asked: Some(question(NEWER, None)), granted: vec![] })]
fn a_token_before_the_question_is_spent_for_nothing(#[case] approvals: Approvals) {
    let mut view = rest(3, 0);
    view.approvals = approvals;
    let plan = plan(&asking(Mode::BeforeUpgrade, NEW), &view);
    assert_eq!(answer(&plan.decision), Answer::Wait(Reason::AwaitingApproval));
    assert_eq!(plan.approvals, Approvals { fresh: false, asked: Some(question(NEW, None)), granted: vec![] });
}

#[test]
fn an_answer_during_a_pause_is_not_lost() {
    let mut world = World::new(3, 0);
    world.want.approval = Mode::BeforeUpgrade;
    let _ = world.pass();
    world.want.paused = true;
    approve(&mut world);
    let _ = world.pass();
    world.want.paused = false;
    assert_eq!(world.run(), Decision::Done);
}

#[test]
fn a_revert_is_another_target() {
    let mut world = World::new(3, 0);
    world.want.approval = Mode::BeforeUpgrade;
    let _ = world.pass();
    approve(&mut world);
    world.run_until_replaced(1);
    world.want.target = target(OLD);
    let _ = world.run_until(|world| world.view.approvals.asked == Some(question(OLD, None)));
    assert_eq!(world.deleted.len(), 1, "nobody goes back unasked");
    approve(&mut world);
    assert_eq!(world.run(), Decision::Done);
    assert!(world.everybody_runs(OLD));
}

#[test]
fn a_question_stands_while_nobody_can_tell() {
    let mut view = half_way(3, 1, 1);
    let want = asking(Mode::BeforeEachHandOver, NEW);
    let first = plan(&want, &view);
    (view.approvals, view.record) = (first.approvals, first.record);
    view.quorum.leader = Fact::Unknown("timed out".into());
    assert_eq!(plan(&want, &view).approvals.asked, Some(question(NEW, Some(1))));
}

#[test]
fn an_override_needs_no_answer() {
    let mut world = World::new(3, 0);
    world.want.approval = Mode::BeforeUpgrade;
    world.want.overrides = [("Approval".to_owned(), jiff::Timestamp::MAX)].into();
    assert_eq!(world.run(), Decision::Done);
}
