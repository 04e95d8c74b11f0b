//! One quorum as it stands, by what the operator wrote into its resource.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use windlass_api::{
    QuorumCluster, Word,
    conditions::Tri,
    phase::Phase,
    quorum_cluster::gates::Override,
    reading,
    status::{
        gates::{GateStatus, Question},
        members::{Lag, MemberStatus, Role},
    },
    translate,
    word::Written,
};
use windlass_plan::{
    Hold, Order, Record,
    gate::{GateState, State, overridable},
    rolling::known::stage::{Stage, StageKind},
    strategy::known::want::Target,
};

use crate::{outlook::Outlook, said::Said};

/// How a quorum stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuorumOverview {
    /// Whose.
    #[serde(flatten)]
    pub subject: Subject,
    /// In one word; none before the operator has said one that this program knows.
    pub phase: Option<Phase>,
    /// The version that all members run; none before they agree.
    pub running: Option<String>,
    /// The version that is asked for; none where the StatefulSet's template says it.
    pub wanted: Option<String>,
    /// The upgrade that is under way comes from here.
    pub from: Option<Place>,
    /// And it goes there.
    pub to: Option<Place>,
    /// Who goes first in it.
    pub order: Option<Order>,
    /// It goes back to where an unfinished upgrade came from.
    pub rolling_back: bool,
    /// Done members of all members, like 1/3.
    pub progress: Option<String>,
    /// What is being done now.
    pub doing: Option<Doing>,
    /// What the operator says, or waits for.
    pub said: Option<Said>,
    /// What `spec.requests.approve` with a new value would approve.
    pub asked: Option<Question>,
    /// Its members, in the order of their ordinals.
    pub members: Vec<Member>,
    /// Where each gate stands before the next member, in the order in which they are asked.
    pub gates: Vec<Gate>,
    /// What would happen from here, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Outlook>,
}

/// Which quorum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The QuorumCluster's namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What runs there, by the name in the resource.
    pub system: String,
    /// The StatefulSet that holds the members.
    pub stateful_set: String,
}

/// A version and its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The version.
    pub version: String,
    /// The image.
    pub image: String,
}

/// What is being done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Doing {
    /// For people.
    pub text: String,
    /// What is waited for of the member that was replaced last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageKind>,
    /// That member's pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Since when; its deadline counts from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The pod, and the member's name.
    pub pod: String,
    /// Whether it leads.
    pub role: Role,
    /// What the running process says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether it is healthy.
    pub healthy: Tri,
    /// Whether it keeps up with the leader, during an upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<Lag>,
}

/// Where a gate stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// Which.
    pub name: String,
    /// Whether it lets the next step through.
    pub state: State,
    /// Why it does not, in a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Word>,
    /// And in a sentence, with what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A person may set it aside.
    pub overridable: bool,
    /// Until when one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden_until: Option<Timestamp>,
}

impl QuorumOverview {
    /// How a QuorumCluster stands, read as leniently as the operator reads it: one that can't be read says so, and which field it is.
    pub fn read(raw: &Value, outlook: Option<Outlook>) -> Self {
        let standing = match reading::quorum_cluster(raw) {
            Ok(resource) => Self::of(&resource),
            Err(hold) => Self::unreadable(raw, &hold),
        };
        Self { outlook, ..standing }
    }

    fn of(resource: &QuorumCluster) -> Self {
        let status = resource.status.clone().unwrap_or_default();
        let record = status.upgrade.as_ref().and_then(|upgrade| translate::record(upgrade).ok());
        let intent = status.upgrade.as_ref().and_then(|upgrade| upgrade.intent.clone());
        let overrides = &resource.spec.gates.overrides;
        Self {
            phase: status.phase,
            running: status.current_version,
            wanted: resource.spec.version.clone(),
            from: record.as_ref().map(|record| Place::of(&record.from)),
            to: record.as_ref().map(|record| Place::of(&record.target)),
            order: record.as_ref().map(|record| record.order),
            rolling_back: record.as_ref().is_some_and(|record| record.rolling_back),
            progress: status.upgrade.map(|upgrade| upgrade.progress),
            doing: record.and_then(|record| Doing::of(record, intent)),
            said: Said::of(&status.conditions, resource.metadata.generation),
            asked: status.approval.and_then(|approval| approval.asked),
            members: status.members.iter().map(Member::of).collect(),
            gates: status.gates.iter().map(|gate| Gate::written(gate, overrides)).collect(),
            ..Self::empty(Subject::of(resource))
        }
    }

