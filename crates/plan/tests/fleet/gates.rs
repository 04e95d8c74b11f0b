//! What people put before a fleet's resources and before it is done: whose word counts when, and under which name it is shown (E12).

use std::collections::{BTreeMap, BTreeSet};

use rstest::rstest;
use windlass_plan::{
    Fact, Hold, Reason,
    fleet::{Plan, Progress, TierName, Verdict, of_tier},
    gate::{ExternalGate, Outcome, State, When},
};

use super::world::{V1, V2, V3, World, at, names, reason, serving, tier, want};

fn early() -> TierName {
    TierName("early".into())
}

/// Two tiers of one priority.
fn twins() -> World {
    let tiers = vec![tier("early", V2, 0), tier("late", V2, 0)];
    let all = ["e", "f"].map(|name| (name, serving(name, "early", V1)));
    let more = ["l", "m"].map(|name| (name, serving(name, "late", V1)));
    World::new(want(tiers), all.into_iter().chain(more))
}

fn one() -> World {
    World::new(want(vec![tier("", V2, 0)]), [("a", serving("a", "", V1)), ("b", serving("b", "", V1))])
}

fn bad() -> Outcome {
    Outcome::Hold(Hold::new(Reason::AnalysisFailed, "errors: 7, and at most 1 may be"))
}

fn silent() -> Outcome {
    Outcome::Unknown(Hold::new(Reason::AnalysisFailed, "errors: nobody answers"))
}

fn hook(when: When, outcome: Outcome) -> ExternalGate {
    ExternalGate { when, ..ExternalGate::new("Hook/ask", outcome) }
}

fn no() -> Outcome {
    Outcome::Hold(Hold::new(Reason::AwaitingHook, "Hook/ask: not today"))
}

fn shown(plan: &Plan) -> Vec<&str> {
    plan.gates.iter().map(|gate| gate.name.as_ref()).collect()
}

fn set_aside(gate: &str) -> BTreeMap<String, jiff::Timestamp> {
    BTreeMap::from([(gate.to_owned(), at(1_000))])
}

#[test]
fn what_counts_for_all_tiers_is_shown_once_and_the_rest_says_which_tier() {
    let mut world = twins();
    for tier in &mut world.want.tiers {
        tier.approval = true;
    }
    world.gates = vec![ExternalGate::new("Check/free", Outcome::Pass)];
    for name in ["early", "late"] {
        let name = TierName(name.into());
        let gate = ExternalGate::new(of_tier("Analysis/errors", &name), Outcome::Pass);
        world.tier_gates.insert(name, vec![gate]);
    }
    let plan = world.step();
    let expected = [
        "NotPaused",
        "Approval@early",
        "MaintenanceWindow",
        "Check/free",
        "Analysis/errors@early",
        "Approval@late",
        "Analysis/errors@late",
    ];
    assert_eq!(shown(&plan), expected);
}

#[rstest]
#[case::bad(bad())]
#[case::silent(silent())]
fn e12_a_tier_is_stopped_by_its_own_analysis_and_another_goes_on(#[case] outcome: Outcome) {
    let mut world = twins();
    let gate = |outcome| vec![ExternalGate::new(of_tier("Analysis/errors", &early()), outcome)];
    world.tier_gates.insert(early(), gate(outcome));
    assert_eq!(names(&world.step()), BTreeSet::from(["l", "m"]));
    world.arrive_all();
    assert_eq!(reason(&world.step()), "AnalysisFailed");
    world.tier_gates.insert(early(), gate(Outcome::Pass));
    assert_eq!(names(&world.step()), BTreeSet::from(["e", "f"]));
}

#[rstest]
#[case::of_that_tier("Analysis/errors@early", 4)]
#[case::of_all_tiers("Analysis/errors", 4)]
#[case::of_another("Analysis/errors@late", 2)]
fn a_tiers_gate_is_set_aside_by_its_name(#[case] gate: &str, #[case] expected: usize) {
    let mut world = twins();
    let analysis = ExternalGate::new(of_tier("Analysis/errors", &early()), bad());
    world.tier_gates.insert(early(), vec![analysis]);
    world.want.overrides = set_aside(gate);
    assert_eq!(world.step().stamps.len(), expected);
}

#[test]
fn an_approval_is_set_aside_in_one_tier_or_in_all() {
    for (gate, expected) in [("Approval", 4), ("Approval@early", 2)] {
        let mut world = twins();
        for tier in &mut world.want.tiers {
            tier.approval = true;
        }
        world.want.overrides = set_aside(gate);
        assert_eq!(world.step().stamps.len(), expected, "{gate}");
    }
}

