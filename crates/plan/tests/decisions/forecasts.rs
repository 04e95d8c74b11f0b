//! What is foreseen is what happens, if nothing goes wrong.

use std::time::Duration;

use proptest::prelude::*;
use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Forecast, Hold, Order, Reason, Step, Trouble, View, Want,
    approval::Mode,
    forecast::{End, Move, Note},
    gate::{CONCURRENT_OPERATION, ExternalGate, NODE_DRAIN, Outcome, State},
    rolling::{foresee, known::workload::Strategy as Update},
    strategy::known::step::Step as _,
};

use crate::support::{
    NEW, NEWER, OLD, arbitrary::anything, half_way, half_way_on_delete, member_mut, noon, permitted, pod_mut,
    remove_pod, rest, rest_on_delete, target, theirs, unknown, version, want, window, world::World,
};

fn foresee(want: &Want, view: &View) -> Forecast {
    foresee::foresee(want, view, noon())
}

/// The steps by name, a member's with its index.
fn words(forecast: &Forecast) -> Vec<String> {
    forecast.steps.iter().map(|foreseen| word(&foreseen.step)).collect()
}

/// A member is let go by it, or is to be.
fn lets_go(word: &str) -> bool {
    word.starts_with("MemberReplaced") || word.starts_with("ReplacementAllowed")
}

fn word(step: &Step) -> String {
    match step {
        Step::HandOver { from, to } => format!("{from}→{to}"),
        Step::Permit { pod, .. } | Step::Replace { pod, .. } | Step::DeletePod { pod, .. } => {
            format!("{} {pod}", step.name())
        }
        Step::Job(_)
        | Step::WriteTemplate { .. }
        | Step::SwitchStrategy { .. }
        | Step::PutBackStrategy
        | Step::HoldEvictions
        | Step::TakeBack { .. }
        | Step::ReleaseEvictions
        | Step::Park { .. } => step.name().to_owned(),
    }
}

fn moves(forecast: &Forecast) -> Vec<(u32, u32)> {
    let index = |name: &windlass_plan::MemberName| name.as_str().trim_start_matches("pd-").parse().unwrap();
    forecast.moves().map(|Move { from, to, .. }| (index(&from), index(&to))).collect()
}

fn blocked(forecast: &Forecast) -> Option<Reason> {
    forecast.blocked().map(|hold| hold.reason)
}

fn reasons(holds: &[Hold]) -> Vec<Reason> {
    holds.iter().map(|hold| hold.reason).collect()
}

#[test]
fn the_steps_of_a_rolling_upgrade_in_their_order() {
    let seen = foresee(&want(NEW), &rest(3, 0));
    assert_eq!(
        words(&seen),
        [
            "TemplateWritten",
            "EvictionsHeld",
            "ReplacementAllowed pd-2",
            "ReplacementAllowed pd-1",
            "pd-0→pd-2",
            "ReplacementAllowed pd-0",
            "EvictionsReleased",
            "RolloutLocked",
        ]
    );
    assert_eq!((&seen.end, seen.blocked()), (&End::Done, None));
    assert_eq!(seen.decision, Decision::Act(seen.steps[0].step.clone()));
    let way = seen.way.as_ref().unwrap();
    assert_eq!(
        (&way.from, &way.to, way.order, way.rolling_back),
        (&target(OLD), &target(NEW), Some(Order::ReverseOrdinal), false)
    );
    assert_eq!(seen.notes, [Note::RolloutLocked { partition: 3 }]);
}

