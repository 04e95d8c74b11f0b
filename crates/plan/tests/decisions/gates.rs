//! Every gate: what it lets through, what it holds, and what it makes of what is not known.

use std::collections::BTreeSet;

use windlass_plan::{
    Fact, Hold, Member, Reason, View, Want,
    gate::{Ask, BEFORE_RESTART, first_objection},
};

use crate::support::{
    NEW, OLD, POSITION, half_way, member_mut, name, pod, pod_mut, remove_pod, rest, unknown, version, want,
};

/// What a row shows its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    /// What it demands.
    Right,
    /// The opposite.
    Wrong,
    /// Nothing that it could judge by.
    Unknown,
}

use Shown::{Right, Unknown, Wrong};

/// A gate, what it is shown, and what it says to that: none lets the victim be taken down.
struct Row(&'static str, Shown, Option<Reason>, fn(&mut Scene));

/// Five members, the top one replaced, `pd-3` is the victim and `pd-0` leads.
struct Scene {
    want: Want,
    view: View,
}

impl Scene {
    fn new() -> Self {
        Self { want: want(NEW), view: half_way(5, 0, 1) }
    }

    fn member(&mut self, index: u32) -> &mut Member {
        member_mut(&mut self.view, index)
    }

    fn leader(&mut self, index: u32) {
        self.view.quorum.leader = Fact::Known(name(index));
    }

    fn ask<T>(&self, question: impl FnOnce(&Ask<'_>) -> T) -> T {
        let version = version(NEW);
        let victim = self.view.outdated().next_back().cloned().unwrap_or_else(|| pod(3, OLD));
        question(&Ask { want: &self.want, view: &self.view, version: &version, victim: &victim })
    }
}

/// A pause and the list of pods are always known.
const NOTHING_UNKNOWN: [&str; 2] = ["NotPaused", "PodsPresent"];

/// Here an earlier gate has objected to what is not known, so this one has nothing to add.
const SOMEBODY_ELSE_OBJECTS: [&str; 1] = ["LeadershipStays"];

const ROWS: &[Row] = &[
    Row("NotPaused", Right, None, |_| {}),
    Row("NotPaused", Wrong, Some(Reason::Paused), |scene| scene.want.paused = true),
    Row("PodsPresent", Right, None, |_| {}),
    Row("PodsPresent", Right, None, |scene| pod_mut(&mut scene.view, 2).ready_since = None),
    Row("PodsPresent", Wrong, Some(Reason::PodNotReady), |scene| remove_pod(&mut scene.view, 0)),
    Row("PodsPresent", Wrong, Some(Reason::PodNotReady), |scene| pod_mut(&mut scene.view, 4).terminating = true),
    Row("PodsPresent", Wrong, Some(Reason::PodNotReady), |scene| pod_mut(&mut scene.view, 3).terminating = true),
    Row("MembersKnown", Right, None, |_| {}),
    Row("MembersKnown", Wrong, Some(Reason::MembersDoNotMatch), |scene| remove_pod(&mut scene.view, 1)),
    Row("MembersKnown", Wrong, Some(Reason::MembersDoNotMatch), |scene| scene.view.pods.push(pod(5, OLD))),
    Row("MembersKnown", Unknown, Some(Reason::MembersUnknown), |scene| scene.view.quorum.members = unknown()),
    Row("LeaderKnown", Right, None, |_| {}),
    Row("LeaderKnown", Wrong, Some(Reason::LeaderUnknown), |scene| scene.leader(7)),
    Row("LeaderKnown", Unknown, Some(Reason::LeaderUnknown), |scene| scene.view.quorum.leader = unknown()),
    Row("SpareMember", Right, None, |_| {}),
    Row("SpareMember", Right, None, |scene| scene.view = rest(3, 0)),
    Row("SpareMember", Wrong, Some(Reason::NoSpareMember), |scene| scene.view = rest(2, 0)),
    Row("SpareMember", Wrong, Some(Reason::NoSpareMember), |scene| scene.view = rest(1, 0)),
    Row("SpareMember", Right, None, |scene| {
        scene.view = rest(2, 0);
        scene.want.accept_downtime = true;
    }),
    Row("SpareMember", Unknown, Some(Reason::NoSpareMember), |scene| scene.view.quorum.members = unknown()),
    Row("EveryoneSettled", Right, None, |_| {}),
    Row("EveryoneSettled", Right, None, |scene| scene.member(4).position = Fact::Known(Some(POSITION - 100))),
    Row("EveryoneSettled", Right, None, |scene| scene.member(4).position = Fact::Known(None)),
    Row("EveryoneSettled", Wrong, Some(Reason::MemberBehind), |scene| {
        scene.member(1).position = Fact::Known(Some(0));
    }),
    Row("EveryoneSettled", Wrong, Some(Reason::PodNotReady), |scene| pod_mut(&mut scene.view, 1).ready_since = None),
    Row("EveryoneSettled", Wrong, Some(Reason::PodNotReady), |scene| pod_mut(&mut scene.view, 3).ready_since = None),
    Row("EveryoneSettled", Wrong, Some(Reason::MemberUnhealthy), |scene| scene.member(1).healthy = Fact::Known(false)),
    Row("EveryoneSettled", Wrong, Some(Reason::MemberUnhealthy), |scene| scene.member(3).healthy = Fact::Known(false)),
    Row("EveryoneSettled", Wrong, Some(Reason::VersionMismatch), |scene| {
        scene.member(4).version = Fact::Known(version(OLD));
    }),
    Row("EveryoneSettled", Wrong, Some(Reason::MemberBehind), |scene| {
        scene.member(4).position = Fact::Known(Some(POSITION - 101));
    }),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.member(1).healthy = unknown()),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.member(1).version = unknown()),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.member(4).position = unknown()),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.member(0).position = unknown()),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.view.quorum.members = unknown()),
    Row("QuorumSurvives", Right, None, |_| {}),
    Row("QuorumSurvives", Right, None, |scene| scene.member(1).healthy = Fact::Known(false)),
    Row("QuorumSurvives", Right, None, |scene| {
        scene.view = rest(2, 0);
        scene.want.accept_downtime = true;
    }),
    Row("QuorumSurvives", Wrong, Some(Reason::QuorumAtRisk), |scene| {
        scene.member(1).healthy = Fact::Known(false);
        scene.member(2).healthy = Fact::Known(false);
    }),
    // Accepted downtime is no excuse for a larger quorum that is merely sick (H14).
    Row("QuorumSurvives", Wrong, Some(Reason::QuorumAtRisk), |scene| {
        scene.want.accept_downtime = true;
        scene.member(1).healthy = Fact::Known(false);
        scene.member(2).healthy = Fact::Known(false);
    }),
    Row("QuorumSurvives", Unknown, Some(Reason::QuorumAtRisk), |scene| scene.member(1).healthy = unknown()),
    Row("QuorumSurvives", Unknown, Some(Reason::QuorumAtRisk), |scene| scene.view.quorum.members = unknown()),
    Row("LeadershipStays", Right, None, |_| {}),
    Row("LeadershipStays", Right, None, |scene| scene.member(0).priority = 9),
    Row("LeadershipStays", Right, None, |scene| scene.leader(3)),
    Row("LeadershipStays", Right, None, |scene| {
        scene.view = rest(1, 0);
        scene.member(0).priority = 9;
    }),
    Row("LeadershipStays", Wrong, Some(Reason::LeaderPriority), |scene| scene.member(2).priority = 1),
    Row("LeadershipStays", Wrong, Some(Reason::LeaderPriority), |scene| {
        scene.leader(3);
        scene.member(3).priority = 1;
    }),
    Row("LeadershipStays", Wrong, Some(Reason::NoHandOverTarget), |scene| {
        scene.leader(3);
        for index in [0, 1, 2, 4] {
            scene.member(index).healthy = Fact::Known(false);
        }
    }),
    Row("LeadershipStays", Wrong, Some(Reason::DowngradeNotAllowed), |scene| {
        scene.leader(3);
        scene.member(3).version = Fact::Known(version("9.0.0"));
    }),
    Row("LeadershipStays", Unknown, None, |scene| scene.view.quorum.members = unknown()),
    Row("LeadershipStays", Unknown, None, |scene| scene.view.quorum.leader = unknown()),
];

