//! What the pods behind a tier say, of whom they are asked, and when waiting is pointless (E12).

use rstest::rstest;
use windlass_plan::{
    Fact, Reason, Trouble,
    fleet::{
        Ailment, Amount, Diagnosis, Finding, Item, ItemId, Look, PodLook, PodState, Progress, SAMPLE, TierName,
        Verdict, sample,
    },
    trouble::{Exit, Log},
};

use super::world::{V1, V2, V3, World, at, at_most, first, id, reason, serving, tier, want};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn pull(words: &str) -> Trouble {
    Trouble::ImagePull { container: "container dicom".into(), image: V2.into(), message: words.into() }
}

fn crash(restarts: u32) -> Trouble {
    let exit = Exit { code: 3, signal: None, reason: "Error".into(), message: String::new() };
    Trouble::CrashLoop { container: "container dicom".into(), image: V2.into(), restarts, exit: Some(exit) }
}

fn config(reason: &str) -> Trouble {
    Trouble::Config { container: "container dicom".into(), reason: reason.into(), message: "no secret".into() }
}

fn ails(trouble: Trouble) -> PodState {
    PodState::Ails(Ailment::Named(trouble))
}

fn unready() -> PodState {
    PodState::Ails(Ailment::Unready { container: "container dicom".into(), image: V2.into() })
}

/// What the pods of a resource show.
fn look(name: &str, states: impl IntoIterator<Item = PodState>) -> Look {
    let pod = |(number, state)| PodLook { name: format!("{name}-{number}"), state };
    Look { id: id(name), pods: states.into_iter().enumerate().map(pod).collect() }
}

fn diagnosis(looks: &[Look], done: usize) -> Diagnosis {
    Finding::of(looks, true, done).expect("something is wrong").diagnosis(None)
}

#[test]
fn all_is_told_from_some() {
    let stuck = |name| look(name, [ails(pull("manifest unknown"))]);
    let all = diagnosis(&NAMES.map(stuck), 0);
    assert_eq!(all.reason, Reason::ImagePullFailed);
    assert_eq!(
        all.message,
        "all (4 of 4 that were looked at) can't pull r/dicom:v2; such as pod a-0 of clinic/a: container dicom: manifest unknown"
    );
    assert_eq!(all.hopeless, NAMES.map(id));

    let some = diagnosis(&[stuck("a"), look("b", [PodState::Coming])], 0);
    assert!(some.message.starts_with("some (1 of 2 that were looked at) can't pull r/dicom:v2"), "{}", some.message);
    assert!(some.hopeless.is_empty());

    let looks = NAMES.map(stuck);
    let early = Finding::of(&looks, false, 0).expect("something is wrong").diagnosis(None);
    assert!(early.message.starts_with("all (4 of 4") && early.hopeless.is_empty(), "others may do better");

    let rest = diagnosis(&[stuck("a"), stuck("b")], 7);
    let words = "some (2 of 2 that were looked at) can't pull r/dicom:v2, and 7 are up to date;";
    assert!(rest.message.starts_with(words), "{}", rest.message);
    assert!(rest.hopeless.is_empty(), "those who are left are all stuck, and the image works");
}

#[rstest]
#[case::lacks_it("failed to resolve reference: r/dicom:v2: not found", true)]
#[case::denies_it("pull access denied, repository does not exist or may require authorization", true)]
#[case::forbids_it("unexpected status from HEAD request: 403 Forbidden", true)]
#[case::limits_its_rate("429 Too Many Requests: toomanyrequests: you have reached your pull rate limit", false)]
#[case::is_away("dial tcp 10.0.0.1:443: i/o timeout", false)]
#[case::is_ill("unexpected status: 503 Service Unavailable", false)]
#[case::says_nothing("Back-off pulling image \"r/dicom:v2\"", false)]
fn only_a_registry_that_says_no_is_not_waited_for(#[case] words: &str, #[case] hopeless: bool) {
    let said = diagnosis(&[look("a", [ails(pull(words))])], 0);
    assert_eq!(!said.hopeless.is_empty(), hopeless, "{words}");
}

#[test]
fn the_name_of_an_image_is_no_answer_of_its_registry() {
    let message = "failed to pull r/denied:v2: i/o timeout".to_owned();
    let trouble = Trouble::ImagePull { container: "container dicom".into(), image: "r/denied:v2".into(), message };
    assert!(diagnosis(&[look("a", [ails(trouble)])], 0).hopeless.is_empty());
}