#[test]
fn every_step_says_what_comes_before_it() {
    let seen = foresee(&want(NEW), &rest(3, 0));
    let after: Vec<Vec<Reason>> = seen.steps.iter().map(|foreseen| reasons(&foreseen.after)).collect();
    let replaced = [Reason::AwaitingReplacement, Reason::PodNotReady, Reason::MemberUnhealthy, Reason::MemberBehind];
    let mut last = replaced.to_vec();
    last.push(Reason::AwaitingConclusion);
    assert_eq!(
        after,
        [
            vec![],
            vec![Reason::ControllerBehind],
            vec![],
            replaced.to_vec(),
            replaced.to_vec(),
            vec![Reason::AwaitingHandOver],
            last,
            vec![],
        ]
    );
    let gates: Vec<usize> = seen.steps.iter().map(|foreseen| foreseen.gates.len()).collect();
    assert!(gates[0] > 0 && gates[2] > gates[0], "what begins and what disturbs is gated: {gates:?}");
    assert_eq!(gates.iter().filter(|count| **count > 0).count(), 5);
    let names: Vec<&str> = seen.gates.iter().map(|gate| gate.name.as_ref()).collect();
    assert_eq!(seen.steps[2].gates, names, "the same gates now and then");
    assert!(
        seen.steps[0]
            .gates
            .iter()
            .filter(|gate| **gate != CONCURRENT_OPERATION)
            .all(|gate| names.contains(&gate.as_ref()))
    );
}

#[rstest]
#[case::lowest(3, 0, &[(0, 2)])]
#[case::middle(3, 1, &[(1, 2)])]
#[case::highest(3, 2, &[(2, 0), (0, 2)])]
#[case::of_five_lowest(5, 0, &[(0, 4)])]
#[case::of_five_second(5, 1, &[(1, 4)])]
#[case::of_five_third(5, 2, &[(2, 4)])]
#[case::of_five_fourth(5, 3, &[(3, 4)])]
#[case::of_five_highest(5, 4, &[(4, 0), (0, 4)])]
fn leadership_moves_are_foreseen_highest_first(
    #[case] members: u32,
    #[case] leader: u32,
    #[case] expected: &[(u32, u32)],
) {
    let seen = foresee(&want(NEW), &rest(members, leader));
    assert_eq!((moves(&seen).as_slice(), &seen.end), (expected, &End::Done));
}

#[rstest]
fn leader_last_moves_leadership_once_to_a_new_member(
    #[values((3, 0), (3, 1), (3, 2), (5, 0), (5, 2), (5, 4))] quorum: (u32, u32),
) {
    let (members, leader) = quorum;
    let seen = foresee(&want(NEW), &rest_on_delete(members, leader));
    let heir = if leader + 1 == members { members - 2 } else { members - 1 };
    assert_eq!((moves(&seen), &seen.end), (vec![(leader, heir)], &End::Done));
    assert_eq!(words(&seen).iter().filter(|word| word.starts_with("MemberReplaced")).count(), members as usize);
    assert_eq!(seen.notes, []);
    let moved = seen.moves().next().unwrap();
    assert_eq!(word(&seen.steps[moved.step].step), format!("MemberReplaced pd-{leader}"), "right before it goes");
}

#[test]
fn a_switch_of_the_strategy_is_told() {
    let to_delete = Want { order: Some(Order::LeaderLast), ..want(NEW) };
    let rolling = Update::RollingUpdate { partition: 0 };
    let seen = foresee(&to_delete, &rest(3, 1));
    assert_eq!(seen.notes, [Note::StrategySwitched { from: rolling, to: Update::OnDelete }]);
    assert!(seen.notes[0].to_string().contains("from RollingUpdate to OnDelete"), "{}", seen.notes[0]);
    assert_eq!(moves(&seen), [(1, 2)]);

    let to_roll = Want { order: Some(Order::ReverseOrdinal), ..want(NEW) };
    let mut found = rest_on_delete(3, 1);
    found.workload.current_revision = windlass_plan::rolling::known::workload::Revision::new("the first one ever");
    let seen = foresee(&to_roll, &found);
    assert_eq!(words(&seen)[..2], ["StrategySwitched", "TemplateWritten"]);
    assert_eq!(reasons(&seen.steps[1].after), [Reason::ControllerBehind, Reason::AwaitingConclusion]);
    assert_eq!(seen.notes[0], Note::StrategySwitched { from: Update::OnDelete, to: rolling });
    assert_eq!(seen.end, End::Done);
}