#[rstest]
#[case::check(ExternalGate::new("Check/free", bad()))]
#[case::silence(ExternalGate::new("Analysis/errors", silent()))]
#[case::hook(hook(When::BeforeUpgrade, no()))]
fn e5_what_holds_those_that_serve_never_holds_a_new_one(#[case] gate: ExternalGate) {
    let mut world = one();
    let mut new = serving("n", "", V1);
    (new.image, new.deployed) = (None, false);
    new.progress = Fact::Known(Progress::Moving { since: None });
    world.add("n", new);
    world.gates = vec![gate];
    assert_eq!(names(&world.step()), BTreeSet::from(["n"]));
    assert_eq!(world.images()["n"], V1, "the one that was proven");
    assert!(world.step().stamps.is_empty());
}

#[test]
pub fn hooks_before_are_asked_once_for_a_set_of_images() {
    let mut world = one();
    world.want.tiers[0].max_in_flight = Some(super::world::at_most(1));
    world.gates = vec![hook(When::BeforeUpgrade, no())];
    assert_eq!(reason(&world.step()), "AwaitingHook");
    world.gates = vec![hook(When::BeforeUpgrade, Outcome::Pass)];
    assert_eq!(world.step().stamps.len(), 1);
    world.gates = vec![hook(When::BeforeUpgrade, no())];
    world.arrive_all();
    let plan = world.step();
    assert_eq!(plan.stamps.len(), 1, "it has begun: {plan:?}");
    assert!(!shown(&plan).contains(&"Hook/ask"), "nobody is asked whose word does not count");
    world.arrive_all();
    assert_eq!(world.step().verdict, Verdict::Done);
    world.add("late", serving("late", "", V1));
    assert_eq!(names(&world.step()), BTreeSet::from(["late"]), "the same images");
    let mut other = world.want.clone();
    other.tiers[0].image = V3.into();
    world.wish(other);
    assert_eq!(reason(&world.step()), "AwaitingHook", "other images");
}

#[test]
pub fn hooks_after_have_the_last_word() {
    let mut world = one();
    world.gates = vec![hook(When::AfterUpgrade, no())];
    let plan = world.step();
    assert_eq!((plan.stamps.len(), shown(&plan).contains(&"Hook/ask")), (2, false));
    world.arrive_all();
    let plan = world.step();
    assert_eq!((reason(&plan), shown(&plan)), ("AwaitingHook", vec!["Hook/ask"]));
    assert!(world.record.tiers[&TierName::default()].complete, "the tier is done, and all of it is not");
    world.look_again();
    assert_eq!(reason(&world.step()), "AwaitingHook", "a restart forgets nothing");
    world.gates = vec![hook(When::AfterUpgrade, Outcome::Pass)];
    assert_eq!(world.step().verdict, Verdict::Done);
    world.gates = vec![hook(When::AfterUpgrade, no())];
    assert_eq!(world.step().verdict, Verdict::Done, "done is done");
    world.add("late", serving("late", "", V1));
    world.step();
    world.arrive_all();
    assert_eq!(reason(&world.step()), "AwaitingHook", "somebody was changed");
}

#[test]
fn where_nothing_is_changed_nobody_is_asked() {
    let mut world = World::new(want(vec![tier("", V2, 0)]), [("a", serving("a", "", V2))]);
    world.gates = vec![hook(When::BeforeUpgrade, no()), hook(When::AfterUpgrade, no())];
    let plan = world.step();
    assert_eq!((plan.verdict, plan.gates.len()), (Verdict::Done, 0));
}

#[test]
fn a_job_is_made_when_nothing_else_is_in_the_way() {
    let mut world = one();
    let lacking = |when| ExternalGate { lacks_job: true, ..hook(when, no()) };
    world.gates = vec![ExternalGate::new("Check/free", bad()), lacking(When::BeforeUpgrade)];
    assert_eq!(world.step().start, None);
    world.gates = vec![lacking(When::BeforeUpgrade), lacking(When::AfterUpgrade)];
    let plan = world.step();
    assert_eq!((plan.start.as_deref(), plan.stamps.len()), (Some("Hook/ask"), 0));
    world.gates = vec![lacking(When::AfterUpgrade)];
    assert_eq!(world.step().start, None, "it is not its time");
    world.arrive_all();
    assert_eq!(world.step().start.as_deref(), Some("Hook/ask"));
    world.want.overrides = set_aside("Hook/ask");
    let plan = world.step();
    assert_eq!((plan.start, plan.verdict), (None, Verdict::Done));
}

#[rstest]
#[case::a_job_that_failed(Reason::HookFailed)]
#[case::a_namespace_that_nobody_allowed(Reason::GatesNotAllowed)]
fn what_does_not_pass_by_itself_calls_a_person(#[case] reason: Reason) {
    for when in [When::BeforeUpgrade, When::AfterUpgrade] {
        let mut world = one();
        if when == When::AfterUpgrade {
            world.step();
            world.arrive_all();
        }
        world.gates = vec![hook(when, Outcome::Hold(Hold::new(reason, "it fell")))];
        let plan = world.step();
        let Verdict::Halt(hold) = &plan.verdict else { panic!("{plan:?}") };
        assert_eq!((hold.reason, plan.stamps.len()), (reason, 0));
        assert_eq!(plan.gates.last().map(|gate| gate.state), Some(State::Holding));
    }
}