#[rstest]
#[case::a_name_that_is_none(ails(Trouble::ImageUnusable { container: "c".into(), image: V2.into(), message: String::new() }), Reason::ImageUnusable, true)]
#[case::a_secret_that_is_not_there(ails(config("CreateContainerConfigError")), Reason::ContainerConfigError, true)]
#[case::a_busy_runtime(ails(config("CreateContainerError")), Reason::ContainerConfigError, false)]
#[case::ended_a_few_times(ails(crash(2)), Reason::CrashLooping, false)]
#[case::keeps_ending(ails(crash(3)), Reason::CrashLooping, true)]
#[case::no_node(ails(Trouble::Unschedulable { message: "no room".into() }), Reason::Unschedulable, false)]
#[case::slow(unready(), Reason::PodNotReady, false)]
fn what_goes_away_by_itself_is_waited_for(#[case] state: PodState, #[case] reason: Reason, #[case] hopeless: bool) {
    let said = diagnosis(&[look("a", [state])], 0);
    assert_eq!((said.reason, !said.hopeless.is_empty()), (reason, hopeless), "{}", said.message);
}

#[test]
fn one_pod_that_serves_says_that_the_image_works() {
    let said = diagnosis(&[look("a", [PodState::Ready, ails(crash(9))])], 0);
    assert!(said.message.starts_with("all (1 of 1"), "{}", said.message);
    assert!(said.hopeless.is_empty());
}

#[test]
fn the_trouble_that_most_have_is_named_with_an_example_and_where_its_log_is() {
    let looks = [
        look("a", [ails(pull("not found"))]),
        look("b", [PodState::Coming, unready(), ails(crash(5))]),
        look("c", [ails(crash(4))]),
        look("d", []),
    ];
    let finding = Finding::of(&looks, true, 0).expect("something is wrong");
    assert_eq!((finding.id, finding.pod), (&id("b"), "b-2"), "what stays comes first");
    let said = finding.diagnosis(Some(&Log::LastLine("no data".into())));
    assert_eq!(
        said.message,
        "some (2 of 4 that were looked at) can't keep r/dicom:v2 running, 1 something else; such as pod b-2 of clinic/b: container \
         dicom keeps ending (5 restarts), last with exit code 3, Error; last line of its log: \"no data\""
    );
    assert!(Finding::of(&[look("a", [PodState::Coming]), look("b", [])], true, 0).is_none());
    assert!(Finding::of(&[], true, 0).is_none());
}

fn four() -> World {
    World::new(want(vec![tier("", V2, 0)]), NAMES.map(|name| (name, serving(name, "", V1))))
}

fn sampled(world: &World) -> Vec<ItemId> {
    sample(&world.want.tiers[0], &world.index, &world.record, world.now).ids
}

#[test]
fn those_are_looked_at_who_have_been_on_their_way_for_a_while() {
    let mut world = four();
    world.want.tiers[0].max_in_flight = Some(at_most(2));
    let begun = world.step().stamps;
    let young = sample(&world.want.tiers[0], &world.index, &world.record, world.now);
    assert_eq!((young.ids.len(), young.next), (0, Some(at(10))));
    world.wait(4);
    world.arrive(&begun[0].id);
    let later = world.step().stamps;
    world.wait(6);
    let early = sample(&world.want.tiers[0], &world.index, &world.record, world.now);
    assert_eq!((early.ids.len(), early.next), (0, Some(at(14))), "together with the other one");
    world.wait(4);
    let both = sample(&world.want.tiers[0], &world.index, &world.record, world.now);
    assert_eq!(both.ids, [begun[1].id.clone(), later[0].id.clone()], "longest first, and not who is done");
    assert!(both.whole);
    world.wait(2);
    world.arrive(&later[0].id);
    let last = world.step().stamps;
    world.wait(4);
    let part = sample(&world.want.tiers[0], &world.index, &world.record, world.now);
    assert_eq!((part.ids, part.next), (vec![begun[1].id.clone()], Some(at(26))), "not for ever");
    assert!(!part.whole, "{} is too young to be like the other", last[0].id);
    world.wait(600);
    assert_eq!(sampled(&world).len(), 2, "also those that took too long");
    world.want.tiers[0].priority = 7;
    assert!(sampled(&world).is_empty(), "it is another priority's turn");
}