#[rstest]
fn one_or_two_members_are_blocked_until_downtime_is_accepted(
    #[values(1, 2)] members: u32,
    #[values(true, false)] rolling: bool,
) {
    let view = if rolling { rest(members, 0) } else { rest_on_delete(members, 0) };
    let size = members as usize;
    let seen = foresee(&want(NEW), &view);
    assert_eq!((words(&seen), blocked(&seen)), (vec![], Some(Reason::TooFewMembers)));
    assert_eq!(seen.notes, [Note::TooFewMembers { members: size }]);

    let seen = foresee(&Want { accept_downtime: true, ..want(NEW) }, &view);
    assert_eq!((&seen.end, blocked(&seen)), (&End::Done, None));
    assert_eq!(seen.notes[0], Note::TooFewMembers { members: size });
    let replaced = words(&seen).iter().filter(|word| lets_go(word)).count();
    assert_eq!((replaced, moves(&seen).len()), (size, size - 1));
}

#[test]
fn there_is_nothing_to_foresee_where_all_is_done() {
    let mut done = rest(3, 0);
    assert_eq!(foresee(&want(OLD), &done).end, End::Done);
    done.evictions = theirs(3, 3);
    let seen = foresee(&Want { paused: true, ..want(OLD) }, &done);
    assert_eq!((seen.decision.clone(), words(&seen), blocked(&seen)), (Decision::Done, vec![], None));
    assert_eq!((seen.gates.len(), seen.way, seen.notes), (0, None, vec![]));
}

#[test]
fn half_way_it_goes_on_from_what_the_record_says() {
    let seen = foresee(&want(NEW), &half_way(3, 0, 1));
    assert_eq!(
        words(&seen),
        ["ReplacementAllowed pd-1", "pd-0→pd-2", "ReplacementAllowed pd-0", "EvictionsReleased", "RolloutLocked"]
    );
    let seen = foresee(&want(NEW), &half_way_on_delete(3, 2, 2));
    assert_eq!(words(&seen), ["pd-2→pd-1", "MemberReplaced pd-2", "EvictionsReleased"]);
    let seen = foresee(&want(NEW), &permitted(3, 0, 1));
    assert_eq!(words(&seen)[0], "pd-0→pd-2", "the permit that stands is used");
    assert_eq!(blocked(&seen), None);
}

#[test]
fn a_member_that_is_on_its_way_back_comes_back() {
    let mut view = permitted(5, 0, 1);
    remove_pod(&mut view, 3);
    member_mut(&mut view, 3).healthy = unknown();
    member_mut(&mut view, 3).version = unknown();
    let seen = foresee(&want(NEW), &view);
    assert_eq!((words(&seen)[0].as_str(), &seen.end, blocked(&seen)), ("ReplacementAllowed pd-2", &End::Done, None));
}

#[test]
fn a_revert_is_foreseen_with_the_old_revision() {
    let seen = foresee(&want(OLD), &half_way(3, 0, 1));
    assert_eq!(words(&seen)[..2], ["TemplateWritten", "ReplacementAllowed pd-2"]);
    assert_eq!(seen.steps.iter().filter(|foreseen| foreseen.step.name() == "ReplacementAllowed").count(), 1);
    let way = seen.way.unwrap();
    assert!(way.rolling_back && way.to == target(OLD), "{way:?}");
    assert_eq!((seen.end, seen.notes), (End::Done, vec![]));
}

#[test]
fn a_pause_is_told_and_what_comes_after_it() {
    let paused = Want { paused: true, ..want(NEW) };
    let seen = foresee(&paused, &rest(3, 0));
    assert_eq!((reasons(&seen.steps[0].waits), blocked(&seen)), (vec![Reason::Paused], Some(Reason::Paused)));
    assert_eq!(words(&seen), words(&foresee(&want(NEW), &rest(3, 0))));

    let seen = foresee(&paused, &permitted(3, 0, 1));
    assert_eq!(words(&seen)[..2], ["ReplacementWithdrawn", "EvictionsReleased"], "the permit is taken back first");
    assert_eq!((blocked(&seen), &seen.end), (Some(Reason::Paused), &End::Done));
}

