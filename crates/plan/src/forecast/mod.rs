//! What an upgrade would do from here: the planner's own answers, played forward on a copy of what was seen.
//!
//! ```text
//!   want, view, now ─▶ strategy::plan ─▶ Act         noted, and done to the copy
//!                        ▲               Wait        what is on its way arrives; what people or the calendar hold is noted and let pass
//!                        └───────────────┘           neither: that is where it ends
//!                                        Halt, Done  that is where it ends
//! ```
//! There is no second opinion: whatever is foreseen, [`strategy::plan`] said. Only what the copy does is made up, and it is the best that
//! can happen: pods come back ready, their members healthy and caught up, and leadership goes where it was asked to go. What is wrong
//! or not known now and is none of our doing stays as it is.
//!
//! The copy and what is told of it are the same for every strategy; what its own steps lead to, it brings itself ([`Foresee`]).

mod copy;
pub mod foresee;
mod told;

use std::{borrow::Cow, time::Duration};

use jiff::{SignedDuration, Timestamp};

use self::copy::Copy;
pub use self::{
    foresee::{End, Forecast, Foresee, Foreseen, Move, Note, Way},
    told::Told,
};
use crate::{
    hold::Hold,
    quorum::can_spare_one,
    reason::Reason,
    strategy::{
        self, Record as _, approval,
        known::{decision::Decision, step::Step, want::Want},
    },
};

/// More answers than any way of a quorum needs. A way that never ends is a bug, and must not hang whoever asks.
const ROUNDS: usize = 2_000;

impl<A: Step> Forecast<A> {
    /// Where leadership moves, and when.
    pub fn moves(&self) -> impl Iterator<Item = Move> {
        self.steps.iter().zip(1..).filter_map(|(foreseen, step)| {
            let (from, to) = foreseen.step.hand_over()?;
            Some(Move { step, from: from.clone(), to: to.clone() })
        })
    }

    /// What keeps members from being replaced as things are now: what people or the calendar hold, or what does not get well by itself.
    /// None where the first member can go, or nobody has to.
    pub fn blocked(&self) -> Option<&Hold> {
        for Foreseen { step, waits, .. } in &self.steps {
            if let Some(hold) = waits.first() {
                return Some(hold);
            }
            if let Some(because) = step.takes_back() {
                return Some(because);
            }
            if step.disturbs() {
                return None;
            }
        }
        match &self.end {
            End::Held(hold) => Some(hold),
            End::Done | End::OutOfSight => None,
        }
    }
}

/// What would happen from here, if nothing goes wrong and nobody changes their mind.
pub fn forecast<S: Foresee>(want: &Want, view: &S::View, now: Timestamp) -> Forecast<S::Step> {
    let record = strategy::plan::<S>(want, view, now).record.filter(|_| S::recorded(view).is_some());
    let (gates, _) = S::outlook(want, &approval::take_in::<S>(want, view), record.as_ref(), now);
    let mut copy = Copy::<S>::of(want.clone(), view.clone(), now);
    let mut told = Telling::new(want.soak);
    let mut first = None;
    let mut way = None;
    let mut end = End::OutOfSight;
    for _ in 0..ROUNDS {
        let at_rest = copy.is_at_rest();
        let plan = copy.plan();
        first.get_or_insert_with(|| plan.decision.clone());
        way = way.or_else(|| plan.record.as_ref().map(way_of::<S>));
        match plan.decision {
            // A step that changed nothing would be repeated for ever.
            Decision::Act(step) if told.steps.last().is_some_and(|last| last.step == step) => break,
            Decision::Act(step) => {
                copy.carry_out(&step);
                let gates = if step.disturbs() {
                    plan.gates.into_iter().map(|gate| gate.name).collect()
                } else if at_rest && plan.record.is_some() {
                    S::to_begin()
                } else {
                    Vec::new()
                };
                told.act(step, gates);
            }
            Decision::Wait { on, .. } => {
                let idle = on.reason.is_idle();
                // What is on its way is there before people or the calendar move.
                if copy.arrive() {
                    told.arrived(on, idle);
                } else if idle && copy.lift(&on) {
                    told.lifted(&on);
                } else {
                    end = End::Held(on);
                    break;
                }
            }
            Decision::Halt { on } => {
                end = End::Held(on);
                break;
            }
            Decision::Done => {
                end = End::Done;
                break;
            }
        }
    }
    let notes = notes::<S>(want, view, way.as_ref(), &told.steps, &end);
    Forecast { decision: first.unwrap_or(Decision::Done), gates, way, steps: told.steps, end, notes }
}