    fn unreadable(raw: &Value, hold: &Hold) -> Self {
        let text = |at: &str| raw.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let subject = Subject {
            namespace: text("/metadata/namespace").to_owned(),
            name: text("/metadata/name").to_owned(),
            system: text("/spec/system/type").to_owned(),
            stateful_set: text("/spec/workload/statefulSet").to_owned(),
        };
        let phase = text("/status/phase").parse().ok();
        Self { phase, said: Some(Said::unreadable(hold)), ..Self::empty(subject) }
    }

    fn empty(subject: Subject) -> Self {
        Self {
            subject,
            phase: None,
            running: None,
            wanted: None,
            from: None,
            to: None,
            order: None,
            rolling_back: false,
            progress: None,
            doing: None,
            said: None,
            asked: None,
            members: Vec::new(),
            gates: Vec::new(),
            outlook: None,
        }
    }

    /// All members run what the newest spec asks for, and the operator says so.
    pub fn is_at_rest(&self) -> bool {
        self.from.is_none() && self.said.as_ref().is_some_and(|said| said.ready && said.current)
    }
}

impl Subject {
    pub(crate) fn of(resource: &QuorumCluster) -> Self {
        Self {
            namespace: resource.metadata.namespace.clone().unwrap_or_default(),
            name: resource.metadata.name.clone().unwrap_or_default(),
            system: resource.spec.system.type_.name().to_owned(),
            stateful_set: resource.spec.workload.stateful_set.clone(),
        }
    }
}

impl Place {
    pub(crate) fn of(target: &Target) -> Self {
        Self { version: target.version.to_string(), image: target.image.clone() }
    }
}

impl Doing {
    fn of(record: Record, intent: Option<String>) -> Option<Self> {
        match record.stage {
            Some(Stage { kind, pod, since }) => {
                let text = match kind {
                    StageKind::Replace => format!("{pod} is replaced"),
                    StageKind::Join => format!("{pod} joins the quorum"),
                    StageKind::Sync => format!("{pod} catches up"),
                };
                Some(Self { text, stage: Some(kind), pod: Some(pod.to_string()), since: Some(since) })
            }
            None => intent.map(|text| Self { text, stage: None, pod: None, since: None }),
        }
    }
}

impl Member {
    pub(crate) fn of(written: &MemberStatus) -> Self {
        let MemberStatus { pod, role, version, healthy, lag } = written;
        Self {
            pod: pod.clone(),
            role: role.known().unwrap_or(Role::Unknown),
            version: version.clone(),
            healthy: healthy.known().unwrap_or(Tri::Unknown),
            lag: lag.as_ref().and_then(Written::known),
        }
    }
}

impl Gate {
    pub(crate) fn of(gate: &GateState) -> Self {
        Self {
            name: gate.name.clone().into_owned(),
            state: gate.state,
            reason: gate.hold.as_ref().map(|hold| hold.reason.into()),
            message: Some(gate.message()).filter(|message| !message.is_empty()),
            overridable: overridable(&gate.name),
            overridden_until: gate.overridden_until,
        }
    }

    /// As the status has it. A state that this program does not know lets nothing through, as far as it can tell.
    fn written(gate: &GateStatus, overrides: &[Override]) -> Self {
        let GateStatus { name, state, reason, message } = gate;
        let state = state.known().unwrap_or(State::Unknown);
        let aside = overrides.iter().find(|one| one.gate == *name && state == State::Overridden);
        Self {
            name: name.clone(),
            state,
            reason: reason.clone(),
            message: message.clone(),
            overridable: overridable(name),
            overridden_until: aside.map(|one| one.until.0),
        }
    }
}