#[test]
fn a_closed_window_is_told_where_it_holds() {
    let closed = Want { windows: vec![window("0 2 * * *", 60, "UTC")], ..want(NEW) };
    let seen = foresee(&closed, &rest(3, 0));
    let [hold] = seen.steps[0].waits.as_slice() else { panic!("{:?}", seen.steps[0]) };
    assert!(hold.message.contains("the next one opens at 1970-01-02T02:00:00"), "{}", hold.message);
    assert_eq!((blocked(&seen), &seen.end), (Some(Reason::WindowClosed), &End::Done));
    assert!(seen.notes.contains(&Note::WindowsEnd));

    let seen = foresee(&closed, &rest_on_delete(3, 0));
    assert_eq!(
        reasons(&seen.steps[0].waits),
        [Reason::WindowClosed],
        "whoever is lost would come back from the template"
    );

    let leap_day = Want { windows: vec![window("0 0 29 2 *", 60, "UTC")], ..want(NEW) };
    let seen = foresee::foresee(&leap_day, &rest(3, 0), "2096-03-02T00:00:00Z".parse().unwrap());
    assert_eq!((words(&seen), blocked(&seen)), (Vec::<String>::new(), Some(Reason::WindowClosed)));

    let open = Want { windows: vec![window("0 12 * * *", 60, "UTC")], ..want(NEW) };
    assert_eq!(blocked(&foresee(&open, &rest(3, 0))), None);
}

#[test]
fn an_approval_that_is_missing_is_told_where_it_is_asked() {
    let ask = |approval| Want { approval, ..want(NEW) };
    let seen = foresee(&ask(Mode::BeforeUpgrade), &rest(3, 0));
    let waiting = |seen: &Forecast| -> Vec<String> {
        let waits = seen.steps.iter().filter(|foreseen| !foreseen.waits.is_empty());
        waits.map(|foreseen| word(&foreseen.step)).collect()
    };
    assert_eq!((waiting(&seen), blocked(&seen)), (vec!["TemplateWritten".into()], Some(Reason::AwaitingApproval)));
    let seen = foresee(&ask(Mode::BeforeEachHandOver), &rest(3, 2));
    assert_eq!(waiting(&seen), ["pd-2→pd-0", "pd-0→pd-2"], "each by itself");
    assert_eq!(words(&seen).iter().filter(|word| *word == "EvictionsReleased").count(), 2, "also while it waits");
    assert_eq!((moves(&seen).len(), &seen.end), (2, &End::Done));
}

#[test]
fn a_soak_is_told_without_a_time_that_nobody_can_know() {
    let soaked = Want { soak: Duration::from_mins(10), ..want(NEW) };
    let seen = foresee(&soaked, &rest(3, 0));
    let waits: Vec<&Hold> = seen.steps.iter().flat_map(|foreseen| &foreseen.waits).collect();
    assert_eq!(waits.len(), 2, "before the second and before the third");
    for hold in waits {
        assert_eq!((hold.message.as_str(), hold.until), ("every replaced member must have been well for 10m", None));
    }
    assert_eq!((blocked(&seen), &seen.end), (None, &End::Done));
}

#[test]
fn locks_and_cordoned_nodes_are_told_when_they_would_hold() {
    let gate = |name: &str, reason| {
        let outcome = Outcome::Hold(Hold::new(reason, "somebody is at work"));
        ExternalGate::new(name, outcome)
    };
    let mut view = rest_on_delete(3, 0);
    view.external = vec![gate(CONCURRENT_OPERATION, Reason::Locked), gate(NODE_DRAIN, Reason::NodeDraining)];
    let seen = foresee(&want(NEW), &view);
    assert_eq!(reasons(&seen.steps[0].waits), [Reason::Locked, Reason::NodeDraining]);
    assert_eq!(reasons(&seen.steps[1].waits), [], "what is over is over");
    let holding = seen.gates.iter().filter(|gate| gate.state == State::Holding).map(|gate| gate.name.as_ref());
    assert_eq!(holding.collect::<Vec<_>>(), [CONCURRENT_OPERATION, NODE_DRAIN]);
    assert_eq!(seen.end, End::Done);
}