#[test]
fn every_gate_says_what_its_rows_say() {
    for (number, Row(gate, shown, expected, arrange)) in ROWS.iter().enumerate() {
        let mut scene = Scene::new();
        arrange(&mut scene);
        let gate = BEFORE_RESTART.iter().find(|known| known.name == *gate).expect("a row names a gate that exists");
        let verdict = scene.ask(|ask| (gate.check)(ask));
        let said = verdict.as_ref().err().map(|hold| hold.reason);
        assert_eq!(said, *expected, "{} with what is {shown:?}, row {number}: {verdict:?}", gate.name);
        assert!(verdict.err().is_none_or(|hold| !hold.message.is_empty()));
    }
}

#[test]
fn every_gate_has_a_row_of_each_kind() {
    let rows: BTreeSet<(&str, Shown)> = ROWS.iter().map(|Row(gate, shown, ..)| (*gate, *shown)).collect();
    let mut needed = BTreeSet::new();
    for gate in BEFORE_RESTART {
        needed.extend([(gate.name, Right), (gate.name, Wrong)]);
        if !NOTHING_UNKNOWN.contains(&gate.name) {
            needed.insert((gate.name, Unknown));
        }
    }
    assert_eq!(rows, needed);
}

#[test]
fn right_passes_and_wrong_holds_in_every_row() {
    for Row(gate, shown, expected, _) in ROWS {
        let holds = *shown == Wrong || *shown == Unknown && !SOMEBODY_ELSE_OBJECTS.contains(gate);
        assert_eq!(expected.is_some(), holds, "{gate} with what is {shown:?}");
    }
}

