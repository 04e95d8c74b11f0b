//! Random walks in which gates open and close, members flap and people answer: nobody is disturbed while a gate holds, and once all are
//! open the way comes to its end.

use std::time::Duration;

use proptest::{collection, prelude::*, sample};
use windlass_plan::{
    Decision, Fact, Hold, Order, Reason, Step,
    approval::Mode,
    gate::{CONCURRENT_OPERATION, ExternalGate, NODE_DRAIN, Outcome},
};

use crate::support::{
    NEWER,
    gatekeeper::{Gatekeeper, HALF_HOURS},
    member_mut, name, pod_mut, target, window,
    world::World,
};

/// What happens to the world between two passes.
#[derive(Clone, Debug)]
pub enum Event {
    Passes(u8),
    Clock(u16),
    Window(bool),
    External(&'static str, Option<bool>),
    Soak(u16),
    Approval(Mode),
    Answer,
    Target(&'static str),
    Override(&'static str, u16),
    Flap(u32),
    Elect(u32),
    Pause(bool),
}

const OVERRIDABLE: [&str; 5] = ["MaintenanceWindow", "Approval", "Soak", NODE_DRAIN, CONCURRENT_OPERATION];

fn any_event(members: u32) -> impl Strategy<Value = Event> {
    let mode = sample::select(vec![Mode::None, Mode::BeforeUpgrade, Mode::BeforeEachHandOver]);
    let external = sample::select(vec![NODE_DRAIN, CONCURRENT_OPERATION, "Analysis"]);
    // Firm ones, too: naming them must change nothing.
    let gates = sample::select([&OVERRIDABLE[..], &["LeaderKnown", "EveryoneSettled", "QuorumSurvives"]].concat());
    prop_oneof![
        12 => (1_u8..12).prop_map(Event::Passes),
        2 => (1_u16..2400).prop_map(Event::Clock),
        2 => any::<bool>().prop_map(Event::Window),
        2 => (external, option_of(any::<bool>())).prop_map(|(name, state)| Event::External(name, state)),
        1 => (0_u16..900).prop_map(Event::Soak),
        1 => mode.prop_map(Event::Approval),
        3 => Just(Event::Answer),
        // Onwards only: ways back have walks of their own.
        1 => Just(Event::Target(NEWER)),
        1 => (gates, 0_u16..1200).prop_map(|(gate, long)| Event::Override(gate, long)),
        2 => (0..members).prop_map(Event::Flap),
        1 => (0..members).prop_map(Event::Elect),
        1 => any::<bool>().prop_map(Event::Pause),
    ]
}

fn option_of<T: std::fmt::Debug + Clone>(some: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(some)
}

/// Where a walk begins, and what happens on it.
#[derive(Clone, Debug)]
pub struct Script {
    order: Order,
    members: u32,
    leader: u32,
    events: Vec<Event>,
}

pub fn any_script() -> impl Strategy<Value = Script> {
    let order = sample::select(vec![Order::ReverseOrdinal, Order::LeaderLast]);
    (order, sample::select(vec![3_u32, 5])).prop_flat_map(|(order, members)| {
        (0..members, collection::vec(any_event(members), 1..40)).prop_map(move |(leader, events)| Script {
            order,
            members,
            leader,
            events,
        })
    })
}

/// Panics where the world, or whoever keeps the gates in it, objects.
pub fn walk(script: &Script) -> World {
    let mut world = match script.order {
        Order::ReverseOrdinal => World::new(script.members, script.leader),
        Order::LeaderLast => World::on_delete(script.members, script.leader),
    };
    world.keeper = Some(Gatekeeper::default());
    for event in &script.events {
        apply(&mut world, event);
    }
    world
}

fn apply(world: &mut World, event: &Event) {
    match event {
        Event::Passes(count) => {
            for _ in 0..*count {
                let before = world.now;
                let decision = world.pass();
                // An event comes first, sometimes: nobody sleeps through the whole of a long wait.
                if matches!(decision, Decision::Wait { .. }) && world.now > before + Duration::from_mins(10) {
                    world.now = before + Duration::from_mins(10);
                }
            }
        }
        // Not while somebody is on their way: their deadlines have tests of their own.
        Event::Clock(seconds) => {
            let resting = world.all_well() && world.view.permitted().is_none() && world.view.workload.observed;
            if resting && world.view.pods.iter().all(|pod| !pod.terminating) {
                world.now += Duration::from_secs(u64::from(*seconds));
            }
        }
        Event::Window(closes) => {
            world.want.windows = if *closes { vec![window(HALF_HOURS.0, HALF_HOURS.1, "UTC")] } else { vec![] };
        }
        Event::External(name, state) => {
            world.view.external.retain(|gate| gate.name != *name);
            let hold = Hold::new(Reason::Locked, "as the script says");
            let outcome = match state {
                None => Outcome::Pass,
                Some(true) => Outcome::Hold(hold),
                Some(false) => Outcome::Unknown(hold),
            };
            world.view.external.push(ExternalGate::new(*name, outcome));
        }
        Event::Soak(seconds) => world.want.soak = Duration::from_secs(u64::from(*seconds)),
        Event::Approval(mode) => world.want.approval = *mode,
        Event::Answer => {
            world.view.approvals.fresh = true;
            let shown = world.view.approvals.asked.clone();
            world.keeper.as_mut().unwrap().approved.extend(shown);
        }
        Event::Target(to) => world.want.target = target(to),
        Event::Override(gate, long) => {
            let until = world.now + Duration::from_secs(u64::from(*long));
            world.want.overrides.insert((*gate).to_owned(), until);
        }
        Event::Flap(index) => {
            if world.view.pod(&name(*index)).is_some_and(windlass_plan::Pod::is_up) && world.all_well() {
                pod_mut(&mut world.view, *index).ready_since = None;
                member_mut(&mut world.view, *index).healthy = Fact::Known(false);
            }
        }
        Event::Elect(index) => {
            // Nobody can win against an election in the very moment between a permit and its use.
            if world.all_well() && world.view.permitted().is_none() {
                world.view.quorum.leader = Fact::Known(name(*index));
            }
        }
        Event::Pause(paused) => world.want.paused = *paused,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_disturbed_while_a_gate_holds(script in any_script()) {
        let mut world = walk(&script);
        // Everything opens: the way must end.
        world.want.windows = vec![];
        world.view.external = vec![];
        world.want.approval = Mode::None;
        world.want.soak = Duration::from_secs(30);
        world.want.paused = false;
        world.want.target = target(NEWER);
        prop_assert_eq!(world.run(), Decision::Done);
        prop_assert!(world.everybody_runs(NEWER));
    }

    #[test]
    fn what_is_told_of_gates_is_what_is_done(script in any_script()) {
        let world = walk(&script);
        let plan = windlass_plan::rolling::plan(&world.want, &world.view, world.now);
        if let Decision::Act(Step::Permit { .. } | Step::Replace { .. } | Step::HandOver { .. }) = plan.decision {
            prop_assert!(!plan.gates.is_empty() && plan.gates.iter().all(|gate| !gate.state.blocks()), "{:?}", plan.gates);
        }
        if let Decision::Wait { on, .. } = &plan.decision
            && on.reason.is_idle()
            && on.reason != Reason::Paused
            && plan.record.is_some()
        {
            let first = plan.gates.iter().find(|gate| gate.state.blocks()).and_then(|gate| gate.hold.as_ref());
            prop_assert_eq!(first, Some(on));
        }
    }
}
