//! What an upgrade would do, and what blocks it now. `docs/plan.md` describes the fields, and machines rely on them: they are added to, not
//! changed.

use jiff::Timestamp;
use serde::Serialize;
use windlass_api::{QuorumCluster, status::members::MemberStatus};
use windlass_plan::{
    Hold, Order, Reason, StepKind, Want,
    forecast::{End, Forecast, Foreseen, Move, Told},
    strategy::known::step::Step as _,
};

use crate::quorum::{Gate, Member, Place, Subject};

/// What was foreseen of a quorum.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outlook {
    /// The version of these fields.
    format: u32,
    /// Of which.
    #[serde(flatten)]
    pub subject: Subject,
    /// In a word.
    pub verdict: Verdict,
    /// What runs; none where nothing is begun.
    pub from: Option<Place>,
    /// What shall run; none where that can't be told.
    pub to: Option<Place>,
    /// Who goes first; none where nothing is begun.
    pub order: Option<Order>,
    /// It goes back to where an unfinished upgrade came from.
    pub rolling_back: bool,
    /// What holds now.
    pub blocked_by: Option<Held>,
    /// The members now, in the order of their ordinals.
    pub members: Vec<Member>,
    /// The steps in their order.
    pub steps: Vec<Ahead>,
    /// Where leadership moves.
    pub leadership_moves: Vec<LeadershipMove>,
    /// Where every gate stands now.
    pub gates: Vec<Gate>,
    /// What to know before it begins.
    pub notes: Vec<Remark>,
    /// How it ends.
    pub end: Ended,
}

/// An outlook in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// There is nothing to do.
    UpToDate,
    /// The first member can go.
    CanBegin,
    /// It goes on: a step was taken, and what it leads to is awaited.
    UnderWay,
    /// Something holds.
    Blocked,
}

/// What holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// In a word.
    pub reason: Reason,
    /// In a sentence.
    pub message: String,
    /// What a person can do about it, or that it passes by itself.
    pub next_step: &'static str,
    /// When it ends by itself, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A step that lies ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ahead {
    /// From 1.
    pub number: usize,
    /// Which it is, as events will call it.
    #[serde(rename = "name")]
    pub kind: StepKind,
    /// For people.
    pub text: String,
    /// The member that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// It takes a member down or moves leadership.
    pub disturbs: bool,
    /// The gates that must let it through.
    pub gates: Vec<String>,
    /// What passes by itself before it, if all goes well.
    pub after: Vec<Held>,
    /// What people or the calendar hold before it.
    pub waits_for: Vec<Held>,
    /// What `after` comes to, for people.
    #[serde(skip)]
    pub once: Option<String>,
}

/// A move of leadership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeadershipMove {
    /// In which step.
    pub step: usize,
    /// Who leads before.
    pub from: String,
    /// Who leads afterwards.
    pub to: String,
    /// The system can be told so; otherwise it is the likeliest one.
    pub chosen: bool,
}

/// What to know before it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// For machines.
    pub name: &'static str,
    /// For people.
    pub text: String,
}

/// How it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result")]
pub enum Ended {
    /// What is wanted is there.
    Done,
    /// Something holds, and nothing that would lift it is on its way.
    Held {
        /// What.
        hold: Held,
    },
    /// It goes on for longer than is looked ahead.
    OutOfSight,
}

