//! A forecast for people and machines. `docs/plan.md` describes the fields, and machines rely on them: they are added to, not changed.

use std::process::ExitCode;

use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;
use windlass_api::{
    QuorumCluster, members,
    status::{GateStatus, MemberStatus},
    translate,
};
use windlass_plan::{
    Forecast, Hold, Reason, View, Want,
    forecast::{End, Foreseen, Move},
    gate::GateState,
    rolling::{gates::list::overridable, known::want::Target},
};

/// The whole of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of these fields.
    format: u32,
    pub namespace: String,
    pub name: String,
    pub system: &'static str,
    pub stateful_set: String,
    pub verdict: Verdict,
    pub from: Option<Place>,
    pub to: Option<Place>,
    pub order: Option<&'static str>,
    pub reverting: bool,
    pub blocked_by: Option<Held>,
    pub members: Vec<MemberStatus>,
    pub steps: Vec<Planned>,
    pub leadership_moves: Vec<Moved>,
    pub gates: Vec<Gate>,
    pub notes: Vec<Told>,
    pub end: Ended,
}

/// In a word.
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    pub version: String,
    pub image: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    pub reason: &'static str,
    pub message: String,
    pub next_step: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    pub number: usize,
    pub name: &'static str,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    pub disturbs: bool,
    pub gates: Vec<String>,
    pub after: Vec<Held>,
    pub waits_for: Vec<Held>,
    /// What `after` comes to, for people.
    #[serde(skip)]
    pub once: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moved {
    pub step: usize,
    pub from: String,
    pub to: String,
    /// The system can be told so; otherwise it is the likeliest one.
    pub chosen: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    #[serde(flatten)]
    pub status: GateStatus,
    pub overridable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden_until: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    pub name: &'static str,
    pub text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    pub result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Held>,
}

impl Report {
    /// What was foreseen for a resource.
    pub fn of(resource: &QuorumCluster, want: &Want, view: &View, forecast: &Forecast) -> Self {
        let place = |target: &Target| Place { version: target.version.to_string(), image: target.image.clone() };
        let way = forecast.way.as_ref();
        let blocked = forecast.blocked();
        let verdict = match blocked {
            Some(_) => Verdict::Blocked,
            None if view.record.is_some() => Verdict::UnderWay,
            None if forecast.steps.is_empty() => Verdict::UpToDate,
            None => Verdict::CanBegin,
        };
        let end = match &forecast.end {
            End::Done => Ended { result: "Done", hold: None },
            End::Held(hold) => Ended { result: "Held", hold: Some(Held::of(hold)) },
            End::OutOfSight => Ended { result: "OutOfSight", hold: None },
        };
        let moved = |Move { step, from, to }: Move| Moved {
            step,
            from: from.to_string(),
            to: to.to_string(),
            chosen: want.names_target,
        };
        Self {
            verdict,
            from: way.map(|way| place(&way.from)),
            to: Some(way.map_or_else(|| place(&want.target), |way| place(&way.to))),
            order: way.map(|way| way.order.into()),
            reverting: way.is_some_and(|way| way.reverting),
            blocked_by: blocked.map(Held::of),
            members: members::seen(view, view.record.as_ref(), resource.spec.upgrade.max_lag_entries),
            steps: steps(&forecast.steps),
            leadership_moves: forecast.moves().map(moved).collect(),
            gates: forecast.gates.iter().map(gate).collect(),
            notes: forecast.notes.iter().map(|note| Told { name: note.name(), text: note.to_string() }).collect(),
            end,
            ..Self::empty(resource)
        }
    }

    /// A resource of which nothing can be decided.
    pub fn held(resource: &QuorumCluster, hold: &Hold) -> Self {
        let end = Ended { result: "Held", hold: Some(Held::of(hold)) };
        Self { blocked_by: Some(Held::of(hold)), end, ..Self::empty(resource) }
    }

    fn empty(resource: &QuorumCluster) -> Self {
        Self {
            format: 1,
            namespace: resource.namespace().unwrap_or_default(),
            name: resource.name_any(),
            system: resource.spec.system.type_.name(),
            stateful_set: resource.spec.workload.stateful_set.clone(),
            verdict: Verdict::Blocked,
            from: None,
            to: None,
            order: None,
            reverting: false,
            blocked_by: None,
            members: Vec::new(),
            steps: Vec::new(),
            leadership_moves: Vec::new(),
            gates: Vec::new(),
            notes: Vec::new(),
            end: Ended { result: "Held", hold: None },
        }
    }

    /// What the shell is told.
    pub fn exit_code(&self) -> ExitCode {
        match self.verdict {
            Verdict::UpToDate | Verdict::CanBegin | Verdict::UnderWay => ExitCode::SUCCESS,
            Verdict::Blocked => ExitCode::from(2),
        }
    }
}

impl Held {
    fn of(hold: &Hold) -> Self {
        let Hold { reason, message, until } = hold;
        Self { reason: reason.name(), message: message.clone(), next_step: reason.next_step(), until: *until }
    }
}

fn gate(gate: &GateState) -> Gate {
    let (overridable, overridden_until) = (overridable(&gate.name), gate.overridden_until);
    Gate { status: translate::gate(gate), overridable, overridden_until }
}

fn steps(foreseen: &[Foreseen]) -> Vec<Planned> {
    let mut before = None;
    let plan = |(Foreseen { step, gates, after, waits }, number): (&Foreseen, usize)| {
        let planned = Planned {
            number,
            name: step.name(),
            text: step.to_string(),
            pod: step.member().map(ToString::to_string),
            disturbs: step.disturbs(),
            gates: gates.iter().map(ToString::to_string).collect(),
            after: after.iter().map(Held::of).collect(),
            waits_for: waits.iter().map(Held::of).collect(),
            once: once(after, before.as_deref()),
        };
        before = step.member().map(ToString::to_string).or_else(|| before.take());
        planned
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
    match hold.reason.name() {
        "ControllerBehind" => "the StatefulSet's controller has seen it".to_owned(),
        "AwaitingReplacement" | "PodNotReady" => format!("{pod}'s pod is ready"),
        "MemberUnhealthy" | "MemberNotJoined" => "its member is healthy".to_owned(),
        "MemberBehind" => "has caught up".to_owned(),
        "AwaitingHandOver" => format!("leadership is seen to have left {pod}"),
        "AwaitingConclusion" => "the controller has concluded the rollout".to_owned(),
        _ => format!("this is over: {}", hold.message),
    }
}