#[rstest]
#[case::unhealthy(|view: &mut View| member_mut(view, 1).healthy = Fact::Known(false), Reason::MemberUnhealthy)]
#[case::silent(|view: &mut View| member_mut(view, 1).healthy = unknown(), Reason::MembersUnknown)]
#[case::nobody_leads(|view: &mut View| view.quorum.leader = unknown(), Reason::LeaderUnknown)]
#[case::gone(|view: &mut View| remove_pod(view, 1), Reason::PodNotReady)]
#[case::not_known(|view: &mut View| view.quorum.members = unknown(), Reason::MembersUnknown)]
#[case::loose(|view: &mut View| view.evictions = theirs(3, 1), Reason::DisruptionBudgetTooLoose)]
fn what_is_wrong_and_none_of_our_doing_is_not_wished_away(#[case] spoil: fn(&mut View), #[case] reason: Reason) {
    let mut view = rest(3, 0);
    spoil(&mut view);
    let seen = foresee(&want(NEW), &view);
    assert!(matches!(&seen.end, End::Held(hold) if hold.reason == reason), "{:?}", seen.end);
    assert_eq!(blocked(&seen), Some(reason));
    assert!(moves(&seen).is_empty() && !words(&seen).iter().any(|word| lets_go(word)), "{:?}", words(&seen));
}

#[test]
fn a_replaced_pod_that_kubernetes_names_trouble_with_does_not_come_back() {
    let mut view = half_way(3, 0, 1);
    pod_mut(&mut view, 2).ready_since = None;
    pod_mut(&mut view, 2).trouble = Some(Trouble::Unschedulable { message: "no node is left".into() });
    let seen = foresee(&want(NEW), &view);
    assert_eq!((words(&seen), blocked(&seen)), (vec![], Some(Reason::Unschedulable)));
}

#[test]
fn a_system_that_names_no_heir_is_noted() {
    let seen = foresee(&Want { names_target: false, ..want(NEW) }, &rest_on_delete(3, 0));
    assert_eq!(seen.notes, [Note::LeaderNotChosen]);
}

#[test]
fn a_downgrade_is_noted() {
    let seen = foresee(&Want { allow_downgrade: true, ..want("8.4.9") }, &rest(3, 0));
    assert_eq!(seen.notes[0], Note::Downgrade { from: version(OLD), to: version("8.4.9") });
    assert_eq!(blocked(&foresee(&want("8.4.9"), &rest(3, 0))), Some(Reason::DowngradeNotAllowed));
}

/// What a world of its own really does from here, with somebody who approves whatever is asked.
fn really(world: &mut World) -> (Vec<Step>, bool) {
    let before = world.steps.len();
    let mut paused_for = 0;
    let mut asked = false;
    for _ in 0..3_000 {
        let began = world.now;
        match world.pass() {
            Decision::Done => return (world.steps.split_off(before), true),
            Decision::Halt { .. } => return (world.steps.split_off(before), false),
            Decision::Wait { on, .. } => {
                // People take longer than what is on its way.
                paused_for += u32::from(on.reason == Reason::Paused);
                world.want.paused &= paused_for < 30;
                if on.reason.is_idle() {
                    // Long before it goes on whoever was on their way is back, and somebody looks.
                    world.now = world.now.min(began + Duration::from_mins(1));
                    (0..10).for_each(|_| world.let_kubernetes_work());
                }
                world.view.approvals.fresh = asked && on.reason == Reason::AwaitingApproval;
                asked = on.reason == Reason::AwaitingApproval;
            }
            Decision::Act(_) => {}
        }
    }
    panic!("it never ends: {:?}", world.steps)
}