#[test]
fn a_large_fleet_costs_no_more_than_a_small_one() {
    let named = |number: usize| {
        let name: &'static str = format!("n{number}").leak();
        (name, serving(name, "", V1))
    };
    let mut world = World::new(want(vec![tier("", V2, 0)]), (0..200).map(named));
    for _ in 0..4 {
        world.step();
    }
    world.wait(30);
    assert_eq!(sampled(&world).len(), SAMPLE);
    world.wait(600);
    assert_eq!(sampled(&world).len(), SAMPLE);
}

/// All of a tier's resources on their way are stuck.
fn stuck(world: &World) -> Diagnosis {
    let ids = sampled(world);
    let looks: Vec<Look> = ids.iter().map(|id| look(id.name(), [ails(pull("manifest unknown"))])).collect();
    diagnosis(&looks, 0)
}

fn lenient(item: &mut Item) {
    item.failure_halts = false;
}

fn halts(world: &mut World) -> bool {
    world.wait(10);
    world.diagnoses.insert(TierName::default(), stuck(world));
    let plan = world.step();
    match &plan.verdict {
        Verdict::Halt(hold) => {
            assert_eq!(hold.reason, Reason::ImagePullFailed);
            assert!(hold.message.contains("manifest unknown"), "{}", hold.message);
            assert!(plan.stamps.is_empty());
            true
        }
        Verdict::Wait(hold) => {
            assert!(hold.message.contains("manifest unknown"), "{}", hold.message);
            false
        }
        Verdict::Done | Verdict::Going => panic!("{plan:?}"),
    }
}

#[test]
pub fn e12_an_image_that_nobody_can_pull_is_not_waited_for() {
    let mut world = four();
    world.want.tiers[0].max_in_flight = Some(at_most(2));
    world.step();
    assert!(halts(&mut world));
    // Another image: the diagnosis is about those who are on their way, and they are not any more.
    let mut other = world.want.clone();
    other.tiers[0].image = V3.to_owned();
    world.wish(other);
    assert_eq!(world.step().stamps.len(), 2);
}

#[test]
fn e12_it_goes_on_when_one_of_them_got_there() {
    let mut world = four();
    world.want.tiers[0].max_in_flight = Some(at_most(2));
    let begun = world.step().stamps;
    assert!(halts(&mut world));
    world.arrive(&begun[0].id);
    assert_eq!(world.step().stamps.len(), 1, "whatever was said before");
}

#[test]
fn e4_e12_hopeless_ones_count_like_failures_and_no_more() {
    let mut world = four();
    for name in NAMES {
        world.change(&id(name), lenient);
    }
    world.want.tiers[0].max_in_flight = Some(at_most(3));
    world.step();
    assert!(!halts(&mut world), "a failure halts only where it says so");
    world.want.tiers[0].max_failures = Some(at_most(2));
    assert!(halts(&mut world));
    world.want.tiers[0].max_failures = Some(Amount::Percent(100));
    assert!(!halts(&mut world), "all of them may");
    world.want.tiers[0].max_failures = None;
    let longest = sampled(&world)[0].clone();
    world.change(&longest, |item| item.failure_halts = true);
    assert!(halts(&mut world), "one of them must not");
}

#[test]
fn e12_a_share_that_goes_first_puts_up_with_none() {
    let mut world = four();
    for name in NAMES {
        world.change(&id(name), lenient);
    }
    world.want.tiers[0].canary = vec![first(25, 60)];
    assert_eq!(world.step().stamps.len(), 1);
    assert!(halts(&mut world));
}

#[test]
fn e12_a_diagnosis_of_some_is_told_and_halts_nothing() {
    let mut world = four();
    world.step();
    world.wait(10);
    let diagnosis = Diagnosis { hopeless: Vec::new(), ..stuck(&world) };
    world.diagnoses.insert(TierName::default(), diagnosis);
    let plan = world.step();
    assert_eq!(reason(&plan), "AwaitingResources");
    let Verdict::Wait(hold) = &plan.verdict else { panic!("{plan:?}") };
    assert!(hold.message.contains("can't pull r/dicom:v2"), "{}", hold.message);
    // And where one has failed, it is the cause.
    world.change(&id("a"), |item| item.progress = Fact::Known(Progress::Failed("it gave up".into())));
    let plan = world.step();
    let Verdict::Halt(hold) = &plan.verdict else { panic!("{plan:?}") };
    assert!(hold.message.contains("it gave up; some") || hold.message.contains("it gave up; all"), "{}", hold.message);
}