impl Outlook {
    /// What was foreseen for a resource.
    /// `under_way` says that an upgrade is on record.
    pub fn of(
        resource: &QuorumCluster,
        want: &Want,
        under_way: bool,
        members: &[MemberStatus],
        forecast: &Forecast<Told>,
    ) -> Self {
        let way = forecast.way.as_ref();
        let blocked = forecast.blocked();
        let verdict = match blocked {
            Some(_) => Verdict::Blocked,
            None if under_way => Verdict::UnderWay,
            None if forecast.steps.is_empty() => Verdict::UpToDate,
            None => Verdict::CanBegin,
        };
        let end = match &forecast.end {
            End::Done => Ended::Done,
            End::Held(hold) => Ended::Held { hold: Held::of(hold) },
            End::OutOfSight => Ended::OutOfSight,
        };
        let moved = |Move { step, from, to }: Move| LeadershipMove {
            step,
            from: from.to_string(),
            to: to.to_string(),
            chosen: want.names_target,
        };
        Self {
            format: 2,
            subject: Subject::of(resource),
            verdict,
            from: way.map(|way| Place::of(&way.from)),
            to: Some(Place::of(way.map_or(&want.target, |way| &way.to))),
            order: way.and_then(|way| way.order),
            rolling_back: way.is_some_and(|way| way.rolling_back),
            blocked_by: blocked.map(Held::of),
            members: members.iter().map(Member::of).collect(),
            steps: steps(&forecast.steps),
            leadership_moves: forecast.moves().map(moved).collect(),
            gates: forecast.gates.iter().map(Gate::of).collect(),
            notes: forecast.notes.iter().map(|note| Remark { name: note.name(), text: note.to_string() }).collect(),
            end,
        }
    }

    /// A resource of which nothing can be decided.
    pub fn held(resource: &QuorumCluster, hold: &Hold) -> Self {
        Self {
            format: 2,
            subject: Subject::of(resource),
            verdict: Verdict::Blocked,
            from: None,
            to: None,
            order: None,
            rolling_back: false,
            blocked_by: Some(Held::of(hold)),
            members: Vec::new(),
            steps: Vec::new(),
            leadership_moves: Vec::new(),
            gates: Vec::new(),
            notes: Vec::new(),
            end: Ended::Held { hold: Held::of(hold) },
        }
    }
}

impl Held {
    fn of(hold: &Hold) -> Self {
        let Hold { reason, message, until } = hold;
        Self { reason: *reason, message: message.clone(), next_step: reason.next_step(), until: *until }
    }
}

fn steps(foreseen: &[Foreseen<Told>]) -> Vec<Ahead> {
    let mut before = None;
    let plan = |(Foreseen { step, gates, after, waits }, number): (&Foreseen<Told>, usize)| {
        let ahead = Ahead {
            number,
            kind: step.kind(),
            text: step.to_string(),
            pod: step.member().map(ToString::to_string),
            disturbs: step.disturbs(),
            gates: gates.iter().map(ToString::to_string).collect(),
            after: after.iter().map(Held::of).collect(),
            waits_for: waits.iter().map(Held::of).collect(),
            once: once(after, before.as_deref()),
        };
        before = step.member().map(ToString::to_string).or_else(|| before.take());
        ahead
    };
    foreseen.iter().zip(1..).map(plan).collect()
}

/// What was waited for, as what has come by then. The pod is the one of the step before.
fn once(after: &[Hold], pod: Option<&str>) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    // What comes of a write says more than that it was seen.
    for hold in after.iter().filter(|hold| after.len() == 1 || hold.reason != Reason::ControllerBehind) {
        let word = come(hold, pod.unwrap_or("the member"));
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let last = words.pop()?;
    Some(if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) })
}

fn come(hold: &Hold, pod: &str) -> String {
    let is = |reasons: &[Reason]| reasons.contains(&hold.reason);
    if is(&[Reason::ControllerBehind]) {
        "the StatefulSet's controller has seen it".to_owned()
    } else if is(&[Reason::AwaitingReplacement, Reason::PodNotReady]) {
        format!("{pod}'s pod is ready")
    } else if is(&[Reason::MemberUnhealthy, Reason::MemberNotJoined]) {
        "its member is healthy".to_owned()
    } else if is(&[Reason::MemberBehind]) {
        "has caught up".to_owned()
    } else if is(&[Reason::AwaitingHandOver]) {
        format!("leadership is seen to have left {pod}")
    } else if is(&[Reason::AwaitingConclusion]) {
        "the controller has concluded the rollout".to_owned()
    } else {
        format!("this is over: {}", hold.message)
    }
}