#[test]
fn what_is_wrong_or_unknown_for_one_gate_holds_the_whole_list() {
    for (number, Row(gate, shown, _, arrange)) in ROWS.iter().enumerate().filter(|(_, row)| row.1 != Right) {
        let mut scene = Scene::new();
        arrange(&mut scene);
        let verdict = scene.ask(|ask| first_objection(BEFORE_RESTART, ask));
        assert!(verdict.is_err(), "{gate} with what is {shown:?}, row {number}");
    }
}

#[test]
fn nobody_objects_where_all_is_well() {
    assert_eq!(Scene::new().ask(|ask| first_objection(BEFORE_RESTART, ask)), Ok(()));
}

#[test]
fn the_first_objection_in_the_list_is_the_one_that_is_told() {
    let mut scene = Scene::new();
    scene.view.quorum.leader = unknown();
    scene.member(1).healthy = Fact::Known(false);
    let told = |scene: &Scene| scene.ask(|ask| first_objection(BEFORE_RESTART, ask)).map_err(|hold| hold.reason);
    assert_eq!(told(&scene), Err(Reason::LeaderUnknown));
    scene.want.paused = true;
    assert_eq!(told(&scene), Err(Reason::Paused));
}

#[test]
fn gates_are_named_once_each() {
    let names: BTreeSet<&str> = BEFORE_RESTART.iter().map(|gate| gate.name).collect();
    assert_eq!(names.len(), BEFORE_RESTART.len());
}

#[test]
fn a_pod_that_is_not_ready_says_what_kubernetes_says() {
    let mut scene = Scene::new();
    let sick = pod_mut(&mut scene.view, 1);
    sick.ready_since = None;
    sick.trouble = Some(windlass_plan::Trouble::Unschedulable { message: "no room".into() });
    let verdict = scene.ask(|ask| first_objection(BEFORE_RESTART, ask));
    assert_eq!(verdict, Err(Hold::new(Reason::Unschedulable, "pod pd-1 is not ready: no node takes it: no room")));
}

#[test]
fn a_pod_that_is_not_ready_says_what_its_member_says_where_kubernetes_has_no_word() {
    let mut scene = Scene::new();
    pod_mut(&mut scene.view, 1).ready_since = None;
    let member = member_mut(&mut scene.view, 1);
    (member.healthy, member.trouble) = (Fact::Known(false), Some("it is sealed".into()));
    let verdict = scene.ask(|ask| first_objection(BEFORE_RESTART, ask));
    assert_eq!(verdict, Err(Hold::new(Reason::PodNotReady, "pod pd-1 is not ready: it is sealed")));
}

#[test]
fn pods_and_members_are_counted_from_the_first_ordinal() {
    let mut scene = Scene::new();
    scene.view.workload.first_ordinal = 1;
    let verdict = scene.ask(|ask| first_objection(BEFORE_RESTART, ask));
    assert_eq!(verdict, Err(Hold::new(Reason::PodNotReady, "pod pd-5 does not exist yet")));
}