fn way_of<S: Foresee>(record: &S::Record) -> Way {
    let (from, to) = (record.from().clone(), record.target().clone());
    Way { from, to, order: S::order(record), rolling_back: record.is_rolling_back() }
}

/// What was foreseen so far.
struct Telling<A> {
    steps: Vec<Foreseen<A>>,
    after: Vec<Hold>,
    waits: Vec<Hold>,
    soak: Duration,
    /// The time has become a guess: a member was replaced, or something was waited for.
    guessed: bool,
}

impl<A: Step> Telling<A> {
    fn new(soak: Duration) -> Self {
        Self { steps: Vec::new(), after: Vec::new(), waits: Vec::new(), soak, guessed: false }
    }

    fn act(&mut self, step: A, gates: Vec<Cow<'static, str>>) {
        self.guessed |= step.disturbs();
        let (after, waits) = (std::mem::take(&mut self.after), std::mem::take(&mut self.waits));
        self.steps.push(Foreseen { step, gates, after, waits });
    }

    /// Something was on its way, and has come.
    fn arrived(&mut self, on: Hold, idle: bool) {
        if !idle && !self.after.iter().any(|hold| hold.reason == on.reason) {
            self.after.push(on);
        }
    }

    /// A person or the calendar let it pass.
    fn lifted(&mut self, on: &Hold) {
        if !self.waits.iter().any(|hold| hold.reason == on.reason) {
            self.waits.push(self.timeless(on));
        }
        self.guessed |= on.until.is_some();
    }

    /// The same hold; once the time is a guess, without one.
    fn timeless(&self, on: &Hold) -> Hold {
        if !self.guessed {
            return on.clone();
        }
        let soak = SignedDuration::try_from(self.soak).unwrap_or(SignedDuration::MAX);
        let message = if on.reason == Reason::Soaking {
            format!("every replaced member must have been well for {soak:#}")
        } else if on.reason == Reason::WindowClosed {
            "a maintenance window must be open, and for long enough".to_owned()
        } else {
            on.message.clone()
        };
        Hold::new(on.reason, message)
    }
}

fn notes<S: Foresee>(
    want: &Want,
    view: &S::View,
    way: Option<&Way>,
    foreseen: &[Foreseen<S::Step>],
    end: &End,
) -> Vec<Note> {
    let steps = || foreseen.iter().map(|foreseen| &foreseen.step);
    let mut notes = Vec::new();
    let members = view.as_ref().quorum.size();
    let held = matches!(end, End::Held(hold) if hold.reason == Reason::TooFewMembers);
    if held || (steps().any(Step::disturbs) && !can_spare_one(members)) {
        notes.push(Note::TooFewMembers { members });
    }
    if let Some(Way { from, to, rolling_back: false, .. }) = way
        && to.version < from.version
    {
        notes.push(Note::Downgrade { from: from.version.clone(), to: to.version.clone() });
    }
    notes.extend(S::notes(view, foreseen));
    if !want.names_target && steps().any(|step| step.hand_over().is_some()) {
        notes.push(Note::LeaderNotChosen);
    }
    if !want.windows.is_empty() && steps().any(Step::disturbs) {
        notes.push(Note::WindowsEnd);
    }
    notes
}