/// Which pod of a name is deleted is not known before it exists.
fn nameless(steps: impl IntoIterator<Item = Step>) -> Vec<Step> {
    let nameless = |step| match step {
        Step::Replace { pod, image, through, .. } => Step::Replace { pod, uid: String::new(), image, through },
        Step::DeletePod { pod, image, .. } => Step::DeletePod { pod, uid: String::new(), image },
        other @ (Step::Job(_)
        | Step::WriteTemplate { .. }
        | Step::SwitchStrategy { .. }
        | Step::PutBackStrategy
        | Step::HoldEvictions
        | Step::HandOver { .. }
        | Step::Permit { .. }
        | Step::TakeBack { .. }
        | Step::ReleaseEvictions
        | Step::Park { .. }) => other,
    };
    steps.into_iter().map(nameless).collect()
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches that have nothing to do with each other")]
struct Case {
    members: u32,
    leader: u32,
    on_delete: bool,
    order: Option<Order>,
    soak: u64,
    windowed: bool,
    approval: Mode,
    names_target: bool,
    passes: usize,
    then: &'static str,
    paused: bool,
}

fn any_case() -> impl Strategy<Value = Case> {
    let orders = prop::sample::select(vec![None, Some(Order::ReverseOrdinal), Some(Order::LeaderLast)]);
    let modes = prop::sample::select(vec![Mode::None, Mode::None, Mode::BeforeUpgrade, Mode::BeforeEachHandOver]);
    let soaks = prop::sample::select(vec![0, 0, 60, 3_600]);
    let then = prop::sample::select(vec![NEW, NEW, NEW, OLD, NEWER]);
    let switches = any::<(bool, bool, bool)>();
    let paused = prop::bool::weighted(0.1);
    (1..8_u32, 0..8_u32, switches, orders, soaks, modes, 0..150_usize, then, paused).prop_map(
        |(members, leader, (on_delete, windowed, names_target), order, soak, approval, passes, then, paused)| Case {
            members,
            leader: leader % members,
            on_delete,
            order,
            soak,
            windowed,
            approval,
            names_target,
            passes,
            // A quorum that is down while one is replaced is judged by rules of its own, which the world does not know.
            then: if members < 3 { NEW } else { then },
            paused,
        },
    )
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// From any moment of an upgrade in which nothing goes wrong, also when people change their mind then.
    #[test]
    fn what_is_foreseen_is_what_happens(case in any_case()) {
        let view = if case.on_delete { rest_on_delete(case.members, case.leader) } else { rest(case.members, case.leader) };
        let mut world = World::from(view);
        world.want = Want {
            order: case.order,
            names_target: case.names_target,
            accept_downtime: true,
            soak: Duration::from_secs(case.soak),
            windows: if case.windowed { vec![window("0 * * * *", 30, "UTC")] } else { vec![] },
            approval: case.approval,
            ..want(NEW)
        };
        for _ in 0..case.passes {
            if let Decision::Wait { on, .. } = world.pass() {
                world.view.approvals.fresh = on.reason == Reason::AwaitingApproval;
            }
        }
        world.want.target = target(case.then);
        world.want.paused = case.paused;
        let seen = foresee::foresee(&world.want, &world.view, world.now);
        let (happened, done) = really(&mut world);
        prop_assert_eq!(nameless(seen.steps.iter().map(|foreseen| foreseen.step.clone())), nameless(happened));
        prop_assert_eq!(seen.end == End::Done, done, "{:?}", seen.end);
    }

    /// Whatever is seen, it ends, and says the planner's own word first.
    #[test]
    fn any_world_has_a_forecast((want, view) in anything()) {
        let seen = foresee(&want, &view);
        prop_assert!(seen.steps.len() < 2_000);
        if let Decision::Act(step) = &seen.decision {
            prop_assert_eq!(Some(step), seen.steps.first().map(|foreseen| &foreseen.step));
        }
        if seen.decision == Decision::Done {
            prop_assert_eq!((seen.steps.len(), seen.blocked()), (0, None));
        }
    }
}
